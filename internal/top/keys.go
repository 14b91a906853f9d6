package top

import (
	"fmt"
	"io"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/words"
)

// target is what a decision is about, as it was shown.
type target struct {
	root, run string
	gate      string
	round     int
}

// question is one of yes or no.
type question struct {
	text string
	root string
	what string
	ev   engine.Event
	back mode
}

// press takes a key.
func (m *Model) press(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c":
		return m.quit(true)
	case "ctrl+z":
		return tea.Suspend
	}
	m.said = ""
	switch m.mode {
	case writing, filtering:
		return m.typed(k)
	case asking:
		return m.answer(k)
	case reading:
		return m.read(k)
	}
	m.chosen = true
	if m.move(k.String()) {
		return nil
	}
	return m.command(k.String())
}

// move takes the keys that move the cursor.
func (m *Model) move(k string) bool {
	switch k {
	case "up", "k":
		m.step(-1)
	case "down", "j":
		m.step(1)
	case "pgup", "ctrl+b":
		m.step(-max(m.room()-1, 1))
	case "pgdown", "ctrl+f":
		m.step(max(m.room()-1, 1))
	case "home", "g":
		m.at = 0
		m.step(0)
	case "end", "G":
		m.at = max(len(m.rows)-1, 0)
		m.step(0)
	case "tab":
		m.nextWait()
	default:
		return false
	}
	return true
}

// nextWait goes to the next thing that waits for a person, from the last to the first.
func (m *Model) nextWait() {
	for i := 1; i <= len(m.rows); i++ {
		if at := (m.at + i) % len(m.rows); m.rows[at].kind == waitRow {
			m.at = at
			return
		}
	}
	m.tell("nothing waits for you")
}

// current is the row under the cursor; nil where there is none.
func (m *Model) current() *row {
	if m.at >= len(m.rows) || !m.rows[m.at].selectable() {
		return nil
	}
	return &m.rows[m.at]
}

// command takes a key at the list.
func (m *Model) command(k string) tea.Cmd {
	switch k {
	case "q":
		return m.quit(false)
	case "?":
		m.open(helpPage())
		return nil
	case "/":
		m.input = input{verb: "filter", text: []rune(m.filter), at: len([]rune(m.filter)), back: browsing}
		m.mode = filtering
		return nil
	case "esc":
		m.filter, m.stale = "", true
		return nil
	}
	r := m.current()
	if r == nil {
		return nil
	}
	switch k {
	case "enter":
		return m.show(r)
	case "space", "right", "l", "left", "h":
		m.fold(r, k)
	case "t":
		return m.tail(r)
	case "p", "f", "v", "d":
		g := m.gateFor(r, k)
		if g == nil {
			return nil
		}
		if !m.steady() {
			m.slipped = m.now().Add(-steadyFor) // once is enough
			m.tell("this row has just changed: look, then press " + k + " again")
			return nil
		}
		return m.decide(k, target{r.repo.root, r.run.ID, g.ID, g.Round}, browsing)
	case "P":
		return m.pauseOrResume(r)
	case "a":
		m.abort(r, browsing)
	}
	return nil
}

// fold unfolds a run, or folds it.
func (m *Model) fold(r *row, k string) {
	key := r.repo.root + "\x00" + r.run.ID
	open, said := m.folds[key]
	if !said {
		for _, x := range m.rows {
			open = open || x.kind == stepRow && x.run == r.run
		}
	}
	to := !open
	if k == "right" || k == "l" {
		to = true
	} else if k == "left" || k == "h" {
		to = false
	}
	m.folds[key], m.stale, m.reveal = to, true, to
	if !to && r.kind != waitRow { // the cursor goes to what is left of it
		for i, x := range m.rows {
			if x.kind == runRow && x.run == r.run {
				m.at = i
			}
		}
	}
}

// gateFor is the gate that a decision at a row is about; nil, and a word why, where there is none that can take it.
func (m *Model) gateFor(r *row, k string) *daemon.GateStatus {
	ok := func(g *daemon.GateStatus) bool { return takes(g, k) && live(r.run) }
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
			if x := &r.run.Steps[s].Gates[g]; ok(x) && x.State != engine.Approved { // a late veto names its gate
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
		m.tell(fmt.Sprintf("%d gates could be meant: go to one of them", len(found)))
	}
	return nil
}

// takes says whether the gate, as it stands, can take what a key says.
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

// standing says how a gate stands, and who decided it.
func standing(g *daemon.GateStatus) string {
	switch {
	case g.State == "":
		return g.ID + " is not open"
	case g.State == engine.OnHuman:
		return g.ID + " asks a person"
	case (g.State == engine.Approved || g.State == engine.Refused) && g.ByKind != "":
		return fmt.Sprintf("%s was decided already: %s by %s", g.ID, g.State, words.By(g.ByKind, g.By))
	}
	return g.ID + " is at " + g.State
}

