//go:build linux

package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
)

// The daemon, or `sluice land`, is killed before, after or beside a git that it starts, while runs with a worktree of their
// own take the work of held agents, move their branch and are landed. SLUICE_LANDINGS says how often.
const (
	landKills = 8
	landMost  = 90              // so many gits, at most, until a process dies
	landAlive = 6 * time.Second // one that meets none dies within
)

// landSpec fails its first attempt: what that left is on no branch until a later one passes.
const landSpec = `workflow: {id: %[1]s, workspace: run}
steps:
  - {id: A, agent: {type: a, prompt: work}, gate: GA}
  - {id: B, agent: {type: a, prompt: work}, gate: GB}
gates:
  - {id: GA, reviewer: {level: auto, run: '[ $(cat t*-A.txt | wc -l) -ge 2 ]'}, on_pass: {next_step: B}, on_fail: {next_step: A}, max_retries: 5}
  - {id: GB, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// landAgent commits some of its work and leaves the rest.
const landAgent = `#!/bin/sh
me=$SLUICE_RUN-$SLUICE_STEP
echo "$SLUICE_ATTEMPT" >>$me.txt
git add -A
git -c user.name=Agent -c user.email=agent@example.org commit -q -m "by $me" || exit 1
echo "$SLUICE_ATTEMPT" >>left-$me.txt
echo ignored >x.log
`

// landGit is in front of git: it kills its parent at the git that a file names. No agent in a sandbox sees that file.
const landGit = `#!/bin/sh
if [ -e %[1]s/armed ]; then
	exec 8>>%[1]s/lock
	flock 8
	if read n how what 2>/dev/null <%[1]s/armed; then
		case "$* " in
		*"$what "*) n=$((n - 1)) ;;
		esac
		if [ $n -gt 0 ]; then
			echo $n $how $what >%[1]s/armed
		else
			rm -f %[1]s/armed
			echo "$how $(basename $PWD) $*" >>%[1]s/kills
			exec 8>&-
			case $how in
			before) kill -9 $PPID; exit 1 ;;
			after) %[2]s "$@"; kill -9 $PPID; exit ;;
			beside) kill -9 $PPID; sleep 0.1 ;;
			esac
		fi
	fi
	exec 8>&-
