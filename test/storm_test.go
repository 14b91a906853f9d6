//go:build linux

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/specs"
	"sluice/tools/natstest"
)

// The storm has three servers, two daemons and workers as processes on a network of its own, and a
// person who starts runs and answers gates on both daemons, while all of it is killed, cut off, stopped
// and filled at random. SLUICE_CLUSTER_RUNS says how many runs, SLUICE_CLUSTER_WORKERS with how many
// workers, SLUICE_TORTURE_SEED which faults.
const (
	stormRuns    = 6
	stormWorkers = 2
	stormAtOnce  = 6 // runs for each worker
	stormLease   = 2 * time.Second
	stormRest    = 6 * time.Second // at most, without a new fault; four times that with many runs
	stormMany    = 100             // runs
	stormDisk    = 64              // MB that a server can store, and one more for each two runs
	stormOff     = time.Minute     // by which one daemon's clock is ahead, and one worker's behind
)

// stormSpec has what can be lost, doubled or changed: work of agents that builds on work before it, a
// person's word that can send it back, a window, a landing.
const stormSpec = `workflow: {id: storm, workspace: run, on_done: {land: squash, close_worktree: true}}
steps:
  - {id: A, agent: {type: builder, launch: headless, prompt: Make A.}, signal: {type: sentinel_file}, gate: GA}
  - {id: B, agent: {type: builder, launch: headless, prompt: Make B.}, signal: {type: sentinel_file}, gate: GB}
  - {id: C, agent: {type: builder, launch: headless, prompt: Make C.}, signal: {type: sentinel_file}, gate: GC}
  - {id: D, agent: {type: builder, launch: headless, prompt: Make D.}, signal: {type: sentinel_file}, gate: GD}
  - {id: E, agent: {type: builder, launch: headless, prompt: Make E.}, signal: {type: sentinel_file}, gate: GE}
gates:
  - {id: GA, reviewer: {level: auto, run: "true"}, on_pass: {next_step: B}, max_retries: 99}
  - {id: GB, reviewer: {level: auto, run: 'grep -q "^A " "out/$SLUICE_RUN"'}, on_pass: {next_step: C}, max_retries: 99}
  - {id: GC, reviewer: {level: human}, on_pass: {next_step: D}, on_fail: {next_step: C}, max_retries: 99}
  - {id: GD, reviewer: {level: notify, run: 'grep -q "^C " "out/$SLUICE_RUN"'}, veto_window: 300ms, on_pass: {next_step: E}, max_retries: 99}
  - {id: GE, reviewer: {level: auto, run: 'grep -q "^D " "out/$SLUICE_RUN"'}, on_pass: {next_step: DONE}, max_retries: 99}
`

// stormAgent writes that it was launched into a ledger, and the same into its work and its signal. The work
// of a run is one file, with a line for each step: a checkout has one for each run before it.
const stormAgent = `set -eu
mark=$(cat /proc/sys/kernel/random/uuid)
echo "$SLUICE_RUN/$SLUICE_STEP#$SLUICE_ATTEMPT $SLUICE_TOKEN $mark" >>"@RAN@"
mkdir -p out
work=out/$SLUICE_RUN
[ -e "$work" ] || : >"$work"
{ grep -v "^$SLUICE_STEP " "$work" || :; echo "$SLUICE_STEP $mark"; } >"$work.new"
mv "$work.new" "$work"
sleep 0.$(($$ % 10))
mkdir -p "$(dirname "$SLUICE_SIGNAL")"
printf '{"step":"%s","status":"done","summary":"%s","token":"%s"}' "$SLUICE_STEP" "$mark" "$SLUICE_TOKEN" >"$SLUICE_SIGNAL.tmp"
mv "$SLUICE_SIGNAL.tmp" "$SLUICE_SIGNAL"
`

const stormSettings = quickTimes + `restarts: 200
max_parallel: 64
max_agents: 64
trust: file
agents: {acts: {command: [sh, "@WORK@/agent.sh"], prompt_via: file}}
roles: {builder: {agent: acts, on: [linux]}}
`

// storm is all that there is.
type storm struct {
	t       *testing.T
	rnd     *rand.Rand
	lan     *lan
	servers *natstest.Servers
	disks   []string // of the servers
	id, ran string
	daemons []*stormBox
	workers []*stormBox
	people  arenaRepo // what was acknowledged to them
	seen    map[string]bool

	harm  []*harm
	count map[string]int
	leads int64 // the newest epoch that was seen
}

// stormBox is a machine.
type stormBox struct {
	*sandbox
	name string
	argv []string // what runs there
	off  time.Duration
}

