package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice/tools/conform"
)

// tape draws an event sequence from bytes, then zeros.
type tape struct{ b []byte }

func (t *tape) n(most int) int {
	if len(t.b) == 0 {
		return 0
	}
	x := int(t.b[0])
	t.b = t.b[1:]
	return x % most
}

func (t *tape) of(xs ...string) string { return xs[t.n(len(xs))] }

// event draws any event, with ids that exist, existed, or never did.
func (t *tape) event(st *State, now time.Time) Event {
	run := t.of("f-1", "f-2", "x0-1", "zz-1", "")
	step, gate := t.of("s0", "s1", "s2", "e", "nope"), t.of("g0.0", "g1.0", "g0.1", "s1", "nope")
	n, k := t.n(4), t.n(3)
	by := Actor{Who: t.of("ann", ""), Trust: t.of("", TrustFile, TrustSandbox, TrustSigned, "odd")}
	when := now.Add(time.Duration(t.n(5)-2) * time.Minute)
	switch t.n(27) {
	case 0:
		c := DefaultConfig()
		c.MaxParallel, c.Restarts, c.Trust, c.Attempt.Tokens, c.Day.Tokens = t.n(4), t.n(3)-1, by.Trust, int64(t.n(3)*100), int64(t.n(2))
		return Configured{Config: c}
	case 1:
		return RunRequested{Workflow: t.of("f", "x0", "zz"), Digest: t.of("d-f", "d-x0", ""), Parallel: t.n(2) == 0, Paused: t.n(3) == 0, By: by}
	case 2, 3, 4:
		return t.file(step, gate, run, n, k, when, by)
	case 5:
		return CommitSeen{Run: run, Step: step, N: n, K: k, SHA: t.of("", "abc"), Author: t.of("", "a", "b")}
	case 6:
		return PullSeen{Run: run, Step: step, N: n, K: k}
	case 7:
		return Claimed{Run: run, Step: step, N: n, By: by}
	case 8, 9, 10, 11, 12:
		return t.end(st, run)
	case 13:
		return Answered{Gate: gate, Run: run, Round: n, Outcome: t.of(OutcomePass, OutcomeFail, OutcomeVeto, "r", ""), Written: when, DigestNow: t.of("", "t", "u"), By: by}
	case 14:
		return Noticed{Run: run, ID: t.key(sortedKeys(st.Notices))}
	case 15:
		id := ""
		if r := st.Runs[run]; r != nil && len(r.Writes) > 0 {
			id = r.Writes[0].ID
		}
		return FileWritten{Run: run, ID: id, Why: t.of("", "no")}
	case 21:
		keys := []string{""}
		if r := st.Runs[run]; r != nil {
			for _, p := range r.Procs {
				keys = append(keys, p.Key)
			}
		}
		return []Event{SlotAwaited{Run: run, Key: t.key(keys)}, SlotTaken{Run: run, Key: t.key(keys)}}[t.n(2)]
	case 23:
		keys := []string{""}
		if r := st.Runs[run]; r != nil {
			for _, p := range r.Procs {
				keys = append(keys, p.Key)
			}
		}
		return UsageSeen{Run: run, Key: t.key(keys), Usage: Usage{Tokens: int64(t.n(200)) - 20, CostUSD: float64(t.n(5))}, Day: t.of("", "d1", "d2")}
	case 24:
		return []Event{NoteGiven{Run: run, Step: t.of("", step), Text: t.of("", "do"), By: by}, DayNeared{Day: t.of("d1", "d2"), Budget: "b", Used: t.n(2) == 0}}[t.n(2)]
	case 25:
		return TakeoverRequested{Run: run, Step: step, By: by}
	case 26:
		return HandbackRequested{Run: run, Step: step, Done: t.n(2) == 0, Text: t.of("", "so"), By: by}
	case 16:
		return []Event{FileMoved{ID: t.key(sortedKeys(st.Moves))}, FilesDropped{Of: t.of(run+"/"+step+"#1.1", "", "/"), N: n}}[t.n(2)]
	case 17:
		return Looked{Run: run, Step: step, Pins: []string{t.of("x0-1/e#1", "")}}
	case 18:
		return []Event{PauseRequested{Run: run, By: by}, ResumeRequested{Run: run, By: by}, AbortRequested{Run: run, By: by}}[t.n(3)]
	case 19:
		return RetryRequested{Run: run, Step: t.of("", step), By: by}
	case 20:
		return []Event{SpecUnread{Run: run}, Woken{From: when, To: now}, Woken{From: now, To: when},
			Woken{From: when, To: now, Epoch: 1 + int64(t.n(3)), Offset: Duration(now.Sub(when)) - Duration(time.Hour)}}[t.n(4)]
	}
	return []Event{Scanned{Began: when}, Ticked{}}[t.n(2)]
}

func (t *tape) key(keys []string) string {
	if len(keys) == 0 || t.n(8) == 7 {
		return "none"
	}
	return keys[t.n(len(keys))]
}

func (t *tape) file(step, gate, run string, n, k int, when time.Time, by Actor) Event {
	ev := FileSeen{Name: t.of(step+"-done.json", gate+"-pass", gate+"-fail.md", gate+"-r", "junk", ""), Dir: t.of("", run), Place: t.of("", "w0"),
		ID: t.of("", "1", "2", "3"), Written: when, TokenOf: t.of("", "?", "f-1/s0#1.1"), By: by, DigestNow: t.of("", "t")}
	if t.n(4) > 0 {
		ev.Sentinel = &Sentinel{Status: t.of("", StatusDone, StatusFailed, StatusBlocked, "odd"), Attempt: n, Launch: k}
	}
	if t.n(4) > 0 {
		ev.Human = &HumanSay{Round: n, Run: t.of("", run)}
	}
	return ev
}

