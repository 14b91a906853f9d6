//go:build linux

package world

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// heldIn is a bench whose launches are held, in a repo that a script has changed before.
func heldIn(t *testing.T, spec, setup string) *bench {
	t.Helper()
	box := boxed(t)
	b := newBench(t, spec)
	b.e.Close()
	b.sh("export TMPDIR=" + t.TempDir() + " GIT_ALLOW_PROTOCOL=file GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@example.org; set -e\n" + setup)
	repo, err := git.OpenWith(t.Context(), b.root, git.Options{Scratch: filepath.Join(t.TempDir(), "scratch2")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	b.git = repo
	home := realPath(t, t.TempDir())
	b.e = b.executor(func(o *Options) {
		o.Sandbox = func() (*sandbox.Box, error) { return box, nil }
		o.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	})
	return b
}

// inGitSpec has a step in the main checkout, and one in a linked worktree.
const inGitSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, prompt: do it}, signal: {type: sentinel_file}, next_step: B}
  - {id: B, agent: {type: writer, prompt: do it, worktree: tree/}, signal: {type: sentinel_file}, next_step: DONE}
`

// worksInGit does what agents do with git; each line has to succeed. What git says is kept for a failure.
const worksInGit = `exec >"said.$SLUICE_STEP" 2>&1
set -ex
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.org GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@example.org
echo "/said.*" >>.git/info/exclude 2>/dev/null || echo "/said.*" >>"$(git rev-parse --git-path info/exclude)"
echo hi >"made.$SLUICE_STEP"
git add "made.$SLUICE_STEP"
git commit -q -m made
base=$(git rev-parse HEAD)
branch=$(git symbolic-ref HEAD)
git switch -q -c side HEAD~1
echo side >"side.$SLUICE_STEP"; git add "side.$SLUICE_STEP"; git commit -q -m side
git rebase -q "$base"
git switch -q "${branch#refs/heads/}"
git merge -q --ff-only side
echo more >>"made.$SLUICE_STEP"; git stash -q; git stash pop -q; git checkout -q -- "made.$SLUICE_STEP"
git bisect start HEAD HEAD~1; git bisect reset
git worktree add -q --detach "/tmp/wt" HEAD; git -C /tmp/wt commit -q --allow-empty -m elsewhere; git worktree remove --force /tmp/wt
git tag -a -m x mine; git branch -q -D side; git reflog >/dev/null
git -c gc.auto=1 gc -q
git fsck --no-dangling --no-progress
git status --porcelain >/tmp/status
cat /tmp/status
[ "$(git log -1 --format=%s)" = side ]
if git config x.y z && git -c core.hooksPath=/nowhere commit -q --allow-empty -m last; then :; else exit 3; fi
`

// TestGitInside: git works inside as it does outside, in every kind of repo, and all that it did on HEAD is there afterwards.
func TestGitInside(t *testing.T) {
	base := `for i in 1 2 3; do mkdir -p in/cone out/of; echo $i >in/cone/f; echo $i >out/of/f; git add -A; git commit -q -m c$i; done
