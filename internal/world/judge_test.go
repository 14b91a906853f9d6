//go:build linux

package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
	"sluice/tools/conform"
)

const judgeSpec = `
workflow: {id: w, hooks: {after_step: "%s"}}
steps:
  - id: A
    agent: {type: writer}
    outputs: [made.txt, dist/report.txt]
    success_criterion:
      - {run: "%s"}
      - {file: made.txt}
      - {file: dist/report.txt}
    signal: {type: sentinel_file}
    gate: G
  - {id: B, agent: {type: writer}, signal: {type: sentinel_file}, gate: H}
gates:
  - {id: G, reviewer: {level: auto, run: "%s"}, on_pass: {next_step: B}}
  - {id: H, reviewer: {level: auto, agent_type: reviewer, prompt: look}, on_pass: {next_step: DONE}}
`

// listed prints what a judge finds: each file with its hash, where it stands in git, and the difference to where the work began.
const listed = `find . -path ./.git -prune -o -path ./.workflow -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; git rev-parse HEAD; git status --porcelain -- . ':!.workflow'; git diff HEAD~1 HEAD | sha256sum`

// planted is what an agent leaves that is in no commit, or hides what is.
const planted = `mkdir -p src/__pycache__ fake shut dist
echo evil >src/__pycache__/a.pyc; echo '*' >fake/.gitignore; echo evil >fake/mod.py; echo x >shut/f
git config diff.evil.command /bin/false; git config diff.evil.textconv /bin/false
echo '*.py diff=evil' >.git/info/attributes
echo hidden >dist/report.txt; echo work >src/a.py; echo made >made.txt; echo '*.py -diff' >.gitattributes
git add src/a.py made.txt .gitattributes; chmod 000 shut`

