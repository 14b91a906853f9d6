package daemon

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"sluice/engine"
	"sluice/tools/twoclocks"
)

// simTick is how long one thing takes at most: longer than the slack that the time of a file has.
const simTick = 45 * time.Millisecond

// act is one thing that can happen next.
type act struct {
	name   string
	weight int
	do     func()
}

// step lets one thing happen, and time pass a little.
func (s *sim) step(acts []act) bool {
	sum := 0
	for _, a := range acts {
		sum += a.weight
	}
	if sum == 0 {
		return false
	}
	n := s.g.IntN(sum)
	for _, a := range acts {
		if n -= a.weight; n < 0 {
			s.trace("  %s %s", time.Now().Format("02 15:04:05.000"), a.name)
			s.counts.ticks++
			a.do()
			s.tell()
			break
		}
	}
	if s.repo != nil {
		synctest.Wait()
	}
	s.sleep(simTick - time.Duration(s.g.IntN(20_000_000)))
	return true
}

func (s *sim) sleep(d time.Duration) {
	s.now() // what was read of the loop's was read before it goes on
	time.Sleep(d)
	if s.repo != nil {
		synctest.Wait()
	}
}

// now is the loop's clock, and what orders its turns with the driver's looks at its state for the
// race detector.
func (s *sim) now() time.Time {
	s.turn.Lock()
	defer s.turn.Unlock()
	if at := time.Now(); at.Equal(s.asked) {
		s.askedHere++
	} else {
		s.asked, s.askedHere = at, 0
	}
	if s.askedHere > simTurns { // no clock would ever end it
		panic(fmt.Sprintf("the loop turns without end at %s", s.wall()))
	}
	return s.wall()
}

// wall is what the clock on the wall says: it goes on while the machine sleeps, and timers do not.
// The steady clock's word is in it, as in the time that the product is told.
func (s *sim) wall() time.Time {
	return twoclocks.Time(time.Now().Add(s.w.slept), time.Since(s.w.began))
}

// nap lets the machine sleep.
func (s *sim) nap(d time.Duration) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.turn.Lock()
	defer s.turn.Unlock()
	before := s.wall()
	s.w.slept += d
	s.w.napped = time.Now()
	if d < 0 {
		s.w.sets = append(s.w.sets, time.Now())
		s.set, s.ticked = s.wall().Round(0), s.repo.ticked
	}
	if st := s.state(); st != nil {
		if saw := s.repo.wall.Round(0); saw.After(before.Round(0)) { // the clock was set back, and the loop has not turned since
			before = saw
		}
		s.led.passedBetween(st, before, s.wall())
	}
}

// state is the daemon's state where all of it is journaled; nil where it cannot be known outside.
func (s *sim) state() *engine.State {
	if s.repo == nil || s.disk.IsDead() || len(s.repo.core.pending) > 0 {
		return nil
	}
	return s.repo.core.state
}

// locked makes what an act does to the world one piece.
func (s *sim) locked(f func()) func() {
	return func() {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		f()
	}
}

// calls are the effects under way.
func (s *sim) calls() (acts []act) {
	add := func(c *simCall, what string, f func()) {
		acts = append(acts, act{"effect " + c.job.Name() + ": " + what, 8, s.locked(f)})
	}
	for _, c := range s.port.calls {
		e := c.job.Effect
		if c.ctx.Err() != nil {
			add(c, "let go", func() {
				if e.Write != nil && e.Write.Kind != "" && !s.calm && s.g.IntN(2) == 0 { // it was too late to give it up
					s.branch(c.job, true)
				}
				s.port.answer(c, nil)
			})
			continue
		}
		if !s.calm && s.g.IntN(40) == 0 && e.Kind != engine.DoOffer && e.Kind != engine.DoWatch && e.Kind != engine.DoListen {
			add(c, "comes to nothing", func() { s.port.answer(c, engine.FileMoved{ID: "none"}) })
			continue
		}
		switch e.Kind {
		case engine.DoRun, engine.DoStop:
			s.callProc(c, add)
		case engine.DoNotify:
			add(c, "told", func() { s.port.answer(c, engine.Noticed{Run: e.Run, ID: e.Key, Results: []string{"log: shown"}}) })
		case engine.DoWrite:
			write := func() (why string) {
				s.w.written[e.Key] = true
				if e.Write.Kind != "" {
					why = s.branch(c.job, false)
				}
				return why
			}
			if !s.w.written[e.Key] && !s.calm && s.g.IntN(2) == 0 {
				add(c, "written", func() { write() })
				continue
			}
			add(c, "written and told", func() { s.port.answer(c, engine.FileWritten{Run: e.Run, ID: e.Key, Why: write()}) })
		case engine.DoMove:
			s.callMove(c, add)
		case engine.DoLook:
			add(c, "there", func() { s.port.answer(c, engine.Looked{Run: e.Run, Step: e.Step, Pins: e.Pins}) })
		case engine.DoOffer:
			if p := s.w.procs[e.Key]; p == nil {
				add(c, "taken", func() { s.w.start(s.g, c, s.calm) })
			} else if s.calm && !p.alive && !s.underWay(e.Key) { // its word was refused or lost, or never given
				add(c, "said again", func() { p.status = engine.StatusDone; s.say(p) })
			}
		case engine.DoWatch:
			s.callWatch(c, add)
		case engine.DoListen:
			s.callListen(c, add)
		case engine.DoFire:
			s.callFire(c, add)
		case engine.DoTasks, engine.DoSave:
			s.callTasks(c, add)
		}
	}
	return acts
}