`
	clone := func(args string) string {
		return base + "c=$(mktemp -d); git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true\ncp -r .git $c/origin.git\ngit clone -q --no-checkout " + args + " file://$c/origin.git $c/clone\nrm -rf .git; mv $c/clone/.git .git; git reset -q --hard\n"
	}
	for name, setup := range map[string]string{
		"plain":          base,
		"sha256":         "rm -rf .git; git init -q -b main --object-format=sha256; git add -A; git commit -q -m first\n" + base,
		"10,000 refs":    base + "h=$(git rev-parse HEAD); git pack-refs --all; seq 10000 | sed \"s|.*|$h refs/tags/many&|\" | sort -k2 >>.git/packed-refs; sed -i 's/ sorted//' .git/packed-refs\n",
		"shallow":        clone("--depth 2"),
		"partial clone":  clone("--filter=blob:none"),
		"shared":         base + "c=$(mktemp -d); cp -r .git $c/origin.git; git clone -q --shared --no-checkout $c/origin.git $c/clone; rm -rf .git; mv $c/clone/.git .git; git reset -q --hard\n",
		"sparse":         base + "git sparse-checkout set --cone in\n",
		"split index":    base + "git update-index --split-index; touch x; git add x; git commit -q -m x\n",
		".git is a file": base + "c=$(mktemp -d); git init -q --separate-git-dir $c/g\n",
		"detached":       base + "git checkout -q --detach; git branch -q -D main; git switch -q -c main\n",
		"LFS pointers":   base + "printf '*.bin filter=lfs diff=lfs merge=lfs -text\\n' >.gitattributes; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 3\\n' 0 >a.bin; git add -A; git commit -q -m lfs\n",
		"submodules":     base + "c=$(mktemp -d); git init -q $c/s; git -C $c/s commit -q --allow-empty -m s; git submodule --quiet add $c/s sub; git submodule --quiet add $c/s gone; git commit -q -m subs; git submodule --quiet deinit -f gone\n",
		"staged work":    base + "echo staged >in/cone/f; git add in/cone/f; echo dirty >out/of/f; echo new >untracked\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := heldIn(t, inGitSpec, setup)
			script := worksInGit
			steps := []string{"A"}
			switch name {
			case "staged work": // rebase refuses a dirty checkout, and commit takes what is staged, as they do outside
				script = strings.ReplaceAll(script, "git rebase -q", "git rebase -q --autostash")
				script = strings.NewReplacer("-m made\n", "-m made -- made.A\n", "-m side\n", "-m side -- side.A\n").Replace(script)
			case "plain", "sparse", "submodules", ".git is a file":
				steps = append(steps, "B")
			}
			b.script("works", script)
			for _, step := range steps {
				at := map[string]string{"A": ".", "B": "tree"}[step]
				before := ""
				if at == "." {
					before = b.sh("git status --porcelain")
				}
				ev := b.carry(b.stepJob(step, 1, 1))
				said, _ := os.ReadFile(b.path(at + "/said." + step))
				if ev.Exit.Code != 0 || ev.Exit.NotStarted != "" {
					t.Fatalf("%s: %+v %s\n%s", step, ev.Exit, ev.Output, said)
				}
				if got := b.sh("git -C " + at + " log -3 --format=%s"); got != "last\nside\nmade" {
					t.Errorf("%s: its commits are %q\n%s", step, got, said)
				}
				_ = os.Remove(b.path(at + "/said." + step))
				after := b.sh("git -C " + at + " status --porcelain")
				if after = strings.TrimSpace(strings.ReplaceAll(after, "?? agents/\n", "")); at == "." && after != strings.TrimSpace(strings.ReplaceAll(before, "?? agents/\n", "")) {
					t.Errorf("%s: the checkout was %q and is %q\n%s", step, before, after, said)
				}
			}
			b.sh("git fsck --no-dangling --no-progress")
			if got := b.sh("git for-each-ref refs/tags/mine refs/heads/side"); got != "" {
				t.Errorf("what it named inside is there: %s", got)
			}
		})
	}
}

// plants are what an agent tries so that a person's git runs X: each line is tried by itself.
const plants = `X=$PWD/x.sh
set +e
for g in .git "$(git rev-parse --git-dir)" "$(git rev-parse --git-common-dir)" sub/.git gone/.git gone .git/modules/sub ../.git wt/.git deep/.git; do
  printf '[core]\n\tfsmonitor = %s\n\tpager = %s\n[diff]\n\texternal = %s\n[gpg]\n\tprogram = %s\n[log]\n\tshowSignature = true\n' $X $X $X $X >>$g/config
  mkdir -p $g/hooks; for h in post-index-change reference-transaction post-checkout; do ln -sf $X $g/hooks/$h; done
  echo "$PWD/evil/.git" >$g/commondir
