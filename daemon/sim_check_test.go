package daemon

import (
	"fmt"
	"time"

	"sluice/engine"
	"sluice/tools/oracle"
)

// ledger is what was ever journaled, as the outside remembers it.
type ledger struct {
	sums     []string                   // of every record told
	keys     map[string]bool            // launches
	outcomes map[string]string          // of rounds and attempts, by identity
	owed     map[string]map[string]bool // run -> files it owes
	forced   map[string]bool            // gates that are human for the rest of the run
	reopen   map[string]bool            // windows that passed while nobody was there
	launched map[string]time.Time       // when launches were told, by the steady clock
	opened   map[string]time.Time       // when windows were opened, by the steady clock
	fit      map[string]bool            // contents that may be on a branch
	triggers oracle.Keys                // what became of triggers' keys
}

func newLedger() *ledger {
	return &ledger{keys: map[string]bool{}, outcomes: map[string]string{}, owed: map[string]map[string]bool{}, forced: map[string]bool{}, reopen: map[string]bool{}, launched: map[string]time.Time{}, opened: map[string]time.Time{}, fit: map[string]bool{}, triggers: oracle.Keys{}}
}

// passedBetween notes the windows that ended in between.
func (l *ledger) passedBetween(st *engine.State, served, now time.Time) {
	for _, r := range st.Runs {
		if r.Phase != engine.RunRunning || r.Paused {
			continue
		}
		for gate := range r.Rounds {
			q := r.CurrentRound(gate)
			if q.Open() && q.State == engine.OnWindow && !q.Reopened && q.WindowEnds.After(served) && !q.WindowEnds.After(now) {
				l.reopen[round(r.ID, gate, q.N)] = true
			}
		}
	}
}

func round(run, gate string, n int) string { return fmt.Sprintf("%s/%s#%d", run, gate, n) }

// told is called by the loop with what it has journaled, before anything more happens.
func (s *sim) told(done []entry) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, e := range done {
		s.take(e)
	}
	if why := s.repo.core.state.Fault(s.repo.core.spec); why != "" {
		s.w.fail("%s", why)
	}
	if why := s.waiting(s.repo.core.state); why != "" && len(s.repo.core.pending) == 0 {
		s.w.fail("%s", why)
	}
}

// take holds a record against all that is remembered. Under mu.
func (s *sim) take(e entry) {
	if e.rec.Seq != int64(len(s.led.sums))+1 {
		s.w.fail("record %d is told after %d", e.rec.Seq, len(s.led.sums))
	}
	s.led.sums = append(s.led.sums, e.rec.Sum)
	s.counts.events++
	for _, f := range e.facts {
		s.counts.facts++
		if raw, err := engine.EncodeFact(f); err == nil {
			s.trace("%5d %s", e.rec.Seq, raw[:min(len(raw), 220)])
		}
		s.fact(e, f)
	}
}

func (s *sim) fact(e entry, f engine.Fact) {
	l := s.led
	s.triggered(f)
	switch f := f.(type) {
	case engine.ProcessGone:
		s.gone(f)
	case engine.RunStarted:
		s.once("run " + f.Run)
		if c := f.Child; c != nil {
			s.counts.children++
		}
	case engine.TaskEnded:
		s.counts.tasks++
	case engine.RunBegan:
		if r := s.repo.core.state.Runs[f.Run]; r == nil || r.Child == nil { // its top's was that of its children, too
			l.owes(f.Run, f.Run+"/sweep")
		}
	case engine.RunEnded:
		s.completed(f)
		delete(l.owed, f.Run)
	case engine.RetryContextOwed:
		l.owes(f.Run, fmt.Sprintf("%s/%s.%d", f.Run, f.Gate, f.File))
	case engine.StepLaunched:
		s.once(f.Key)
		l.launched[f.Key] = time.Now()
		for id := range l.owed[f.Run] {
			if !s.w.written[id] {
				s.w.fail("%s is launched before %s is written", f.Key, id)
			}
		}
		s.clean(f)
	case engine.AdvanceOwed:
		l.owes(f.Run, fmt.Sprintf("%s/%s#%d.advance", f.Run, f.Step, f.N))
	case engine.StepSuperseded:
		delete(l.owed[f.Run], fmt.Sprintf("%s/%s#%d.advance", f.Run, f.Step, f.N))
	case engine.RewindOwed:
		delete(l.owed[f.Run], fmt.Sprintf("%s/%s#%d.advance", f.Run, f.Step, f.N))
		l.owes(f.Run, fmt.Sprintf("%s/%s#%d.rewind", f.Run, f.Step, f.N))
		s.unfit(f)
	case engine.ReviewStarted:
		s.once(f.Key)
	case engine.CheckStarted:
		s.once(f.Key)
	case engine.HookStarted:
		s.once(f.Key)
	case engine.HumanAsked:
		l.forced[f.Run+"/"+f.Gate] = l.forced[f.Run+"/"+f.Gate] || f.Forced
	case engine.WindowOpened:
		l.opened[round(f.Run, f.Gate, f.N)] = time.Now()
	case engine.DeadlineMoved:
		delete(l.reopen, round(f.Run, f.Gate, f.N))
	case engine.RunPaused: // the rest of a window is kept from here on
		for key := range l.reopen {
			delete(l.reopen, key)
		}
	case engine.RoundPassed:
		s.outcome(round(f.Run, f.Gate, f.N), engine.OutcomePass)
		s.passed(e, f)
	case engine.RoundFailed:
		l.forced[f.Run+"/"+f.Gate] = l.forced[f.Run+"/"+f.Gate] || f.Forced
		s.vetoed(f)
		s.outcome(round(f.Run, f.Gate, f.N), engine.OutcomeFail)
	case engine.RoundRouted:
		l.forced[f.Run+"/"+f.Gate] = l.forced[f.Run+"/"+f.Gate] || f.Forced
		s.outcome(round(f.Run, f.Gate, f.N), engine.OutcomeFail)
	case engine.StepPassed:
		s.outcome(round(f.Run, "step "+f.Step, f.N), engine.OutcomePass)
		s.stands(f)
	case engine.StepSignalled:
		s.signalled(e, f)
	case engine.FileTaken:
		if x := s.w.letter(f.Move.ID); x != nil {
			if x.taken++; x.taken > 1 {
				s.w.fail("file %s %s is taken in twice", f.Move.ID, f.Move.Name)
			}
		}
	}
}

