package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/words"
)

// Widths of columns, in terminal cells.
const (
	idMost    = 24
	titleMost = 30
	stateWide = 10
	inputMost = 6 // lines of a text that is typed
	leastRoom = 1
)

// span is a part of a line in one style.
type span struct{ style, text string }

// line is a line of the screen before it is drawn.
type line []span

// reversed marks the row under the cursor, beside its sign.
const reversed = "7"

// draw gives a line of so many cells at most.
func (m *Model) draw(l line, width int, selected bool) string {
	var b strings.Builder
	left := width
	for i, s := range l {
		text := s.text
		if w := ansi.StringWidth(text); w > left || w == left && more(l[i+1:]) {
			text = ansi.Truncate(text+" …", left, "…")
		}
		left -= ansi.StringWidth(text)
		style := s.style
		if selected {
			style = reversed
		}
		b.WriteString(m.paint(style, text))
		if left <= 0 {
			break
		}
	}
	if selected && left > 0 {
		b.WriteString(m.paint(reversed, strings.Repeat(" ", left)))
	}
	return b.String()
}

// more says that there is something yet to be drawn.
func more(l line) bool {
	for _, s := range l {
		if s.text != "" {
			return true
		}
	}
	return false
}

// paint sets a style. On a light background yellow and cyan can hardly be read.
func (m *Model) paint(style, s string) string {
	if s == "" || style == words.Plain {
		return s
	}
	if m.light {
		style = strings.NewReplacer(words.Yellow, "35", words.Blue, "34").Replace(style)
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}

func clip(s string, width int) string { return ansi.Truncate(s, width, "…") }

// View is the screen as it is now.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	return v
}

// screen is the screen in lines, as many as the terminal has.
func (m *Model) screen() []string {
	head, foot := m.head(), m.foot()
	room := max(m.height-len(head)-len(foot), leastRoom)
	var body []string
	if m.mode == reading || m.page != nil && m.backTo() == reading {
		body = m.pageLines(room)
	} else {
		for i, r := range m.visible() {
			at := m.first+i == m.at && r.selectable()
			body = append(body, m.draw(m.rowLine(&r, at), m.width, at))
		}
		if len(m.rows) == 0 {
			body = append(body, m.draw(line{{words.Dim, m.nothing()}}, m.width, false))
		}
	}
	for len(body) < room {
		body = append(body, "")
	}
	out := append(append(head, body[:room]...), foot...)
	return out[:min(len(out), max(m.height, 1))]
}

// nothing says why there is no repo.
func (m *Model) nothing() string {
	if !m.loaded {
		return "…"
	}
	return "no repo is watched: `sluice watch add` in one"
}

// backTo is where a text or a question leads back to.
func (m *Model) backTo() mode {
	switch m.mode {
	case writing, filtering:
		return m.input.back
	case asking:
		return m.ask.back
	}
	return m.mode
}

// room is how many lines there are between head and foot.
func (m *Model) room() int { return max(m.height-len(m.head())-len(m.foot()), leastRoom) }

// head is what stands above: what there is in all, and what is wrong with it.
func (m *Model) head() []string {
	waits, lives, runs := 0, 0, 0
	var today daemon.Today
	for _, r := range m.repos {
		for _, id := range r.order {
			run := r.runs[id]
			runs++
			if !live(run) {
				continue
			}
			lives++
			for _, w := range run.Waits {
				if w.Kind == "human" || w.Kind == "window" {
					waits++
				}
			}
		}
		if t := r.status.Today; t.All.Tokens >= today.All.Tokens && t.All.CostUSD >= today.All.CostUSD {
			today = t // the newest: it only grows
		}
	}
	l := line{{words.Bold, "sluice"}, {words.Plain, " "}}
	if waits > 0 {
		l = append(l, span{"1;33", fmt.Sprintf("? %d for you", waits)}, span{words.Dim, " · "})
	}
	l = append(l, span{words.Plain, fmt.Sprintf("%d live of %s", lives, words.Plural(runs, "run"))})
	if len(m.repos) != 1 {
		l = append(l, span{words.Dim, " · " + words.Plural(len(m.repos), "repo")})
	}
	if s := words.SpentInAll(today.All, today.Budget); s != "" {
		l = append(l, span{words.Dim, " · today " + s})
	}
	if m.filter != "" {
		l = append(l, span{words.Bold, " · /" + words.Clean(m.filter)})
	}
	out := []string{m.draw(l, m.width, false)}
	for _, s := range m.troubles() {
		if len(out) <= max(m.height/6, 1) {
			out = append(out, m.draw(line{{words.Yellow, "! " + words.Clean(s)}}, m.width, false))
		}
	}
	return out
}

