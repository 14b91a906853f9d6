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

// place is the target in any round.
func (t target) place() target { return target{root: t.root, run: t.run, gate: t.gate, step: t.step} }

// gateFor returns the gate for a decision at a row; nil, with a message, if none can take it.
func (m *deciding) gateFor(r *row, k string) *daemon.GateStatus {
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
	veto := g.State == engine.OnWindow || g.State == engine.OnNotice || g.State == engine.Approved
	switch k {
	case "v":
		return veto
	case "c":
		return veto || g.State == engine.OnHuman
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
func (m *known) gateAt(t target) *daemon.GateStatus {
	if r := m.run(t.root, t.run); r != nil {
		_, g := r.Gate(t.gate)
		return g
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
func (m *deciding) decide(k string, t target, back mode) tea.Cmd {
	if m.unserved(t.root) {
		return nil
	}
	if g := m.gateAt(t); k == "c" && g != nil {
		return t.comment(m, g)
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
	m.write(input{verb: verb, what: t, lines: true, back: back})
	return nil
}

// write has the person type words. Those that did not count there before are there again.
func (m *deciding) write(in input) {
	if last := m.unsent; in.form == nil && in.verb == last.verb && in.what.place() == last.what.place() {
		in.text = slices.Clone(last.text)
		in.at = len(in.text)
	}
	m.input, m.mode = in, writing
}

// refused leaves what was typed for another time.
func (m *deciding) refused(why string) {
	m.mode = m.input.back
	if m.input.form == nil && m.input.words() != "" {
		why += "; your words are kept"
	}
	m.tell(why)
}

// sent returns what to do once words have counted.
func (m *deciding) sent(t target) func() {
	return func() {
		if m.unsent.what.place() == t.place() {
			m.unsent = input{}
		}
	}
}

// noteVerb marks words that are a note to the agents.
const noteVerb = "note"

// noteAt starts a note to the agents of a run, or of the step of the row.
func (m *deciding) noteAt(r *row, back mode) {
	if !m.steers(r) {
		return
	}
	t := target{root: r.repo.root, run: r.run.ID}
	if r.step != nil {
		t.step = r.step.ID
	}
	m.write(input{verb: noteVerb, what: t, lines: true, back: back})
}

// typed handles a key while words are typed.
func (m *deciding) typed(k tea.KeyPressMsg) tea.Cmd {
	if m.mode == writing && m.input.form == nil {
		m.unsent = m.input
	}
	if m.mode == writing && m.guard.Rushed() {
		m.refused("several keys at once decide nothing")
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
		m.refused("nothing was decided")
	case done && m.input.form != nil:
		return m.filledIn()
	case done && m.input.words() == "":
		m.tell("write a few words: the next attempt reads them (Esc goes back)")
	case done && why != "":
		m.input.insert("\n") // it may be part of a paste
		m.tell(why + ": press Enter again")
	case done && m.unserved(m.input.what.root): // the words stay until somebody serves it again
	case done:
		return m.decideWith(m.input.what, m.input.verb, m.input.words())
	}
	return nil
}

// decideWith returns the typed decision. Without a verb the first word is the outcome.
func (m *deciding) decideWith(t target, verb, words string) tea.Cmd {
	if verb == noteVerb {
		m.mode = m.input.back
		return m.do(t.root, "note to "+t.run, engine.NoteGiven{Run: t.run, Step: t.step, Text: strings.TrimSpace(words)},
			m.sent(t))
	}
	g := m.gateAt(t)
	if g != nil && g.Round == t.round && g.Reviewed != t.content {
		m.refused("nothing was decided: the work has changed meanwhile")
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

// say sends a decision.
func (m *deciding) say(t target, outcome, text string, answer []byte) tea.Cmd {
	return m.give(t, engine.Answered{Gate: t.gate, Run: t.run, Round: t.round, Outcome: outcome, Text: text,
		Answer: answer}, m.sent(t))
}

// give sends an answer, signed if its gate requires that, and calls counted once it has counted.
func (m *deciding) give(t target, ev engine.Answered, counted func()) tea.Cmd {
	what := ev.Outcome + " of " + t.gate
	g := m.gateAt(t)
	if r := m.repo(t.root); r == nil || !r.served || g == nil || g.Trust != engine.TrustSigned || g.Round != t.round {
		return m.do(t.root, what, ev, counted)
	}
	s := &lending{run: func() (err error) {
		ev.Proof, err = m.host.Sign(m.ctx, t.root, *g, ev)
		return err
	}}
	return tea.Exec(s, func(err error) tea.Msg {
		return signed{t.root, what, ev, counted, err}
	})
}

// comment has the person write comments on the changes of the shown round, and sends them with its
// fail, or with the veto of a pass.
func (t target) comment(m *deciding, g *daemon.GateStatus) tea.Cmd {
	if !m.begins() {
		return nil
	}
	outcome := engine.OutcomeFail
	if g.State != engine.OnHuman {
		outcome = engine.OutcomeVeto
	}
	var c Comments
	lent := &lending{run: func() (err error) {
		c, err = m.host.Comment(m.ctx, t.root, t.run, t.gate, outcome)
		return err
	}}
	return tea.Exec(lent, func(err error) tea.Msg { return commented{t, outcome, c, err} })
}

// commented are comments that were written, or why there are none.
type commented struct {
	on      target
	outcome string
	wrote   Comments
	err     error
}

// send sends the comments, if they are about the round that was on the screen.
func (c commented) send(m *deciding) tea.Cmd {
	m.hidden()
	switch {
	case c.err != nil:
		m.tell(c.err.Error())
		return nil
	case c.wrote.Round != c.on.round || c.wrote.Content != c.on.content:
		m.tell("nothing was decided: the work has changed meanwhile; c opens what you wrote again")
		return nil
	}
	ev := engine.Answered{Gate: c.on.gate, Run: c.on.run, Round: c.on.round, Outcome: c.outcome, Text: c.wrote.Text,
		Findings: c.wrote.Findings}
	return m.give(c.on, ev, c.wrote.Given)
}

// lending runs something that has the terminal meanwhile.
type lending struct{ run func() error }

func (l *lending) Run() error { return l.run() }

// SetStdin and the others do nothing: the host has the terminal.
func (l *lending) SetStdin(io.Reader)  {}
func (l *lending) SetStdout(io.Writer) {}
func (l *lending) SetStderr(io.Writer) {}

// signed is a signed answer, or why it was not signed.
type signed struct {
	root, what string
	ev         engine.Answered
	counted    func()
	err        error
}

// send sends the answer, if it was signed.
func (s signed) send(m *deciding) tea.Cmd {
	m.hidden()
	if s.err != nil {
		m.tell(s.what + " was not signed: " + s.err.Error())
		return nil
	}
	return m.do(s.root, s.what, s.ev, s.counted)
}

// paste inserts text: it is words, never keys.
func (m *deciding) paste(s string) {
	if m.mode != writing && m.mode != filtering {
		return
	}
	m.input.insert(s)
	if m.mode == filtering {
		m.filter, m.stale = m.input.words(), true
	}
}
