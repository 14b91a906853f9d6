//go:build linux

package world

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

const onDoneSpec = `
workflow: {id: w, workspace: run, on_done: {land: HOW, close_worktree: true}}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
gates:
  - {id: G, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`

// landing runs the spec to its end and returns why it was not landed.
func landing(t *testing.T, how, meanwhile string) (*bench, string) {
	source := strings.Replace(onDoneSpec, "HOW", how, 1)
	b := newBench(t, source)
	b.hold(true)
	b.script("one", `echo made >made.txt; `+meanwhile)
	b.put(".workflow/specs/w.yaml", source)
	b.sh("git config user.name Ann; git config user.email ann@example.org; git add -A && git commit -qm spec; echo mine >mine.txt")
	cl, _ := b.loop()
	b.start(cl, source)
	eventually(t, "the run is over", func() bool { return b.status(cl).Phase == engine.RunCompleted })
	return b, b.status(cl).EndWhy
}

func TestOnDoneLands(t *testing.T) {
	conform.Rule(t, "9-one-tree on_done", "the work is on the person's branch when the run is over")
	for _, how := range []string{"squash", "merge", "ff"} {
		t.Run(how, func(t *testing.T) {
			b, why := landing(t, how, "")
			if why != "" {
				t.Fatal(why)
			}
			if made, st := b.get("made.txt"), b.sh("git status --porcelain -- made.txt mine.txt"); made != "made\n" || strings.TrimSpace(st) != "?? mine.txt" {
				t.Errorf("made.txt: %q, status %q", made, st)
			}
			if log := b.sh("git log -1 --format=%B main"); how != "ff" && !strings.Contains(log, "Sluice-Run: w-1") {
				t.Errorf("the commit says %q", log)
			}
			if _, err := os.Stat(filepath.Join(b.root, ".workflow/worktrees/w-1")); !os.IsNotExist(err) {
				t.Errorf("the worktree is still there: %v", err)
			}
			if b.sh("git rev-parse sluice/w-1") == "" {
				t.Error("the branch is gone")
			}
		})
	}
}

// TestOnDoneSaysWhyNot: what cannot be landed stays where it is, and the end of the run says what to do.
func TestOnDoneSaysWhyNot(t *testing.T) {
	for name, c := range map[string]struct{ how, before, why string }{
		"a file in the way":   {"squash", "", "made.txt: commit or stash them"},
		"no gh or no remote":  {"pr", "", "no pull request"},
		"main has moved":      {"ff", "", "without --ff (one squashed commit), or with --rebase or --merge"},
		"nothing was changed": {"squash", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := strings.Replace(onDoneSpec, "HOW", c.how, 1)
			b := newBench(t, source)
			b.script("one", map[bool]string{true: "true", false: "echo made >made.txt"}[name == "nothing was changed"])
			b.put(".workflow/specs/w.yaml", source)
			b.sh("git config user.name Ann; git config user.email ann@example.org; git add -A && git commit -qm spec")
			if name == "a file in the way" {
				b.put("made.txt", "mine\n")
			}
			before := b.sh("git rev-parse main")
			if name == "main has moved" {
				b.script("one", "echo made >made.txt; cd '"+b.root+"' && git commit -q --allow-empty -m moved")
			}
			cl, _ := b.loop()
			b.start(cl, source)
			eventually(t, "the run is over", func() bool { return b.status(cl).Phase == engine.RunCompleted })
			why := b.status(cl).EndWhy
			if c.why == "" && why != "" || !strings.Contains(why, c.why) || c.why != "" && !strings.HasPrefix(why, "not landed: ") {
				t.Errorf("it ended with %q", why)
			}
			if name != "main has moved" && b.sh("git rev-parse main") != before {
				t.Error("the branch has moved")
			}
			if name == "a file in the way" && b.get("made.txt") != "mine\n" {
				t.Error("the person's file is gone")
			}
		})
	}
}
