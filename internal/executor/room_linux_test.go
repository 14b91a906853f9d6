package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/conform"
)

// TestRoom: a launch that fills its private home is ended as failed, with the reason, and one that does not goes on.
func TestRoom(t *testing.T) {
	conform.Rule(t, "9-one-tree disk", "a launch that fills the private folders of its run is ended, with the reason")
	b := held(t, "workflow: {id: w}\nsteps:\n  - {id: A, run: [sh, -c, 'head -c 8000000 /dev/zero >\"$HOME/big\"; sleep 60'], next_step: B}\n  - {id: B, run: [sleep, '2'], next_step: DONE}\n")
	b.settings.Sandbox.MaxHomeGB = 0.004
	ev := b.carry(b.stepJob("A", 1, 1))
	if !ev.Exit.Stopped || ev.Exit.Class != engine.ClassWork || !strings.Contains(ev.Exit.Why, "sandbox.max_home_gb is 0.004 GB") {
		t.Errorf("%+v", ev.Exit)
	}
	b.settings.Sandbox.MaxHomeGB = 1
	if ev := b.carry(b.stepJob("B", 1, 1)); ev.Exit.Code != 0 || ev.Exit.Class != "" {
		t.Errorf("%+v", ev.Exit)
	}
}

// TestUsedIn: a name more is no room more, and a file that only looks large has little.
func TestUsedIn(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a/big"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "a/big"), filepath.Join(dir, "b/again")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b/hole"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "b/hole"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if n, err := usedIn([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "none")}); err != nil || n < 1<<20 || n > 1<<20+64<<10 {
		t.Errorf("%d bytes %v", n, err)
	}
	deep := dir
	for range 19 { // what cannot be looked into is not taken for empty
		deep = filepath.Join(deep, strings.Repeat("x", 200))
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(dir, strings.Repeat(strings.Repeat("y", 200)+"/", 3))
	if err := os.MkdirAll(top, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, strings.Repeat("x", 200)), filepath.Join(top, "deep")); err != nil {
		t.Fatal(err)
	}
	if n, err := usedIn([]string{dir}); err == nil {
		t.Errorf("%d bytes of what cannot be read", n)
	}
}
