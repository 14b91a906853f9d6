//go:build linux || darwin

package world

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sluice/agents/launch"
	"sluice/agents/sandbox"
	"sluice/engine"
)

// TestStateWrites: a held step may only write below .workflow/ in a folder that nobody else can
// replace by a link.
func TestStateWrites(t *testing.T) {
	for _, c := range []struct {
		outs, want []string
		refused    bool
	}{
		{[]string{"a.txt", ".workflow/backlog/x.md", ".workflow/backlog/deep/er/x.md"}, []string{".workflow/backlog", ".workflow/backlog/deep/er"}, false},
		{[]string{".workflow/runs/w-1/files/a/b/x"}, []string{".workflow/runs/w-1/files/a/b"}, false},
		{[]string{".workflow/specs/x.yaml"}, nil, true},
		{[]string{".workflow/SPECS/x.yaml"}, nil, true},
		{[]string{".workflow/a/../signals/x"}, nil, true},
		{[]string{".workflow/runs/w-1/X.1/x"}, nil, true},
		{[]string{".workflow/config.yaml"}, nil, true},
	} {
		got, err := launch.StateWrites(c.outs)
		if !slices.Equal(got, c.want) || (err != nil) != c.refused {
			t.Errorf("%q: %q %v", c.outs, got, err)
		}
	}
	b := newBench(t, checkSpec)
	for _, dir := range []string{".workflow/backlog", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(b.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../elsewhere", filepath.Join(b.root, ".workflow/backlog/evil")); err != nil {
		t.Fatal(err)
	}
	got, err := b.e.MakeOwn([]string{".workflow/backlog", ".workflow/backlog/deep/er", ".workflow/backlog/evil/x", ".workflow/runs/w-1/files/a/b"})
	if want := []string{filepath.Join(b.root, ".workflow/backlog"), filepath.Join(b.root, ".workflow/runs/w-1/files")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
	if !b.has(".workflow/backlog/deep/er") || !b.has(".workflow/runs/w-1/files/a/b") || b.has("elsewhere/x") {
		t.Error("the folders of its outputs are not as they should be")
	}
}

// TestExposedIsKept: that a launch was not held outlives the daemon, also where it could not be written down at first.
func TestExposedIsKept(t *testing.T) {
	b := newBench(t, checkSpec)
	file := b.e.ExposedFile(run1)
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(file)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Expose(run1, "", "a test"); err == nil {
		t.Fatal("it was written where nothing can be")
	}
	if err := os.Remove(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Expose(run1, "", "a test"); err != nil {
		t.Fatal(err)
	}
	b.e.Close()
	b.e = b.executor(func(o *Options) { o.Sandbox = func() (*sandbox.Box, error) { return &sandbox.Box{}, nil } })
	if level, why := b.e.Level(run1); level != engine.TrustFile || why != "a test" {
		t.Errorf("%s: %q is known of it", level, why)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil { // as a power cut leaves it
		t.Fatal(err)
	}
	b.e.Close()
	b.e = b.executor(func(o *Options) { o.Sandbox = func() (*sandbox.Box, error) { return &sandbox.Box{}, nil } })
	if level, why := b.e.Level(run1); level != engine.TrustFile || why == "" {
		t.Error("after a power cut it is not known")
	}
}
