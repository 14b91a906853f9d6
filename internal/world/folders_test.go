//go:build linux

package world

import (
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/tree"
	"sluice/tools/conform"
)

// untilAsked runs a spec with the script of its agents until a person is asked at a gate.
func untilAsked(t *testing.T, held bool, source, script string) (*bench, *daemon.Client) {
	b := newBench(t, source)
	b.hold(held)
	b.script("one", "git config user.name A; git config user.email a@example.org\n"+script)
	b.put(".workflow/specs/w.yaml", source)
	b.put("file.txt", "one\ntwo\nthree\n")
	b.sh("git add -A && git commit -qm spec")
	cl, _ := b.loop()
	b.start(cl, source)
	b.asks1(cl, "")
	return b, cl
}

// asks1 waits until a person is asked at a gate, "" = at any.
func (b *bench) asks1(cl *daemon.Client, gate string) {
	b.t.Helper()
	eventually(b.t, "a person is asked", func() bool {
		s := b.status(cl)
		if s.Phase != engine.RunRunning {
			b.t.Fatalf("it has ended: %s", s.EndWhy)
		}
		for _, st := range s.Steps {
			for _, g := range st.Gates {
				if g.State == engine.OnHuman && (gate == "" || g.ID == gate) {
					return true
				}
			}
		}
		return false
	})
}

const joinSpec = `
workflow: {id: w, workspace: run}
steps:
  - {id: P, agent: {type: writer, prompt: plan}, next_step: [A, B]}
  - {id: A, agent: {type: writer, prompt: do it, worktree: wt/a}, next_step: J}
  - {id: B, agent: {type: writer, prompt: do it, worktree: wt/b}, next_step: J}
  - {id: J, agent: {type: writer, prompt: join}, needs: [A, B], gate: H}
gates:
  - {id: H, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// TestJoin: a step that needs what was worked in other worktrees begins from the merge of what passed there; what conflicts
// is its own work, and none of it ships unresolved.
func TestJoin(t *testing.T) {
	conform.Rule(t, "9-one-tree join", "two steps in worktrees of their own, with and without a conflict, held and not")
	for name, held := range map[string]bool{"held": true, "not held": false} {
		for conflict, word := range map[string]string{"clean": "true", "conflict": "sed -i s/two/$SLUICE_STEP/ file.txt"} {
			t.Run(name+" "+conflict, func(t *testing.T) {
				b, _ := untilAsked(t, held, joinSpec, `case $SLUICE_STEP in
P) echo plan >plan.txt;;
A|B) cat plan.txt >"$SLUICE_STEP.txt"; `+word+`; git add -A; git commit -qm "by $SLUICE_STEP";;
J) cat A.txt B.txt >both.txt; cp file.txt seen.txt; sed -i '/^[<=>]/d' file.txt;;
esac`)
				if got := b.sh("git show refs/sluice/taken/w-1/J.1:both.txt"); got != "plan\nplan" {
					t.Errorf("the joining step saw %q", got)
				}
				for _, s := range []string{"A", "B", "P"} {
					b.sh("git merge-base --is-ancestor refs/sluice/taken/w-1/" + s + ".1 refs/sluice/taken/w-1/J.1")
				}
				diff := b.sh("git diff --name-only refs/sluice/found/w-1/J.1 refs/sluice/taken/w-1/J.1")
				prompt := b.get(".workflow/runs/w-1/J.1/prompt.md")
				if conflict == "clean" {
					if diff != "both.txt\nseen.txt" || strings.Contains(prompt, "conflicts") {
						t.Errorf("its work is %q", diff)
					}
					return
				}
				if seen := b.sh("git show refs/sluice/taken/w-1/J.1:seen.txt"); !strings.Contains(seen, "<<<<<<<") {
					t.Errorf("no markers: %q", seen)
				}
				if !strings.Contains(diff, "file.txt") || !strings.Contains(prompt, "These files have conflicts") || !strings.Contains(prompt, "`file.txt`") {
					t.Errorf("its work is %q, and it was told\n%s", diff, prompt)
				}
				if b.sh("git status --porcelain -- . ':(exclude).workflow' ':(exclude)wt'") != "" {
					t.Error("the person's checkout was touched")
				}
			})
		}
	}
}

// TestJoinUnresolved: an attempt that leaves conflict markers has failed.
func TestJoinUnresolved(t *testing.T) {
	b, _ := untilAsked(t, true, joinSpec+"  # the gate's max_retries is 3\n", `case $SLUICE_STEP in
