package daemon

import (
	"strconv"
	"syscall"
	"time"

	"sluice/engine"
)

// people answer what they are asked, and more.
func (s *sim) people() (acts []act) {
	st := s.state()
	if st == nil {
		return nil
	}
	for _, id := range st.Order {
		r := st.Runs[id]
		if !r.Live() {
			continue
		}
		for _, g := range s.specOf(r).Gates {
			q := r.CurrentRound(g.ID)
			if q.Open() && q.State == engine.OnWindow && !s.calm && !g.Implicit { // over a veto that is on its way, too
				acts = append(acts, act{"the window of " + round(id, g.ID, q.N) + " passes, or almost", 3, func() {
					// Almost: a scan begins, and there is time for a veto that it does not see.
					s.sleep(min(max(q.WindowEnds.Sub(s.wall())+time.Duration(s.g.IntN(4000)-2000)*time.Millisecond, 0), time.Minute))
				}})
			}
			switch {
			case q == nil || s.answering(id, g.ID, q.N):
			case q.Open() && q.State == engine.OnHuman:
				acts = append(acts, act{"a person answers " + round(id, g.ID, q.N), 4, func() { s.answer(id, g, q) }})
			case s.calm || g.Implicit:
			case q.State == engine.OnWindow:
				acts = append(acts, act{"a person vetoes " + round(id, g.ID, q.N), 2, func() { s.say1(id, g, q, engine.OutcomeVeto) }})
			case (q.State == engine.Approved || q.State == engine.OnReview) && s.g.IntN(s.seldom()) == 0:
				acts = append(acts, act{"a person vetoes " + round(id, g.ID, q.N), 1, func() { s.say1(id, g, q, engine.OutcomeVeto) }})
			}
		}
	}
	for i, a := range s.late {
		acts = append(acts, act{"a late answer comes", 1, func() {
			s.late = append(s.late[:i:i], s.late[i+1:]...)
			s.ask(a.ev, a.word)
		}})
	}
	return acts
}

// seldom is of how many times a late veto comes once.
func (s *sim) seldom() int {
	if s.space {
		return 2
	}
	return 8
}

// answering reports whether an answer to the round is on its way.
func (s *sim) answering(run, gate string, n int) bool {
	of := func(x *simWord) bool { return x != nil && x.run == run && x.gate == gate && x.round == n }
	for _, a := range s.asks {
		if of(a.word) {
			return true
		}
	}
	for _, x := range s.w.letters {
		if of(x.word) && !x.gone && x.taken == 0 {
			return true
		}
	}
	return false
}

func (s *sim) answer(run string, g *engine.Gate, q *engine.Round) {
	outcome := engine.OutcomePass
	if !s.calm && s.g.IntN(3) == 0 {
		outcome = engine.OutcomeFail
		if _, ok := g.Route("r"); ok && s.g.IntN(2) == 0 {
			outcome = "r"
		}
	}
	s.say1(run, g, q, outcome)
	if !s.calm && s.g.IntN(4) == 0 { // and once more, or another way
		s.say1(run, g, q, pick(s.g, outcome, engine.OutcomePass, engine.OutcomeFail))
	}
}

// say1 gives a person's word by the API, by a file, or later.
func (s *sim) say1(run string, g *engine.Gate, q *engine.Round, outcome string) {
	if a := s.write(run, g, q, outcome); a != nil {
		s.ask(a.ev, a.word)
	}
}

