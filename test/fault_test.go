//go:build linux

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/setup"
	"sluice/journal"
	"sluice/specs"
)

// The fault tests run the real daemon over several repos while a person answers, and take its life, its disk or its system
// calls away. An arena is what they share: the repos, the person, what was acknowledged, and the checks afterwards.

// faultSpec has what can be lost, doubled or changed: failures with retries, a notice, a human gate, branches, a join.
const faultSpec = `workflow: {id: %[1]s}
steps:
  - {id: A, agent: {type: a, worktree: %[1]s-a/}, gate: GA, outputs: [a.txt]}
  - {id: B, agent: {type: a, worktree: %[1]s-b/}, signal: {type: sentinel_file}, gate: GB}
  - {id: C, agent: {type: a, worktree: %[1]s-c/}, signal: {type: git_commit}, gate: GC}
  - {id: D, agent: {type: a}, gate: GD}
gates:
  - {id: GA, reviewer: {level: auto, agent_type: r}, on_pass: {next_step: [B, C]}, max_retries: 3}
  - {id: GB, reviewer: {level: notify, agent_type: r}, veto_window: 50ms, on_pass: {next_step: D}}
  - {id: GC, reviewer: {level: human}, on_pass: {next_step: D}}
  - {id: GD, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`

// faultAgent writes a ledger of its own: what it is, at its start and at its end, while it holds a lock of its launch's
// name and one of its step's name. Two that live at the same time would meet there. It works a moment, so that some
// outlive the daemon that started them; what another left of a git command it clears away first. A reviewer whose answer
// is lost on a full disk is asked again, under a key of its own and the record of the first: a "+" says so.
const faultAgent = `who=${SLUICE_GATE:-$SLUICE_STEP}
key=$SLUICE_RUN/$who#${SLUICE_ROUND:-$SLUICE_ATTEMPT}
exec 8>"$E2E_WORK/locks/$SLUICE_RUN.$who" 9>"$E2E_WORK/locks/$SLUICE_TOKEN"
for fd in 9 8; do
	flock -n -E 77 $fd
	case $? in
	0) ;;
	77) echo "two are alive: $key ($fd)" >>"$E2E_WORK/broken"; exit 1 ;;
	*) exit 1 ;;
	esac
done
case "$SLUICE_ANSWER" in
*/again-*) echo "$key+ $SLUICE_TOKEN $$" >>"$E2E_WORK/launches" ;;
*) echo "$key $SLUICE_TOKEN $$" >>"$E2E_WORK/launches" ;;
esac
sleep 0.$(($$ % 3))$(($$ % 7))
[ $(($$ % 20)) != 0 ] || sleep 2.5 # some outlive the pause before what was lost is launched again
word=done
case "$who.${SLUICE_ROUND:-$SLUICE_ATTEMPT}" in
A.*) echo "$key" >>a.txt ;;
GA.1) word=fail ;;
G*) word=pass ;;
B.*) printf '{"status": "done"}' >"$SLUICE_SIGNAL" ;;
C.*)
	rm -f "$(git rev-parse --git-dir)"/*.lock "$(git rev-parse --git-common-dir)/$(git symbolic-ref HEAD).lock"
	git -c user.name="$key" commit -q --allow-empty -m "c $SLUICE_ATTEMPT [GATE:GC]" 2>>"$E2E_WORK/git" || exit 1 ;;
esac
echo "$key $SLUICE_TOKEN $word" >>"$E2E_WORK/ends"
case "$word" in
fail) echo '{"verdict": "fail", "feedback": "once more"}' ;;
pass) echo '{"verdict": "pass"}' ;;
esac
`

const faultSettings = `restarts: 50
max_parallel: 4
max_agents: 8
`

// arena is a daemon over several repos, with a person and a ledger. What is in work is never
// removed.
type arena struct {
	t     *testing.T
	work  string // ledger, locks, settings, logs
	bin   string // a name of the binary that only this arena has: it finds its processes
	env   []string
	log   *os.File
	rnd   *rand.Rand
	repos []*arenaRepo
	last  *exec.Cmd // the daemon
	made  int       // launches under power cuts
	dry   int       // power cuts before the first of them
}

// arenaRepo is one repo, and what was acknowledged in it.
type arenaRepo struct {
	root, flow string
	home       string            // the folder of all state folders
	told       map[string]string // "run/gate#round" -> the outcome that a person was told is taken
	runs       map[string]bool   // those that a person was told of
	seq        int64             // the highest that an answer named
	seen       []byte            // of the journal: whole lines, as they once were
	rec        *record           // what they say, where somebody wants to know each time
	faults     []string          // in them
}