done
git init -q evil; git -C evil config core.fsmonitor $X; git -C evil commit -q --allow-empty -m x
for s in sub gone deep; do
  mv $s $s.away; mkdir -p $s; echo "gitdir: $PWD/evil/.git" >$s/.git; rm -rf $s/.git; cp -r evil/.git $s/.git; mv $s/.git $s/.git2; echo "gitdir: $PWD/evil/.git" >$s/.git
done
mv .git .git.away; echo "gitdir: $PWD/evil/.git" >.git
printf '* diff=evil filter=evil\n' >.gitattributes
git config core.fsmonitor $X; git config --local diff.evil.command $X; git config --local diff.evil.textconv $X; git config filter.evil.clean $X
echo x >>README.md
true
`

// TestPersonsGitRunsNothing: whatever an agent leaves, a person's git at the top, in a submodule or in a worktree starts none
// of it.
func TestPersonsGitRunsNothing(t *testing.T) {
	setup := `c=$(mktemp -d); git init -q $c/s; git -C $c/s commit -q --allow-empty -m s; git -C $c/s submodule --quiet add $c/s inner; git -C $c/s commit -q -m inner
git submodule --quiet add $c/s sub; git submodule --quiet add $c/s gone; git commit -q -m subs; git submodule --quiet update --init --recursive; git submodule --quiet deinit -f gone
git worktree add -q wt; printf '#!/bin/sh\ntouch "` + "$(dirname \"$0\")" + `/ran"\n' >x.sh; chmod +x x.sh; git add x.sh; git commit -q -m x
`
	b := heldIn(t, inGitSpec, setup)
	b.script("evil", plants)
	before := b.sh("cat .git/config .git/modules/*/config .git/worktrees/*/gitdir sub/.git sub/inner/.git wt/.git; ls -A gone .git .git/hooks")
	for _, step := range []string{"A", "B"} {
		if ev := b.carry(b.stepJob(step, 1, 1)); ev.Exit.Code != 0 {
			t.Fatalf("%+v %s", ev.Exit, ev.Output)
		}
	}
	_ = os.Remove(b.path("ran")) // inside, its own git ran it
	_ = os.Remove(b.path("tree/ran"))
	if got := b.sh("cat .git/config .git/modules/*/config .git/worktrees/wt/gitdir sub/.git sub/inner/.git wt/.git; ls -A gone .git .git/hooks"); b.withoutTree(got) != b.withoutTree(before) {
		t.Errorf("the repo was changed:\n%s\nbefore:\n%s", got, before)
	}
	for _, dir := range []string{".", "sub", "sub/inner", "wt", "tree"} {
		for _, args := range [][]string{{"status"}, {"diff"}, {"diff", "HEAD"}, {"log", "-3", "-p"}, {"status", "--ignored"}} {
			cmd := exec.Command("git", append([]string{"-C", b.path(dir)}, args...)...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("git %q in %s: %v\n%s", args, dir, err, out)
			}
		}
	}
	if b.has("ran") || b.has("tree/ran") {
		t.Error("what the agent left was run")
	}
}

// TestReposInside: a repo inside the checkout that was there before the run stays as it is, whether the step is checked or
// not; of a submodule the git folder does, and what the settings let agents write does not. One that the step made itself, its
// next attempt may remove.
func TestReposInside(t *testing.T) {
	for name, gate := range map[string]string{"checked": ", gate: G", "not checked": ", next_step: DONE"} {
		t.Run(name, func(t *testing.T) {
			spec := "workflow: {id: w}\nsteps:\n  - {id: A, run: [sh, ./agents/w]" + gate + "}\n"
			if name == "checked" {
				spec += "gates:\n  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}\n"
			}
			b := heldIn(t, spec, `echo ignored/ >.gitignore; git add .gitignore; git commit -q -m x
