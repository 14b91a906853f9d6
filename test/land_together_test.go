//go:build linux

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/specs"
)

const togetherRuns = 12

const togetherSpec = `workflow: {id: w, workspace: run, on_done: {land: squash}}
steps:
  - {id: A, run: 'echo made > "$SLUICE_RUN.txt"; until test -e "@GO@"; do sleep 0.02; done', next_step: DONE}
`

// Runs that end at the same time all land: each landing starts from the one before.
func TestRunsLandTogether(t *testing.T) {
	t.Parallel()
	w := newSandbox(t, quickTimes+"max_parallel: 16\n")
	spec := strings.ReplaceAll(togetherSpec, "@GO@", filepath.Join(w.work, "go"))
	w.put("repo/.workflow/specs/w.yaml", spec)
	w.commit()
	w.do(w.bin, "watch", "add")
	w.boot()
	eventually(t, "it serves", func() bool { _, ok := w.status(); return ok })
	pinned, faults := specs.Pin(w.repo, filepath.Join(w.repo, ".workflow/specs/w.yaml"), []byte(spec), nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c := daemon.NewClient(w.state())
	defer c.Close()
	for range togetherRuns {
		if d, err := c.Do(t.Context(), engine.RunRequested{Workflow: "w", Source: string(pinned), Parallel: true}, "command"); err != nil || d.Run == "" {
			t.Fatalf("%v %s", err, d.Ignored)
		}
	}
	eventually(t, "all work", func() bool {
		made, _ := filepath.Glob(filepath.Join(w.repo, ".workflow/worktrees/*/*.txt"))
		return len(made) == togetherRuns
	})
	if err := os.WriteFile(filepath.Join(w.work, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var st daemon.Status
	eventually(t, "all end", func() bool {
		st, _ = w.status()
		ended := 0
		for _, r := range st.Runs {
			if !r.Live() {
				ended++
			}
		}
		return ended == togetherRuns
	})
	for _, r := range st.Runs {
		if r.EndWhy != "" {
			t.Errorf("%s: %s", r.ID, r.EndWhy)
		}
		w.do("git", "cat-file", "-e", fmt.Sprintf("main:%s.txt", r.ID))
	}
}
