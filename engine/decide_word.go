package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// word handles a person's file at a gate.
func (d *signalling) word(ev FileSeen, xs []reading) {
	if ev.Human == nil {
		x, _ := awaited(xs)
		d.unreadable(ev, xs, fmt.Sprintf("%s: correct it and move it back, or use `%s`",
			cmp.Or(ev.HumanBad, cannotRead), Verb(x.gate.ID, x.outcome)))
		return
	}
	if say := ev.Human.Run; say != "" {
		xs = slices.DeleteFunc(xs, func(x reading) bool { return x.run.ID != say })
		if len(xs) == 0 {
			d.reject(ev, "", fmt.Sprintf("it belongs to run %s, which is over or has no such gate", say))
			return
		}
	}
	x, n := awaited(xs)
	if n > 1 {
		d.reject(ev, "", fmt.Sprintf("%d runs wait at this gate: say which: signals/<run>/%s", n, ev.Name))
		return
	}
	if why := ev.Human.contradicts(x); why != "" {
		d.unreadable(ev, []reading{x}, why)
		return
	}
	by := ev.By
	if ev.Human.By != "" { // an unverified claim: only the file's owner is known
		by.Via += ", says it is of " + clip(ev.Human.By, 200)
	}
	q := x.run.CurrentRound(x.gate.ID)
	why := d.answer(Answered{Gate: x.gate.ID, Run: x.run.ID, Round: ev.Human.Round, Outcome: x.outcome,
		Text: ev.Human.Text, Written: ev.Written, DigestNow: ev.DigestNow, By: by, Answer: ev.Human.Answer,
		Findings: ev.Human.Findings, Proven: ev.Human.Proven})
	switch {
	case why == "":
		d.take(ev, x.run.ID, fmt.Sprintf("%s.%d", q.Step, q.Attempt), fmt.Sprintf("%s.%d-%s", x.gate.ID, q.N, ev.Name))
	case ev.Human.Round == 0 && Refuses(x.outcome): // it may be about this round
		d.unreadable(ev, []reading{x}, why)
	default:
		d.reject(ev, x.run.ID, why)
	}
}

// awaited returns the reading that a gate awaits, else the last, and how many are awaited.
func awaited(xs []reading) (x reading, n int) {
	x = xs[len(xs)-1]
	for _, y := range xs {
		if y.run.CurrentRound(y.gate.ID).takes(y.outcome) {
			x = y
			n++
		}
	}
	return x, n
}

// unreadable refuses a person's file that may be a veto, and has the round ask: no veto window closes over it.
func (d *signalling) unreadable(ev FileSeen, xs []reading, why string) {
	x, n := awaited(xs)
	run := ""
	if n < 2 {
		run = x.run.ID
	}
	q := x.run.CurrentRound(x.gate.ID)
	d.reject(ev, run, why)
	if n == 1 && (q.State == OnNotice || q.State == OnWindow) {
		d.ask(x.run, x.gate, q, fmt.Sprintf("an answer could not be accepted: %s: %s", ev.Name, why))
	}
}

// contradicts returns how the content of a person's file contradicts its name, or "".
func (h *HumanSay) contradicts(x reading) string {
	if h.Signed != nil { // the signed content is compared with the round
		return ""
	}
	if h.Gate != "" && h.Gate != x.gate.ID {
		return fmt.Sprintf("its name says gate %s, its content gate %s: it decides nothing: write it again, or use `%s`",
			x.gate.ID, h.Gate, Verb(x.gate.ID, x.outcome))
	}
	said, known := h.Outcome, x.gate.Outcomes()
	as := func(word string) string { // as the gate spells it
		i := slices.IndexFunc(known, func(o string) bool { return strings.EqualFold(o, word) })
		if i < 0 {
			return ""
		}
		return known[i]
	}
	if said == "" { // a text of one word, such as fail
		said = as(strings.TrimRight(h.Text, ".!"))
	}
	switch word := as(said); {
	case said == "", word == x.outcome, Refuses(word) && Refuses(x.outcome):
		return ""
	case word == "":
		return fmt.Sprintf("its name says %s, its content %q, which is not an outcome of the gate (%s): it decides "+
			"nothing: write it again, or use `%s`",
			x.outcome, clip(said, 100), strings.Join(known, ", "), Verb(x.gate.ID, x.outcome))
	default:
		return fmt.Sprintf("its name says %s, its content %s: it decides nothing: write one of the two, or use `%s` or `%s`",
			x.outcome, word, Verb(x.gate.ID, x.outcome), Verb(x.gate.ID, word))
	}
}

// takes reports whether a person's answer with this outcome can still change the round.
func (q *Round) takes(outcome string) bool {
	return q.Open() || q != nil && q.State == Approved && outcome == OutcomeVeto
}