for r in lib deep/er/lib ignored/lib open; do git init -q $r; echo good >$r/code; git -C $r add code; git -C $r commit -q -m r; done
c=$(mktemp -d); git init -q $c/s; git -C $c/s commit -q --allow-empty -m s; git submodule --quiet add $c/s sub; git commit -q -m sub
`)
			b.settings.Sandbox.Write = []string{b.path("open")}
			b.script("w", `no() { if sh -c "$1" 2>/dev/null; then echo "could: $1"; fi; }
for r in lib deep/er/lib ignored/lib; do
	no "echo evil >$r/code"; no "echo evil >>$r/.git/config"; no "echo evil >$r/new"; no "rm $r/code"; no "mv $r gone"
done
no "mv deep gone"; no "echo evil >sub/.git"
echo work >out.txt && echo work >open/code && echo work >sub/code && cat lib/code
[ $SLUICE_ATTEMPT = 1 ] && git init -q made || rm -r made
`)
			for n := 1; n <= 2; n++ {
				j := b.stepJob("A", n, 1)
				if ev := b.carry(j); ev.Exit.Code != 0 || ev.Exit.NotStarted != "" {
					t.Fatalf("%+v %s", ev.Exit, ev.Output)
				}
				if got := b.get(b.e.JobDir(j) + "/stdout"); got != "good\n" {
					t.Errorf("attempt %d: %s", n, got)
				}
				if made := b.has("made"); made != (n == 1) {
					t.Errorf("attempt %d: the repo that it made is there: %v", n, made)
				}
			}
			if got := b.sh("cat lib/code open/code sub/code; git -C lib status --porcelain"); got != "good\nwork\nwork" {
				t.Errorf("outside: %q", got)
			}
		})
	}
}

// withoutTree leaves out what a new worktree of the run adds to the git folder.
func (b *bench) withoutTree(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		if !strings.Contains(line, "/tree") && strings.TrimSpace(line) != "index" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// TestHeldCommitIsSeen: a marked commit counts while the agent is at work, and one from before does not, also as a double.
func TestHeldCommitIsSeen(t *testing.T) {
	b := heldIn(t, treeSpec, commit+"--date 2020-01-02T03:04:05Z -m 'old [DONE]'")
	b.script("x", "")
	spec := strings.Replace(treeSpec, `run: "true"`, `run: [sh, ./agents/commits]`, 1)
	b.load(spec)
	b.script("commits", `set -e
git() { command git -c user.name=A -c user.email=a@example.org "$@"; }
git switch -q -c other
git commit -q --amend --no-edit --allow-empty
git commit -q --allow-empty -m 'Revert "old [DONE]"'
git commit -q --allow-empty -m 'talks of [DONE] in its middle'
until [ -e go1 ]; do sleep 0.02; done
git commit -q --allow-empty -m mine -m '[DONE]'
until [ -e go2 ]; do sleep 0.02; done
`)
	j := b.stepJob("C", 1, 1)
	s := b.watch("C", 1)
	ctx, cancel := context.WithCancel(b.ctx())
	defer cancel()
	done := background(ctx, b.e, j, func(engine.Event) {})
	dir := filepath.Join(b.state, layout.GitsDir, run1, "C#1.1")
	eventually(t, "it has committed what does not count", func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "logs/HEAD"))
		return strings.Contains(string(data), "in its middle")
	})
	b.put("go1", "")
	eventually(t, "a commit is seen", func() bool { return len(s.all()) > 0 })
	if b.has("go2") || len(done) > 0 {
		t.Fatal("it was seen after the end only")
	}
	ev := s.all()[0].(engine.CommitSeen)
	if ev.Subject != "mine" || ev.Author == "" || len(ev.Makers) == 0 {
		t.Errorf("seen %+v", ev)
	}
	b.put("go2", "")
	if end := (<-done).(engine.ProcessEnded); end.Exit.Code != 0 {
		t.Fatalf("%+v %s", end.Exit, end.Output)
	}
	if got := b.sh("git rev-parse " + fmt.Sprintf("refs/sluice/tip/%s/C.1", run1)); got != "" && len(s.all()) != 1 {
		t.Errorf("seen %+v", s.all())
	}
}

// TestHeldCommitsSurvive: what a launch has committed is taken where it was stopped, where the daemon was another meanwhile,
// and not where it is built on something else: then the files alone are its work.
func TestHeldCommitsSurvive(t *testing.T) {
	b := heldIn(t, inGitSpec, "true")
	b.script("works", `set -e