func (s *sim) callProc(c *simCall, add func(*simCall, string, func())) {
	e := c.job.Effect
	p := s.w.procs[e.Key]
	switch {
	case s.w.far.takes(c.job):
		s.callFar(c, add)
	case p == nil && e.Kind == engine.DoStop:
		add(c, "it never came up", func() {
			s.port.answer(c, engine.ProcessEnded{Run: e.Run, Key: e.Key, Exit: engine.Exit{Lost: true}})
		})
	case p == nil:
		add(c, "start", func() { s.w.start(s.g, c, s.calm) })
	case !p.alive:
		add(c, "ended", func() { s.port.answer(c, s.ended(p)) })
	case e.Kind == engine.DoStop:
		add(c, "killed", func() { s.exit(p, engine.Exit{Stopped: true, Code: -1, Signal: "killed"}) })
	}
}

func (s *sim) callMove(c *simCall, add func(*simCall, string, func())) {
	x := s.w.letter(c.job.Key)
	if x != nil && !x.gone && !s.calm && s.g.IntN(2) == 0 {
		add(c, "moved", func() { x.gone = true })
		return
	}
	add(c, "moved and told", func() {
		if x != nil {
			x.gone = true
		}
		s.port.answer(c, engine.FileMoved{ID: c.job.Key})
	})
}

func (s *sim) callWatch(c *simCall, add func(*simCall, string, func())) {
	for _, x := range s.w.commits {
		if x.run != c.job.Run || x.step != c.job.Step || x.key != c.job.Key && s.calm {
			continue
		}
		switch ev := x.ev.(type) {
		case engine.CommitSeen:
			if x.key == c.job.Key {
				add(c, "commit seen", func() { c.emit(ev) })
			}
		case engine.PullSeen:
			if x.key == c.job.Key {
				add(c, "pull request seen", func() { c.emit(ev) })
			}
		}
		return
	}
	e := c.job.Effect
	if r := s.repo.core.state.Runs[e.Run]; r != nil {
		if a := r.Current(e.Step); a != nil && !a.GraceUntil.IsZero() && !(s.calm && a.GraceUntil.After(s.wall())) { // a look that finds nothing closes the grace
			began := s.now()
			add(c, "refs looked through", func() { c.emit(engine.Polled{Run: e.Run, Step: e.Step, N: e.N, K: e.K, Began: began}) })
		}
	}
}

// ended returns how the process ended.
func (s *sim) ended(p *simProc) engine.ProcessEnded {
	ev := engine.ProcessEnded{Run: p.run, Key: p.key, Exit: p.exit}
	if p.exit != (engine.Exit{}) && p.kind != engine.ProcStep {
		return ev
	}
	switch p.kind {
	case engine.ProcStep:
		if s.lists {
			s.worked(p, &ev)
		}
	case engine.ProcCheck:
		ev.Check = &engine.CheckResult{OK: true, Digest: "tree of " + p.key}
		if s.space {
			ev.Check.Content = ev.Check.Digest
		}
		if !s.calm && s.g.IntN(8) == 0 {
			ev.Check.OK, ev.Check.Why = false, "no output"
		} else if !s.calm && s.g.IntN(16) == 0 {
			ev.Check.Broken = "cannot be run"
		}
	case engine.ProcReview:
		switch p.verdict {
		case "?":
			ev.Verdict = &engine.Judgement{Inconclusive: "no JSON"}
		case "crash":
			ev.Exit = engine.Exit{Signal: "segv"}
		default:
			ev.Verdict = &engine.Judgement{Outcome: p.verdict, Feedback: "because " + p.key}
		}
	}
	return ev
}