// end ends a process, live or not.
func (t *tape) end(st *State, run string) Event {
	ev := ProcessEnded{Run: run, Key: "none"}
	if r := st.Runs[run]; r != nil && len(r.Procs) > 0 {
		ev.Key = r.Procs[t.n(len(r.Procs))].Key
	}
	ev.Exit = []Exit{{}, {}, {Code: 1}, {Signal: "kill"}, {Lost: true}, {Class: ClassLimit, Budget: t.of("", "d1")}, {Class: ClassFatal}, {Class: ClassWork}, {Class: "odd"}, {Refused: "x"}}[t.n(10)]
	if t.n(3) > 0 {
		ev.Verdict = &Judgement{Outcome: t.of(OutcomePass, OutcomeFail, "r", Human, "", "odd"), Inconclusive: t.of("", "", "bad"), Answer: json.RawMessage(t.of("", "null", `{"status":"failed"}`))}
	}
	if t.n(3) > 0 {
		ev.Check = &CheckResult{OK: t.n(3) > 0, Digest: t.of("t", "u"), Broken: t.of("", "", "b")}
	}
	ev.Answer, ev.AnswerBad = json.RawMessage(t.of("", "null", `{"status":"blocked"}`)), t.of("", "", "bad")
	return ev
}

// FuzzDecide: any events in any order have an answer, keep the invariants, and replay to the same
// state; deciding twice produces the same facts.
func FuzzDecide(f *testing.F) {
	conform.Rule(f, "3-engine total", "any events in any order have an answer, keep the invariants and replay to the same")
	for seed := range 30 {
		g, b := rand.New(rand.NewPCG(uint64(seed), 1)), make([]byte, 300)
		for i := range b {
			b[i] = byte(g.IntN(256))
		}
		f.Add(b, uint64(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) { anyEvents(t, b, seed) })
}

// TestAnyEvents plays random tapes, like the fuzz target but without the search.
func TestAnyEvents(t *testing.T) {
	conform.Rule(t, "3-engine core", "total: any event in any state has an answer; replay equals live")
	for seed := range seeds(400) {
		g := rand.New(rand.NewPCG(seed, 9))
		b := make([]byte, 50+g.IntN(950))
		for i := range b {
			b[i] = byte(g.IntN(256))
		}
		anyEvents(t, b, g.Uint64())
	}
}

func anyEvents(t *testing.T, b []byte, seed uint64) {
	spec := genSpec(rand.New(rand.NewPCG(seed%64, 3)), "f", shape{})
	specs := map[string]*Spec{"d-f": spec, "d-x0": extSpec("x0")}
	lookup := func(d string) *Spec { return specs[d] }
	tp, now := &tape{b: b[:min(len(b), 1000)]}, time.Unix(simEpoch, 0).UTC()
	st, back, events := NewState(), NewState(), 0
	step := func(ev Event) {
		var twin *State
		if events++; events%16 == 0 { // sometimes decide twice, the second time from a snapshot
			twin = clone(t, st)
		}
		facts := Decide(st, lookup, ev, now)
		if twin != nil {
			again := Decide(twin, lookup, ev, now)
			if a, b := fmt.Sprint(written(facts)), fmt.Sprint(written(again)); a != b {
				t.Fatalf("decided twice: %s, then %s", a, b)
			}
		}
		for _, fact := range facts {
			raw, err := EncodeFact(fact)
			if err == nil {
				fact, err = DecodeFact(raw)
			}
			if err != nil {
				t.Fatal(err)
			}
			back.Apply(now, fact)
		}
		if why := st.Fault(lookup); why != "" {
			t.Fatalf("after %s: %s", ev.EventKind(), why)
		}
		st.Owed(lookup)
		st.Wake(now)
	}
	step(RunRequested{Workflow: "f", Digest: "d-f"})
	for len(tp.b) > 0 {
		now = now.Add(time.Duration(tp.n(200)) * time.Second)
		if tp.n(40) == 39 {
			specs["d-f"] = nil // this release cannot read it, for a while
		} else {
			specs["d-f"] = spec
		}
		step(tp.event(st, now))
	}
	live, _ := json.Marshal(st)
	replayed, _ := json.Marshal(back)
	if string(live) != string(replayed) {
		t.Fatalf("replay gives another state:\n%s\n%s", live, replayed)
	}
}

// written returns the facts as they are journaled.
func written(fs []Fact) (out []string) {
	for _, f := range fs {
		raw, _ := EncodeFact(f)
		out = append(out, string(raw))
	}
	return out
}

// FuzzDecodeFact: any bytes are a fact or an error; a fact reads back as itself.
func FuzzDecodeFact(f *testing.F) {
	_, w := history(1, false)
	seen := map[string]bool{}
	for _, l := range w.journal {
		for _, fact := range l.facts {
			if raw, err := EncodeFact(fact); err == nil && !seen[fact.FactKind()] {
				seen[fact.FactKind()] = true
				f.Add(raw)
			}
		}
	}
	f.Add([]byte(`{"kind":"round_passed"}`))
	for _, fact := range triggerFacts() {
		if raw, err := EncodeFact(fact); err == nil {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		fact, err := DecodeFact(raw)
		if err != nil {
			return
		}
		once, err := EncodeFact(fact)
		if err != nil {
			return // what JSON can read and not write again: raw parts of it
		}
		again, err := DecodeFact(once)
		if err != nil {
			t.Fatalf("%s does not read back: %v", once, err)
		}
		if twice, _ := EncodeFact(again); string(twice) != string(once) {
			t.Fatalf("%s, read and written: %s", once, twice)
		}
	})
}