// arenaPlaces says where the parts of an arena are; "" = beside its ledger.
type arenaPlaces struct{ state, repos string }

// newArena makes one with n repos and starts nothing.
func newArena(t *testing.T, seed uint64, n int, at arenaPlaces) *arena {
	t.Helper()
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("needs: flock (apt-get install util-linux)")
	}
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &arena{t: t, work: work, bin: filepath.Join(work, "bin", "sluice"), rnd: rand.New(rand.NewPCG(seed, 1))}
	if err := furnish(work); err != nil {
		t.Fatal(err)
	}
	x.put("bin/.keep", "")
	copyFile(t, filepath.Join(binDir(t), "sluice"), x.bin, 0o755)
	if at.state == "" {
		at.state = filepath.Join(work, "state")
	}
	if at.repos == "" {
		at.repos = work
	}
	for _, v := range isolated(work) {
		if !strings.HasPrefix(v, "XDG_STATE_HOME=") {
			x.env = append(x.env, v)
		}
	}
	x.env = append(x.env, "XDG_STATE_HOME="+at.state, "PATH="+filepath.Dir(x.bin)+string(os.PathListSeparator)+os.Getenv("PATH"))
	x.put("config/sluice/config.yaml", strings.Replace(quickSettings, "ACTS", filepath.Join(work, "agent.sh"), 1)+faultSettings)
	x.put("agent.sh", faultAgent)
	x.put("locks/.keep", "")
	if x.log, err = os.OpenFile(filepath.Join(work, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.end)
	for i := range n {
		x.addRepo(filepath.Join(at.repos, fmt.Sprintf("r%d", i)), fmt.Sprintf("t%d", i), filepath.Join(at.state, "sluice"))
	}
	return x
}