// openWindow reports whether a veto window is open somewhere.
func openWindow(st *engine.State) bool {
	for _, r := range st.Runs {
		for gate := range r.Rounds {
			if q := r.CurrentRound(gate); q.Open() && q.State == engine.OnWindow {
				return true
			}
		}
	}
	return false
}

// scans are the reads of the inbox under way.
func (s *sim) scans() (acts []act) {
	slow := 0
	if st := s.state(); st != nil && !s.calm && openWindow(st) {
		slow = 4 // a scan that goes on while a window closes is where a veto gets lost
	}
	for _, x := range s.port.scans {
		give := func(out scanned) func() {
			return s.locked(func() {
				s.port.scans = slices.DeleteFunc(s.port.scans, func(o *simScan) bool { return o == x })
				s.port.scanned = time.Now()
				x.back <- out
			})
		}
		acts = append(acts, act{"scan: as it was", 6 - slow, give(scanned{seen: x.seen})})
		if !s.calm {
			acts = append(acts, act{"scan: fails", 2, give(scanned{err: errInbox})})
			acts = append(acts, act{"scan: as it is", 2, func() {
				s.w.mu.Lock()
				now := s.w.look(x.in)
				for _, ev := range x.seen { // what went away meanwhile was read before
					if f := ev.(engine.FileSeen); !slices.ContainsFunc(now, func(o engine.Event) bool { return o.(engine.FileSeen).ID == f.ID }) {
						now = append(now, ev)
					}
				}
				s.w.mu.Unlock()
				give(scanned{seen: now})()
			}})
		}
	}
	return acts
}

// hint has the daemon told, once this act is over, that an inbox has changed, if the hint is not
// lost. A daemon that is told at once may read the inbox before or after the act's next file.
func (s *sim) hint() {
	s.hinted = s.hinted || s.repo != nil && s.g.IntN(2) > 0
}

func (s *sim) tell() {
	if s.hinted && s.repo != nil {
		select {
		case s.port.hints <- struct{}{}:
		default:
		}
	}
	s.hinted = false
}

// work is what processes do by themselves.
func (s *sim) work() (acts []act) {
	for _, key := range sortedKeys(s.w.procs) {
		p := s.w.procs[key]
		p.hung = p.hung && !s.calm
		if !p.alive || p.hung && s.g.IntN(4) > 0 {
			continue
		}
		says := p.kind == engine.ProcStep && !p.said && p.status != ""
		if says && (p.offered || s.g.IntN(6) > 0) {
			acts = append(acts, act{key + " says its word", 6, s.locked(func() { s.say(p) })})
		} else if !p.hung {
			acts = append(acts, act{key + " ends", 4, s.locked(func() { s.exit(p, p.exit) })})
		}
	}
	return acts
}

// exit ends a process: what it was writing is whole by now, or never will be. Under mu.
func (s *sim) exit(p *simProc, how engine.Exit) {
	p.alive, p.exit = false, how
	for _, x := range s.w.letters {
		if x.key != p.key || !x.whole.IsZero() {
			continue
		}
		x.finish(s.wall())
		x.date(s.wall())
		if s.g.IntN(2) == 0 {
			x.ev.Sentinel, x.ev.SentinelBad = nil, "it is not whole"
		}
	}
}

// say gives the step's word in its way.
func (s *sim) say(p *simProc) {
	w := s.w
	p.said = true
	if p.offered { // nobody waits for its end
		p.alive = false
	}
	st := p.of
	switch st.Signal.Type {
	case engine.SignalExit:
		if p.status == engine.StatusFailed {
			p.exit = engine.Exit{Code: 1}
		}
	case engine.SignalCommit:
		id := w.id()
		w.commits = append(w.commits, &simCommit{p.run, p.step, p.key, engine.CommitSeen{Run: p.run, Step: p.step, N: p.n, K: p.k, SHA: id, Author: "a" + id}})
	case engine.SignalPull:
		w.commits = append(w.commits, &simCommit{p.run, p.step, p.key, engine.PullSeen{Run: p.run, Step: p.step, N: p.n, K: p.k, Ref: "refs/pull/" + w.id() + "/head"}})
	default:
		s.sentinel(p, st)
	}
}

