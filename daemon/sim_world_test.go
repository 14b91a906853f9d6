package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/job"
)

// simProc is a process of the world; it does not know whether a daemon lives.
type simProc struct {
	key, kind, run, step, gate string
	n, k                       int
	tree                       string
	of                         *engine.Step // of a step's
	task                       string       // of a task's run
	offered                    bool         // somebody works on an offered step
	alive, said, hung          bool
	far, over                  bool         // it is on a worker; its end has come
	words                      []*simLetter // of one on a worker
	status                     string       // the word it will give, "" = none
	verdict                    string
	exit                       engine.Exit
}

// simLetter is a file in an inbox.
type simLetter struct {
	ev    engine.FileSeen
	key   string   // a sentinel: the launch that wrote it
	word  *simWord // a person's: what was meant
	token bool
	dated time.Time // when it was given its time, by the steady clock
	whole time.Time // since when; zero: not yet
	done  time.Time // the same, by the steady clock
	gone  bool
	heard bool // a word of a worker's launch: it has come
	taken int
}

// simWord is what a person decided, and about what.
type simWord struct {
	run, gate, outcome string
	round              int
}

// simCommit is a commit or pull request that bears a step's marker.
type simCommit struct {
	run, step, key string
	ev             engine.Event
}

// simCall is a Carry under way.
type simCall struct {
	job  job.Job
	ctx  context.Context
	emit func(engine.Event)
	back chan engine.Event
}

// simScan is a Scan under way.
type simScan struct {
	in   job.Inboxes
	seen []engine.Event // as it was when the scan began
	back chan scanned
}

type scanned struct {
	seen []engine.Event
	err  error
}

// simWorld is what is there whatever the daemon does. It outlives the daemon.
type simWorld struct {
	mu       sync.Mutex
	disk     *simDisk
	procs    map[string]*simProc
	letters  []*simLetter
	commits  []*simCommit
	words    []*simWord
	books    map[string]*simBook   // task files, by their paths
	written  map[string]bool       // files the daemon owed
	offered  []string              // what triggers fire for, by key
	branches map[string]*simBranch // of worktrees
	napped   time.Time             // when it slept, or its clock was set, in this life, by the steady clock
	sets     []time.Time           // when its clock was set back, by the steady one
	began    time.Time             // when the machine was switched on
	slept    time.Duration         // by how much the wall clock is ahead of the steady one
	far      *simFar               // nil: there are no workers
	ids      int
	bad      string
	launch   int // processes started
}

func (w *simWorld) fail(format string, args ...any) {
	if w.bad == "" {
		w.bad = fmt.Sprintf(format, args...)
	}
}

func (w *simWorld) id() string {
	w.ids++
	return fmt.Sprint("f", w.ids)
}

// setBack reports whether the clock was set back after from and not after to. Under mu.
func (w *simWorld) setBack(from, to time.Time) bool {
	return slices.ContainsFunc(w.sets, func(at time.Time) bool { return at.After(from) && !at.After(to) })
}

