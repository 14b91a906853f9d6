package engine

import (
	"strconv"
	"time"
)

// people answer the gates that ask.
func (w *sim) people(evs []func()) []func() {
	if w.sh.adversary {
		return evs
	}
	for _, id := range w.st.Order {
		r := w.st.Runs[id]
		spec := w.spec(r.Digest)
		if !r.Live() || spec == nil {
			continue
		}
		for _, g := range spec.Gates {
			q := r.CurrentRound(g.ID)
			if q.Open() && q.State == OnHuman && !w.answering(id, g.ID) && (w.calm || w.g.IntN(3) == 0) {
				evs = append(evs, func() { w.answer(r, g, q, w.calm || w.g.IntN(3) > 0) })
			}
		}
	}
	return evs
}

func (w *sim) answering(run, gate string) bool {
	for _, f := range w.files {
		if ev, ok := f.ev.(FileSeen); ok && f.who == "person" && ev.Dir == run && f.key == gate {
			return true
		}
	}
	return false
}

func (w *sim) answer(r *Run, g *Gate, q *Round, pass bool) {
	outcome := OutcomePass
	if !pass {
		outcome = OutcomeFail
		if _, ok := g.Route("r"); ok && !w.sh.oracle && w.g.IntN(3) == 0 {
			outcome = "r"
		}
	}
	w.word(r, g.ID, outcome, q.N, "person")
}

// word is a person's answer at a gate (or of an agent posing as one): a file or a command.
func (w *sim) word(r *Run, gate, outcome string, saw int, who string) {
	w.ids++
	round := saw
	if w.g.IntN(2) == 0 {
		round = 0
	}
	by := Actor{Who: who, Trust: TrustSandbox}
	if who == "agent" {
		by.Trust = TrustFile
	}
	var proven Proven
	if q := r.CurrentRound(gate); who == "person" && !w.sh.oracle && w.ids%2 == 0 && q != nil && q.N == saw {
		by.Trust, by.Key = TrustSigned, "key"
		proven.Signed = &Signed{Names: []string{who}, Key: by.Key, Run: r.ID, Gate: gate, Round: saw, Outcome: outcome, Digest: q.Digest,
			Nonce: strconv.Itoa(w.ids), Expires: w.now.Add(time.Duration(1+w.ids%7) * time.Hour)}
	}
	now := ""
	if q := r.CurrentRound(gate); q != nil {
		if now = q.Digest; !w.sh.oracle && w.p(0.1) {
			now = "changed"
		}
	}
	if who == "person" && w.g.IntN(3) == 0 {
		w.handle(&told{saw: saw, who: who, key: gate, ev: Answered{Gate: gate, Run: r.ID, Round: round, Outcome: outcome, Written: w.now, DigestNow: now, By: by, Proven: proven}})
		return
	}
	w.drop(&told{saw: saw, who: who, key: gate, ev: FileSeen{Name: gate + "-" + outcome, Dir: r.ID, ID: strconv.Itoa(w.ids), Written: w.now,
		Human: &HumanSay{Round: round, Proven: proven}, DigestNow: now, By: by}}, strconv.Itoa(w.ids))
}

