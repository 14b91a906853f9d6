package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// The inbox of a worktree in which a commit or an agent has put a link is neither made nor read.
func TestNoInboxThroughALink(t *testing.T) {
	t.Parallel()
	const key, run = "far-1/A#1.1", "far-1"
	for link, inbox := range map[string]string{".workflow": "signals/far-1", ".workflow/signals": "far-1"} {
		w := New(Options{Layout: layout.Layout{Root: t.TempDir(), State: t.TempDir()}})
		away, at := t.TempDir(), filepath.Join(w.dir(key), link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(away, at),
			os.MkdirAll(filepath.Join(away, inbox), 0o755),
			os.WriteFile(filepath.Join(away, inbox, "A-done.json"), []byte(`{"step": "A", "status": "done"}`), 0o600)); err != nil {
			t.Fatal(err)
		}
		if dir, err := inboxIn(w.dir(key), run); err == nil {
			t.Errorf("%s: its inbox is %s", link, dir)
		}
		if got := w.Signals(launch.Sent{Key: key, Run: run}); len(got) > 0 {
			t.Errorf("%s: what is behind it is read: %s", link, got[0].Data)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Rename(away, at)); err != nil {
			t.Fatal(err)
		}
		if got := w.Signals(launch.Sent{Key: key, Run: run}); len(got) != 1 {
			t.Errorf("%s: without the link %d are read", link, len(got))
		}
	}
}

// A launch's own signal comes back, however many other files are in its inbox.
func TestOwnSignalAmongMany(t *testing.T) {
	t.Parallel()
	s := launch.Sent{Key: "far-1/A#1.1", Run: "far-1", Signal: "A-done.json"}
	w := New(Options{Layout: layout.Layout{Root: t.TempDir(), State: t.TempDir()}})
	own := w.PIDFile(s.Key) + layout.InboxMark
	in := filepath.Join(w.dir(s.Key), layout.SignalsDir, s.Run)
	put := func(dir, name string) {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 * launch.MaxSignals {
		put(own, fmt.Sprintf("note-%d.json", i))
		put(in, fmt.Sprintf("note-%d.json", i))
	}
	put(in, s.Signal)
	for _, ended := range []bool{false, true} {
		got := w.signals(s, ended)
		n := 0
		for _, x := range got {
			if x.Name == s.Signal {
				n++
			}
		}
		if n != 1 || len(got) != launch.MaxSignals {
			t.Errorf("ended %v: %d files, %d of them its own signal", ended, len(got), n)
		}
	}
}

// What an order has a worker start is an agent of the worker's own settings, unless the worker's label
// says that it takes commands.
func TestNoCommandWithoutTheLabel(t *testing.T) {
	t.Parallel()
	p, err := New(Options{}).prepare(t.Context(), launch.Sent{Argv: []string{"true"}})
	var no *job.Refusal
	if !errors.As(err, &no) || no.Exit.Class != engine.ClassFatal || !strings.Contains(no.Exit.Why, "takes no commands") {
		t.Errorf("%v, %+v", err, p)
	}
}
