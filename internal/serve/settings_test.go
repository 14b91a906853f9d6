//go:build unix

package serve

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/internal/console"
	"sluice/internal/settings"
	"sluice/notify"
	"sluice/watcher"
)

// partsIn are the parts of a process whose person's settings are below dir.
func partsIn(dir string) *Parts {
	con := console.New([]string{"XDG_CONFIG_HOME=" + dir, "PATH=" + os.Getenv("PATH")}, strings.NewReader(""), io.Discard, io.Discard)
	return &Parts{Options: Options{Console: con}, log: zerolog.Nop()}
}

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
	w := partsIn(dir)
	w.ctx, w.watch, w.poked = t.Context(), watcher.New(watcher.Options{}), make(chan struct{}, 1)
	w.live, w.faults = map[*liveSettings]bool{}, map[*liveSettings]string{}
	t.Cleanup(func() { _ = w.watch.Close() })
	s := &liveSettings{parts: w, root: t.TempDir(), changed: make(chan struct{}, 1)}
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

// TestSharedSettings: repos without a settings file share those of the person until that file changes, one of theirs
// is added, or they are asked to read again.
func TestSharedSettings(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	own, project := filepath.Join(dir, "sluice", "config.yaml"), filepath.Join(root, ".workflow", "config.yaml")
	put := func(file, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	w := partsIn(dir)
	read := func(root string) (settings.Settings, error) {
		files := settings.Files{Paths: w.settingsFiles(root)}
		return w.settings(root, files.Now())
	}
	// rescan reads the settings of a repo, and returns where its roles are.
	rescan := func(root string, want time.Duration) uintptr {
		t.Helper()
		got, err := read(root)
		if err != nil {
			t.Fatal(err)
		}
		if time.Duration(got.Rescan) != want {
			t.Errorf("rescan: %s, want %s", time.Duration(got.Rescan), want)
		}
		return reflect.ValueOf(got.Roles).Pointer()
	}
	put(own, "rescan: 11s\n")
	if rescan(root, 11*time.Second) != rescan(t.TempDir(), 11*time.Second) {
		t.Error("they were read twice")
	}
	put(own, "rescan: 112s\n")
	first := rescan(root, 112*time.Second)
	put(project, "agents: {}\n")
	if rescan(root, 112*time.Second) == first {
		t.Error("a repo with a file of its own has the others' settings")
	}
	put(project, "notify: {desktop: false}\n")
	if _, err := read(root); err == nil {
		t.Error("a project's file set what it must not, unread")
	}
	if err := os.Remove(project); err != nil {
		t.Fatal(err)
	}
	if rescan(root, 112*time.Second) != first {
		t.Error("they are not shared again")
	}
	w.personal.forget()
	if rescan(root, 112*time.Second) == first {
		t.Error("a reload did not read again")
	}
	put(own, "rescan: x\n")
	for range 2 {
		if _, err := read(root); err == nil {
			t.Error("a fault was reported to one repo only")
		}
	}
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
	s := &liveSettings{parts: partsIn(dir), root: t.TempDir()}
	s.files.Paths = s.parts.settingsFiles(s.root)
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

// TestSharedSettingsAreNobodys: a settings file that comes while the shared settings are read is that repo's alone.
func TestSharedSettingsAreNobodys(t *testing.T) {
	dir, one, other := t.TempDir(), t.TempDir(), t.TempDir()
	project := filepath.Join(one, ".workflow", "config.yaml")
	if err := os.Mkdir(filepath.Dir(project), 0o755); err != nil {
		t.Fatal(err)
	}
	aside := project + ".aside"
	if err := os.WriteFile(aside, []byte("agents: {mine: {command: [./pass.sh]}}\nroles: {reviewer: {agent: mine}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := partsIn(dir)
	read := func(root string) []string {
		files := settings.Files{Paths: w.settingsFiles(root)}
		s, err := w.settings(root, files.Now())
		if err != nil {
			t.Fatal(err)
		}
		return s.Role("reviewer").Agent
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = os.Rename(aside, project), os.Rename(project, aside)
			}
		}
	}()
	for n := range 500 {
		w.personal.forget() // as after a change of the person's file
		read(one)
		if got := read(other); slices.Contains(got, "mine") {
			t.Errorf("try %d: another repo has the reviewer %q", n, got)
			break
		}
	}
	close(stop)
	<-done
}