// troubles are what is wrong as a whole, the worst first.
func (m *Model) troubles() []string {
	var out []string
	for _, r := range m.repos {
		switch {
		case r.lost != "" && r.known:
			out = append(out, fmt.Sprintf("%s: nothing is heard of it for %s, trying again: %s", r.name, words.Ago(m.now().Sub(r.lostAt)), r.lost))
		case r.lost != "":
			out = append(out, r.name+": "+r.lost)
		case r.known && !r.served:
			out = append(out, r.name+": nobody serves it, you can only look: `sluice daemon`, or `sluice run` there")
		}
		if r.status.Stalled != "" {
			out = append(out, r.name+": the journal cannot be written, so nothing is started: "+r.status.Stalled)
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

// rowLine is a row in words.
func (m *Model) rowLine(r *row, at bool) line {
	cursor := span{words.Plain, "  "}
	if at {
		cursor.text = "› "
	}
	switch r.kind {
	case headRow:
		return line{{words.Bold, r.text}, {words.Dim, m.repoWords(r.repo)}}
	case emptyRow:
		return line{{words.Dim, "  " + r.text}}
	case waitRow:
		return append(line{cursor}, m.waitLine(r)...)
	case runRow:
		return append(line{cursor}, m.runLine(r.run)...)
	case stepRow:
		return append(line{cursor, {words.Plain, "  "}}, m.stepLine(r)...)
	}
	return append(line{cursor, {words.Plain, "    "}}, m.gateLine(r)...)
}

// repoWords is what a repo's heading has beside its name.
func (m *Model) repoWords(r *repo) string {
	if r == nil {
		return ""
	}
	s := ""
	if r.lost != "" || r.known && !r.served {
		s += " · not served"
	}
	if r.status.Trust != "" {
		s += " · trust " + r.status.Trust
	}
	return s + " · " + words.Clean(r.root)
}

// sep joins parts of a line.
func sep(parts ...string) string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, " · ")
}

// waitLine is something that waits for a person: what, where, how long it has or is left, and why.
func (m *Model) waitLine(r *row) line {
	state := r.wait.Kind
	what, why := r.what(), ""
	var parts []string
	if r.gate != nil {
		state, what = r.gate.State, words.Title(r.gate.ID, r.gate.Name)
		parts = append(parts, score(r.gate), failedTimes(r.gate))
		why = words.Why(r.gate.Why)
	} else if r.step != nil {
		what = words.Title(r.step.ID, r.step.Name)
	}
	sign, style := words.Mark(state)
	says := ""
	switch r.wait.Kind {
	case "human":
		says = "asks you"
	case "window":
		says = "goes on in " + words.Ago(r.wait.Until.Sub(m.now())) + " unless you veto"
	case "offer":
		sign, style, says = "?", words.Yellow, "is on offer: `sluice next`"
	case "paused":
		what, says, why = "", "is paused", words.Clean(r.run.Paused)
	}
	since := ""
	if !r.wait.Since.IsZero() && r.wait.Kind != "window" {
		since = words.Ago(m.now().Sub(r.wait.Since))
	}
	if len(m.repos) > 1 {
		parts = append(parts, words.Clean(r.repo.name))
	}
	l := line{{style, sign + " "}}
	if what != "" {
		l = append(l, span{words.Bold, clip(what, titleMost)}, span{words.Plain, " of "})
	}
	return append(l, span{words.Plain, clip(words.Clean(r.run.ID), idMost) + " "}, span{style, says}, span{words.Dim, gap(sep(append([]string{since}, append(parts, why)...)...))})
}

func score(g *daemon.GateStatus) string {
	if g.Score == nil {
		return ""
	}
	return fmt.Sprintf("score %g", *g.Score)
}

func failedTimes(g *daemon.GateStatus) string {
	if g.Count == 0 {
		return ""
	}
	return fmt.Sprintf("failed %d/%d", g.Count, g.Max)
}

func (m *Model) runLine(r *daemon.RunStatus) line {
	state := stateOf(r)
	sign, style := words.Mark(state)
	done := 0
	for _, s := range r.Steps {
		if s.State == engine.Passed || s.State == engine.Skipped || s.State == engine.Routed {
			done++
		}
	}
	took := ""
	switch {
	case r.Started.IsZero():
	case r.Ended.IsZero():
		took = words.Ago(m.now().Sub(r.Started))
	default:
		took = words.Ago(m.now().Sub(r.Ended)) + " ago"
	}
	rest := words.Clean(r.EndWhy)
	if live(r) {
		rest = ""
		if len(r.Near) > 0 {
			rest = "near its budget: " + words.Clean(strings.Join(r.Near, ", "))
		}
		if len(r.Waits) > 0 {
			rest = sep(rest, words.Clean(r.Waits[0].Text))
		}
	}
	return line{{style, sign + " "}, {words.Bold, pad(clip(words.Clean(r.ID), idMost), min(idMost, 14)) + " "}, {style, pad(state, stateWide)},
		{words.Plain, pad(fmt.Sprintf("%d/%d", done, len(r.Steps)), 6)}, {words.Dim, pad(took, 9)}, {words.Plain, spent(r)}, {words.Dim, rest}}
}

// spent is what a run has used, with a gap behind it.
func spent(r *daemon.RunStatus) string {
	if s := words.Spent(r.Usage, r.Budget); s != "" {
		return s + "  "
	}
	return ""
}

func (m *Model) stepLine(r *row) line {
	s := r.step
	sign, style := words.Mark(s.State)
	attempt, since := "", ""
	if s.Attempt > 1 {
		attempt = fmt.Sprintf("attempt %d", s.Attempt)
	}
	if !s.Since.IsZero() {
		since = words.Ago(m.now().Sub(s.Since))
	}
	held := ""
	if s.Held != nil {
		held = "taken over" + words.Who(s.Held)
	}
	l := line{{style, sign + " "}, {words.Plain, pad(clip(words.Title(s.ID, s.Name), titleMost), 16) + " "}, {style, pad(s.State, stateWide)},
		{words.Dim, sep(attempt, since, words.Clean(s.Role), held)}}
	said, tone := words.Clean(s.Summary), words.Plain
	if last := m.words[r.key()]; last != "" && r.talks() != "" {
		said = "“" + words.Clean(last) + "”"
	} else if s.Failure != "" && s.State != engine.Passed {
		said, tone = words.Clean(s.Failure), words.Red
	}
	if said != "" {
		l = append(l, span{words.Dim, " · "}, span{tone, said})
	}
	return l
}

func (m *Model) gateLine(r *row) line {
	g := r.gate
	sign, style := words.Mark(g.State)
	state := g.State
	if state == "" || state == engine.Undone { // what it judged was undone: it judges the next attempt
		sign, style, state = "◇", words.Plain, "-"
	}
	left, by, why := "", "", ""
	switch g.State {
	case engine.OnWindow:
		left = words.Ago(g.Until.Sub(m.now())) + " left"
	case engine.OnHuman:
		why = words.Why(g.Why)
	case engine.Approved, engine.Refused:
		if g.ByKind != "" {
			by = "by " + words.Clean(words.By(g.ByKind, g.By))
		}
	}
	forced := ""
	if g.Forced {
		forced = "forced"
	}
	said := ""
	if g.Feedback != "" && g.State != engine.Approved {
		said = "“" + words.Clean(g.Feedback) + "”"
	}
	if last := m.words[r.key()]; last != "" && r.talks() != "" {
		said = "“" + words.Clean(last) + "”"
	}
	return line{{style, sign + " "}, {words.Plain, pad(clip(words.Title(g.ID, g.Name), titleMost), 14) + " "}, {style, pad(state, stateWide)},
		{words.Dim, sep(g.Level, forced, left, score(g), failedTimes(g), by, why)}, {words.Plain, gap(said)}}
}

func gap(s string) string {
	if s == "" {
		return ""
	}
	return " · " + s
}

// pageLines is the part of the page that is on the screen.
func (m *Model) pageLines(room int) []string {
	p := m.page
	p.fit(m.width)
	if p.follow {
		p.top = len(p.wrapped) - room
	}
	p.top = max(min(p.top, len(p.wrapped)-room), 0)
	if len(p.wrapped) == 0 {
		text := "…"
		if p.tails {
			text = "it has said nothing yet"
		}
		return []string{m.paint(words.Dim, clip(text, m.width))}
	}
	return append([]string(nil), p.wrapped[p.top:min(p.top+room, len(p.wrapped))]...)
}

// foot is what stands below: what came of the last key, and what may be typed.
func (m *Model) foot() []string {
	var out []string
	if m.said != "" && m.now().Sub(m.saidAt) < saidFor {
		text := wrap(words.Clean(m.said), m.width)
		for _, s := range text[:min(len(text), max(m.height/5, 1))] {
			out = append(out, m.paint(words.Bold, s))
		}
	}
	switch m.mode {
	case writing:
		return append(out, m.inputLines()...)
	case filtering:
		return append(out, m.draw(line{{words.Bold, "/"}, {words.Plain, m.input.shown()}, {words.Dim, "  Enter keeps it, Esc shows all"}}, m.width, false))
	case asking:
		return append(out, m.draw(line{{"1;33", m.ask.text + " "}, {words.Bold, "y"}, {words.Dim, " yes, any other key: no"}}, m.width, false))
	case reading:
		return append(out, m.pageFoot()...)
	}
	return append(out, m.keysLine(m.keysFor(m.current())...))
}

// inputLines are the words that are typed, their end at least.
func (m *Model) inputLines() []string {
	prompt := m.input.verb + " " + m.input.what.gate + fmt.Sprintf(" #%d: what is wrong? ", m.input.what.round)
	out := []string{m.draw(line{{"1;33", prompt}, {words.Dim, "Enter sends · Alt-Enter: new line · Esc: back"}}, m.width, false)}
	var text []string
	at := 0
	for _, l := range strings.Split(m.input.shown(), "\n") {
		for _, s := range wrap(l, max(m.width-2, 1)) {
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

// keysFor are the keys that do something at a row, those that matter there first.
func (m *Model) keysFor(r *row) []string {
	var keys []string
	if r != nil {
		switch {
		case r.gate != nil && r.gate.State == engine.OnHuman:
			keys = append(keys, "p pass", "f fail", "⏎ show")
		case r.gate != nil && takes(r.gate, "v") && live(r.run):
			keys = append(keys, "v veto", "⏎ show")
		default:
			keys = append(keys, "⏎ show")
		}
		keys = append(keys, "t tail")
		if live(r.run) {
			if r.run.Paused != "" {
				keys = append(keys, "P resume")
			} else {
				keys = append(keys, "P pause")
			}
			keys = append(keys, "a abort")
		}
		keys = append(keys, "space fold")
	}
	return append(keys, "/ filter", "? help", "q quit")
}

// keysLine tells keys. The last two are always there.
func (m *Model) keysLine(keys ...string) string {
	wide := func() int { return ansi.StringWidth(strings.Join(keys, " · ")) }
	for len(keys) > 2 && wide() > m.width {
		keys = append(keys[:len(keys)-3:len(keys)-3], keys[len(keys)-2:]...)
	}
	var l line
	for i, k := range keys {
		if i > 0 {
			l = append(l, span{words.Dim, " · "})
		}
		letter, text, _ := strings.Cut(k, " ")
		l = append(l, span{words.Bold, letter}, span{words.Dim, " " + text})
	}
	return m.draw(l, m.width, false)
}

// pageFoot is what may be typed at a page.
func (m *Model) pageFoot() []string {
	p := m.page
	keys := []string{}
	var out []string
	if repo := m.repo(p.root); repo != nil && p.gate != "" && repo.runs[p.run] != nil {
		if g := gateOf(repo.runs[p.run], p.gate); g != nil {
			switch {
			case g.Round != p.round:
				out = append(out, m.draw(line{{words.Yellow, fmt.Sprintf("! %s is at round %d by now: r shows it", p.gate, g.Round)}}, m.width, false))
			case g.State == engine.OnHuman:
				keys = append(keys, "p pass", "f fail")
			case takes(g, "v") && live(repo.runs[p.run]):
				keys = append(keys, "v veto")
			}
		}
	}
	if p.run != "" {
		if p.tails {
			keys = append(keys, "s show")
		} else {
			keys = append(keys, "t tail", "r again")
		}
	}
	keys = append(keys, "↑↓ scroll", "esc back")
	title := p.title
	if n := len(p.wrapped); n > m.height {
		title += fmt.Sprintf(" · line %d of %d", p.top+1, n)
	}
	return append(out, m.draw(line{{words.Bold, "── " + words.Clean(title) + " "}}, m.width, false), m.keysLine(keys...))
}

func gateOf(r *daemon.RunStatus, id string) *daemon.GateStatus {
	for s := range r.Steps {
		for g := range r.Steps[s].Gates {
			if r.Steps[s].Gates[g].ID == id {
				return &r.Steps[s].Gates[g]
			}
		}
	}
	return nil
}