// judgeBench makes a bench with a commit taken of an agent's work, and what the agent left beside it; the spec's commands are
// all the same one.
func judgeBench(t *testing.T, held bool, command string) (*bench, string) {
	t.Helper()
	b := newBench(t, strings.ReplaceAll(judgeSpec, "%s", strings.ReplaceAll(strings.ReplaceAll(command, `\`, `\\`), `"`, `\"`)))
	b.hold(held)
	b.put("src/a.py", "first\n")
	b.script("looker", command+"\nprintf '```json\\n{\"verdict\":\"pass\"}\\n```\\n'\n")
	b.put(".gitignore", "__pycache__/\ndist/\nshut/\n")
	b.put("home.txt", "")
	b.sh("git add -A; git commit -q -m before")
	b.begin(b.checkJob("A", 1))
	b.begin(b.checkJob("B", 1))
	b.sh(planted)
	t.Cleanup(func() { os.Chmod(b.path("shut"), 0o700) })
	for step, outs := range map[string][]string{"A": {"made.txt", "dist/report.txt"}, "B": nil} {
		j, st := b.checkJob(step, 1), b.spec.Step(step)
		at, err := b.e.Begun(b.ctx(), j, st, 1)
		if err == nil {
			_, _, err = b.e.Taken(b.ctx(), j, st, at, outs)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b, b.sh("git rev-parse refs/sluice/taken/w-1/A.1")
}

// hold has the bench's launches held by a sandbox, or not.
func (b *bench) hold(held bool) {
	if held {
		box := boxed(b.t)
		b.e.Close()
		b.e = b.executor(func(o *Options) { o.Sandbox = func() (*sandbox.Box, error) { return box, nil } })
	}
}

// fresh is what the command prints in a checkout of the commit that git makes.
func (b *bench) fresh(taken, command string) string {
	b.t.Helper()
	dir := filepath.Join(b.t.TempDir(), "fresh")
	b.sh("git config --unset diff.evil.command; git config --unset diff.evil.textconv; echo '* diff' >.git/info/attributes")
	b.sh("git worktree add -q --detach " + dir + " " + taken)
	defer b.sh("git worktree remove --force " + dir)
	return b.sh("cd " + dir + "; " + command)
}

// ofCommit is a job over the commit that was taken.
func ofCommit(j job.Job, taken string) job.Job {
	j.Attempt.Digest = taken + "+0123456789abcdef"
	return j
}

// TestJudgesSeeTheTree: whatever an agent left in its folder, those who judge find the files of the commit that was taken,
// and no others; git says the same of it as outside.
func TestJudgesSeeTheTree(t *testing.T) {
	conform.Rule(t, "9-one-tree judging", "criteria, gate commands, reviewers and hooks get a checkout of the taken tree")
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) {
			b, taken := judgeBench(t, held, listed)
			hook := ofCommit(b.stepJob("A", 1, 1), taken)
			hook.Key, hook.Proc.Kind = "w-1/A#1.hook", engine.ProcHook
			hook.Proc.Key = hook.Key
			got := map[string]string{}
			check := b.carry(ofCommit(b.checkJob("A", 1), taken)).Check
			if !check.OK {
				t.Fatalf("check: %+v", check)
			}
			got["criterion"] = b.get(".workflow/runs/w-1/A.1/check-41/0/stdout")
			b.carry(ofCommit(b.reviewJob("G", 1), taken))
			got["gate command"] = b.get(".workflow/runs/w-1/G.1/stdout")
			v := b.carry(ofCommit(b.reviewJob("H", 1), taken)).Verdict
			got["reviewer"], _, _ = strings.Cut(b.get(".workflow/runs/w-1/H.1/stdout"), "```")
			if v == nil || v.Outcome != engine.OutcomePass {
				t.Errorf("verdict %+v\n%s\n%s", v, got["reviewer"], b.get(".workflow/runs/w-1/H.1/stderr"))
			}
			wantText(t, "the diff that the reviewer is shown", b.get(".workflow/runs/w-1/H.1/prompt.md"), "-first", "+work", "+made")
			b.carry(hook)
			got["hook"] = b.get(".workflow/runs/w-1/A.1/hook/stdout")
			want := b.fresh(taken, listed)
			for who, is := range got {
				if strings.TrimSpace(is) != want {
					t.Errorf("%s finds\n%s\nwant\n%s", who, is, want)
				}
			}
			for _, key := range []string{"G#1.1", "H#1.1", "A#1.hook", "A#1.check-41/0"} {
				if by, _ := filepath.Glob(filepath.Join(b.state, "judge", "*", "user")); len(by) > 0 {
					t.Fatalf("%s has kept its checkout: %v", key, by)
				}
			}
		})
	}
}

// TestJudgesLeaveNothing: what one judge writes, whether of the checkout or in its home, no other one sees, and the
// judged least of all.
func TestJudgesLeaveNothing(t *testing.T) {
	conform.Rule(t, "9-one-tree judging", "what a judge writes is seen by no other")
	const write = `[ $(cat src/a.py) = work ] || exit 7; [ ! -e evil ] || exit 8; [ ! -e $HOME/evil ] || exit 9; [ -w . ] || exit 10
echo evil >src/a.py; echo evil >evil; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; git add -A; rm home.txt`
	b, taken := judgeBench(t, true, strings.ReplaceAll(write, "\n", ";")+"; echo evil >$HOME/evil")
	home := filepath.Join(b.state, layout.HomesDir, run1, "A")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "evil"), nil, 0o600); err != nil { // as the agent left it
		t.Fatal(err)
	}
	for n := range 2 {
		j := ofCommit(b.checkJob("A", 1), taken)
		j.Key += string(rune('0' + n))
		if check := b.carry(j).Check; !check.OK {
			t.Errorf("check %d: %+v", n, check)
		}
		if v := b.carry(ofCommit(b.reviewJob("G", n+1), taken)).Verdict; v.Outcome != engine.OutcomePass {
			t.Errorf("gate command %d: %+v", n, v)
		}
		if v := b.carry(ofCommit(b.reviewJob("H", n+1), taken)).Verdict; v.Outcome != engine.OutcomePass {
			t.Errorf("reviewer %d: %+v", n, v)
		}
	}
	if b.get("src/a.py") != "work\n" || b.has("evil") || b.has(".git/hooks/pre-commit") || b.sh("git rev-parse refs/sluice/taken/w-1/A.1") != taken {
		t.Error("a judge has written into the repo")
	}
	if homes, _ := filepath.Glob(filepath.Join(b.state, layout.HomesDir, run1, "judge.*=*")); len(homes) > 0 {
		t.Errorf("homes of commands are left: %v", homes)
	}
}

// TestNoCacheIsShared: what the settings let agents write is an agent's alone. No judge sees it, also not one that judges in
// the agent's folder; what the settings name to read, it does.
func TestNoCacheIsShared(t *testing.T) {
	conform.Rule(t, "9-one-tree cache", "no judge sees what agents can write")
	cache, both := t.TempDir(), t.TempDir()
	look := fmt.Sprintf("test ! -e %s && test -d %s && test ! -w %s", cache, both, both)
	b, taken := judgeBench(t, true, look)
	b.settings.Sandbox.Write = []string{cache, both}
	b.settings.Sandbox.Read = []string{both}
	if check := b.carry(ofCommit(b.checkJob("A", 1), taken)).Check; !check.OK {
		t.Errorf("criterion: %+v", check)
	}
	for _, gate := range []string{"G", "H"} {
		if v := b.carry(ofCommit(b.reviewJob(gate, 1), taken)).Verdict; v.Outcome != engine.OutcomePass {
			t.Errorf("%s: %+v", gate, v)
		}
	}
	b.load(strings.ReplaceAll(strings.ReplaceAll(judgeSpec, `{run: "%s"}`, `{run: "`+look+`", folder: true}`), "%s", "true"))
	j := ofCommit(b.checkJob("A", 1), taken)
	j.Key += "0"
	if check := b.carry(j).Check; !check.OK {
		t.Errorf("in the folder: %+v", check)
	}
	b.script("writer", "touch "+cache+"/made\n")
	if end := b.carry(b.stepJob("B", 1, 1)); end.Exit.Code != 0 {
		t.Errorf("the agent: %+v", end)
	}
	if _, err := os.Stat(filepath.Join(cache, "made")); err != nil {
		t.Error(err)
	}
}

// TestJudgedOutputs: what a criterion names is looked for in the tree; a declared output that git ignores, in the folder.
func TestJudgedOutputs(t *testing.T) {
	b, taken := judgeBench(t, false, "true")
	b.sh("rm made.txt; mkdir -p __pycache__; echo more >__pycache__/undeclared.txt")
	if check := b.carry(ofCommit(b.checkJob("A", 1), taken)).Check; !check.OK {
		t.Errorf("what is in the tree is not found: %+v", check)
	}
	b.sh("mv dist gone")
	j := ofCommit(b.checkJob("A", 1), taken)
	j.Key += "0"
	check := b.carry(j).Check
	if check.OK || !strings.Contains(check.Why, "dist/report.txt") || strings.Contains(check.Why, b.state) {
		t.Errorf("%+v", check)
	}
	b.sh("mv gone dist; echo made >made.txt")
	b.load(strings.ReplaceAll(strings.ReplaceAll(judgeSpec, "%s", "true"), "{file: made.txt}", "{file: __pycache__/undeclared.txt}"))
	j = ofCommit(b.checkJob("A", 1), taken)
	j.Key += "00"
	if check := b.carry(j).Check; check.OK || !strings.Contains(check.Why, "undeclared.txt") {
		t.Errorf("a file that is not in the tree holds: %+v", check)
	}
}

// TestJudgeOfNoCommit: a commit that is not there is nobody's failure, and never the agent's folder in its place.
func TestJudgeOfNoCommit(t *testing.T) {
	b, _ := judgeBench(t, false, "true")
	j := ofCommit(b.reviewJob("G", 1), strings.Repeat("0", 40))
	if v := b.carry(j).Verdict; v.Outcome != "" || v.Inconclusive == "" {
		t.Errorf("verdict %+v", v)
	}
}

// TestJudgeInAWorktree: a judge of work in a linked worktree sees the commit in its place, and the root as it is.
func TestJudgeInAWorktree(t *testing.T) {
	b := held(t, heldSpec+"")
	b.load(strings.Replace(heldSpec, "reviewer: {level: human}", `reviewer: {level: auto, run: "pwd; cat x.txt; ls ..; git log -1 --format=%s"}`, 1))
	j := b.reviewJob("G", 1)
	j.Attempt.Worktree = "tree"
	b.begin(j)
	b.put("tree/x.txt", "the work\n")
	b.sh("cd tree; git add x.txt")
	taken := b.sh(`cd tree; git -c user.name=x -c user.email=x commit-tree -p HEAD -m taken "$(git write-tree)"`)
	b.put("tree/x.txt", "something else\n")
	b.put("tree/evil", "")
	v := b.carry(ofCommit(j, taken)).Verdict
	if v.Outcome != engine.OutcomePass {
		t.Fatalf("%+v", v)
	}
	wantText(t, "what it saw", b.get(".workflow/runs/w-1/G.1/stdout"), b.path("tree")+"\nthe work\n", "README.md", "taken\n")
}

const setupSpec = `
workflow:
  id: w
  setup: {run: "test ! -e out.txt && mkdir deps && cp lock.txt deps/lib && git log -1 --format=%s >deps/base", files: [lock.*], provides: [deps]}
steps:
  - id: A
    agent: {type: writer}
    success_criterion:
      - {run: "cat out.txt deps/lib deps/base"}
      - {run: "! echo evil >deps/lib"}
    signal: {type: sentinel_file}
    gate: G
gates:
  - {id: G, reviewer: {level: auto, run: "cat deps/lib deps/base"}, on_pass: {next_step: DONE}}
`

// setUpBench makes a bench whose agent has planted its own deps/.
func setUpBench(t *testing.T, held bool, spec string) *bench {
	b := newBench(t, spec)
	b.hold(held)
	b.put(".gitignore", "deps/\n")
	b.put("lock.txt", "one\n")
	b.sh("git add -A; git commit -q -m before")
	b.put("deps/lib", "evil\n")
	return b
}

// took begins an attempt, has its agent write a file, and returns the taken commit.
func (b *bench) took(step string, n int) string {
	b.begin(b.checkJob(step, n))
	b.put("out.txt", "work\n")
	b.sh("git add out.txt")
	return b.sh(`git -c user.name=x -c user.email=x commit-tree -p HEAD -m taken "$(git write-tree)"; git reset -q`)
}

// setups are how many results of setups are kept.
func (b *bench) setups() []string {
	list, _ := filepath.Glob(filepath.Join(b.state, "setup", "*", "0"))
	return list
}

// TestSetup: what tests need and git ignores is made on the base, once for the same files, and nobody who judges can
// change it.
func TestSetup(t *testing.T) {
	t.Run("held", func(t *testing.T) {
		conform.Rule(t, "9-one-tree setup", "run by sluice on the base, kept read-only for the same files")
		setup(t, setUpBench(t, true, setupSpec))
	})
	t.Run("not held", func(t *testing.T) { // where nothing is read-only
		conform.Rule(t, "9-one-tree setup", "run by sluice on the base, kept for the same files")
		setup(t, setUpBench(t, false, strings.Replace(setupSpec, `      - {run: "! echo evil >deps/lib"}`+"\n", "", 1)))
	})
}

func setup(t *testing.T, b *bench) {
	taken := b.took("A", 1)
	if c := b.carry(ofCommit(b.checkJob("A", 1), taken)).Check; !c.OK {
		t.Fatalf("check %+v", c)
	}
	if got := b.get(".workflow/runs/w-1/A.1/check-41/0/stdout"); got != "work\none\nbefore\n" {
		t.Errorf("the criterion saw %q", got)
	}
	before, _ := os.Stat(b.setups()[0])
	if v := b.carry(ofCommit(b.reviewJob("G", 1), taken)).Verdict; v.Outcome != engine.OutcomePass {
		t.Errorf("verdict %+v", v)
	}
	if got := b.get(".workflow/runs/w-1/G.1/stdout"); got != "one\nbefore\n" {
		t.Errorf("the gate command saw %q", got)
	}
	if after, err := os.Stat(b.setups()[0]); len(b.setups()) != 1 || err != nil || !os.SameFile(before, after) {
		t.Errorf("it ran again over the same files: %v", b.setups())
	}
	b.sh("rm out.txt; echo two >lock.txt; git commit -q -am two")
	taken = b.took("A", 2)
	if c := b.carry(ofCommit(b.checkJob("A", 2), taken)).Check; !c.OK {
		t.Fatalf("check %+v", c)
	}
	if got := b.get(".workflow/runs/w-1/A.2/check-42/0/stdout"); !strings.HasPrefix(got, "work\ntwo\n") || len(b.setups()) != 2 {
		t.Errorf("after its files changed the criterion saw %q, of %v", got, b.setups())
	}
	if by, _ := filepath.Glob(filepath.Join(b.state, "judge", "*", "user")); len(by) > 0 {
		t.Errorf("a checkout was kept: %v", by)
	}
}

// TestSetupOfAFailedAttempt: what an attempt has changed of a setup is not run when the next one goes on from its work.
func TestSetupOfAFailedAttempt(t *testing.T) {
	b := setUpBench(t, true, strings.Replace(setupSpec, "cp lock.txt deps/lib", "cp lock.txt deps/lib && ./made.sh", 1))
	b.put("made.sh", "#!/bin/sh\necho good >>deps/lib\n")
	b.sh("chmod +x made.sh; git add made.sh; git commit -q -m before")
	b.begin(b.checkJob("A", 2))
	var begun tree.Begin
	if err := layout.Load(b.e.AttemptFile(run1, "A", 2, "begin"), &begun); err != nil {
		t.Fatal(err)
	}
	b.put("made.sh", "#!/bin/sh\necho poisoned >>deps/lib\n")
	b.put("lock.txt", "two\n")
	b.put("out.txt", "work\n")
	failed := strings.TrimSpace(b.sh(`git add -A; git -c user.name=x -c user.email=x commit-tree -p HEAD -m failed "$(git write-tree)"; git reset -q`))
	begun.Head = failed // the second attempt goes on from the first
	if err := layout.Save(b.e.AttemptFile(run1, "A", 2, "begin"), begun); err != nil {
		t.Fatal(err)
	}
	b.carry(ofCommit(b.checkJob("A", 2), failed))
	if got := b.get(".workflow/runs/w-1/A.2/check-42/0/stdout"); !strings.Contains(got, "one\ngood\n") || strings.Contains(got, "poisoned") {
		t.Errorf("the criterion saw %q", got)
	}
	r := b.carry(b.checkJob("A", 2)).Check
	if r == nil || !strings.Contains(strings.Join(r.Protected, " "), "lock.txt") {
		t.Errorf("nobody is told that what the setup depends on has changed: %+v", r)
	}
}

// TestSetupCoversNoWork: what the work has where the setup's results are shown, no judge would see, and a link there would
// show them in place of other files: the attempt fails.
func TestSetupCoversNoWork(t *testing.T) {
	spec := strings.ReplaceAll(strings.ReplaceAll(setupSpec, "deps", "app/deps"), "mkdir ", "mkdir -p ")
	for name, x := range map[string]struct{ agent, changed string }{
		"a link":           {"rm -r app/deps; ln -s ../tests app/deps", "app/deps"},
		"a link above":     {"rm -r app; ln -s tests app", "app"},
		"an ignored file":  {"echo evil >app/deps/new; git add -f app/deps/new; git commit -q -m new", "app/deps/new"},
		"a file from then": {"echo evil >app/deps/kept", "app/deps/kept"},
		"nothing":          {"echo evil >app/deps/ignored", ""},
	} {
		for _, held := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", held ", held), func(t *testing.T) {
				b := setUpBench(t, held, strings.Replace(spec, `      - {run: "! echo evil >app/deps/lib"}`+"\n", "", 1))
				b.put("tests/t", "test\n")
				b.put("app/deps/kept", "")
				b.sh("git add -f tests app/deps/kept; git commit -q -m more")
				b.begin(b.checkJob("A", 1))
				b.put("out.txt", "work\n")
				b.sh(x.agent)
				c := b.carry(b.checkJob("A", 1)).Check
				if c.Broken != "" || c.OK != (x.changed == "") || !strings.Contains(c.Why, x.changed) {
					t.Errorf("check %+v", c)
				}
				if !c.OK && !strings.Contains(c.Why, `"`+x.changed+`", but who judges sees there`) {
					t.Errorf("its words: %s", c.Why)
				}
			})
		}
	}
}