func (l *ledger) owes(run, id string) {
	if l.owed[run] == nil {
		l.owed[run] = map[string]bool{}
	}
	l.owed[run][id] = true
}

func (s *sim) once(key string) {
	if s.led.keys[key] {
		s.w.fail("launch %s returns", key)
	}
	s.led.keys[key] = true
}

// outcome holds that what was decided stays so; only a late veto fails what had passed.
func (s *sim) outcome(id, is string) {
	was := s.led.outcomes[id]
	if was != "" && !(was == engine.OutcomePass && is == engine.OutcomeFail) {
		s.w.fail("%s is %s after it was %s", id, is, was)
	}
	s.led.outcomes[id] = is
}

// passed holds that a person's gate passes by a person's word of that round, and that no window
// closes over a veto.
func (s *sim) passed(e entry, f engine.RoundPassed) {
	r := s.repo.core.state.Runs[f.Run]
	if r == nil {
		return
	}
	g := s.repo.core.spec(r.Digest).Gate(f.Gate)
	if (g.Reviewer.Level == engine.LevelHuman || s.led.forced[f.Run+"/"+f.Gate]) && f.ByKind != "human" && f.ByKind != "when" {
		s.w.fail("human gate %s passed by %s", round(f.Run, f.Gate, f.N), f.ByKind)
	}
	switch f.ByKind {
	case "human":
		for _, x := range s.w.words {
			if x.run == f.Run && x.gate == f.Gate && x.round == f.N && x.outcome == engine.OutcomePass {
				return
			}
		}
		s.w.fail("gate %s passed, and no person said so", round(f.Run, f.Gate, f.N))
	case "window":
		s.closed(f, r.Rounds[f.Gate][f.N-1])
	}
}

func (s *sim) closed(f engine.RoundPassed, q *engine.Round) {
	id := round(f.Run, f.Gate, f.N)
	if s.led.reopen[id] {
		s.w.fail("the window of %s closed though it passed while nobody was there", id)
	}
	for _, x := range s.w.letters {
		if x.word == nil || x.gone || x.taken > 0 || x.whole.IsZero() || !x.whole.Before(q.WindowEnds) {
			continue
		}
		if s.w.setBack(s.led.opened[id], x.done) { // it may be of after the end, dated before it
			continue
		}
		if x.word.run == f.Run && x.word.gate == f.Gate && x.word.round == f.N && x.word.outcome == engine.OutcomeVeto {
			s.w.fail("the window of %s closed over the veto in file %s", id, x.ev.ID)
		}
	}
}

// signalled holds that a step is done only by the word of its live launch.
func (s *sim) signalled(e entry, f engine.StepSignalled) {
	if f.Via == "tasks" { // by what its child runs came to
		return
	}
	key := ""
	switch ev := e.event.(type) {
	case engine.FileSeen:
		x := s.w.letter(ev.ID)
		if x == nil || ev.Sentinel == nil || ev.Dir == "" && ev.TokenOf == "" && ev.Sentinel.Attempt == 0 {
			return // a bare word in the inbox of all runs: the law takes it for the only live attempt of the name
		}
		// A bare word counts by when it was written, which a clock that was set back between it and
		// the launch cannot tell.
		if live := fmt.Sprintf("%s/%s#%d.%d", f.Run, f.Step, f.N, f.K); ev.TokenOf == "" && ev.Sentinel.Attempt == 0 && s.w.setBack(x.dated, s.led.launched[live]) {
			return
		}
		key = x.key
	case engine.CommitSeen:
		for _, c := range s.w.commits {
			if x, ok := c.ev.(engine.CommitSeen); ok && x.SHA == ev.SHA {
				key = c.key
			}
		}
	default:
		return
	}
	if want := fmt.Sprintf("%s/%s#%d.%d", f.Run, f.Step, f.N, f.K); key != want {
		s.w.fail("%s is done by the word of %s", want, key)
	}
}