// write lays a person's word down: in a file, or as what is to be said by the API now or later.
func (s *sim) write(run string, g *engine.Gate, q *engine.Round, outcome string) (now *simAsk) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	word := &simWord{run: run, gate: g.ID, outcome: outcome, round: q.N}
	s.w.words = append(s.w.words, word)
	n := pick(s.g, 0, q.N)
	by := engine.Actor{Who: "person", Trust: engine.TrustFile}
	digest := q.Digest
	changed := !s.calm && s.g.IntN(10) == 0
	switch k := s.g.IntN(5); {
	case k < 2 || outcome == engine.OutcomeVeto && k < 4:
		x := &simLetter{word: word, ev: engine.FileSeen{Name: g.ID + "-" + outcome, Dir: run, ID: s.w.id(), Written: s.wall(), Human: &engine.HumanSay{Round: n, Text: "t"}, By: by}}
		if !s.calm && s.g.IntN(3) == 0 {
			if x.ev.Dir = ""; s.runsAsked > 1 || s.fires { // by the law it counts for whoever asks alone when it is read
				x.ev.Dir = run
			}
		}
		if changed {
			x.ev.DigestNow = "not "
		}
		s.put(x)
	default:
		if changed {
			digest = "not " + digest
		}
		ev := engine.Answered{Gate: g.ID, Run: run, Round: n, Outcome: outcome, Text: "t", Written: s.wall(), DigestNow: digest, By: by}
		if k == 2 && !s.calm {
			s.late = append(s.late, &simAsk{ev: ev, word: word})
			return nil
		}
		return &simAsk{ev: ev, word: word}
	}
	return nil
}

// trouble is what people and chance do at any time.
func (s *sim) trouble() (acts []act) {
	st := s.state()
	if st == nil {
		return nil
	}
	by := engine.Actor{Who: "person"}
	ask := func(name string, weight int, ev engine.Event) {
		acts = append(acts, act{name, weight, func() { s.ask(ev, nil) }})
	}
	if live := s.living(st); s.runsAsked < 2 || live == 0 && s.runsAsked < 5 || s.runsAsked < 4 && s.g.IntN(20) == 0 {
		acts = append(acts, act{"a run is started", 4, func() {
			s.runsAsked++
			spec := s.specs["spec of wf"+strconv.Itoa(s.g.IntN(2))]
			s.start(spec, s.g.IntN(3) == 0)
		}})
	}
	acts = append(acts, s.happens(st)...)
	if len(st.Order) == 0 {
		return acts
	}
	id := pick(s.g, st.Order...)
	switch s.g.IntN(16) {
	case 0:
		ask("pause "+id, 1, engine.PauseRequested{Run: id, By: by})
	case 1, 2, 3:
		ask("resume "+id, 1, engine.ResumeRequested{Run: id, By: by})
	case 4:
		if s.g.IntN(8) == 0 {
			ask("abort "+id, 1, engine.AbortRequested{Run: id, By: by})
		}
	case 5:
		step := pick(s.g, s.specOf(st.Runs[id]).Steps...).ID
		ask("retry "+id, 1, engine.RetryRequested{Run: id, Step: pick(s.g, "", step), By: by})
	case 6:
		c := s.conf
		c.MaxParallel = 1 + s.g.IntN(3)
		acts = append(acts, act{"settings", 1, func() {
			s.conf = c
			s.ask(engine.Configured{}, nil)
		}})
	case 7:
		s.runX(&acts)
	case 8, 9:
		if l := st.Runs[id].List; s.lists && l != nil {
			acts = append(acts, act{"somebody edits " + l.Path, 3, s.locked(func() { s.edit(l.Path) })})
		}
	}
	return acts
}

func (s *sim) living(st *engine.State) (n int) {
	for _, r := range st.Runs {
		if r.Live() {
			n++
		}
	}
	return n
}

func (s *sim) runX(acts *[]act) {
	if s.xAsked < 4 || s.calm {
		*acts = append(*acts, act{"x is started", 2, func() {
			s.xAsked++
			s.start(s.specs["spec of x"], false)
		}})
	}
}

// soothe ends what holds a run up: what is paused goes on, what is waited for comes.
func (s *sim) soothe() (acts []act) {
	st := s.state()
	if st == nil || len(s.asks) > 0 {
		return nil
	}
	acts = append(acts, s.happens(st)...)
	for _, id := range st.Order {
		r := st.Runs[id]
		if !r.Live() {
			continue
		}
		if r.Paused {
			acts = append(acts, act{"resume " + id, 3, func() { s.ask(engine.ResumeRequested{Run: id, By: engine.Actor{Who: "person"}}, nil) }})
		}
		for _, x := range s.specOf(r).Steps {
			if len(x.ExtNeeds) > 0 && r.Current(x.ID) == nil && s.needsX(st) {
				s.runX(&acts)
			}
		}
	}
	return acts
}

