//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/agents"
	"sluice/daemon"
	"sluice/engine"
	"sluice/watcher"
)

// The soak lets a week pass in the real daemon, wired as the binary wires it, in this process: real journal, real inotify,
// real git, real sockets, real processes (through the real binary's shim), and a clock that runs faster. What was taken for
// a run has to be given back when it is over and forgotten: descriptors, goroutines, memory, watches, files.
// SLUICE_SOAK says how many runs, SLUICE_SOAK_SEED which.
const (
	soakRuns   = 600              // of the short form
	soakScale  = 600              // seconds of the soak's clock in one of the machine's
	soakAlive  = 24               // runs that are alive at the same time
	soakHands  = 4                // people and agents that act on what is asked
	soakStuck  = 60 * time.Second // without a run that ends: then what waits is answered again
	soakChecks = 10               // checkpoints after the warm-up
	soakWarm   = 0.4              // of the runs, before the first checkpoint that counts: the state holds KeepEnded of each workflow
)

// soakSettings are long by the soak's clock, so that they are some time by the machine's.
const soakSettings = `notify: {desktop: false, remind: 30m}
rescan: 2m
settle: 1s
grace: 2h
linger: 2h
timeout: 48h
kill_after: 1s
veto_window: 10m
max_parallel: 8
roles: {"*": {agent: acts}}
agents: {acts: {command: [sh, "@WORK@/agent.sh"], prompt_via: file, env: [E2E_WORK]}}
`

// soakAgent is every agent and reviewer of the soak.
const soakAgent = `case "${SLUICE_GATE:-$SLUICE_STEP}.$SLUICE_ATTEMPT" in
GR.1) echo '{"verdict": "fail", "feedback": "once more"}' ;;
G*) echo '{"verdict": "pass"}' ;;
W.*) exec sleep 300 ;;
*) printf '{"status": "done", "token": "%s"}' "$SLUICE_TOKEN" >"$SLUICE_SIGNAL" ;;
esac
`

// soakKind is a workflow of the soak.
type soakKind struct {
	id, spec string
	share    int // of 100 runs
}

// soakKinds are the workflows: what each is there for is its name.
func soakKinds() []soakKind {
	const head = "workflow: {id: %s}\nsteps:\n"
	kind := func(id string, share int, body string) soakKind {
		return soakKind{id: id, share: share, spec: fmt.Sprintf(head, id) + body}
	}
	return []soakKind{
		kind("person", 35, `  - {id: A, agent: {type: a, launch: interactive}, gate: GA}
gates:
  - {id: GA, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 9}
`),
		kind("window", 25, `  - {id: A, agent: {type: a, launch: subagent}, gate: GN}
gates:
  - {id: GN, reviewer: {level: notify, from: step}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 9}
`),
		kind("late", 10, `  - {id: A, agent: {type: a, launch: interactive}, gate: GL}
gates:
  - {id: GL, reviewer: {level: human}, timeout: 90m, on_timeout: FAILED, on_pass: {next_step: DONE}}
`),
		kind("ended", 10, `  - {id: A, agent: {type: a, launch: interactive}, next_step: DONE}
`),
		kind("command", 8, `  - {id: A, run: 'echo $SLUICE_RUN >"$SLUICE_RUN_DIR/files/x" 2>/dev/null; test "$SLUICE_ATTEMPT" -gt 1', gate: GC}
  - {id: B, run: [true], gate: GD}
gates:
  - {id: GC, reviewer: {level: auto, from: step}, on_pass: {next_step: B}, on_fail: {next_step: A}, max_retries: 3}
  - {id: GD, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`),
		kind("agent", 5, `  - {id: A, agent: {type: a}, signal: {type: sentinel_file}, gate: GR}
gates:
  - {id: GR, reviewer: {level: auto, agent_type: r}, on_pass: {next_step: DONE}, on_fail: {next_step: A}, max_retries: 3}
`),
		kind("killed", 2, `  - {id: W, agent: {type: a}, next_step: DONE}
`),
		{id: "folder", share: 5, spec: `workflow: {id: folder, vars: {box: none}}
steps:
  - {id: A, agent: {type: a, launch: interactive, worktree: "${{vars.box}}"}, next_step: DONE}
`},
	}
}

// soakClock runs soakScale times as fast as the machine's.
type soakClock struct {
	from, began time.Time
	scale       int64
}

func (c *soakClock) now() time.Time {
	return c.began.Add(time.Duration(int64(time.Since(c.from)) * c.scale))
}

func (c *soakClock) pace(d time.Duration) time.Duration { return d / time.Duration(c.scale) }

