package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/form"
	"sluice/internal/press"
)

type question struct {
	text  string
	yes   string // the key; any other is a no
	pass  *target
	words string // of the pass
	gives []byte // its answer
	root  string // of a question that is no pass
	what  string
	ev    engine.Event
	back  mode
}

// abort asks whether to end a run.
func (m *deciding) abort(r *row, back mode) {
	if !m.steers(r) {
		return
	}
	m.ask = question{text: "End " + r.run.ID + " for good?", yes: "y", back: back, root: r.repo.root,
		what: "abort of " + r.run.ID, ev: engine.AbortRequested{Run: r.run.ID}}
	m.mode = asking
}

// askPass asks for the answer of a pass if the gate requires one, and then for confirmation.
func (m *deciding) askPass(t target, text string, back mode) tea.Cmd {
	g := m.gateAt(t)
	if g == nil || g.Round != t.round || !g.AnswerRequired {
		return m.confirmPass(t, text, nil, back)
	}
	f, err := form.New(g.AnswerSchema)
	if err != nil {
		m.tell("the schema of the answer cannot be read: " + err.Error())
		return nil
	}
	m.write(input{verb: engine.OutcomePass, what: t, back: back, form: f, said: text})
	return nil
}

// filledIn takes a line of the answer; after the last one it asks for confirmation.
func (m *deciding) filledIn() tea.Cmd {
	in := &m.input
	if m.guard.Several() { // a paste; the question at the end has its own second
		m.tell("several keys at once enter nothing: press Enter again")
		return nil
	}
	if why := in.form.Take(string(in.text)); why != "" {
		m.tell(why)
		return nil
	}
	in.text, in.at = nil, 0
	if !in.form.Done() {
		m.said = ""
		return nil
	}
	m.mode = in.back
	answer, err := in.form.Answer()
	if err != nil {
		m.tell("nothing was decided: " + err.Error())
		return nil
	}
	return m.confirmPass(in.what, in.said, answer, in.back)
}

// confirmPass asks for confirmation, and shows what is passed.
func (m *deciding) confirmPass(t target, text string, answer []byte, back mode) tea.Cmd {
	p := press.Pass{Run: t.run, Gate: t.gate, Round: t.round, Content: t.content, Answer: form.Shown(answer)}
	if r := m.run(t.root, t.run); r != nil {
		if s, g := r.Gate(t.gate); g != nil {
			p.GateName, p.Step, p.StepName, p.Untaken = g.Name, s.ID, s.Name, s.Untaken
		}
	}
	m.ask = question{text: p.Question(), yes: "enter", pass: &t, words: text, gives: answer, back: back}
	m.mode = asking
	return m.wake(press.Shown)
}

func (m *deciding) answer(k string) tea.Cmd {
	why, ask, no := m.guard.Ends(m.offer()), m.ask, "nothing was done"
	m.mode = ask.back
	if ask.pass != nil {
		no = "nothing was decided"
	}
	if !strings.EqualFold(k, ask.yes) {
		m.tell(no)
		return nil
	}
	if t := ask.pass; t != nil && why == "" {
		if g := m.gateAt(*t); g != nil && g.Round == t.round && g.Reviewed != t.content {
			why = "the work has changed meanwhile"
		}
	}
	switch {
	case why != "":
		m.tell(no + ": " + why)
	case ask.pass != nil:
		return m.say(*ask.pass, engine.OutcomePass, ask.words, ask.gives)
	default:
		return m.do(ask.root, ask.what, ask.ev, nil)
	}
	return nil
}

// questionLines returns the question and its keys; false if they do not fit.
func (m *drawing) questionLines() ([]string, bool) {
	if m.ask.pass == nil {
		l := line{{"1;33", m.ask.text + " "}, {console.Bold, "y"}, {console.Dim, " yes, any other key: no"}}
		return []string{m.full(l)}, true
	}
	wrap := func(style, s string) (out []string) {
		for l := range strings.SplitSeq(ansi.Wrap(s, max(m.width, 1), ""), "\n") {
			out = append(out, m.paint(style, l))
		}
		return out
	}
	out := wrap("1;33", m.ask.text)
	if m.guard.Ripe(m.offered(), m.now()) {
		out = append(out, wrap(console.Bold, press.Answers)...)
	} else {
		out = append(out, wrap(console.Dim, press.Wait)...)
	}
	if len(out)+len(m.head())+leastRoom > m.height {
		return wrap(console.Yellow, press.TooSmall), false
	}
	return out, true
}

// offer identifies everything that keys can decide on the current screen; "" = nothing.
func (m *deciding) offer() string {
	if m.mode == asking {
		if _, fits := m.questionLines(); !fits {
			return ""
		}
	}
	return m.offered()
}

func (m *drawing) offered() string {
	switch p := m.page; m.mode {
	case asking:
		return fmt.Sprint("ask", m.ask.text, m.ask.pass)
	case writing:
		if m.input.form != nil {
			return fmt.Sprint(m.input.form.At(), m.input.what)
		}
		return fmt.Sprint("words", m.input.verb, m.input.what)
	case reading:
		return fmt.Sprint("page", p.n, p.loads, p.gate, p.round, p.content, m.paused(p.root, p.run))
	}
	r := m.current()
	if r == nil {
		return ""
	}
	out := fmt.Sprint(r.key(), r.run.Paused)
	for _, s := range r.run.Steps {
		for _, g := range s.Gates {
			if r.step == nil || r.step.ID == s.ID && (r.gate == nil || r.gate.ID == g.ID) {
				out += fmt.Sprint(" ", g.ID, g.Round, g.State, g.Reviewed)
			}
		}
	}
	return out
}

// paused returns why a run is paused; "" = it is not, or is not known.
func (m *known) paused(root, run string) string {
	if r := m.run(root, run); r != nil {
		return r.Paused
	}
	return ""
}

// hidden makes everything on the screen count as new: the terminal was used for something else.
func (m *known) hidden() { m.guard.Draw("", m.now()) }