fi
exec %[2]s "$@"
`

// lander is an arena of one repo in which a person has changes of their own.
type lander struct {
	held bool // its agents are
	*arena
	r      *arenaRepo
	real   string              // git
	status string              // of the person's checkout
	passed map[string][]string // by run: the commits that a round has passed
	landed map[string]bool
}

func newLander(t *testing.T, held bool) *lander {
	t.Helper()
	if held {
		needsCage(t)
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	x := &lander{arena: newArena(t, seedOf(t), 1, arenaPlaces{}), real: real, held: held, passed: map[string][]string{}, landed: map[string]bool{}}
	x.r = x.repos[0]
	x.env = slices.DeleteFunc(x.env, func(v string) bool { return strings.HasPrefix(v, "SLUICE_CONFIG_SANDBOX_MODE=") })
	x.spec(landSpec)
	x.put("config/sluice/config.yaml", quickTimes+faultSettings+"sandbox: {mode: "+map[bool]string{true: "on", false: "off"}[held]+"}\nroles: {\"*\": {agent: acts}}\nagents: {acts: {command: [./agent.sh]}}\n")
	for name, text := range map[string]string{"agent.sh": landAgent, ".gitignore": "*.log\n", "mine": "mine\n", "staged": "staged\n"} {
		x.write(name, text)
	}
	if err := os.Chmod(filepath.Join(x.r.root, "agent.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	x.git("add", "-A")
	x.git("commit", "-q", "-m", "agent")
	x.write(".git/info/exclude", ".env\n.workflow/audit/\n")
	x.write(".env", "secret\n")
	x.write("mine", "unstaged\n")
	x.write("staged", "once\n")
	x.git("add", "staged")
	x.write("staged", "twice\n")
	x.write("untracked", "x\n")
	x.status = x.git("status", "--porcelain")
	x.put("bin/git", fmt.Sprintf(landGit, x.work, real))
	if err := os.Chmod(filepath.Join(x.work, "bin/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *lander) write(name, text string) {
	x.t.Helper()
	if err := os.WriteFile(filepath.Join(x.r.root, name), []byte(text), 0o644); err != nil {
		x.t.Fatal(err)
	}
}

// git is a person's, which nothing is in front of.
func (x *lander) git(args ...string) string {
	x.t.Helper()
	out, err := x.try(x.r, append([]string{x.real}, args...)...)
	if err != nil {
		x.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimRight(out, "\n")
}

// arm has a process die at one of its next gits.
func (x *lander) arm() {
	x.t.Helper()
	n, how := 1+x.rnd.IntN(landMost), []string{"before", "after", "beside"}[x.rnd.IntN(3)]
	what := []string{"", "", "update-ref", "update-ref --no-deref -m sluice: the gate has passed", "update-index", "index-pack", "commit-tree"}[x.rnd.IntN(7)]
	if what != "" { // of these there are few
		n = 1 + x.rnd.IntN(3)
	}
	x.put("armed", fmt.Sprintln(n, how, what))
}

func (x *lander) disarm() { _ = os.Remove(filepath.Join(x.work, "armed")) }

// live has one daemon and its person at work until it is killed, one way or the other.
func (x *lander) live() {
	x.t.Helper()
	x.boot()
	x.arm()
	ended := make(chan error, 1)
	daemon := x.last
	go func() { ended <- daemon.Wait() }()
	for until := time.Now().Add(landAlive); time.Now().Before(until) && len(ended) == 0; time.Sleep(pollEvery / 3) {
		x.person(x.r, true)
		x.look()
		x.land(false)
	}
	_ = daemon.Process.Kill()
	err := <-ended
	x.last = nil
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() >= 0 {
		x.t.Errorf("the daemon ended by itself: %v", err)
	}
	x.disarm()
}

// look remembers which commits have passed.
func (x *lander) look() []daemon.RunStatus {
	st, _ := x.arena.status(x.r)
	c := x.r.client()
	if c == nil {
		return nil
	}
	defer c.Close()
	for i := range st.Runs {
		ctx, cancel := context.WithTimeout(context.Background(), answerMost)
		run, err := c.Run(ctx, st.Runs[i].ID)
		cancel()
		if err != nil {
			continue
		}
		st.Runs[i] = run
		for _, s := range run.Steps {
			for _, g := range s.Gates {
				for _, q := range g.Rounds {
					commit, _, _ := strings.Cut(q.Digest, "+")
					if q.State == engine.Approved && !slices.Contains(x.passed[run.ID], commit) {
						x.passed[run.ID] = append(x.passed[run.ID], commit)
					}
				}
			}
		}
	}
	return st.Runs
}

// land lands what has ended. Where it must, no process is killed.
func (x *lander) land(must bool) {
	x.t.Helper()
	for _, run := range x.look() {
		if run.Phase != engine.RunCompleted || x.landed[run.ID] {
			continue
		}
		out, err := x.try(x.r, x.bin, "land", run.ID)
		x.landed[run.ID] = err == nil
		if err != nil && must {
			x.t.Errorf("land %s: %v\n%s", run.ID, err, out)
		}
		if err != nil {
			return
		}
		if got := x.git("status", "--porcelain"); got != x.status {
			x.t.Errorf("%s is landed, and the checkout of the person was\n%s\nand is\n%s", run.ID, x.status, got)
		}
	}
}

// branches are held against what has passed.
func (x *lander) branches() {
	x.t.Helper()
	x.look()
	if !x.held {
		return // such an agent commits on the branch itself
	}
	for line := range strings.SplitSeq(x.git("for-each-ref", "--format=%(refname:lstrip=3) %(objectname)", "refs/heads/sluice/"), "\n") {
		run, tip, _ := strings.Cut(line, " ")
		if run != "" && tip != x.git("rev-parse", "refs/sluice/base/"+run) && !slices.Contains(x.passed[run], tip) {
			x.t.Errorf("the branch of %s is at %s; passed: %s", run, tip, x.passed[run])
		}
	}
}

func TestTortureLands(t *testing.T) {
	conform.Rule(t, "9-one-tree whole", "the real daemon and sluice land, killed at any git while they take, move and land: nothing lost, doubled, or half on a branch")
	t.Parallel()
	for name, held := range map[string]bool{"held": true, "not held": false} {
		t.Run(name, func(t *testing.T) { t.Parallel(); tortureLands(t, newLander(t, held)) })
	}
}

func tortureLands(t *testing.T, x *lander) {
	for range timesOf(t, "SLUICE_LANDINGS", landKills) {
		x.live()
		if t.Failed() {
			return
		}
		x.branchesOfTheDead()
	}
	x.boot()
	x.awaitService()
	x.finish()
	x.alone()
	x.land(true)
	x.branches()
	x.whole()
	if err := x.stop(); err != nil {
		t.Errorf("the daemon ends with %v", err)
	}
	x.alone()
	kills, _ := os.ReadFile(filepath.Join(x.work, "kills"))
	t.Logf("%d runs landed; %d kills at a git", len(x.landed), strings.Count(string(kills), "\n"))
	if t.Failed() {
		t.Logf("killed at:\n%s", kills)
	}
}

// branchesOfTheDead are those that the next daemon finds: it is asked what has passed before it does anything else.
func (x *lander) branchesOfTheDead() {
	x.t.Helper()
	tips := x.git("for-each-ref", "--format=%(refname:lstrip=3) %(objectname)", "refs/heads/sluice/")
	x.boot()
	x.awaitService()
	x.look()
	for line := range strings.SplitSeq(tips, "\n") {
		run, tip, _ := strings.Cut(line, " ")
		if x.held && run != "" && tip != x.git("rev-parse", "refs/sluice/base/"+run) && !slices.Contains(x.passed[run], tip) {
			x.t.Errorf("the branch of %s was left at %s; passed: %s\n%s", run, tip, x.passed[run], x.git("log", "--graph", "--oneline", "--decorate", "--all"))
		}
	}
	x.kill()
}

// whole looks at what there is in the end: all that was made is on the branches, once, and nothing is left over.
func (x *lander) whole() {
	t := x.t
	t.Helper()
	for _, run := range x.look() {
		if run.Phase != engine.RunCompleted {
			t.Errorf("%s is %s: %s", run.ID, run.Phase, run.EndWhy)
			continue
		}
		branch := "sluice/" + run.ID
		for _, s := range run.Steps {
			for _, f := range []string{"", "left-"} {
				file := fmt.Sprintf("%s%s-%s.txt", f, run.ID, s.ID)
				for n := 1; n <= s.Attempt; n++ {
					taken := fmt.Sprintf("refs/sluice/taken/%s/%s.%d", run.ID, s.ID, n)
					if !slices.Contains(strings.Split(x.git("show", taken+":"+file), "\n"), fmt.Sprint(n)) {
						t.Errorf("%s has not the work of attempt %d: %s", taken, n, x.git("show", taken+":"+file))
					}
				}
				want := x.git("show", fmt.Sprintf("refs/sluice/taken/%s/%s.%d:%s", run.ID, s.ID, s.Attempt, file))
				for _, b := range []string{branch, "main"} {
					if got := x.git("show", b+":"+file); got != want {
						t.Errorf("%s:%s is %q, taken was %q", b, file, got, want)
					}
				}
			}
		}
		if n := strings.Count(x.git("log", "--format=%B", "main"), "Sluice-Run: "+run.ID+"\n"); n != 1 {
			t.Errorf("%s was landed %d times", run.ID, n)
		}
		if got := x.git("-C", filepath.Join(x.r.root, run.Workspace), "status", "--porcelain"); got != "" {
			t.Errorf("the worktree of %s:\n%s", run.ID, got)
		}
	}
	if got := x.git("status", "--porcelain"); got != x.status {
		t.Errorf("the person's checkout was\n%s\nand is\n%s", x.status, got)
	}
	if out, err := x.try(x.r, x.real, "fsck", "--strict", "--no-dangling"); err != nil {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
	left, err := exec.Command("find", filepath.Join(x.r.root, ".git"), "-name", "*.lock", "-o", "-name", "sluice-index*").Output()
	if err != nil || len(left) > 0 {
		t.Errorf("left: %s %v", left, err)
	}
	x.unjudged()
	x.git("commit", "-q", "-a", "-m", "the person's own")
	if got := x.git("diff", "--name-only", "HEAD^", "HEAD"); got != "mine\nstaged" {
		t.Errorf("commit -a changes\n%s", got)
	}
}

// unjudged looks for files on the person's branch that no passed commit has.
func (x *lander) unjudged() {
	x.t.Helper()
	judged := map[string]bool{}
	add := func(of ...string) {
		for line := range strings.SplitSeq(x.git(append([]string{"rev-list", "--objects", "--no-object-names", "--filter=object:type=blob", "--filter-provided-objects"}, of...)...), "\n") {
			judged[line] = true
		}
	}
	for _, commits := range x.passed {
		add(commits...)
	}
	for line := range strings.SplitSeq(x.git("rev-list", "--objects", "--no-object-names", "--filter=object:type=blob", "--filter-provided-objects", "main"), "\n") {
		if !judged[line] {
			x.t.Errorf("%s is on the branch, and no round has passed it: %s", line, x.git("show", line))
		}
	}
}
