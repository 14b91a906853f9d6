//go:build linux

package world

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/tools/conform"
)

// boxed returns the sandbox of this machine, or skips the test.
func boxed(t *testing.T) *sandbox.Box {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Find(context.Background(), self, "")
	switch {
	case err == nil:
		return box
	case strings.Contains(err.Error(), "not installed"):
		t.Skipf("needs: bwrap (apt-get install bubblewrap)")
	}
	t.Skipf("kernel: user namespaces: %v", err)
	return nil
}

// held is a bench whose launches are held by a sandbox.
func held(t *testing.T, spec string) *bench {
	t.Helper()
	box := boxed(t)
	b := newBench(t, spec)
	b.e.Close()
	b.e = b.executor(func(o *Options) {
		o.Sandbox = func() (*sandbox.Box, error) { return box, nil }
		home := realPath(t, t.TempDir())
		o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "SECRET=s3cret", "MY_KEY=k"}
	})
	return b
}

// environ has the daemon run with another environment.
func (b *bench) environ(env ...string) {
	b.t.Helper()
	was := b.e.opt.Sandbox
	b.e.Close()
	b.e = b.executor(func(o *Options) { o.Sandbox, o.Environ = was, env })
}

const heldSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, signal: {type: sentinel_file}, answer: {type: object}, next_step: B}
  - {id: B, agent: {type: writer, prompt: do it, worktree: tree/}, signal: {type: sentinel_file}, gate: G}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

func TestHeldWorks(t *testing.T) {
	conform.Rule(t, "4-trust own inbox", "what it signals lies there, needs no token, and is known to be its")
	b := held(t, heldSpec)
	b.script("works", `set -e
echo hi >"$SLUICE_STEP.txt"
git add "$SLUICE_STEP.txt"
git -c user.name=x -c user.email=x@example.org commit -q -m made
printf '{"token": "%s", "a": 1}' "$SLUICE_TOKEN" >"$SLUICE_ANSWER"
echo '{"status": "done"}' >"$SLUICE_SIGNAL.tmp"
mv "$SLUICE_SIGNAL.tmp" "$SLUICE_SIGNAL"
echo "home $HOME uid $(id -u) secret ${SECRET-none}"
`)
	for _, step := range []string{"A", "B"} {
		j := b.stepJob(step, 1, 1)
		ev := b.carry(j)
		if ev.Exit.Code != 0 || ev.Exit.Why != "" || step == "A" && !strings.Contains(string(ev.Answer), `"a"`) {
			t.Errorf("%s: %+v %s\n%s%s", step, ev.Exit, ev.Answer, b.get(".workflow/runs/w-1/"+step+".1/stderr"), ev.AnswerBad)
		}
		seen := b.scanned(job.Inboxes{Runs: []string{run1}, Tokens: map[string]string{j.Key: ""}, Trees: []string{"."}}, 1)
		if seen[0].Of != j.Key || seen[0].TokenOf != j.Key || seen[0].Sentinel == nil || seen[0].Name != step+"-done.json" || seen[0].Dir != run1 {
			t.Errorf("%+v", seen[0])
		}
		b.move(&engine.Move{ID: seen[0].ID, Name: seen[0].Name, Dir: seen[0].Dir, Of: seen[0].Of, Run: run1, To: step + ".1", As: "signal.json"})
		if !b.has(".workflow/runs/w-1/" + step + ".1/signal.json") {
			t.Error("the signal was not moved")
		}
	}
	if !b.has("A.txt") || !b.has("tree/B.txt") || b.sh("git log --format=%s -1") != "made" || b.sh("git -C tree log --format=%s -1") != "made" {
		t.Error("its work is not there")
	}
	if level, why := b.e.Level(run1); level != engine.TrustSandbox {
		t.Errorf("level %s: %s", level, why)
	}
	if status := b.sh("git status --porcelain"); strings.Contains(status, "signals") {
		t.Errorf("%s", status)
	}
	if _, err := os.Stat(filepath.Join(b.state, layout.HomesDir, run1, "A")); err != nil {
		t.Error(err)
	}
}

// TestHomeInTheCheckout: whoever can write to a person's home is held by nothing.
func TestHomeInTheCheckout(t *testing.T) {
	b := held(t, heldSpec)
	b.environ("PATH="+os.Getenv("PATH"), "HOME="+b.root)
	b.script("works", "echo '{\"status\": \"done\"}' >\"$SLUICE_SIGNAL\"\n")
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v", ev.Exit)
	}
	if level, why := b.e.Level(run1); level != engine.TrustFile || !strings.Contains(why, "your home") {
		t.Errorf("level %s: %s", level, why)
	}
}

