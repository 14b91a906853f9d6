package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/text"
)

// Limits of the screen's parts, in lines.
const (
	inputMost = 6 // of a typed text
	leastRoom = 1 // of the list or the page
)

func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	return v
}

func (m *drawing) screen() []string {
	head, foot := m.head(), m.foot()
	room := max(m.height-len(head)-len(foot), leastRoom)
	width := m.one.bodyWidth(m)
	var body []string
	if m.mode == reading || m.page != nil && m.backTo() == reading {
		body = m.pageLines(room)
	} else {
		for i, r := range m.visible() {
			at := m.first+i == m.at && r.selectable()
			body = append(body, m.draw(m.rowLine(&r, at), width, at))
		}
		if len(m.rows) == 0 {
			nothing := "the list of repos is empty: run `sluice watch add` in a repo"
			if !m.loaded {
				nothing = "…"
			}
			body = append(body, m.full(line{{console.Dim, nothing}}))
		}
		if rows := m.one.logRows(len(m.rows), room); rows > 0 {
			body = append(body, m.one.log(m, rows, width)...)
		}
	}
	for len(body) < room {
		body = append(body, "")
	}
	body = body[:room]
	if m.backTo() != reading {
		body = m.one.beside(m, body)
	}
	out := append(append(head, body...), foot...)
	return out[:min(len(out), max(m.height, 1))]
}

// backTo returns where a text or a question leads back to.
func (m *drawing) backTo() mode {
	switch m.mode {
	case writing, filtering:
		return m.input.back
	case asking:
		return m.ask.back
	}
	return m.mode
}

// room is how many rows the list or the page has.
func (m *drawing) room() int {
	room := max(m.height-len(m.head())-len(m.foot()), leastRoom)
	if m.backTo() == reading {
		return room
	}
	return max(room-m.one.logRows(len(m.rows), room), leastRoom)
}

// head returns the lines at the top: totals, and what is wrong.
func (m *drawing) head() []string {
	if m.one != nil {
		return m.one.head(m)
	}
	waits, lives, runs := 0, 0, 0
	var today daemon.Today
	for _, r := range m.repos {
		for run := range r.all() {
			runs++
			if !run.Live() {
				continue
			}
			lives++
			for _, w := range run.Waits {
				if w.Asks() {
					waits++
				}
			}
		}
		today = later(today, r.status.Today)
	}
	l := line{{console.Bold, "sluice"}, {console.Plain, " "}}
	if waits > 0 {
		l = append(l, span{"1;33", fmt.Sprintf("? %d for you", waits)}, span{console.Dim, " · "})
	}
	l = append(l, span{console.Plain, fmt.Sprintf("%d live of %s", lives, text.Plural(runs, "run"))})
	if len(m.repos) != 1 {
		l = append(l, span{console.Dim, " · " + text.Plural(len(m.repos), "repo")})
	}
	if s := render.SpentInAllShort(today.All, today.Budget); s != "" {
		l = append(l, span{console.Dim, " · today " + s})
	}
	if m.filter != "" {
		l = append(l, span{console.Bold, " · /" + text.Line(m.filter)})
	}
	out := []string{m.full(l)}
	for _, s := range m.troubles() {
		if len(out) <= max(m.height/6, 1) {
			out = append(out, m.full(line{{console.Yellow, "! " + text.Line(s)}}))
		}
	}
	return out
}

// later returns the newer of two counts of a day, which only grow.
func later(a, b daemon.Today) daemon.Today {
	if b.Day > a.Day || b.Day == a.Day && (b.All.Tokens > a.All.Tokens || b.All.CostUSD > a.All.CostUSD) {
		return b
	}
	return a
}

