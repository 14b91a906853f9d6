package tui

import (
	tea "charm.land/bubbletea/v2"
	"slices"

	"sluice/engine"
)

func (m *Model) press(k tea.KeyPressMsg) tea.Cmd {
	m.guard.Read(k.String(), true, m.now())
	switch k.String() {
	case "ctrl+c":
		if m.mode == writing && len(m.input.text) > 0 { // as in a shell, it only leaves the line
			return m.typed(tea.KeyPressMsg{Code: tea.KeyEscape})
		}
		return m.quit(true)
	case "ctrl+z":
		if m.one != nil {
			return nil // the process may serve the repo
		}
		return tea.Suspend
	}
	m.said = ""
	switch m.mode {
	case writing, filtering:
		return m.typed(k)
	case asking:
		return m.answer(k.String())
	case reading:
		return m.read(k)
	}
	m.chosen = true
	if m.move(k.String()) {
		return nil
	}
	return m.command(k.String())
}

func (m *listing) move(k string) bool {
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
func (m *listing) nextWait() {
	for i := 1; i <= len(m.rows); i++ {
		if at := (m.at + i) % len(m.rows); m.rows[at].kind == waitRow {
			m.at = at
			return
		}
	}
	m.tell("nothing waits for you")
}

func (m *known) current() *row {
	if m.at >= len(m.rows) || !m.rows[m.at].selectable() {
		return nil
	}
	return &m.rows[m.at]
}

func (m *Model) command(k string) tea.Cmd {
	switch k {
	case "q", "ctrl+d":
		if m.one != nil && m.guard.Several() { // a paste that the terminal sends as keys pauses no run
			return nil
		}
		return m.quit(false)
	case "?":
		m.open(helpPage(m.one))
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
	case "enter", "s":
		return m.show(r)
	case "space", "right", "l", "left", "h":
		m.fold(r, k)
	case "t":
		return m.tail(r)
	case "w":
		return m.pager(r)
	case "p", "f", "v", "d", "c":
		g := m.gateFor(r, k)
		if g == nil {
			return nil
		}
		return m.decide(k, target{root: r.repo.root, run: r.run.ID, gate: g.ID, round: g.Round, content: g.Reviewed},
			browsing)
	case "n":
		m.noteAt(r, browsing)
	case "P":
		return m.pauseOrResume(r)
	case "a":
		m.abort(r, browsing)
	}
	return nil
}

func (m *listing) fold(r *row, k string) {
	key := runKey{r.repo.root, r.run.ID}
	open, said := m.folds[key]
	if !said {
		open = slices.ContainsFunc(m.rows, func(x row) bool { return x.kind == stepRow && x.run == r.run })
	}
	to := k == "right" || k == "l" || k == "space" && !open
	m.folds[key], m.stale, m.reveal = to, true, to
	if !to && r.kind != waitRow { // the cursor goes to the run's own row
		if i := slices.IndexFunc(m.rows, func(x row) bool { return x.kind == runRow && x.run == r.run }); i >= 0 {
			m.at = i
		}
	}
}

// steers reports whether a person can steer the run of a row, and tells why not.
func (m *deciding) steers(r *row) bool {
	if !r.run.Live() {
		m.tell(r.run.ID + " has ended")
		return false
	}
	return !m.unserved(r.repo.root)
}

// pauseOrResume pauses a live run, or resumes it.
func (m *deciding) pauseOrResume(r *row) tea.Cmd {
	if !m.steers(r) || !m.begins() {
		return nil
	}
	if r.run.Paused != "" {
		return m.do(r.repo.root, "resume of "+r.run.ID, engine.ResumeRequested{Run: r.run.ID}, nil)
	}
	return m.do(r.repo.root, "pause of "+r.run.ID, engine.PauseRequested{Run: r.run.ID}, nil)
}

// begins reports whether the last key may begin something that matters, and tells why not.
func (m *deciding) begins() bool {
	why := m.guard.Begin(m.offer())
	if why != "" {
		m.tell(why)
	}
	return why == ""
}

// do sends an event, and shows the result. It continues when the screen is left.
func (m *deciding) do(root, what string, ev engine.Event, counted func()) tea.Cmd {
	if m.unserved(root) {
		return nil
	}
	m.pending++
	m.tell(what + " …")
	return func() tea.Msg {
		done, err := m.host.Do(m.ctx, root, ev)
		_, answer := ev.(engine.Answered)
		return decided{what, done, err, answer, counted}
	}
}

// unserved reports whether nobody serves a repo, so that a person can only look.
func (m *known) unserved(root string) bool {
	r := m.repo(root)
	if r == nil || r.decides() {
		return false
	}
	m.tell("nobody serves " + r.name + " now, so nothing was done: run `sluice daemon`, or `sluice run` there")
	return true
}

// quit leaves the screen once sent decisions have arrived; at once on Ctrl-C or if asked again.
func (m *paging) quit(now bool) tea.Cmd {
	m.one.leave(now)
	if m.pending == 0 || now || m.leaving {
		return tea.Quit
	}
	m.leaving = true
	m.tell("a decision is on its way: leaving when it has arrived")
	return nil
}

// tell shows a line at the bottom.
func (m *known) tell(s string) { m.said, m.saidAt = s, m.now() }