// TestSetupOverALink: where the commit had a link before the step, which the setup itself replaces, nothing is judged.
func TestSetupOverALink(t *testing.T) {
	for _, held := range []bool{true, false} {
		t.Run(fmt.Sprint("held ", held), func(t *testing.T) {
			b := setUpBench(t, held, strings.Replace(setupSpec, "mkdir deps", "rm deps && mkdir deps", 1))
			b.sh("rm -r deps; mkdir tests; touch tests/t; ln -s tests deps; git add -A; git commit -q -m more")
			taken := b.took("A", 1)
			c := b.carry(ofCommit(b.checkJob("A", 1), taken)).Check
			if c.OK || c.Why != "" || !strings.Contains(c.Broken, "deps is not a folder or a file there: remove it from the repo") {
				t.Errorf("check %+v", c)
			}
		})
	}
}

// TestSetupOfUndoneWork: what a setup has made over work that has passed serves no more when that work was undone, though
// the next attempt is built on it; nor over a history without it.
func TestSetupOfUndoneWork(t *testing.T) {
	b := setUpBench(t, true, strings.Replace(setupSpec, "cp lock.txt deps/lib", "./made.sh >deps/lib", 1))
	commit := func(text string) string {
		b.put("made.sh", "#!/bin/sh\necho "+text+"\n")
		return b.sh("rm -f out.txt; chmod +x made.sh; git add made.sh; git commit -q -m more --allow-empty; git rev-parse HEAD")
	}
	var begun tree.Begin
	judged := func(n int, want string, made int, passed ...string) {
		t.Helper()
		j := ofCommit(b.checkJob("A", n), b.took("A", n))
		j.Passed = passed
		if err := layout.Load(b.e.AttemptFile(run1, "A", n, "begin"), &begun); err != nil {
			t.Fatal(err)
		}
		begun.Found = b.sh("git rev-parse HEAD")
		if err := layout.Save(b.e.AttemptFile(run1, "A", n, "begin"), begun); err != nil {
			t.Fatal(err)
		}
		c := b.carry(j).Check
		got := b.get(fmt.Sprintf(".workflow/runs/w-1/A.%d/check-%d/0/stdout", n, 40+n))
		if !c.OK || !strings.HasPrefix(got, "work\n"+want+"\n") || len(b.setups()) != made {
			t.Errorf("attempt %d: of %d results the criterion saw %q: %+v", n, len(b.setups()), got, c)
		}
	}
	good := commit("good")
	commit("evil")
	judged(1, "evil", 1, "w-1/Z.1", "w-1/Y.1")
	commit("evil") // further work, on which the results still serve
	judged(2, "evil", 1, "w-1/X.1", "w-1/Y.1", "w-1/Z.1")
	commit("good")
	judged(3, "good", 2, "w-1/X.1", "w-1/Y.1", "w-1/Z.2") // Z.1 was vetoed
	b.sh("rm -f out.txt; git reset -q --hard " + good)
	b.put("lock.txt", "one\n")
	b.sh("git commit -q --allow-empty -m other")
	judged(4, "good", 2, "w-1/X.1", "w-1/Y.1", "w-1/Z.1") // a person has moved the branch; two results are kept
}