// troubles returns what is wrong overall, the worst first.
func (m *known) troubles() []string {
	var out []string
	for _, r := range m.repos {
		switch {
		case r.lost != "" && r.known:
			out = append(out, fmt.Sprintf("%s: no answer for %s, trying again: %s", r.name,
				render.Ago(m.now().Sub(r.lostAt)), r.lost))
		case r.lost != "":
			out = append(out, r.name+": "+r.lost)
		case r.known && !r.served:
			out = append(out, r.name+": nobody serves it, so you can only look: run `sluice daemon`, or `sluice run` there")
		}
		if stall := render.Stall(r.status); stall != "" {
			out = append(out, r.name+": "+stall)
		}
	}
	if m.note != "" {
		out = append(out, m.note)
	}
	for _, r := range m.repos {
		for _, h := range r.status.Health {
			out = append(out, r.name+": "+h)
		}
	}
	return out
}

// pageLines returns the visible part of the page.
func (m *drawing) pageLines(room int) []string {
	p := m.page
	p.fit(m.width)
	if p.follow {
		p.top = len(p.wrapped) - room
	}
	p.top = max(min(p.top, len(p.wrapped)-room), 0)
	if len(p.wrapped) == 0 {
		text := "…"
		if p.tails {
			text = "no output yet"
		}
		return []string{m.paint(console.Dim, console.ClipMiddle(text, m.width))}
	}
	lines := slices.Clone(p.wrapped[p.top:min(p.top+room, len(p.wrapped))])
	for i, l := range lines {
		lines[i] = m.legible(l)
	}
	return lines
}

// foot returns the lines at the bottom: the result of the last key, and what to type.
func (m *drawing) foot() []string {
	var out []string
	if m.said != "" && m.now().Sub(m.saidAt) < saidFor {
		text := strings.Split(ansi.Wrap(text.Line(m.said), max(m.width, 1), ""), "\n")
		for _, s := range text[:min(len(text), max(m.height/5, 1))] {
			out = append(out, m.paint(console.Bold, s))
		}
	}
	switch m.mode {
	case writing:
		return append(out, m.inputLines()...)
	case filtering:
		return append(out, m.full(line{{console.Bold, "/"}, {console.Plain, m.input.shown()},
			{console.Dim, "  Enter keeps it, Esc shows all"}}))
	case asking:
		lines, _ := m.questionLines()
		return append(out, lines...)
	case reading:
		return append(out, m.pageFoot()...)
	}
	return append(out, m.keyLines(m.keysFor(m.current())...)...)
}

// inputLines returns the typed words, at least their end.
func (m *drawing) inputLines() []string {
	what := m.input.what
	where := render.Round(what.gate, what.round) + " of " + console.ClipMiddle(text.Line(what.run), idMost)
	if f := m.input.form; f != nil {
		out := Wrap(m.paint("1;33", where+" asks: "+f.Question()), max(m.width, 1))
		return append(out[:min(len(out), max(m.height/3, 1))],
			m.full(line{{console.Dim, "Enter takes it, or the value in brackets · Esc goes back: nothing is decided"}}),
			m.full(line{{console.Bold, "▸ "}, {console.Plain, m.input.shown()}}))
	}
	prompt := fmt.Sprintf("%s %s: what is wrong? ", m.input.verb, where)
	switch m.input.verb {
	case noteVerb:
		prompt = "note to the agents of " + text.Line(sep(what.run, what.step)) + ": "
	case "":
		prompt = fmt.Sprintf("decide %s: %s, then why? ", where, outcomes(m.gateAt(what)))
	}
	out := []string{m.full(line{{"1;33", prompt}, {console.Dim, "Enter sends · Esc: back · Alt-Enter: new line"}})}
	var text []string
	at := 0
	for l := range strings.SplitSeq(m.input.shown(), "\n") {
		for _, s := range Wrap(l, max(m.width-2, 1)) {
			if strings.Contains(s, "▏") {
				at = len(text)
			}
			text = append(text, "  "+s)
		}
	}
	most := max(min(inputMost, m.height-3), 1)
	from := max(min(at-most+1, len(text)-most), 0)
	return append(out, text[from:min(from+most, len(text))]...)
}

// outcomes returns the possible outcomes of a gate.
func outcomes(g *daemon.GateStatus) string {
	if g == nil {
		return "an outcome"
	}
	return strings.Join(g.Outcomes, " or ")
}

