//go:build unix

package serve

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/notify"
	"sluice/watcher"
)

// TestSettingsOfAnExchangedFolder: settings whose folder is exchanged for another count as soon as those
// that are written in place.
func TestSettingsOfAnExchangedFolder(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name, "config.yaml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("notify: {desktop: false}\n"+text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	con := console.New([]string{"XDG_CONFIG_HOME=" + dir, "PATH=" + os.Getenv("PATH")}, strings.NewReader(""), io.Discard, io.Discard)
	w := &Parts{Options: Options{Console: con}, log: zerolog.Nop(), ctx: t.Context(), watch: watcher.New(watcher.Options{}),
		poked: make(chan struct{}, 1), live: map[*liveSettings]bool{}, faults: map[*liveSettings]string{}}
	t.Cleanup(func() { _ = w.watch.Close() })
	s := &liveSettings{parts: w, root: t.TempDir(), changed: make(chan engine.Config, 1)}
	s.files.Paths = w.settingsFiles(s.root)
	rescans := func(want time.Duration) {
		t.Helper()
		until := time.After(25 * time.Second)
		for time.Duration(s.now().Rescan) != want {
			select {
			case <-until:
				t.Fatalf("rescan: %v, want %v", time.Duration(s.now().Rescan), want)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	if err := os.Mkdir(filepath.Join(s.root, ".workflow"), 0o755); err != nil {
		t.Fatal(err)
	}
	put("sluice", "rescan: 11s\n")
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	s.watchFiles()
	w.live[s] = true
	s.poke()
	go w.keepSettings(t.Context())
	go w.spread(t.Context())
	put("sluice", "rescan: 12s\n")
	rescans(12 * time.Second)
	put("new", "rescan: 13s\n")
	move("sluice", "old")
	move("new", "sluice")
	rescans(13 * time.Second)
	put("sluice", "rescan: 14s\n")
	rescans(14 * time.Second)
}

// TestReloadEndsNoNotice: reading the settings again does not interrupt a notice, and the next one
// uses the new settings.
func TestReloadEndsNoNotice(t *testing.T) {
	dir := t.TempDir()
	config, slow := filepath.Join(dir, "sluice", "config.yaml"), filepath.Join(dir, "slow")
	own := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(config), 0o755), os.WriteFile(config, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	own("notify: {desktop: false, command: [sh, -c, 'echo $$ >" + slow + "; while [ ! -e " + slow + ".go ]; do sleep 0.05; done']}\n")
	con := console.New([]string{"XDG_CONFIG_HOME=" + dir, "PATH=" + os.Getenv("PATH")}, strings.NewReader(""), io.Discard, io.Discard)
	s := &liveSettings{parts: &Parts{Options: Options{Console: con}, log: zerolog.Nop()}, root: t.TempDir()}
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	first, sent := s.tell(), make(chan []notify.Result, 1)
	go func() { sent <- first.Send(t.Context(), notify.Notice{Title: "x"}) }()
	for _, err := os.Stat(slow); err != nil; _, err = os.Stat(slow) { // until it goes out
		select {
		case r := <-sent:
			t.Fatalf("it did not go out: %+v", r)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := s.read(); err != nil || s.tell() != first {
		t.Errorf("%v: settings that are the same changed the notifier", err)
	}
	own("notify: {desktop: false, command: [\"true\"]}\n")
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	if r := s.tell().Send(t.Context(), notify.Notice{Title: "y"}); len(r) != 2 || !r[1].OK {
		t.Errorf("the new one: %+v", r)
	}
	if err := os.WriteFile(slow+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := <-sent; len(r) != 2 || !r[1].OK {
		t.Errorf("the old one: %+v", r)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
