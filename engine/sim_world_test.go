package engine

import (
	"strconv"
	"time"
)

// tick makes one possible thing happen; false = none is possible.
func (w *sim) tick() bool {
	evs := w.owed()
	for _, k := range w.keys {
		if p := w.procs[k]; !p.exited {
			evs = w.work(evs, p)
		}
	}
	for i := range w.files {
		evs = append(evs, func() { w.see(i) })
	}
	evs = w.people(evs)
	if !w.calm && !w.sh.adversary {
		evs = w.trouble(evs)
	}
	if w.calm {
		evs = w.soothe(evs)
	}
	if at := w.st.Wake(w.ticked); len(evs) == 0 || w.p(0.05) || !at.IsZero() && !at.After(w.now) {
		evs = w.time(evs)
	}
	if len(evs) == 0 {
		return false
	}
	evs[w.g.IntN(len(evs))]()
	return true
}

// time advances the clock to the next deadline.
func (w *sim) time(evs []func()) []func() {
	if w.st.NeedsScan(w.now) {
		return append(evs, w.scan)
	}
	at := w.st.Wake(w.ticked)
	if at.IsZero() || w.sh.oracle && at.Sub(w.now) > time.Hour { // the model knows no time-outs
		return evs
	}
	return append(evs, func() {
		if at.After(w.now) {
			w.now = at
		}
		if w.handle(&told{ev: Ticked{}}) {
			w.ticked = w.now
		}
	})
}

// scan reads the inboxes completely: all files, then the end of the scan.
func (w *sim) scan() {
	began := w.now
	for n := len(w.files); n > 0; n-- {
		w.see(0)
	}
	w.handle(&told{ev: Scanned{Began: began}})
}

// see accepts file i, unless the daemon dies.
func (w *sim) see(i int) {
	f := w.files[i]
	w.files = append(w.files[:i:i], w.files[i+1:]...)
	if !w.handle(f) {
		w.files = append(w.files, f)
		return
	}
	w.old = append(w.old, f)
}

// owed turns what the engine owes the world into possible events.
func (w *sim) owed() (evs []func()) {
	var dull []Event // what changes nothing but itself happens all at once
	for _, e := range w.st.Owed(w.seen) {
		switch e.Kind {
		case DoRun, DoStop:
			evs = w.owedProc(evs, e)
		case DoNotify:
			if e.Notice.Kind != NoticeGate {
				dull = append(dull, Noticed{Run: e.Run, ID: e.Key})
				continue
			}
			evs = append(evs, func() { w.handle(&told{ev: Noticed{Run: e.Run, ID: e.Key, Results: []string{"log: shown"}}}) })
		case DoWrite:
			evs = append(evs, func() { w.handle(&told{ev: FileWritten{Run: e.Run, ID: e.Key}}) })
		case DoTasks, DoSave:
			evs = append(evs, func() { w.taskFile(e) })
		case DoFire:
			evs = append(evs, func() { w.handle(&told{ev: w.fire(e)}) })
		case DoMove:
			dull = append(dull, FileMoved{ID: e.Key})
		case DoLook:
			evs = append(evs, func() { w.handle(&told{ev: Looked{Run: e.Run, Step: e.Step, Pins: e.Pins}}) })
		case DoOffer:
			p := w.procs[e.Key]
			if p == nil {
				evs = append(evs, func() { w.launch(e, ProcStep) })
			} else if w.calm && p.exited && len(w.files) == 0 { // its signal was refused, or it never sent one
				p.status = StatusDone
				evs = append(evs, func() { w.say(p) })
			}
		case DoWatch:
			before := len(evs)
			for _, c := range w.commits {
				if x, ok := c.ev.(CommitSeen); ok && x.Run == e.Run && x.Step == e.Step && (c.key == e.Key || w.counted(x)) {
					again := x
					again.N, again.K = e.N, e.K // the watcher takes it for this attempt's
					evs = append(evs, func() { w.handle(&told{ev: again, key: c.key}) })
				} else if y, ok := c.ev.(PullSeen); ok && c.key == e.Key {
					evs = append(evs, func() { w.handle(&told{ev: y, key: c.key}) })
				}
			}
			if len(evs) == before { // a look without a result
				dull = append(dull, Polled{Run: e.Run, Step: e.Step, N: e.N, K: e.K, Began: w.now})
			}
		}
	}
	if len(dull) > 0 {
		evs = append(evs, func() {
			for _, ev := range dull {
				w.handle(&told{ev: ev})
			}
		})
	}
	return evs
}

// counted reports whether the commit was an attempt's signal: what comes now is its cherry-picked
// copy.
func (w *sim) counted(c CommitSeen) bool {
	for _, a := range w.st.Runs[c.Run].Attempts[c.Step] {
		if a.Author == c.Author {
			return true
		}
	}
	return false
}

