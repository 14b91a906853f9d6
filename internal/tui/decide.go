package tui

import (
	"fmt"
	"io"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/render"
	"sluice/internal/text"
)

// target is what a decision is about, as shown.
type target struct {
	root, run string
	gate      string
	round     int
	content   string // digest of the work
	step      string // of a note; "" = all steps
}

// gateFor returns the gate for a decision at a row; nil, with a message, if none can take it.
func (m *Model) gateFor(r *row, k string) *daemon.GateStatus {
	ok := func(g *daemon.GateStatus) bool { return takes(g, k) && r.run.Live() }
	if r.gate != nil {
		if ok(r.gate) {
			return r.gate
		}
		m.tell(standing(r.gate) + ": " + notTaken(k))
		return nil
	}
	var found []*daemon.GateStatus
	for s := range r.run.Steps {
		if r.step != nil && r.run.Steps[s].ID != r.step.ID {
			continue
		}
		for g := range r.run.Steps[s].Gates {
			if x := &r.run.Steps[s].Gates[g]; ok(x) && x.State != engine.Approved { // a late veto names it
				found = append(found, x)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		m.tell(notTaken(k))
	default:
		m.tell(fmt.Sprintf("%d gates are open: go to one of them", len(found)))
	}
	return nil
}

// takes reports whether the gate can take a key's decision now.
func takes(g *daemon.GateStatus, k string) bool {
	if k == "v" {
		return g.State == engine.OnWindow || g.State == engine.OnNotice || g.State == engine.Approved
	}
	return g.State == engine.OnHuman
}

func notTaken(k string) string {
	if k == "v" {
		return "there is no pass to veto here"
	}
	return "no gate asks you here"
}

// gateAt returns the current gate of a decision; nil if it is unknown by now.
func (m *Model) gateAt(t target) *daemon.GateStatus {
	if r := m.repo(t.root); r != nil && r.runs[t.run] != nil {
		return gateOf(r.runs[t.run], t.gate)
	}
	return nil
}

// standing describes the state of a gate, and who decided it.
func standing(g *daemon.GateStatus) string {
	switch {
	case g.State == "":
		return g.ID + " is not open"
	case g.State == engine.OnHuman:
		return g.ID + " asks a person"
	case (g.State == engine.Approved || g.State == engine.Refused || g.State == engine.ByRoute) && g.ByKind != "":
		return fmt.Sprintf("%s was decided already: %s by %s", g.ID, g.State, render.By(g.ByKind, g.By))
	}
	return g.ID + " is at " + g.State
}

// decide starts a decision about the shown round: a pass ends with a question, anything else with
// words.
func (m *Model) decide(k string, t target, back mode) tea.Cmd {
	if m.unserved(t.root) {
		return nil
	}
	if !m.begins() {
		return nil
	}
	if k == "p" {
		return m.askPass(t, "", back)
	}
	verb := engine.OutcomeFail
	switch k {
	case "v":
		verb = engine.OutcomeVeto
	case "d":
		verb = ""
	}
	m.input = input{verb: verb, what: t, lines: true, back: back}
	m.mode = writing
	return nil
}

// noteVerb marks words that are a note to the agents.
const noteVerb = "note"

// noteAt starts a note to the agents of a run, or of the step of the row.
func (m *Model) noteAt(r *row, back mode) {
	if !r.run.Live() {
		m.tell(r.run.ID + " has ended")
		return
	}
	if m.unserved(r.repo.root) {
		return
	}
	t := target{root: r.repo.root, run: r.run.ID}
	if r.step != nil {
		t.step = r.step.ID
	}
	m.input = input{verb: noteVerb, what: t, lines: true, back: back}
	m.mode = writing
}

// typed handles a key while words are typed.
func (m *Model) typed(k tea.KeyPressMsg) tea.Cmd {
	if m.mode == writing && m.guard.Rushed() {
		m.mode = m.input.back
		m.tell("several keys at once decide nothing")
		return nil
	}
	done, left := m.input.press(k)
	if m.mode == filtering {
		m.filter, m.stale = m.input.words(), true
		if left {
			m.filter = ""
		}
		if done || left {
			m.mode = browsing
		}
		return nil
	}
	why := m.guard.Ends(m.offer())
	switch {
	case left:
		m.mode = m.input.back
		m.tell("nothing was decided")
	case done && m.input.form != nil:
		return m.filledIn()
	case done && m.input.words() == "":
		m.tell("write a few words: the next attempt reads them (Esc goes back)")
	case done && why != "":
		m.input.insert("\n") // it may be part of a paste
		m.tell(why + ": press Enter again")
	case done:
		return m.decideWith(m.input.what, m.input.verb, m.input.words())
	}
	return nil
}

// decideWith returns the typed decision. Without a verb the first word is the outcome.
func (m *Model) decideWith(t target, verb, words string) tea.Cmd {
	if verb == noteVerb {
		m.mode = m.input.back
		return m.do(t.root, "note to "+t.run, engine.NoteGiven{Run: t.run, Step: t.step, Text: strings.TrimSpace(words)})
	}
	g := m.gateAt(t)
	if g != nil && g.Round == t.round && g.Reviewed != t.content {
		m.mode = m.input.back
		m.tell("nothing was decided: the work has changed meanwhile")
		return nil
	}
	if verb == "" {
		verb, words, _ = strings.Cut(words, " ")
		if g != nil && g.Round == t.round && len(g.Outcomes) > 0 && !slices.Contains(g.Outcomes, verb) {
			m.tell("the gate has no outcome " + text.Line(verb) + ": it takes " + strings.Join(g.Outcomes, ", "))
			return nil
		}
	}
	m.mode = m.input.back
	if verb == engine.OutcomePass {
		return m.askPass(t, strings.TrimSpace(words), m.mode)
	}
	return m.say(t, verb, strings.TrimSpace(words), nil)
}

// say sends a decision; a gate that requires it gets a signed one.
func (m *Model) say(t target, outcome, text string, answer []byte) tea.Cmd {
	ev := engine.Answered{Gate: t.gate, Run: t.run, Round: t.round, Outcome: outcome, Text: text, Answer: answer}
	what := outcome + " of " + t.gate
	g := m.gateAt(t)
	if r := m.repo(t.root); r == nil || !r.served || g == nil || g.Trust != engine.TrustSigned || g.Round != t.round {
		return m.do(t.root, what, ev)
	}
	s := &signing{sign: func() (string, error) { return m.host.Sign(m.ctx, t.root, *g, ev) }}
	return tea.Exec(s, func(err error) tea.Msg {
		ev.Proof = s.proof
		return signed{root: t.root, what: what, ev: ev, err: err}
	})
}

// signing signs an answer while it has the terminal.
type signing struct {
	sign  func() (string, error)
	proof string
}

func (s *signing) Run() (err error) {
	s.proof, err = s.sign()
	return err
}

// SetStdin and the others do nothing: the host has the terminal.
func (s *signing) SetStdin(io.Reader)  {}
func (s *signing) SetStdout(io.Writer) {}
func (s *signing) SetStderr(io.Writer) {}

// signed is a signed answer, or why it was not signed.
type signed struct {
	root, what string
	ev         engine.Answered
	err        error
}

func (m *Model) seeSigned(s signed) tea.Cmd {
	m.hidden()
	if s.err != nil {
		m.tell(s.what + " was not signed: " + s.err.Error())
		return nil
	}
	return m.do(s.root, s.what, s.ev)
}

// paste inserts text: it is words, never keys.
func (m *Model) paste(s string) {
	if m.mode != writing && m.mode != filtering {
		return
	}
	m.input.insert(s)
	if m.mode == filtering {
		m.filter, m.stale = m.input.words(), true
	}
}