// TestSetupUnheld: where no sandbox holds launches it works as well.
func TestSetupUnheld(t *testing.T) {
	b := setUpBench(t, false, strings.Replace(setupSpec, `      - {run: "! echo evil >deps/lib"}`+"\n", "", 1))
	taken := b.took("A", 1)
	if c := b.carry(ofCommit(b.checkJob("A", 1), taken)).Check; !c.OK {
		t.Fatalf("check %+v", c)
	}
	if got := b.get(".workflow/runs/w-1/A.1/check-41/0/stdout"); got != "work\none\nbefore\n" {
		t.Errorf("the criterion saw %q", got)
	}
}

// TestSetupFails: a setup that fails, or does not make what it is to, is nobody's failure, and is tried again.
func TestSetupFails(t *testing.T) {
	for name, x := range map[string]struct{ run, want string }{
		"exit code":   {"echo no network; exit 3", "no network"},
		"nothing":     {"true", "has not made deps"},
		"a link":      {"mkdir /tmp/x; ln -s /tmp/x deps", "deps is not a folder or a file"},
		"no command":  {"no-such-command-here", "127"},
		"link to one": {"mkdir real; touch real/x; ln -s real deps", "deps is not a folder or a file"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := setupSpec[:strings.Index(setupSpec, "test !")] + x.run + setupSpec[strings.Index(setupSpec, `", files`):]
			b := setUpBench(t, true, spec)
			taken := b.took("A", 1)
			c := b.carry(ofCommit(b.checkJob("A", 1), taken)).Check
			if c.OK || !strings.Contains(c.Broken, x.want) || c.Why != "" {
				t.Errorf("check %+v, want it broken with %q", c, x.want)
			}
			if by, _ := filepath.Glob(filepath.Join(b.state, "judge", "*", "user")); len(by) > 0 || len(b.setups()) > 0 {
				t.Errorf("left: %v %v", by, b.setups())
			}
		})
	}
}