func (w *sim) owedProc(evs []func(), e Effect) []func() {
	p := w.procs[e.Key]
	switch {
	case p == nil && e.Kind == DoStop: // died with the machine, or never came up
		evs = append(evs, func() { w.handle(&told{ev: ProcessEnded{Run: e.Run, Key: e.Key, Exit: Exit{Lost: true}}}) })
	case p == nil && !w.calm && e.N%3 == 0 && w.due(e) != nil && !w.due(e).IsZero(): // it may have to wait
		evs = append(evs, func() { w.handle(&told{ev: SlotAwaited{Run: e.Run, Key: e.Key}}) }, func() { w.launch(e, e.Proc.Kind) })
	case p == nil:
		evs = append(evs, func() { w.launch(e, e.Proc.Kind) })
	case !p.exited && w.due(e) != nil && w.due(e).IsZero():
		evs = append(evs, func() { w.handle(&told{ev: SlotTaken{Run: e.Run, Key: e.Key}}) })
	case p.exited:
		evs = append(evs, func() { w.handle(&told{ev: w.end(p)}) })
	case e.Kind == DoStop:
		evs = append(evs, func() { p.exited, p.exit = true, Exit{Stopped: true, Code: -1, Signal: "killed"} })
	}
	return evs
}

// due returns the deadline of what is to run; nil if it has none that can wait.
func (w *sim) due(e Effect) *time.Time {
	if e.Kind != DoRun {
		return nil
	}
	return w.st.Runs[e.Run].clock(e.Key)
}

func (w *sim) launch(e Effect, kind string) {
	p := &simProc{key: e.Key, kind: kind, run: e.Run, step: e.Step, gate: e.Gate, n: e.N, k: e.K}
	if a := w.st.Runs[e.Run].Current(e.Step); a != nil && e.Proc != nil {
		p.tree = a.Tree // whatever the engine believes it holds
		if spec := w.spec(w.st.Runs[e.Run].Digest); spec.Step(e.Step).Reads() || kind == ProcReview && a.Checked && apart(e.Step) {
			p.tree = "" // it sees the taken work
		}
	}
	switch kind {
	case ProcStep:
		w.planStep(p, e.Proc == nil)
	case ProcReview:
		w.planReview(p)
	}
	w.procs[e.Key] = p
	w.keys = append(w.keys, e.Key)
}

// rhythm is an adversary's answer: each gate and step has its own repeating pattern.
func (w *sim) rhythm(key string, n int) string {
	if w.pattern[key] == nil {
		for range 1 + w.g.IntN(4) {
			w.pattern[key] = append(w.pattern[key], pick(w.g, "pass", "pass", "fail", "r"))
		}
	}
	return w.pattern[key][n%len(w.pattern[key])]
}

func (w *sim) planStep(p *simProc, offered bool) {
	p.status = StatusDone
	if w.sh.adversary {
		if !offered && w.rhythm("!"+p.step, p.n) == "fail" && w.g.IntN(2) == 0 {
			p.status = StatusFailed
		}
		return
	}
	if w.calm {
		return
	}
	switch w.g.IntN(12) {
	case 0, 1:
		p.status = StatusFailed
	case 2:
		p.status = StatusBlocked
	case 3:
		p.status = ""
	case 4:
		p.status, p.exit = "", pick(w.g, Exit{Signal: "killed"}, Exit{Code: 3}, Exit{Lost: true}, Exit{NotStarted: "no binary"})
	case 5:
		if !w.sh.oracle {
			p.hung = true
		}
	case 6:
		if !w.sh.oracle && w.g.IntN(2) == 0 {
			p.status, p.exit = "", pick(w.g, Exit{Class: ClassLimit, Code: 1, ResumeAt: w.now.Add(100 * time.Second)}, Exit{Class: ClassLimit, Code: 1},
				Exit{Refused: "an input is missing"}, Exit{Class: ClassFatal, Why: "not logged in"}, Exit{Class: ClassWork, Why: "bad"})
		}
	}
}

func (w *sim) planReview(p *simProc) {
	p.verdict = OutcomePass
	g := w.spec(w.st.Runs[p.run].Digest).Gate(p.gate)
	_, routed := g.Route("r")
	if w.sh.adversary {
		if p.verdict = w.rhythm(p.gate, p.n); p.verdict == "r" && !routed {
			p.verdict = OutcomeFail
		}
		return
	}
	if w.calm {
		return
	}
	switch w.g.IntN(9) {
	case 0, 1, 2:
		p.verdict = OutcomeFail
	case 3:
		if p.verdict = OutcomeFail; routed {
			p.verdict = "r"
		}
	case 4:
		p.verdict = ""
	case 5:
		p.verdict = Human
	case 6:
		if !w.sh.oracle {
			p.verdict = pick(w.g, "revise", "hang", "limit", "crash", "?")
		}
	}
	p.hung = p.verdict == "hang"
}