// trouble is what people and chance can do at any time.
func (w *sim) trouble(evs []func()) []func() {
	if len(w.old) > 0 && w.g.IntN(4) == 0 {
		evs = append(evs, func() { w.handle(pick(w.g, w.old...)) }) // seen again
	}
	if w.sh.fires {
		evs = w.trigger(evs)
	}
	if len(w.st.Order) == 0 {
		return evs
	}
	r := w.st.Runs[pick(w.g, w.st.Order...)]
	by := Actor{Who: "person"}
	do := func(ev Event) { evs = append(evs, func() { w.handle(&told{ev: ev}) }) }
	switch w.g.IntN(26) {
	case 0:
		do(PauseRequested{Run: r.ID, By: by})
	case 1, 2, 3:
		do(ResumeRequested{Run: r.ID, By: by})
	case 4:
		if w.g.IntN(6) == 0 {
			do(AbortRequested{Run: r.ID, By: by})
		}
	case 5, 6:
		step := ""
		if w.g.IntN(2) == 0 {
			step = pick(w.g, w.spec(r.Digest).Steps...).ID
		}
		do(RetryRequested{Run: r.ID, Step: step, By: by})
	case 7:
		if spec := extSpec("x" + strconv.Itoa(w.g.IntN(2))); len(w.st.Order) < 12 {
			evs = append(evs, func() { w.start(spec, false) })
		}
	case 8, 9, 10:
		evs = w.lateVeto(evs, r)
	case 11:
		if !w.sh.oracle {
			evs = append(evs, w.scan)
		}
	case 12:
		if !w.sh.oracle {
			c := w.st.Config
			c.MaxParallel = 1 + w.g.IntN(4)
			do(Configured{Config: c})
		}
	case 13, 14: // an agent poses as a person
		g := pick(w.g, w.spec(r.Digest).Gates...)
		if q := r.CurrentRound(g.ID); !w.sh.oracle && q.Open() && q.State == OnHuman && trustRank(q.Trust) > trustRank(TrustFile) {
			evs = append(evs, func() { w.word(r, g.ID, OutcomePass, q.N, "agent") })
		}
	case 19, 20, 21:
		if r.List != nil {
			evs = append(evs, func() { w.edit(r) })
		}
	case 15, 16, 17, 18:
		if !w.sh.oracle {
			evs = append(evs, w.steer(r)...)
		}
	}
	return evs
}

// steer is a person who takes over or hands back a step, and an agent that reports its cost.
func (w *sim) steer(r *Run) (evs []func()) {
	do := func(ev Event) { evs = append(evs, func() { w.handle(&told{ev: ev}) }) }
	by, step := Actor{Who: "person"}, pick(w.g, w.spec(r.Digest).Steps...).ID
	switch w.g.IntN(4) {
	case 0:
		do(TakeoverRequested{Run: r.ID, Step: step, By: by})
	case 1:
		do(HandbackRequested{Run: r.ID, Step: step, Done: w.g.IntN(2) == 0, Text: "go on", By: by})
	case 2:
		do(NoteGiven{Run: r.ID, Step: step, Text: "mind the gap", By: by})
	default:
		if len(r.Procs) > 0 {
			do(UsageSeen{Run: r.ID, Key: pick(w.g, r.Procs...).Key, Usage: Usage{Tokens: int64(w.g.IntN(1000))}, Day: "d"})
		}
	}
	return evs
}

func (w *sim) lateVeto(evs []func(), r *Run) []func() {
	for _, g := range w.spec(r.Digest).Gates {
		q := r.CurrentRound(g.ID)
		if q != nil && (q.State == Approved || q.State == OnWindow || q.State == OnReview) && !g.Implicit && w.g.IntN(3) == 0 {
			return append(evs, func() { w.word(r, g.ID, OutcomeVeto, q.N, "person") })
		}
	}
	return evs
}

// soothe ends all faults: paused runs resume, awaited things arrive.
func (w *sim) soothe(evs []func()) []func() {
	for _, id := range w.st.Order {
		r := w.st.Runs[id]
		if !r.Live() {
			continue
		}
		if r.Paused {
			evs = append(evs, func() { w.handle(&told{ev: ResumeRequested{Run: id, By: Actor{Who: "person"}}}) })
		}
		for _, a := range r.alive {
			if a.held() {
				evs = append(evs, func() { w.handle(&told{ev: HandbackRequested{Run: id, Step: a.step, By: Actor{Who: "person"}}}) })
			}
		}
		for _, st := range w.spec(r.Digest).Steps {
			for _, n := range st.ExtNeeds {
				if o := w.st.index.newest(n.Workflow, r); r.Current(st.ID) == nil && (o == nil || !o.Live() && !o.Current(n.Step).Done()) && !w.pending(n.Workflow) {
					evs = append(evs, func() { w.start(extSpec(n.Workflow), false) })
				}
			}
		}
	}
	return evs
}

func (w *sim) pending(workflow string) bool {
	for _, r := range w.st.Runs {
		if r.Workflow == workflow && r.Live() {
			return true
		}
	}
	return false
}