// TestJudgeOutlivesUs: a judge that outlives the daemon keeps its checkout until it is over, however it ends.
func TestJudgeOutlivesUs(t *testing.T) {
	b, taken := judgeBench(t, false, "pwd >$MARK/here; until [ -e $MARK/go ]; do sleep 0.02; done")
	for n, end := range []string{"by itself", "ended"} {
		mark := realPath(t, t.TempDir())
		b.load(strings.ReplaceAll(strings.ReplaceAll(judgeSpec, "%s", "pwd >$MARK/here; until [ -e $MARK/go ]; do sleep 0.02; done"), "$MARK", mark))
		j := ofCommit(b.reviewJob("G", n+1), taken)
		ctx, die := context.WithCancel(b.ctx())
		gone := make(chan struct{})
		go func() { defer close(gone); b.e.Carry(ctx, j, func(engine.Event) {}) }()
		here := func() string {
			data, _ := os.ReadFile(filepath.Join(mark, "here"))
			return strings.TrimSpace(string(data))
		}
		eventually(t, "the judge works", func() bool { return here() != "" })
		die()
		<-gone
		b.e = b.executor()
		other, err := b.e.Seats.At(b.ctx(), taken, "other")
		if err != nil || other.Top == here() {
			t.Fatalf("%s: another one got %v %v, in which a judge works", end, other, err)
		}
		if end == "ended" {
			if ev, ok := b.e.Carry(b.ctx(), b.stopJob(j), func(engine.Event) {}).(engine.ProcessEnded); !ok || !ev.Exit.Stopped {
				t.Fatalf("%+v", ev)
			}
		} else {
			if err := os.WriteFile(filepath.Join(mark, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if v := b.carry(j).Verdict; v.Outcome != engine.OutcomePass {
				t.Errorf("%+v", v)
			}
		}
		if next, err := b.e.Seats.At(b.ctx(), taken, "next"); err != nil || next.Top != here() {
			t.Errorf("%s: its checkout is not free again: %v %v", end, next, err)
		}
		for _, user := range []string{"other", "next"} {
			b.e.Vacate(user)
		}
	}
}

// TestJudgedInTheFolder: a criterion that asks for the folder gets it, in a home of its own, and the files that do not ship
// are counted.
func TestJudgedInTheFolder(t *testing.T) {
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) {
			conform.Rule(t, "9-one-tree folder", "a criterion may ask for the agent's ignored files; how many they are is told")
			judgedInTheFolder(t, held)
		})
	}
}