// end returns how the process ended.
func (w *sim) end(p *simProc) ProcessEnded {
	ev := ProcessEnded{Run: p.run, Key: p.key, Exit: p.exit}
	switch p.kind {
	case ProcStep:
		w.worked(p, &ev)
		if a := w.st.Runs[p.run].Attempt(p.step, p.n); a != nil && a.SignalType == SignalExit && p.exit == (Exit{}) && p.status != StatusDone {
			ev.Exit.Code = 1
		}
	case ProcCheck:
		ev.Check = &CheckResult{OK: true, Digest: "tree", Apart: apart(p.step)}
		if w.sh.adversary || !w.sh.oracle && w.g.IntN(3) == 0 {
			w.ids++
			ev.Check.Digest = "tree" + strconv.Itoa(w.ids)
		}
		switch {
		case w.calm || w.sh.oracle || w.sh.adversary:
		case w.g.IntN(10) == 0:
			ev.Check.OK, ev.Check.Why = false, "no output"
		case w.g.IntN(20) == 0:
			ev.Check.Broken = "cannot be run"
		case w.g.IntN(20) == 0:
			ev.Check.Protected, ev.Check.ProtectedAs = []string{"test/a"}, []string{"as it was"}
		case w.g.IntN(20) == 0:
			ev.Check, ev.Exit = nil, Exit{Lost: true}
		case w.g.IntN(20) == 0:
			ev.Check = &CheckResult{Lost: true, Why: "its worker is lost"}
		}
	case ProcReview:
		switch p.verdict {
		case "", "hang":
		case "limit":
			ev.Exit = Exit{Class: ClassLimit}
		case "crash":
			ev.Exit, ev.Verdict = Exit{Signal: "segv"}, &Judgement{Outcome: OutcomePass}
		case "?":
			ev.Verdict = &Judgement{Inconclusive: "no JSON"}
		default:
			w.ids++
			ev.Verdict = &Judgement{Outcome: p.verdict, Feedback: "because"}
		}
	}
	return ev
}

// work makes a process do its next thing.
func (w *sim) work(evs []func(), p *simProc) []func() {
	if p.hung && !w.calm && w.g.IntN(4) > 0 {
		return evs
	}
	if p.kind != ProcStep || p.said || p.status == "" {
		if p.hung {
			return evs
		}
		return append(evs, func() { p.exited = true })
	}
	return append(evs, func() {
		p.said = true
		w.say(p)
	})
}

// say sends the step's signal in its way.
func (w *sim) say(p *simProc) {
	r := w.st.Runs[p.run]
	if r == nil {
		return
	}
	w.ids++
	id := strconv.Itoa(w.ids)
	offered := w.spec(r.Digest).Step(p.step).Offered()
	switch w.spec(r.Digest).Step(p.step).Signal.Type {
	case SignalCommit:
		w.commits = append(w.commits, &told{key: p.key, ev: CommitSeen{Run: p.run, Step: p.step, N: p.n, K: p.k, SHA: id, Author: "a" + id}})
	case SignalPull:
		w.commits = append(w.commits, &told{key: p.key, ev: PullSeen{Run: p.run, Step: p.step, N: p.n, K: p.k, Ref: "refs/pull/" + id + "/head"}})
	case SignalFile:
		s := &Sentinel{Status: p.status, Run: p.run, Attempt: p.n, Launch: p.k}
		ev := FileSeen{Name: p.step + "-done.json", Dir: p.run, ID: id, Written: w.now, Sentinel: s, By: Actor{Who: "agent", Trust: TrustFile}}
		switch {
		case offered && w.g.IntN(2) == 0: // whoever takes an offer names the attempt, because it has no token
			s.Launch = 0
		case !offered && w.g.IntN(3) == 0:
			s.Run, s.Attempt, s.Launch = "", 0, 0
		case !offered && !w.sh.oracle && w.g.IntN(3) == 0:
			s.Attempt, s.Launch, ev.TokenOf = 0, 0, p.key
		}
		if s.Attempt == 0 && w.g.IntN(3) == 0 && !w.sh.oracle {
			ev.Dir = ""
		}
		w.drop(&told{ev: ev, key: p.key}, id)
	}
	if offered { // nobody waits for its end
		p.exited = true
	}
}

// drop puts a file into the inbox.
func (w *sim) drop(f *told, id string) {
	if w.beside != nil {
		w.beside.seqs[id] = w.beside.m.Seq
	}
	w.files = append(w.files, f)
}