func (s *sim) sentinel(p *simProc, st *engine.Step) {
	word := &engine.Sentinel{Status: p.status, Run: p.run, Attempt: p.n, Launch: p.k}
	x := &simLetter{key: p.key, ev: engine.FileSeen{Name: p.step + "-done.json", Dir: p.run, ID: s.w.id(), Written: s.wall(), Sentinel: word, By: engine.Actor{Who: "agent", Trust: engine.TrustFile}}}
	if p.far { // its own inbox is here, and the file comes by messages
		word.Attempt, word.Launch, x.token = 0, 0, true
		p.words = append(p.words, x)
		s.w.far.send(simMsg{what: msgWord, key: p.key, worker: s.w.far.taken[p.key], word: x})
		return
	}
	switch s.g.IntN(4) {
	case 0: // bare
		word.Run, word.Attempt, word.Launch = "", 0, 0
		if s.g.IntN(2) == 0 && !s.calm {
			x.ev.Dir = ""
		}
	case 1:
		if !p.offered {
			word.Attempt, word.Launch, x.token = 0, 0, true
		} else {
			word.Launch = 0
		}
	case 2:
		if p.tree != "" && p.tree != "." && !s.calm {
			x.ev.Place, x.ev.Dir = p.tree, ""
		}
	}
	s.put(x)
	if !s.calm && s.g.IntN(6) == 0 { // said twice
		again := *x
		again.ev.ID = s.w.id()
		s.put(&again)
	}
}

// put lays a file into an inbox, whole or not yet.
func (s *sim) put(x *simLetter) {
	s.w.letters = append(s.w.letters, x)
	x.date(s.wall())
	if s.calm || s.g.IntN(4) > 0 {
		x.finish(s.wall())
	}
	s.hint()
}

// grow makes files whole.
func (s *sim) grow() (acts []act) {
	for _, x := range s.w.letters {
		if x.whole.IsZero() && !x.gone {
			acts = append(acts, act{"file " + x.ev.ID + " is whole", 3, s.locked(func() {
				x.finish(s.wall())
				if x.ev.Human == nil { // a person's word is of when it was begun
					x.date(s.wall())
				}
				s.hint()
			})})
		}
	}
	return acts
}

// underWay reports whether a word of the launch still lies in an inbox.
func (s *sim) underWay(key string) bool {
	return slices.ContainsFunc(s.w.letters, func(x *simLetter) bool { return x.key == key && !x.gone && x.taken == 0 })
}

// ask takes an event to the daemon by its API. Not under mu.
func (s *sim) ask(ev engine.Event, word *simWord) {
	a := &simAsk{ev: ev, word: word, done: make(chan struct{})}
	s.asks = append(s.asks, a)
	repo := s.repo
	go func() {
		defer close(a.done)
		a.reply, a.err = repo.queue.take(context.Background(), ev)
	}()
	synctest.Wait() // of two that ask, the first is the first
}

// specOf is a run's spec.
func (s *sim) specOf(r *engine.Run) *engine.Spec {
	return engine.Specs(func(digest string) *engine.Spec {
		for source, w := range s.specs {
			if digestOf(source) == digest {
				return w
			}
		}
		return nil
	}).Of(r.Digest)
}

func (s *sim) start(spec *engine.Spec, parallel bool) {
	source := "spec of " + spec.ID
	s.specs[source] = spec
	s.ask(engine.RunRequested{Workflow: spec.ID, Source: source, Digest: digestOf(source), Parallel: parallel, By: engine.Actor{Who: "person"}}, nil)
	synctest.Wait()
}

// letters in an inbox that is still read.
func (s *sim) left(st *engine.State) string {
	for _, x := range s.w.letters {
		if !x.gone && x.ev.Place == "" && (x.ev.Dir == "" || st.Runs[x.ev.Dir].Live()) {
			return fmt.Sprintf("file %s %s/%s", x.ev.ID, x.ev.Dir, x.ev.Name)
		}
	}
	return ""
}