// soak is a daemon in this process with those who work with it.
type soak struct {
	*sandbox
	clock  *soakClock
	app    *app
	state  string
	client *daemon.Client
	kinds  []soakKind
	deck   []int // kinds by share, to draw from

	rndMu sync.Mutex
	rnd   *rand.Rand // which runs, and who answers how

	hands  sync.WaitGroup
	acts   chan daemon.Line
	ended  chan string // runs
	phases map[string]int
	lines  atomic.Int64
	boxes  int
}

func soakSize(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SLUICE_SOAK")
	if text == "" {
		return soakRuns
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < soakChecks {
		t.Fatalf("SLUICE_SOAK=%q: want a number of runs", text)
	}
	return n
}

// newSoak makes the repo, and the app that serves it.
func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "soak"); err == nil { // what is measured is no disk
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		t.Setenv("TMPDIR", dir)
	}
	box := newSandbox(t, soakSettings)
	began := time.Now().Round(0)
	x := &soak{sandbox: box, rnd: rand.New(rand.NewPCG(seed, 2)), kinds: soakKinds(), acts: make(chan daemon.Line, 1<<16),
		ended: make(chan string, 2*soakAlive), phases: map[string]int{},
		clock: &soakClock{from: began, began: began, scale: soakScale}}
	x.put("agent.sh", soakAgent)
	for i, k := range x.kinds {
		x.put("repo/.workflow/specs/"+k.id+".yaml", k.spec)
		for range k.share {
			x.deck = append(x.deck, i)
		}
	}
	x.commit()
	x.do(x.bin, "watch", "add")
	x.app = newApp(x.env, strings.NewReader(""), x.log, x.log)
	x.app.now, x.app.dir, x.app.yes = x.clock.now, x.repo, true
	x.app.timing = timing{pace: x.clock.pace, look: watcher.Options{Now: x.clock.now, Rescan: 5 * time.Second * soakScale, Settle: time.Second,
		Cookie: 60 * time.Second * soakScale, CookieWait: 2 * time.Second * soakScale}}
	return x
}