A|B) sed -i s/two/$SLUICE_STEP/ file.txt;;
J) [ "$SLUICE_ATTEMPT" = 1 ] || sed -i '/^[<=>]/d' file.txt;;
esac`)
	if b.has(".workflow/runs/w-1/J.2/prompt.md") != true || !strings.Contains(b.get(".workflow/runs/w-1/J.2/prompt.md"), "conflict markers are left in file.txt") {
		t.Error("markers were taken")
	}
	if got := b.sh("git show refs/sluice/taken/w-1/J.2:file.txt"); strings.Contains(got, "<<<") {
		t.Errorf("%q", got)
	}
}

const backSpec = `
workflow: {id: w, workspace: run}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
  - {id: B, agent: {type: writer, prompt: go on}, gate: H}
gates:
  - {id: G, reviewer: {level: auto, run: "true"}, on_pass: {next_step: B}}
  - {id: H, reviewer: {level: auto, run: "false"}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 2}
`

// TestBeginsFromWhatPassed: in the run's own worktree a step begins from commits that have passed: work that was refused,
// and files of a stray writer, are kept at a ref and are not in the folder.
func TestBeginsFromWhatPassed(t *testing.T) {
	conform.Rule(t, "9-one-tree passed", "after a refusal, the step that it went back to and the one that follows")
	conform.Rule(t, "9-one-tree reset", "what was refused is kept, and is not in the folder")
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) {
			b, _ := untilAsked(t, held, backSpec, `ls >"seen-$SLUICE_STEP-$SLUICE_ATTEMPT.txt"
echo "$SLUICE_STEP" >"$SLUICE_STEP.txt"
[ "$SLUICE_STEP" = A ] || { git add B.txt; git commit -qm 'by B'; }`)
			seen := func(step, n string) string {
				return b.sh("git show refs/sluice/taken/w-1/" + step + "." + n + ":seen-" + step + "-" + n + ".txt")
			}
			if s := seen("A", "2"); !strings.Contains(s, "A.txt") || strings.Contains(s, "B.txt") {
				t.Errorf("A began again in\n%s", s)
			}
			if s := seen("B", "2"); strings.Contains(s, "B.txt") || !strings.Contains(s, "seen-A-2.txt") {
				t.Errorf("B began again in\n%s", s)
			}
			if got := b.sh("git ls-tree -r --name-only refs/sluice/salvage/w-1/A.2.before"); !strings.Contains(got, "B.txt") {
				t.Errorf("kept: %s", got)
			}
			if got := b.sh("git ls-tree -r --name-only sluice/w-1; git log --format=%s sluice/w-1"); strings.Contains(got, "B.txt") && held {
				t.Errorf("on the branch:\n%s", got)
			}
			if p := b.get(".workflow/runs/w-1/A.2/prompt.md"); !strings.Contains(p, "Work that did not pass") {
				t.Error("A was not told where the refused work is")
			}
		})
	}
}

const outputSpec = `
workflow: {id: w, workspace: run}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
  - {id: B, agent: {type: writer, prompt: go on}, gate: H}
  - {id: C, agent: {type: writer, prompt: end it}, gate: I}
gates:
  - {id: G, reviewer: {level: auto, from: step}, outputs: [{said.json: '{"by": "G"}'}], on_pass: {next_step: B}}
  - {id: H, reviewer: {level: auto, run: 'test "$SLUICE_ROUND" = 2'}, outputs: [{round.json: '{"n": 1}'}], on_pass: {next_step: C}}
  - {id: I, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// TestGateOutputsShip: files that gates write into the run's worktree are no work of a step, keep no work off the branch, and
// are on it with the next step that passes.
func TestGateOutputsShip(t *testing.T) {
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) {
			b, _ := untilAsked(t, held, outputSpec, `echo "$SLUICE_ATTEMPT" >>"$SLUICE_STEP.txt"`)
			if got := b.sh("git ls-tree -r --name-only sluice/w-1 -- A.txt B.txt C.txt said.json"); got != "A.txt\nB.txt\nsaid.json" {
				t.Errorf("the branch has\n%s", got)
			}
			if diff := b.sh("git diff --name-only refs/sluice/found/w-1/B.2 refs/sluice/taken/w-1/B.2"); diff != "B.txt" {
				t.Errorf("the work of B is %s", diff)
			}
		})
	}
}

const editSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 3}
`

// TestEditsBetweenAttempts: what a person changes in their checkout between two attempts is no work of the step, and stays;
// where both changed the same lines, all of it is shown.
func TestEditsBetweenAttempts(t *testing.T) {
	conform.Rule(t, "9-one-tree found", "a file that a person edits between two attempts")
	conform.Rule(t, "9-one-tree others", "between two attempts")
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) {
			b, cl := untilAsked(t, held, editSpec, `echo "$SLUICE_ATTEMPT" >>work.txt
[ "$SLUICE_ATTEMPT" != 1 ] || sed -i 's/one/step/' file.txt
[ "$SLUICE_ATTEMPT" != 2 ] || { git add work.txt; git commit -qm 'by A'; }`)
			again := func(edit, attempt string) string {
				t.Helper()
				b.sh(edit)
				if _, err := cl.Do(b.ctx(), engine.Answered{Gate: "G", Run: run1, Outcome: engine.OutcomeFail, Text: "anew"}, "command"); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the next attempt is judged", func() bool {
					var c tree.Covered
					return layout.Load(b.e.AttemptFile(run1, "A", int(attempt[0]-'0'), "files"), &c) == nil && c.Was != ""
				})
				b.asks1(cl, "G")
				return b.sh("git diff refs/sluice/found/w-1/A." + attempt + " refs/sluice/taken/w-1/A." + attempt)
			}
			diff := again("echo mine >mine.txt; echo mine >>README.md; sed -i 's/three/mine/' file.txt", "2")
			if !strings.Contains(diff, "+step") || !strings.Contains(diff, "work.txt") || strings.Contains(diff, "+mine") || strings.Contains(diff, "README") {
				t.Errorf("the work of the step is\n%s", diff)
			}
			if got := b.get("file.txt"); got != "step\ntwo\nmine\n" {
				t.Errorf("file.txt is %q", got)
			}
			diff = again("sed -i 's/step/person/' file.txt; echo more >>mine.txt", "3")
			if !strings.Contains(diff, "+person") || strings.Contains(diff, "more") {
				t.Errorf("where both changed the same lines, the work is\n%s", diff)
			}
		})
	}
}

// TestUncheckedBetweenAttempts: what a step changed whose work is not taken is nobody else's: it is shown.
func TestUncheckedBetweenAttempts(t *testing.T) {
	b, cl := untilAsked(t, true, `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, gate: G}
  - {id: W, run: "true", needs: [], gate: K}
  - {id: B, run: "echo b >by-b.txt", next_step: DONE}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: A}}
  - {id: K, reviewer: {level: human}, on_pass: {next_step: B}}
`, `echo "$SLUICE_ATTEMPT" >>work.txt`)
	b.asks1(cl, "G")
	b.asks1(cl, "K")
	answer := func(gate, outcome string) {
		t.Helper()
		if _, err := cl.Do(b.ctx(), engine.Answered{Gate: gate, Run: run1, Outcome: outcome, Text: "said"}, "command"); err != nil {
			t.Fatal(err)
		}
	}
	answer("K", engine.OutcomePass)
	eventually(t, "B has worked", func() bool { return b.has("by-b.txt") })
	answer("G", engine.OutcomeFail)
	eventually(t, "A is judged anew", func() bool {
		var c tree.Covered
		return layout.Load(b.e.AttemptFile(run1, "A", 2, "files"), &c) == nil && c.Was != ""
	})
	if diff := b.sh("git diff --name-only refs/sluice/found/w-1/A.2 refs/sluice/taken/w-1/A.2"); !strings.Contains(diff, "by-b.txt") {
		t.Errorf("shown is %s", diff)
	}
}