// run starts what runs on the machine.
func (m *stormBox) run(l *lan) {
	m.t.Helper()
	env, argv := m.env, m.argv
	if m.off != 0 {
		env = append(env, timeVar+"="+m.off.String())
	}
	argv = append(l.front(m.name), argv...)
	m.last = exec.Command(argv[0], argv[1:]...)
	m.last.Dir, m.last.Env, m.last.Stdout, m.last.Stderr = m.repo, env, m.log, m.log
	if err := m.last.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// crash ends the machine's own process; with all, also those of its launches.
func (m *stormBox) crash(all bool) {
	_ = m.last.Process.Kill()
	_ = m.last.Wait()
	m.last = nil
	for all {
		left := processesOf(m.work)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		all = len(left) > 0
	}
}

func newStorm(t *testing.T, seed uint64, runs, workers int) *storm {
	t.Helper()
	s := &storm{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), ran: filepath.Join(t.TempDir(), "ran"), seen: map[string]bool{},
		count: map[string]int{}, people: arenaRepo{flow: "storm", told: map[string]string{}, runs: map[string]bool{}}}
	names := []string{"s0", "s1", "s2", "a", "b"}
	for i := range workers {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	s.lan = newLAN(t, names...)
	var places []natstest.Place
	for i := range 3 {
		dir := mountTmpfs(t, fmt.Sprintf("%dm", stormDisk+runs/2))
		s.disks = append(s.disks, dir)
		places = append(places, natstest.Place{Host: s.lan.host(names[i]), Dir: filepath.Join(dir, "store"), Front: s.lan.front(names[i])})
	}
	s.servers = natstest.Start(t, 3, natstest.At(places...))
	for _, name := range names[3:] {
		m := &stormBox{sandbox: newSandbox(t, stormSettings), name: name}
		if name == "a" {
			m.put("repo/.workflow/specs/storm.yaml", stormSpec)
			m.commit()
		} else {
			m.clone(s.daemons[0].sandbox)
		}
		if len(s.daemons) < 2 {
			m.do(m.bin, "watch", "add")
			m.argv = []string{m.bin, "daemon", "--cluster", s.servers.URL(), "--standby"}
			s.daemons = append(s.daemons, m)
			continue
		}
		m.put("agent.sh", strings.ReplaceAll(stormAgent, "@RAN@", s.ran))
		s.workers = append(s.workers, m)
	}
	a, b := s.daemons[0], s.daemons[1]
	var begun struct{ Journal string }
	out := a.do(a.bin, "cluster", "init", s.servers.URL(), "--lease", stormLease.String(), "--json")
	if err := json.Unmarshal([]byte(out), &begun); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.id = begun.Journal
	b.do(b.bin, "cluster", "join", s.id, s.servers.URL())
	for _, m := range s.workers {
		m.argv = []string{m.bin, "worker", "--cluster", s.servers.URL(), "--journal", s.id, "--labels", "linux", "--slots",
			fmt.Sprint(stormSlots)}
	}
	last := s.workers[workers-1]
	b.off, b.argv = stormOff, []string{os.Args[0], b.bin, s.servers.URL()}
	last.off, last.argv = -stormOff, []string{os.Args[0], last.bin, s.servers.URL(), s.id}
	for _, m := range append(s.workers, s.daemons...) {
		m.run(s.lan)
	}
	return s
}

// leader returns the machine that leads, as it says itself.
func (s *storm) leader() *stormBox {
	for _, m := range s.daemons {
		if m.last != nil && m.leads() {
			return m
		}
	}
	return nil
}

// person looks at the runs on one of the daemons, answers the gates that wait and has new runs started
// up to a number. It reports whether it is seen there that none is live.
func (s *storm) person(more int) (ended bool) {
	m := s.daemons[s.rnd.IntN(len(s.daemons))]
	if m.last == nil {
		return false
	}
	r := s.people
	defer func() { s.people.seq = r.seq }()
	r.root = m.repo
	x := &arena{t: s.t, rnd: s.rnd, bin: m.bin, env: m.env}
	c := daemon.NewClient(m.state())
	defer c.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), answerMost)
	defer cancel()
	st, err := c.Recent(ctx, time.Time{}, 50)
	if err != nil || st.Cluster == nil {
		return false
	}
	s.leads = max(s.leads, st.Cluster.Epoch)
	live := 0
	for _, run := range st.Runs {
		s.seen[run.ID] = true
		if !run.Live() {
			continue
		}
		live++
		if run.Paused != "" {
			s.count["paused: "+run.Paused]++
			x.do(&r, c, engine.ResumeRequested{Run: run.ID})
		}
		for _, g := range run.Gates() {
			if g.ID == "GC" && g.State == engine.OnHuman && r.told[fmt.Sprintf("%s/%s#%d", run.ID, g.ID, g.Round)] == "" {
				x.answer(&r, c, run.ID, g)
			}
		}
	}
	if live < stormAtOnce*len(s.workers) && s.begun() < more {
		s.start(x, &r, c)
	}
	// A machine that follows can know of runs before the one that leads: their answer is on its way.
	return live == 0 && st.Cluster.Leads && len(st.Runs)+st.Left >= s.begun()
}

// begun counts the runs: what the person was told of, or has seen where the answer was lost.
func (s *storm) begun() int { return max(len(s.people.runs), len(s.seen)) }

// start starts a run beside the others.
func (s *storm) start(x *arena, r *arenaRepo, c *daemon.Client) {
	file := filepath.Join(r.root, ".workflow/specs/storm.yaml")
	src, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	pinned, faults := specs.Pin(r.root, file, src, nil)
	if len(faults) > 0 {
		s.t.Fatal(faults)
	}
	if d, ok := x.do(r, c, engine.RunRequested{Workflow: "storm", Source: string(pinned), Parallel: true}); ok {
		r.runs[d.Run] = true
	}
}