// plainOutcomes is how many outcomes every gate has: pass, fail and veto.
const plainOutcomes = 3

// decideKeys returns the keys that can decide at a gate now.
func decideKeys(g *daemon.GateStatus) []string {
	switch {
	case g.State == engine.OnHuman && len(g.Outcomes) > plainOutcomes: // it has its own routes
		return []string{"p pass", "f fail", "c comment", "d decide"}
	case g.State == engine.OnHuman:
		return []string{"p pass", "f fail", "c comment"}
	case takes(g, "v"):
		return []string{"v veto", "c comment"}
	}
	return nil
}

// keysFor returns the keys that work at a row, the important ones first.
func (m *known) keysFor(r *row) []string {
	var keys []string
	if r != nil {
		if r.gate != nil && r.run.Live() && r.repo.decides() {
			keys = decideKeys(r.gate)
		}
		keys = append(keys, "⏎ show", "t tail")
		if r.run.Live() {
			keys = append(keys, "n note")
			if r.run.Paused != "" {
				keys = append(keys, "P resume")
			} else {
				keys = append(keys, "P pause")
			}
			keys = append(keys, "a abort")
		}
		if m.one == nil || r.run.ID != m.one.id {
			keys = append(keys, "space fold")
		}
	}
	if m.one == nil {
		keys = append(keys, "/ filter")
	}
	return append(keys, "? help", m.one.leaves())
}

// keyLines returns the keys, on two lines if they do not fit one and the screen is high enough. The
// first key and the last two remain longest.
func (m *drawing) keyLines(keys ...string) (out []string) {
	most := 1
	if m.height >= twoLinesFrom {
		most = 2
	}
	lines := keysIn(keys, m.width)
	for len(lines) > most && len(keys) > 3 {
		keys = append(keys[:len(keys)-3:len(keys)-3], keys[len(keys)-2:]...)
		lines = keysIn(keys, m.width)
	}
	for _, l := range lines[:min(len(lines), most)] {
		out = append(out, m.full(l))
	}
	return out
}

// twoLinesFrom is the height from which the keys may take two lines.
const twoLinesFrom = 16

// keysIn breaks keys into lines.
func keysIn(keys []string, width int) (out []line) {
	used := 0
	for _, k := range keys {
		if wide := console.Width(" · " + k); len(out) == 0 || used+wide > width {
			out, used = append(out, nil), console.Width(k)
		} else {
			out[len(out)-1] = append(out[len(out)-1], span{console.Dim, " · "})
			used += wide
		}
		letter, text, _ := strings.Cut(k, " ")
		out[len(out)-1] = append(out[len(out)-1], span{console.Bold, letter}, span{console.Dim, " " + text})
	}
	return out
}

func (m *drawing) pageFoot() []string {
	p := m.page
	keys := []string{}
	var out []string
	if g := m.gateAt(target{root: p.root, run: p.run, gate: p.gate}); g != nil {
		if now := p.stale(g); now != "" {
			out = append(out, m.full(line{{console.Yellow, "! " + p.gate + " " + now + ": r shows it"}}))
		} else if m.run(p.root, p.run).Live() && m.repo(p.root).decides() {
			keys = append(keys, decideKeys(g)...)
		}
	}
	if p.run != "" {
		if p.tails {
			keys = append(keys, "s show")
		} else {
			keys = append(keys, "t tail", "r again", "o since")
		}
	}
	back := "esc back"
	if m.one.alone() && !p.tails && p.run != "" {
		back = "esc leave"
	}
	keys = append(keys, "↑↓ scroll")
	if p.run != "" {
		keys = append(keys, "? help")
	}
	keys = append(keys, back)
	title := p.title
	if n := len(p.wrapped); n > m.height {
		title += fmt.Sprintf(" · line %d of %d", p.top+1, n)
	}
	out = append(out, m.full(line{{console.Bold, "── " + text.Line(title) + " "}}))
	return append(out, m.keyLines(keys...)...)
}