// look reads the inboxes as a scan does. Under mu.
func (w *simWorld) look(in job.Inboxes) []engine.Event {
	var out []engine.FileSeen
	for _, l := range w.letters {
		ev := l.ev
		if in.Only != nil && !slices.Contains(in.Only, l.place()) {
			continue
		}
		if l.gone || l.whole.IsZero() || ev.Dir != "" && !slices.Contains(in.Runs, ev.Dir) || ev.Place != "" && !slices.Contains(in.Trees, ev.Place) {
			continue
		}
		if l.token {
			ev.TokenOf = "?"
			if _, ok := in.Tokens[l.key]; ok {
				ev.TokenOf = l.key
			}
		}
		if l.word != nil {
			for _, q := range in.Asked {
				if q.Run == l.word.run && q.Gate == l.word.gate {
					ev.DigestNow += q.Digest // ".changed" stands for content that is another by now
				}
			}
		}
		out = append(out, ev)
	}
	rank := func(ev engine.FileSeen) int {
		switch {
		case ev.Human == nil:
			return 0
		case strings.HasSuffix(ev.Name, "-"+engine.OutcomeVeto):
			return 1
		case strings.HasSuffix(ev.Name, "-"+engine.OutcomeFail):
			return 2
		}
		return 3
	}
	slices.SortStableFunc(out, func(a, b engine.FileSeen) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	evs := make([]engine.Event, len(out))
	for i, ev := range out {
		evs[i] = ev
	}
	return evs
}

// date gives the file the time of now.
func (l *simLetter) date(now time.Time) { l.ev.Written, l.dated = now.Round(0), time.Now() }

// finish makes the file whole.
func (l *simLetter) finish(now time.Time) { l.whole, l.done = now, time.Now() }

// place is the folder the letter lies in.
func (l *simLetter) place() job.Place {
	p := job.Place{Dir: l.ev.Place + "/" + l.ev.Dir}
	if l.ev.Place == "" {
		p.Run = l.ev.Dir
	}
	return p
}

// letter finds a file by its identity. Under mu.
func (w *simWorld) letter(id string) *simLetter {
	for _, l := range w.letters {
		if l.ev.ID == id {
			return l
		}
	}
	return nil
}

// start brings a process to life, and sees that it may. Under mu.
func (w *simWorld) start(g *rand.Rand, c *simCall, calm bool) {
	e := c.job.Effect
	p := &simProc{of: c.job.Spec.Step(e.Step), key: e.Key, kind: engine.ProcStep, run: e.Run, step: e.Step, gate: e.Gate, n: e.N, k: e.K, alive: true, offered: e.Proc == nil}
	if k := c.job.RunInfo.Child; k != nil {
		p.task = k.Task
	}
	if e.Proc != nil {
		p.kind, p.tree, p.far = e.Proc.Kind, e.Proc.Tree, w.far.takes(c.job)
		w.checkStart(p)
	}
	w.launch++
	p.plan(g, c.job, calm)
	w.procs[p.key] = p
}

// checkStart holds that a launch is durable before anything runs, and that nothing else runs in its
// place. Under mu.
func (w *simWorld) checkStart(p *simProc) {
	if !w.disk.holds(`"key":"` + p.key + `"`) {
		w.fail("%s is started, and its launch is not on the disk", p.key)
	}
	for _, key := range sortedKeys(w.procs) {
		switch o := w.procs[key]; {
		case !o.alive || o.offered:
		case o.far && o.key != p.key && (!w.far.counts(o.key) || !w.far.counts(p.key)): // one was given up
		case o.far != p.far: // on another machine
		case o.key == p.key:
			w.fail("two processes of %s", p.key)
		case p.tree != "" && o.tree == p.tree:
			w.fail("two processes in worktree %s: %s and %s", p.tree, o.key, p.key)
		case p.kind == engine.ProcStep && o.kind == engine.ProcStep && o.run == p.run && o.step == p.step:
			w.fail("two processes of step %s: %s and %s", p.step, o.key, p.key)
		}
	}
}

// plan draws what the process will do.
func (p *simProc) plan(g *rand.Rand, job job.Job, calm bool) {
	p.status, p.verdict = engine.StatusDone, engine.OutcomePass
	if calm {
		return
	}
	if p.kind == engine.ProcReview {
		p.verdict = pick(g, "pass", "pass", "pass", "fail", "fail", "r", "?", "human", "crash")
		if _, ok := job.Spec.Gate(p.gate).Route("r"); p.verdict == "r" && !ok {
			p.verdict = "fail"
		}
		p.hung = g.IntN(12) == 0
		return
	}
	switch g.IntN(24) {
	case 0:
		p.status = engine.StatusFailed
	case 1:
		p.status = engine.StatusBlocked
	case 2:
		p.status = ""
	case 3, 4:
		p.status, p.exit = "", pick(g, engine.Exit{Signal: "killed"}, engine.Exit{Code: 3}, engine.Exit{NotStarted: "no binary"}, engine.Exit{Refused: "no input"})
	case 5:
		p.status, p.exit = "", engine.Exit{Class: engine.ClassLimit, Code: 1}
	case 6:
		p.hung = true
	case 7:
		p.exit = engine.Exit{Code: 3} // with its word
	}
}

// simPort is the World of one life of the daemon.
type simPort struct {
	w       *simWorld
	hints   chan struct{}
	calls   []*simCall
	scans   []*simScan
	last    map[string]time.Time // when a call was last answered
	scanned time.Time            // when a reading of inboxes was last over
	closed  bool
	hinted  int
	runs    int // launches carried out so far
}

const (
	simAgain = time.Second             // how long an effect that came to nothing rests
	simTurns = 20_000                  // more readings of the clock than a loop needs in one moment
	simSight = aliveEvery + 5*simAgain // within what all is looked at again, whatever the clock on the wall is set to
)

// Carry waits until the driver lets it go: nothing happens by itself.
func (p *simPort) Carry(ctx context.Context, job job.Job, emit func(engine.Event)) engine.Event {
	c := &simCall{job: job, ctx: ctx, emit: emit, back: make(chan engine.Event, 1)}
	if !p.enter(c) {
		return nil
	}
	return <-c.back
}

// enter takes a call up, unless the daemon is dead by now, and sees that it may be made.
func (p *simPort) enter(c *simCall) bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.closed || p.w.disk.IsDead() {
		return false
	}
	for _, o := range p.calls {
		if lane(o.job.Effect) == lane(c.job.Effect) {
			p.w.fail("%s is carried out while %s still is", c.job.Name(), o.job.Name())
		}
		if at := moves(o.job); at != "" && at == moves(c.job) { // also of another run
			p.w.fail("%s moves the branch of %s while %s does", c.job.Name(), at, o.job.Name())
		}
	}
	if at, ok := p.last[c.job.Name()]; ok && time.Since(at) < simAgain {
		p.w.fail("%s is carried out again after %s: a busy loop", c.job.Name(), time.Since(at))
	}
	if c.job.Kind == engine.DoRun && !p.w.disk.holds(`"key":"`+c.job.Key+`"`) {
		p.w.fail("%s is carried out, and its launch is not on the disk", c.job.Name())
	}
	p.calls = append(p.calls, c)
	if c.job.Kind == engine.DoRun {
		p.runs++
	}
	slices.SortFunc(p.calls, func(a, b *simCall) int { return strings.Compare(a.job.Name(), b.job.Name()) })
	return true
}

