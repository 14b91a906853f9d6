package daemon

import (
	"fmt"
	"slices"

	"sluice/engine"
	"sluice/internal/job"
)

// simFar are the workers of a history, the messages under way, and what whoever decides has on disk of
// the launches it has sent. Messages are lost, doubled and delivered in any order.
type simFar struct {
	epoch   int64
	workers []*simWorker
	records map[string]*simSent
	msgs    []*simMsg
	seen    map[string]bool // keys that were to be sent
	taken   map[string]int  // key -> the worker that has accepted it
	given   map[string]bool // keys whose end the loop was told
}

type simWorker struct {
	epoch  int64
	keys   map[string]bool
	silent bool
}

// simSent is the record of a launch that was sent.
type simSent struct {
	worker             int
	taken, lost, ended bool
}

// simMsg is a message under way, to a worker or from it.
type simMsg struct {
	what, key string
	worker    int
	epoch     int64      // of a request
	call      *simCall   // of an order
	word      *simLetter // of a word
}

// What messages are.
const (
	msgOrder   = "order"
	msgStop    = "stop"
	msgRunning = "running"
	msgWord    = "word"
	msgEnded   = "ended"
)

const simMsgs = 24 // under way at most

func newSimFar() *simFar {
	f := &simFar{epoch: 1, records: map[string]*simSent{}, seen: map[string]bool{}, taken: map[string]int{}, given: map[string]bool{}}
	for range 3 {
		f.workers = append(f.workers, &simWorker{keys: map[string]bool{}})
	}
	return f
}

// takes reports whether a worker makes a launch: that of an agent's step, whose signal is seen there.
func (f *simFar) takes(j job.Job) bool {
	if f == nil || j.Proc == nil || j.Proc.Kind != engine.ProcStep || j.Spec == nil {
		return false
	}
	st := j.Spec.Step(j.Proc.Step)
	return st != nil && st.Agent != nil && (st.Signal.Type == engine.SignalExit || st.Signal.Type == engine.SignalFile)
}

func (f *simFar) send(m simMsg) {
	if m.epoch = f.epoch; len(f.msgs) < simMsgs {
		f.msgs = append(f.msgs, &m)
	}
}

func (f *simFar) underWay(what, key string) bool {
	return slices.ContainsFunc(f.msgs, func(m *simMsg) bool { return m.what == what && m.key == key })
}

// counts reports whether the launch was sent by whoever decides, and is not given up.
func (f *simFar) counts(key string) bool { r := f.records[key]; return r != nil && !r.lost }

// takeover has another machine decide: it has sent nothing yet.
func (f *simFar) takeover() {
	f.epoch++
	f.records = map[string]*simSent{}
}

// callFar carries on with a launch on a worker.
func (s *sim) callFar(c *simCall, add func(*simCall, string, func())) {
	f, e := s.w.far, c.job.Effect
	r := f.records[e.Key]
	f.seen[e.Key] = true
	give := func(what string, end func() engine.ProcessEnded) {
		add(c, what, func() {
			f.given[e.Key] = true
			s.port.answer(c, end())
		})
	}
	lost := func() engine.ProcessEnded {
		return engine.ProcessEnded{Run: e.Run, Key: e.Key, Exit: engine.Exit{Code: -1, Lost: true}}
	}
	switch {
	case r == nil && (e.Kind == engine.DoStop || c.job.Found):
		give("this machine has not sent it", lost)
	case r == nil:
		add(c, "sent", func() {
			f.records[e.Key] = &simSent{worker: s.g.IntN(len(f.workers))}
			f.send(simMsg{what: msgOrder, key: e.Key, worker: f.records[e.Key].worker, call: c})
		})
	case r.lost:
		give("lost", lost)
	case r.ended:
		give("ended", func() engine.ProcessEnded { return s.ended(s.w.procs[e.Key]) })
	case f.workers[r.worker].silent:
		add(c, "given up", func() { r.lost = true })
	case !r.taken && !f.underWay(msgOrder, e.Key):
		add(c, "sent again", func() { f.send(simMsg{what: msgOrder, key: e.Key, worker: r.worker, call: c}) })
	case r.taken && e.Kind == engine.DoStop && !f.underWay(msgStop, e.Key):
		add(c, "stop sent", func() { f.send(simMsg{what: msgStop, key: e.Key, worker: r.worker}) })
	}
}