// serve has the daemon serve until the test's end.
func (x *soak) serve() {
	t := x.t
	t.Helper()
	home, err := x.app.stateHome()
	if err != nil {
		t.Fatal(err)
	}
	if err := makeState(home); err != nil {
		t.Fatal(err)
	}
	w, err := x.app.newParts(zerolog.New(x.log).With().Timestamp().Logger(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.self = x.bin
	w.runner = agents.New(agents.Options{Shim: []string{x.bin, shimCommand}, Logf: w.logf("agents")})
	ctx, stop := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- w.server(home).Run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, w.Close()); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	p, err := x.app.placeOf(ctx, x.repo)
	if err != nil {
		t.Fatal(err)
	}
	x.state = p.state
	x.client = daemon.NewClient(p.state)
	t.Cleanup(func() { x.client.Close() })
}

// follow has every fact acted on, until ctx ends.
func (x *soak) follow(ctx context.Context) {
	x.hands.Go(func() {
		defer close(x.acts)
		from := int64(0)
		for ctx.Err() == nil {
			_ = x.client.Facts(ctx, "", from, true, func(l daemon.Line) error { // a follower that lags is cut off, and asks again
				from = l.Seq + 1
				x.acts <- l
				return nil
			})
		}
	})
	for range soakHands {
		x.hands.Go(func() {
			for l := range x.acts {
				x.lines.Add(1)
				x.act(ctx, l)
			}
		})
	}
}

// chance is true in so many of 100 cases.
func (x *soak) chance(percent int) bool {
	x.rndMu.Lock()
	defer x.rndMu.Unlock()
	return x.rnd.IntN(100) < percent
}

// act does what a fact asks of a person or an agent.
func (x *soak) act(ctx context.Context, l daemon.Line) {
	fact, err := engine.DecodeFact(l.Fact)
	if err != nil {
		x.t.Error(err)
		return
	}
	switch f := fact.(type) {
	case engine.StepLaunched:
		x.work(ctx, f)
	case engine.HumanAsked:
		if f.Gate == "GL" {
			return // nobody answers there
		}
		outcome := engine.OutcomePass
		if x.chance(25) {
			outcome = engine.OutcomeFail
		}
		x.answer(ctx, f.Run, f.Gate, outcome)
	case engine.WindowOpened:
		if x.chance(20) {
			x.answer(ctx, f.Run, f.Gate, engine.OutcomeVeto)
		}
	case engine.RunEnded:
		x.ended <- f.Run + " " + f.Phase
	}
}

// work is what whoever takes a step does.
func (x *soak) work(ctx context.Context, f engine.StepLaunched) {
	flow := flowOf(f.Run)
	switch {
	case flow == "killed", flow == "ended" && x.chance(20):
		x.ask(ctx, engine.AbortRequested{Run: f.Run, Why: "not wanted any more"})
	case f.Offered && x.chance(20):
		x.ask(ctx, engine.FileSeen{Name: f.Step + "-done.json", Dir: f.Run, Sentinel: &engine.Sentinel{Step: f.Step, Status: engine.StatusDone}})
	case f.Offered:
		x.leave(f.Run, f.Step+"-done.json", `{"status": "done", "summary": "it is done"}`)
	}
}

// answer is a person's decision, by file or by command.
func (x *soak) answer(ctx context.Context, run, gate, outcome string) {
	switch {
	case x.chance(30):
		x.leave(run, gate+"-"+outcome+".md", "Look at it again, please.\n")
	case x.chance(30):
		x.leave(run, gate+"-"+outcome+".json", `{"feedback": "look at it again, please"}`)
	default:
		x.ask(ctx, engine.Answered{Run: run, Gate: gate, Outcome: outcome, Text: "look at it again, please"})
	}
}

func (x *soak) ask(ctx context.Context, ev engine.Event) {
	if _, err := x.client.Do(ctx, ev, "command"); err != nil && ctx.Err() == nil {
		x.t.Errorf("%s: %v", ev.EventKind(), err)
	}
}

// leave puts a file into the run's inbox, whole and with the time of the soak's clock.
func (x *soak) leave(run, name, text string) {
	dir := filepath.Join(x.repo, ".workflow", "signals", run)
	hidden := filepath.Join(dir, "."+name)
	now := x.clock.now()
	err := os.MkdirAll(dir, 0o755) // before the run's first scan there is none yet
	if err == nil {
		err = os.WriteFile(hidden, []byte(text), 0o644)
	}
	if err = errors.Join(err, os.Chtimes(hidden, now, now)); err == nil {
		err = os.Rename(hidden, filepath.Join(dir, name))
	}
	if err != nil {
		x.t.Error(err)
	}
}

func flowOf(run string) string { return run[:strings.LastIndexByte(run, '-')] }

// start starts a run of the workflows' mix.
func (x *soak) start(ctx context.Context) {
	x.rndMu.Lock()
	k := x.kinds[x.deck[x.rnd.IntN(len(x.deck))]]
	x.rndMu.Unlock()
	ev := engine.RunRequested{Workflow: k.id, Source: k.spec, Parallel: true}
	if k.id == "folder" { // a new one each time
		x.boxes++
		box := fmt.Sprintf("boxes/%d", x.boxes)
		x.put("repo/"+box+"/.keep", "")
		ev.Vars = map[string]any{"box": box}
	}
	d, err := x.client.Do(ctx, ev, "command")
	if err != nil || d.Run == "" {
		x.t.Fatalf("start %s: %v %s", k.id, err, d.Ignored)
	}
}

// pass has n more runs go by, and waits until nothing of them is under way.
func (x *soak) pass(ctx context.Context, n int) {
	t := x.t
	t.Helper()
	for started, ended := 0, 0; ended < n; {
		for started < n && started-ended < soakAlive {
			x.start(ctx)
			started++
		}
		stuck := time.NewTimer(soakStuck)
		select {
		case what := <-x.ended:
			_, phase, _ := strings.Cut(what, " ")
			x.phases[flowOf(strings.Fields(what)[0])+" "+phase]++
			ended++
		case <-stuck.C:
			st, err := x.client.Status(ctx, "")
			for _, r := range st.Runs {
				if live(r) {
					t.Logf("%s waits: %+v", r.ID, r.Waits)
				}
			}
			t.Fatalf("no run has ended for %v; %d of %d have (%v, %v)", soakStuck, ended, n, err, st.Health)
		}
		stuck.Stop()
	}
	_ = os.RemoveAll(filepath.Join(x.repo, "boxes"))
	eventually(t, "all are told of all", func() bool {
		st, err := x.client.Status(ctx, "")
		return err == nil && st.Notices == 0 && len(st.Health) == 0
	})
}

func TestSoak(t *testing.T) {
	size := soakSize(t)
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SLUICE_SOAK_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_SOAK_SEED=%d", seed)
	x := newSoak(t, seed)
	x.serve()
	ctx, stop := context.WithCancel(t.Context())
	x.follow(ctx)
	defer x.hands.Wait()
	defer stop()
	began := time.Now()
	x.pass(ctx, size)
	t.Logf("%v %v %v", time.Since(began), x.clock.now().Sub(x.clock.began), x.phases)
}