// moves returns the worktree whose branch a call moves.
func moves(job job.Job) string {
	if w := job.Write; w == nil || w.Kind != engine.WriteAdvance && w.Kind != engine.WriteRewind {
		return ""
	}
	return job.Attempt.Tree
}

// answer ends a call. Under mu.
func (p *simPort) answer(c *simCall, ev engine.Event) {
	p.calls = slices.DeleteFunc(p.calls, func(o *simCall) bool { return o == c })
	if c.ctx.Err() == nil {
		p.last[c.job.Name()] = time.Now()
	}
	c.back <- ev
}

var errInbox = errors.New("the inbox cannot be read")

// Scan waits until the driver lets it go; what it sees is of the moment it began.
func (p *simPort) Scan(_ context.Context, in job.Inboxes) ([]engine.Event, bool, error) {
	p.w.mu.Lock()
	if p.closed || p.w.disk.IsDead() {
		p.w.mu.Unlock()
		return nil, false, errInbox
	}
	s := &simScan{in: in, seen: p.w.look(in), back: make(chan scanned, 1)}
	p.scans = append(p.scans, s)
	if len(p.scans) > 1 {
		p.w.fail("two scans at once")
	}
	p.w.mu.Unlock()
	out := <-s.back
	return out.seen, false, out.err
}

// close lets all calls go: the daemon is dead, or going.
func (p *simPort) close() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.closed = true
	for len(p.calls) > 0 {
		p.answer(p.calls[0], nil)
	}
	for _, s := range p.scans {
		s.back <- scanned{err: errInbox}
	}
	p.scans = nil
}

func (p *simPort) Proven(string) (engine.Proven, string)                   { return engine.Proven{}, "" }
func (p *simPort) DigestNow(context.Context, job.Reviewed) (string, error) { return "", nil }
func (p *simPort) Trees(context.Context, *engine.Spec) map[string]string   { return nil }
func (p *simPort) Hints() <-chan struct{}                                  { return p.hints }

// Hinted tells of the folders in which letters lie; now and then of the newest letter's alone, as
// if the hints of the others were lost.
func (p *simPort) Hinted() []job.Place {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.hinted++
	var out []job.Place
	for i, l := range p.w.letters {
		if at := l.place(); !l.gone && !slices.Contains(out, at) && (p.hinted%3 > 0 || i == len(p.w.letters)-1) {
			out = append(out, at)
		}
	}
	return out
}

func (p *simPort) Health() []string { return nil }

func (p *simPort) Awaits(string, string) string { return "" }

func (p *simPort) Level(string) (string, string) { return engine.TrustFile, "" }