// needsX reports whether no run of x has passed or will.
func (s *sim) needsX(st *engine.State) bool {
	var newest *engine.Run
	for _, id := range st.Order {
		if r := st.Runs[id]; r.Workflow == "x" {
			newest = r
		}
	}
	return newest == nil || !newest.Live() && !newest.Current("e").Done()
}

// time lets time pass: a while, to the next deadline, or long.
func (s *sim) time() (acts []act) {
	acts = append(acts, act{"a while passes", 2, func() { s.sleep(time.Duration(1+s.g.IntN(10)) * time.Second) }})
	if at := s.repo.nextWake(); !at.IsZero() && s.state() != nil {
		acts = append(acts, act{"the next deadline passes", 1, func() { s.sleep(min(max(at.Sub(s.wall()), 0), 2*time.Hour) + time.Duration(s.g.IntN(3))*time.Second) }})
	}
	if !s.calm && s.g.IntN(80) == 0 {
		acts = append(acts, act{"a long time passes", 2, func() {
			s.sleep(pick(s.g, time.Minute, 10*time.Minute, time.Hour))
		}})
	}
	if !s.calm && s.g.IntN(40) == 0 {
		acts = append(acts, act{"the machine sleeps", 4, func() { s.nap(pick(s.g, 40*time.Second, 40*time.Second, 10*time.Minute, 50*time.Hour)) }})
	}
	if !s.calm && s.g.IntN(s.unset()) == 0 {
		acts = append(acts, act{"the clock is set", 4, func() { s.nap(pick(s.g, 24*time.Hour, -24*time.Hour, -time.Minute, time.Minute)) }})
	}
	return acts
}

// unset is of how many times the clock is set once.
func (s *sim) unset() int {
	if st := s.state(); st != nil && openWindow(st) {
		return 15
	}
	return 60
}

// faults are what a disk does.
func (s *sim) faults() (acts []act) {
	switch {
	case !s.full.IsZero():
		acts = append(acts, act{"the disk is freed", 6, s.free})
	case s.g.IntN(40) == 0:
		acts = append(acts, act{"the disk is full", 4, func() {
			s.disk.Mu.Lock()
			defer s.disk.Mu.Unlock()
			s.disk.Room, s.full = s.g.IntN(600), time.Now()
		}})
	case s.g.IntN(60) == 0:
		acts = append(acts, act{"the next sync fails", 4, func() {
			s.disk.Mu.Lock()
			defer s.disk.Mu.Unlock()
			s.disk.SyncErr = syscall.EIO
		}})
	case s.g.IntN(12) == 0:
		acts = append(acts, act{"it is going to die", 4, func() {
			s.disk.Mu.Lock()
			defer s.disk.Mu.Unlock()
			s.disk.DieAt = s.g.IntN(6)
		}})
	}
	return acts
}

// resumeWithin is how soon the loop goes on once the disk takes writes again.
const resumeWithin = 5 * time.Second

func (s *sim) free() {
	s.disk.Mu.Lock()
	s.disk.Room, s.full = -1, time.Time{}
	s.disk.Mu.Unlock()
	s.port.scanned = time.Now() // what a stalled loop did not read it reads from now on
	s.sleep(resumeWithin)
	if s.disk.IsDead() || s.disk.Failed {
		return
	}
	if s.repo.troubles.stall != "" || len(s.repo.core.pending) > 0 {
		s.fail("%s after the disk was freed the loop is still stalled", resumeWithin)
	}
}

// stalled holds that nothing is launched while the journal cannot be written.
func (s *sim) stalled() {
	if s.repo == nil {
		return
	}
	if len(s.repo.core.pending) == 0 || s.disk.IsDead() {
		s.runs = -1
		return
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.runs < 0 {
		s.runs = s.port.runs
		s.counts.stalls++
	}
	if s.port.runs != s.runs {
		s.w.fail("%d launches are carried out while the journal cannot be written", s.port.runs-s.runs)
	}
}