func judgedInTheFolder(t *testing.T, held bool) {
	b, taken := judgeBench(t, held, "true")
	spec := `
workflow: {id: w}
steps:
  - id: A
    agent: {type: writer}
    success_criterion:
      - {run: "test -e dist/report.txt && test ! -e $HOME/evil", folder: true}
      - {file: dist/report.txt, folder: true}
      - {run: "test ! -e dist && test -e made.txt"}
    signal: {type: sentinel_file}
    gate: G
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}
`
	b.load(spec)
	home := filepath.Join(b.state, layout.HomesDir, run1, "A")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "evil"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := ofCommit(b.checkJob("A", 1), taken)
	check := b.carry(j).Check
	if !check.OK {
		t.Fatalf("check %+v", check)
	}
	// pyc, fake/ with its list, shut/f, dist/report.txt; work with a path that is too long is never taken
	if check.Unshipped != 5 {
		t.Errorf("%d files that do not ship, want 5", check.Unshipped)
	}
	b.load(strings.ReplaceAll(spec, ", folder: true", ""))
	j = ofCommit(b.checkJob("A", 1), taken)
	j.Key += "0"
	if check := b.carry(j).Check; check.OK || check.Unshipped != 0 {
		t.Errorf("without folder: %+v", check)
	}
}

// TestACheckOfNoFilesNeedsNoCheckout: one is made where outputs or files are looked for.
func TestACheckOfNoFilesNeedsNoCheckout(t *testing.T) {
	for outputs, want := range map[string]bool{"[]": false, "[a.txt]": true} {
		t.Run(outputs, func(t *testing.T) {
			b := newBench(t, "workflow: {id: w}\nsteps:\n  - {id: A, run: [sh, -c, 'true'], outputs: "+outputs+
				", success_criterion: [the text reads well], next_step: DONE}\n")
			b.sh("echo first >a.txt; git add -A; git commit -q -m before")
			j := b.checkJob("A", 1)
			b.begin(j)
			b.put("a.txt", "second")
			if c := b.carry(j).Check; !c.OK || len(c.ToReview) != 1 {
				t.Fatalf("%+v", c)
			}
			if _, err := os.Stat(filepath.Join(b.state, "judge")); (err == nil) != want {
				t.Errorf("a checkout: %t, want %t", err == nil, want)
			}
		})
	}
}