git() { command git -c user.name=A -c user.email=a@example.org "$@"; }
git commit -q --allow-empty -m "one of $SLUICE_ATTEMPT"
echo x >"here.$SLUICE_ATTEMPT"
until [ -e "go.$SLUICE_ATTEMPT" ]; do sleep 0.02; done
git commit -q --allow-empty -m "two of $SLUICE_ATTEMPT"
`)
	j := b.stepJob("A", 1, 1)
	ctx, cancel := context.WithCancel(b.ctx())
	first := background(ctx, b.e, j, func(engine.Event) {})
	eventually(t, "it works", func() bool { return b.has("here.1") })
	cancel()
	<-first
	again := b.executor(func(o *Options) { o.Sandbox, o.Environ = b.e.opt.Sandbox, b.e.opt.Environ })
	b.e.Close()
	b.e = again
	b.put("go.1", "")
	if ev := b.carry(j); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	if got := b.sh("git log -2 --format=%s"); got != "two of 1\none of 1" {
		t.Errorf("after another daemon: %q", got)
	}
	// Stopped.
	j = b.stepJob("A", 2, 1)
	ctx, cancel = context.WithCancel(b.ctx())
	defer cancel()
	second := background(ctx, b.e, j, func(engine.Event) {})
	eventually(t, "it works", func() bool { return b.has("here.2") })
	stop := j
	stop.Kind = engine.DoStop
	b.e.Carry(b.ctx(), stop, func(engine.Event) {})
	<-second
	if got := b.sh("git log -1 --format=%s"); got != "one of 2" {
		t.Errorf("after it was stopped: %q", got)
	}
	// On a history of its own.
	b.script("works", "set -e\ngit checkout -q --orphan own\necho new >new\ngit add -A\ngit -c user.name=A -c user.email=a@example.org commit -q -m own\n")
	tip := b.sh("git rev-parse main")
	if ev := b.carry(b.stepJob("A", 3, 1)); ev.Exit.Code != 0 {
		t.Fatalf("%+v %s", ev.Exit, ev.Output)
	}
	if b.sh("git rev-parse HEAD") != tip || b.get("new") != "new\n" {
		t.Errorf("HEAD was moved to what is not built on it")
	}
	if left, _ := filepath.Glob(b.path(".git/objects/tmp_*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestOwnGitIsMadeOnce: a launch that a killed daemon may have started, and one that is asked again, keep their folder.
func TestOwnGitIsMadeOnce(t *testing.T) {
	b := heldIn(t, inGitSpec, "true")
	work := &tree.Order{Run: run1, Step: "A", N: 1}
	g, err := b.e.OwnGit(b.ctx(), run1+"/A#1.1", b.root, work, false)
	if err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(g.Dir, "planted")
	if err := os.WriteFile(planted, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{run1 + "/A#1.1", run1 + "/A#1.1+1"} {
		if again, err := b.e.OwnGit(b.ctx(), key, b.root, nil, false); err != nil || again.Dir != g.Dir || !again.Keeps {
			t.Errorf("%s: %+v %v", key, again, err)
		}
	}
	if _, err := os.Stat(planted); err != nil {
		t.Errorf("it was made anew: %v", err)
	}
	b.e.Receive(b.ctx(), b.stepJob("A", 1, 1))
	if layout.IsDir(g.Dir) {
		t.Error("it is left though nothing is in it")
	}
}