// TestRefusedLaunchLeavesNothing: what was made for a launch that then could not be made is removed.
func TestRefusedLaunchLeavesNothing(t *testing.T) {
	b := held(t, heldSpec)
	b.script("works", "exit 0\n")
	for name, a := range b.settings.Agents {
		a.Command = []string{"no-such-command"}
		b.settings.Agents[name] = a
	}
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Class != engine.ClassFatal {
		t.Fatalf("%+v", ev.Exit)
	}
	b.e.Settle() // folders are removed behind the launch
	if left, _ := filepath.Glob(filepath.Join(b.state, layout.GitsDir, run1, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if g, ok := b.e.OwnGitOf(run1 + "/A#1.1"); ok {
		t.Errorf("left: %+v", g)
	}
}

// TestUnheldBesideOthers: while a launch that nothing holds is at work, in whichever repo, and of the runs that lived beside
// it for good, no answer has the level of the sandbox.
func TestUnheldBesideOthers(t *testing.T) {
	box := boxed(t)
	unheld := &launch.Unheld{}
	with := func(b *bench) *World {
		return b.executor(func(o *Options) {
			o.Sandbox, o.Unheld = func() (*sandbox.Box, error) { return box, nil }, unheld
		})
	}
	outer := newBench(t, heldSpec)
	t.Run("another repo", func(t *testing.T) { unheldBeside(t, newBench(t, heldSpec), outer, with) })
}

func unheldBeside(t *testing.T, inner, outer *bench, with func(*bench) *World) {
	e := with(inner)
	outer.settings.Sandbox.Mode = settings.SandboxOff
	outer.e = with(outer)
	if _, _, err := e.Scan(inner.ctx(), job.Inboxes{Runs: []string{run1}}); err != nil {
		t.Fatal(err)
	}
	level := func(run string) string { l, _ := e.Level(run); return l }
	if level(run1) != engine.TrustSandbox {
		t.Fatal("it is not held to begin with")
	}
	outer.script("loose", "echo here >here\nuntil [ -e go ]; do sleep 0.02; done\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		outer.e.Carry(outer.ctx(), outer.stepJob("A", 1, 1), func(engine.Event) {})
	}()
	eventually(t, "the other repo's agent works", func() bool { return outer.has("here") })
	if level(run1) != engine.TrustFile || level("w-2") != engine.TrustFile {
		t.Error("beside it an answer has the level of the sandbox")
	}
	outer.put("go", "")
	<-done
	if level(run1) != engine.TrustFile {
		t.Error("a run that lived beside it has the level of the sandbox again")
	}
	if level("w-2") != engine.TrustSandbox {
		t.Error("a run that comes later is exposed")
	}
	again := with(inner) // after a restart
	if l, _ := again.Level(run1); l != engine.TrustFile {
		t.Error("it was forgotten")
	}
}

// TestHeldOutOfAnotherRepo: an agent cannot write to a served repo in its checkout, nor beside its
// own.
func TestHeldOutOfAnotherRepo(t *testing.T) {
	conform.Rule(t, "001 agent.folder", "its checkout, and neither a file beside it nor another repo within")
	box := boxed(t)
	b := newBench(t, heldSpec)
	b.put("inner/.workflow/signals/.keep", "")
	unheld := &launch.Unheld{}
	for _, root := range []string{b.path("inner"), b.root} {
		b.e = b.executor(func(o *Options) {
			o.Sandbox, o.Unheld = func() (*sandbox.Box, error) { return box, nil }, unheld
			if root != b.root {
				o.Root, o.State, o.Git = root, filepath.Join(realPath(t, t.TempDir()), "state"), nil
			}
		})
	}
	b.script("planter", "echo ok >inner/.workflow/signals/G-pass; echo x >inner/file; echo x >../beside; echo x >outer\n")
	b.carry(b.stepJob("A", 1, 1))
	if b.has("inner/.workflow/signals/G-pass") || b.has("inner/file") || b.has("../beside") || !b.has("outer") {
		t.Error(b.sh("find inner outer"))
	}
}

// TestBrokenWorktreeShowsNoCheckout: to git, a worktree without its .git is a part of the person's checkout, which no
// launch of a run with a worktree of its own is shown.
func TestBrokenWorktreeShowsNoCheckout(t *testing.T) {
	b := held(t, "workflow: {id: w, workspace: run}\nsteps:\n  - {id: A, run: [sh, -c, 'echo in >../../../reached'], next_step: DONE}\n")
	b.sh("git add -A; git commit -q --allow-empty -m before")
	j := inSpace(b.stepJob("A", 1, 1), space1)
	b.begin(j)
	b.sh("rm " + space1 + "/.git")
	ev := b.carry(j)
	if !strings.Contains(ev.Exit.NotStarted, "its .git is gone") {
		t.Errorf("%+v", ev.Exit)
	}
	if _, err := os.Stat(filepath.Join(b.root, "reached")); err == nil {
		t.Error("the launch wrote into the checkout")
	}
}