// decide gives a person's word for the round that was shown: a pass at once, a fail and a veto when the words are typed.
func (m *Model) decide(k string, t target, back mode) tea.Cmd {
	if k == "p" {
		return m.say(t, engine.OutcomePass, "")
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

// typed takes a key while words are typed.
func (m *Model) typed(k tea.KeyPressMsg) tea.Cmd {
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
	switch {
	case left:
		m.mode = m.input.back
		m.tell("nothing was decided")
	case done && m.input.words() == "":
		m.tell("say what is wrong: the next attempt goes by it (Esc goes back)")
	case done:
		return m.decideWith(m.input.what, m.input.verb, m.input.words())
	}
	return nil
}

// decideWith gives the decision whose words were typed. Without a verb the first of them is the outcome.
func (m *Model) decideWith(t target, verb, text string) tea.Cmd {
	if verb == "" {
		verb, text, _ = strings.Cut(text, " ")
		if r := m.repo(t.root); r != nil && r.runs[t.run] != nil {
			g := gateOf(r.runs[t.run], t.gate)
			if g != nil && g.Round == t.round && len(g.Outcomes) > 0 && !slices.Contains(g.Outcomes, verb) {
				m.tell("the gate has no outcome " + words.Clean(verb) + ": it takes " + strings.Join(g.Outcomes, ", "))
				return nil
			}
		}
	}
	m.mode = m.input.back
	return m.say(t, verb, strings.TrimSpace(text))
}

// say gives an answer: at a gate that wants it signed, once it is.
func (m *Model) say(t target, outcome, text string) tea.Cmd {
	ev := engine.Answered{Gate: t.gate, Run: t.run, Round: t.round, Outcome: outcome, Text: text}
	what := outcome + " of " + t.gate
	r := m.repo(t.root)
	if r == nil || r.runs[t.run] == nil || !r.served {
		return m.do(t.root, what, ev)
	}
	g := gateOf(r.runs[t.run], t.gate)
	if g == nil || g.Trust != engine.TrustSigned || g.Round != t.round {
		return m.do(t.root, what, ev)
	}
	s := &signing{sign: func() (string, error) { return m.host.Sign(m.ctx, t.root, *g, ev) }}
	return tea.Exec(s, func(err error) tea.Msg {
		ev.Proof = s.proof
		return signed{root: t.root, what: what, ev: ev, err: err}
	})
}

// signing has an answer signed while the terminal is the person's.
type signing struct {
	sign  func() (string, error)
	proof string
}

// Run signs.
func (s *signing) Run() (err error) {
	s.proof, err = s.sign()
	return err
}

// SetStdin and the others take what the host has anyhow.
func (s *signing) SetStdin(io.Reader)  {}
func (s *signing) SetStdout(io.Writer) {}
func (s *signing) SetStderr(io.Writer) {}

// signed is an answer that was signed, or why it was not.
type signed struct {
	root, what string
	ev         engine.Answered
	err        error
}

// seeSigned sends what was signed.
func (m *Model) seeSigned(s signed) tea.Cmd {
	if s.err != nil {
		m.tell(s.what + " was not signed: " + s.err.Error())
		return nil
	}
	return m.do(s.root, s.what, s.ev)
}

// paste takes what is pasted: it is words, never keys.
func (m *Model) paste(s string) {
	if m.mode != writing && m.mode != filtering {
		return
	}
	m.input.insert(s)
	if m.mode == filtering {
		m.filter, m.stale = m.input.words(), true
	}
}

// pauseOrResume turns a run's pause.
func (m *Model) pauseOrResume(r *row) tea.Cmd {
	switch {
	case !live(r.run):
		m.tell(r.run.ID + " has ended")
		return nil
	case r.run.Paused != "":
		return m.do(r.repo.root, "resume of "+r.run.ID, engine.ResumeRequested{Run: r.run.ID})
	}
	return m.do(r.repo.root, "pause of "+r.run.ID, engine.PauseRequested{Run: r.run.ID})
}

// abort asks whether a run is to be ended.
func (m *Model) abort(r *row, back mode) {
	if !live(r.run) {
		m.tell(r.run.ID + " has ended")
		return
	}
	m.ask = question{text: "End " + r.run.ID + " for good?", root: r.repo.root, what: "abort of " + r.run.ID, ev: engine.AbortRequested{Run: r.run.ID}, back: back}
	m.mode = asking
}

// answer takes the key that answers a question: only y is a yes.
func (m *Model) answer(k tea.KeyPressMsg) tea.Cmd {
	m.mode = m.ask.back
	if k.String() == "y" || k.String() == "Y" {
		return m.do(m.ask.root, m.ask.what, m.ask.ev)
	}
	m.tell("nothing was done")
	return nil
}

// do has an event taken in, and tells what came of it. It goes on when the screen is left.
func (m *Model) do(root, what string, ev engine.Event) tea.Cmd {
	if r := m.repo(root); r != nil && !r.served && r.known {
		m.tell("nobody serves " + r.name + " now, so nothing was done: `sluice daemon`, or `sluice run` there, goes on with it")
		return nil
	}
	m.pending++
	m.tell(what + " …")
	return func() tea.Msg {
		done, err := m.host.Do(m.ctx, root, ev)
		return decided{what, done, err}
	}
}

// quit leaves the screen, once what was decided has arrived; at once when asked again or with Ctrl-C.
func (m *Model) quit(now bool) tea.Cmd {
	if m.pending == 0 || now || m.leaving {
		return tea.Quit
	}
	m.leaving = true
	m.tell("a decision is on its way: leaving as soon as it is taken in")
	return nil
}

// tell leaves a line at the bottom.
func (m *Model) tell(s string) { m.said, m.saidAt = s, m.now() }