// wires are what can happen to messages and workers.
func (s *sim) wires() (acts []act) {
	f := s.w.far
	if f == nil {
		return nil
	}
	add := func(name string, weight int, do func()) { acts = append(acts, act{name, weight, s.locked(do)}) }
	for i, w := range f.workers {
		if w.silent = w.silent && !s.calm; !s.calm && s.g.IntN(4) == 0 {
			add(fmt.Sprintf("worker %d: silent %v", i, !w.silent), 1, func() { w.silent = !w.silent })
		}
	}
	for _, m := range f.msgs {
		drop := func() { f.msgs = slices.DeleteFunc(f.msgs, func(o *simMsg) bool { return o == m }) }
		if name := m.what + " of " + m.key; !s.calm {
			add(name+" is lost", 1, drop)
			add(name+" is doubled", 1, func() { f.msgs = append(f.msgs, new(*m)) })
		}
		if toDesk := m.what != msgOrder && m.what != msgStop; !f.workers[m.worker].silent && (s.repo != nil || !toDesk) {
			add(m.what+" of "+m.key+" comes", 6, func() { drop(); s.arrive(m) })
		}
	}
	for _, key := range sortedKeys(s.w.procs) {
		p := s.w.procs[key]
		if !p.far || f.workers[f.taken[key]].silent {
			continue
		}
		if p.alive && !f.counts(key) && s.repo != nil {
			add(key+" is to be forgotten", 3, func() { s.exit(p, engine.Exit{Stopped: true, Code: -1, Signal: "killed"}) })
		}
		if !p.alive && !p.over && !f.underWay(msgEnded, key) {
			add(key+": its end is sent", 4, func() { f.send(simMsg{what: msgEnded, key: key, worker: f.taken[key]}) })
		}
	}
	return acts
}

// arrive delivers a message. Under mu.
func (s *sim) arrive(m *simMsg) {
	s.counts.messages++
	f, w, p := s.w.far, s.w.far.workers[m.worker], s.w.procs[m.key]
	switch m.what {
	case msgOrder, msgStop:
		if m.epoch < w.epoch {
			s.counts.late++
			return
		}
		w.epoch = m.epoch
		if m.what == msgStop && p != nil && p.alive {
			s.exit(p, engine.Exit{Stopped: true, Code: -1, Signal: "killed"})
		}
		if m.what == msgOrder && !w.keys[m.key] {
			if by, is := f.taken[m.key]; is {
				s.w.fail("%s is accepted by workers %d and %d", m.key, by, m.worker)
			}
			w.keys[m.key], f.taken[m.key] = true, m.worker
			s.w.start(s.g, m.call, s.calm)
		}
		f.send(simMsg{what: msgRunning, key: m.key, worker: m.worker})
	case msgRunning:
		if f.counts(m.key) {
			f.records[m.key].taken = true
		}
	case msgWord:
		s.hear(m.key, m.word)
	case msgEnded:
		if p.over = true; !f.counts(m.key) {
			s.tooLate(p)
			return
		}
		f.records[m.key].taken, f.records[m.key].ended = true, true
		for _, x := range p.words {
			s.hear(m.key, x)
		}
	}
}

// hear puts a launch's word into its own inbox, once, while the launch counts.
func (s *sim) hear(key string, x *simLetter) {
	if s.w.far.counts(key) && !x.heard {
		x.heard = true
		s.put(x)
	}
}

// tooLate passes the result of a launch that was given up to the loop, as a desk would that does not
// refuse it.
func (s *sim) tooLate(p *simProc) {
	s.counts.late++
	if len(s.port.calls) > 0 {
		s.w.far.given[p.key] = true // it counts if the launch was not replaced yet
		s.port.calls[s.g.IntN(len(s.port.calls))].emit(s.ended(p))
	}
}

// gone holds that a launch is over only by its own end.
func (s *sim) gone(f engine.ProcessGone) {
	if far := s.w.far; far != nil && far.seen[f.Key] && !far.given[f.Key] {
		s.w.fail("%s is over by the word of another launch", f.Key)
	}
}