func (x *arena) addRepo(root, flow, home string) {
	x.t.Helper()
	r := &arenaRepo{root: root, flow: flow, home: home, told: map[string]string{}, runs: map[string]bool{}}
	for name, text := range map[string]string{".workflow/.gitignore": setup.Ignored, ".workflow/specs/" + flow + ".yaml": fmt.Sprintf(faultSpec, flow)} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			x.t.Fatal(err)
		}
	}
	for _, line := range []string{"git init -q", "git add -A", "git commit -q -m start", x.bin + " watch add"} {
		if out, err := x.try(r, strings.Fields(line)...); err != nil {
			x.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	x.repos = append(x.repos, r)
}

// spec writes another spec of the same name into every repo.
func (x *arena) spec(text string) {
	x.t.Helper()
	for _, r := range x.repos {
		if err := os.WriteFile(filepath.Join(r.root, ".workflow/specs", r.flow+".yaml"), fmt.Appendf(nil, text, r.flow), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *arena) put(name, text string) {
	x.t.Helper()
	file := filepath.Join(x.work, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		x.t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// try runs a command in the repo.
func (x *arena) try(r *arenaRepo, args ...string) (string, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = r.root, x.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// state is the repo's state folder, "" while there is none.
func (r *arenaRepo) state() string {
	dirs, _ := filepath.Glob(filepath.Join(r.home, filepath.Base(r.root)+"-*"))
	if len(dirs) != 1 {
		return ""
	}
	return dirs[0]
}

func (r *arenaRepo) journal() string { return filepath.Join(r.state(), journal.FileName) }

// boot starts the daemon, under what is in front of it, and does not wait for it.
func (x *arena) boot(front ...string) {
	x.t.Helper()
	argv := append(front, x.bin, "daemon")
	x.last = exec.Command(argv[0], argv[1:]...)
	x.last.Dir, x.last.Env, x.last.Stdout, x.last.Stderr = x.work, x.env, x.log, x.log
	if err := x.last.Start(); err != nil {
		x.t.Fatal(err)
	}
}

// kill ends the daemon as a crash would.
func (x *arena) kill() {
	x.t.Helper()
	if err := x.last.Process.Kill(); err != nil {
		x.t.Fatalf("the daemon was gone before it was killed: %v", err)
	}
	err := x.last.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		x.t.Fatalf("the daemon ended by itself: %v", err)
	}
	x.last = nil
}

// stop ends the daemon as an init system does, and returns its end.
func (x *arena) stop() error {
	x.t.Helper()
	if err := x.last.Process.Signal(syscall.SIGTERM); err != nil {
		x.t.Fatal(err)
	}
	err := x.last.Wait()
	x.last = nil
	return err
}

// endsItself waits for the daemon to end by itself and returns its exit code.
func (x *arena) endsItself() int {
	x.t.Helper()
	ended := make(chan error, 1)
	daemon := x.last
	go func() { ended <- daemon.Wait() }()
	x.last = nil
	select {
	case <-ended:
	case <-time.After(waitMost):
		_ = daemon.Process.Kill()
		<-ended
	}
	return daemon.ProcessState.ExitCode()
}

// end ends what the test started.
func (x *arena) end() {
	if x.last != nil {
		_ = x.last.Process.Kill()
		_ = x.last.Wait()
	}
	x.killAll()
	x.log.Close()
	if x.t.Failed() {
		x.t.Logf("the daemon's log ends:\n%s", tailOf(x.log.Name()))
	}
}

// killAll kills every process of the arena, until there is none.
func (x *arena) killAll() {
	for range 200 {
		left := slices.Concat(processesOf(x.work), x.hosts(), x.within())
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(pollEvery / 3)
	}
}

// hosts are the processes that run this arena's binary: the daemon, and what launches live under.
func (x *arena) hosts() []int {
	return processesBy("exe", func(to string) bool { return strings.TrimSuffix(to, " (deleted)") == x.bin })
}

// within are the processes that work in a repo of this arena: a git outlives the daemon that started it.
func (x *arena) within() []int {
	return processesBy("cwd", func(to string) bool {
		return slices.ContainsFunc(x.repos, func(r *arenaRepo) bool { return strings.HasPrefix(to+"/", r.root+"/") })
	})
}

// processesBy returns the other living processes whose link of this name in /proc is as wanted.
func processesBy(name string, is func(to string) bool) []int {
	var out []int
	links, _ := filepath.Glob("/proc/[0-9]*/" + name)
	for _, link := range links {
		to, err := os.Readlink(link)
		dir := filepath.Dir(link)
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err == nil && is(to) && pid != os.Getpid() && !zombie(dir) {
			out = append(out, pid)
		}
	}
	return out
}

// children are the hosts that the daemon started.
func (x *arena) children() []int {
	var out []int
	for _, pid := range x.hosts() {
		if x.last != nil && parentOf(pid) == x.last.Process.Pid {
			out = append(out, pid)
		}
	}
	return out
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(stat, ')')
	if err != nil || i < 0 {
		return 0
	}
	f := strings.Fields(string(stat[i+1:]))
	ppid, _ := strconv.Atoi(f[1])
	return ppid
}

// client talks to the repo's service; nil while there is no state folder.
func (r *arenaRepo) client() *daemon.Client {
	if dir := r.state(); dir != "" {
		return daemon.NewClient(dir)
	}
	return nil
}

// answerMost is how long an answer may take: what comes later was no answer.
const answerMost = 10 * time.Second

// status asks how the repo stands; false while nobody serves it. What it names is acknowledged.
func (x *arena) status(r *arenaRepo) (daemon.Status, bool) {
	c := r.client()
	if c == nil {
		return daemon.Status{}, false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), answerMost)
	defer cancel()
	st, err := c.Status(ctx, "")
	if err == nil {
		r.seq = max(r.seq, st.Seq)
	}
	return st, err == nil
}

// awaitService waits until every repo is served.
func (x *arena) awaitService() {
	x.t.Helper()
	eventually(x.t, "the daemon serves", func() bool {
		for _, r := range x.repos {
			if _, ok := x.status(r); !ok {
				return false
			}
		}
		return true
	})
}

// person answers the waiting gates and starts a run where none is live. It reports whether all runs
// have ended.
func (x *arena) person(r *arenaRepo, more bool) (ended bool) {
	st, ok := x.status(r)
	if !ok || st.Stalled != "" {
		return false
	}
	c := r.client()
	defer c.Close()
	alive := false
	for _, run := range st.Runs {
		if !run.Live() {
			continue
		}
		alive = true
		if run.Paused != "" {
			x.do(r, c, engine.ResumeRequested{Run: run.ID})
		}
		for _, g := range run.Gates() {
			if g.State == engine.OnHuman {
				x.answer(r, c, run.ID, g)
			}
		}
	}
	if more && !alive {
		x.start(r, c)
	}
	return !alive && len(st.Runs) > 0
}

// do asks for an event to be taken in; ok says that it was acknowledged as such.
func (x *arena) do(r *arenaRepo, c *daemon.Client, ev engine.Event) (d daemon.Done, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), answerMost)
	defer cancel()
	d, err := c.Do(ctx, ev, "command")
	if err == nil {
		r.seq = max(r.seq, d.Seq)
	}
	return d, err == nil && d.Ignored == ""
}

// answer decides a round, through the socket or by the command.
func (x *arena) answer(r *arenaRepo, c *daemon.Client, run string, g daemon.GateStatus) {
	outcome, round := engine.OutcomePass, fmt.Sprintf("%s/%s#%d", run, g.ID, g.Round)
	if g.ID == "GC" && g.Round == 1 && x.rnd.IntN(2) == 0 {
		outcome = engine.OutcomeFail
	}
	if r.told[round] != "" {
		return // the status was asked for before the answer
	}
	if x.rnd.IntN(8) == 0 {
		if _, err := x.try(r, x.bin, outcome, g.ID, "--run", run, "--round", strconv.Itoa(g.Round), "-m", "as told in round "+round); err == nil {
			r.told[round] = outcome
		}
		return
	}
	_, ok := x.do(r, c, engine.Answered{Gate: g.ID, Run: run, Round: g.Round, Outcome: outcome, Text: "as told in round " + round})
	if ok {
		r.told[round] = outcome
	} else if outcome == engine.OutcomePass && g.Why != "" { // what is broken cannot be passed
		if _, ok := x.do(r, c, engine.Answered{Gate: g.ID, Run: run, Round: g.Round, Outcome: engine.OutcomeFail, Text: "again"}); ok {
			r.told[round] = engine.OutcomeFail
		}
	}
}

// start starts a run, through the socket or by the command, and reports whether that was
// acknowledged.
func (x *arena) start(r *arenaRepo, c *daemon.Client) bool {
	if x.rnd.IntN(8) == 0 {
		out, err := x.try(r, x.bin, "start", r.flow)
		if err == nil {
			run, _, _ := strings.Cut(out, "\n") // what it waits for is on stderr
			r.runs[run] = true
		}
		return err == nil
	}
	file := filepath.Join(r.root, ".workflow/specs", r.flow+".yaml")
	src, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	pinned, faults := specs.Pin(r.root, file, src, nil)
	if len(faults) > 0 {
		x.t.Fatal(faults)
	}
	d, ok := x.do(r, c, engine.RunRequested{Workflow: r.flow, Source: string(pinned)})
	if ok {
		r.runs[d.Run] = true
	}
	return ok
}

// look reads the journal on from where it was read to. It is called while no daemon writes.
func (r *arenaRepo) look() error {
	f, err := os.Open(r.journal())
	if errors.Is(err, os.ErrNotExist) && len(r.seen) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	more, err := io.ReadAll(io.NewSectionReader(f, int64(len(r.seen)), 1<<40))
	if err != nil {
		return err
	}
	more = more[:bytes.LastIndexByte(more, '\n')+1]
	r.seen = append(r.seen, more...)
	if r.rec == nil {
		return nil
	}
	return r.rec.read(more, &r.faults)
}

// endMost covers a launch that waits its turn again: 64 s after the sixth fault of the machine.
const endMost = 8 * time.Minute

// finish has a person answer until every run has ended; nothing new is started.
func (x *arena) finish() {
	x.t.Helper()
	done := false
	defer func() {
		if said, err := os.ReadFile(filepath.Join(x.work, "git")); err == nil && !done {
			x.t.Logf("git said:\n%s", said[max(0, len(said)-logShown):])
		}
		for _, r := range x.repos {
			if !done {
				status, _ := x.try(r, x.bin, "status")
				record, _ := x.try(r, x.bin, "log", "--all")
				x.t.Logf("%s", status+record[max(0, len(record)-logShown):])
			}
		}
	}()
	within(x.t, endMost, "every run ends", func() bool {
		open := 0
		for _, r := range x.repos {
			if !x.person(r, false) {
				open++
			}
		}
		done = open == 0
		return done
	})
}

// runsOf are the runs that are known to have been acknowledged.
func (x *arena) count() (runs, answers int) {
	for _, r := range x.repos {
		runs += len(slices.Collect(maps.Keys(r.runs)))
		answers += len(r.told)
	}
	return runs, answers
}
