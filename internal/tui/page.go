package tui

import (
	"cmp"
	"context"
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

// linesMost is how many lines of an agent's stream are kept.
const linesMost = 2000

type pageView struct {
	title   string
	lines   []string
	top     int
	follow  bool // the end stays on the screen
	root    string
	run     string
	gate    string
	round   int
	content string // of that round
	state   string // of the gate then
	tails   bool   // it shows what an agent says
	loads   bool
	n       int // tells one page's answers from another's
	stop    context.CancelFunc
	row     row  // where it was opened
	since   bool // with the changes since the attempt before only

	text    int      // so many lines are text, which breaks between words; the rest are changes
	wrapped []string // lines that fit width
	width   int
	done    int // how many of the lines are in wrapped
}

type pageSeen struct {
	n    int
	page Page
	err  error
}

// lineSaid are lines of an agent; err is their end.
type lineSaid struct {
	n     int
	lines []string
	err   error
}

func (m *paging) open(p *pageView) {
	if m.page != nil {
		p.n = m.page.n + 1
		if m.page.stop != nil {
			m.page.stop()
		}
	}
	m.page, m.mode = p, reading
}

// show opens the page for a decision at a row.
func (m *paging) show(r *row) tea.Cmd {
	what := m.shows(r)
	if what == "" {
		return nil
	}
	p := &pageView{title: what + " of " + r.run.ID, root: r.repo.root, run: r.run.ID, loads: true, row: *r,
		since: r.since}
	m.open(p)
	n := m.page.n
	return func() tea.Msg {
		page, err := m.host.Show(m.ctx, p.root, p.run, what, p.since)
		return pageSeen{n, page, err}
	}
}

// pager shows the changes of a row in the person's pager.
func (m *paging) pager(r *row) tea.Cmd {
	what := m.shows(r)
	if what == "" {
		return nil
	}
	root, run, since := r.repo.root, r.run.ID, r.since
	lent := &lending{run: func() error { return m.host.Pager(m.ctx, root, run, what, since) }}
	return tea.Exec(lent, func(err error) tea.Msg { return paged{err} })
}

// paged is the end of a pager.
type paged struct{ err error }

// shows returns the step or gate that the page of a row is about: its own, the gate that asks, the running step, or the
// last one. It tells if there is none.
func (m *paging) shows(r *row) string {
	what := cmp.Or(r.what(), lookAt(r))
	if what == "" {
		m.tell("there is no step in it to show")
	}
	return what
}

func lookAt(r *row) string {
	for _, kind := range []string{"human", "window"} {
		for _, w := range r.run.Waits {
			if w.Kind == kind && w.Gate != "" {
				return w.Gate
			}
		}
	}
	last := ""
	for _, s := range r.run.Steps {
		if s.State == engine.Running {
			return s.ID
		}
		if s.Attempt > 0 || last == "" {
			last = s.ID
		}
	}
	return last
}

func (m *paging) seePage(msg pageSeen) {
	p := m.page
	if p == nil || p.n != msg.n {
		return
	}
	p.loads, p.lines, p.text, p.width = false, msg.page.Lines, msg.page.Text, 0
	switch {
	case p.since && msg.page.Since:
		p.title += ", changes since the attempt before"
	case p.since && msg.err == nil:
		m.tell("this is the first attempt: all its changes are shown")
	}
	if g := m.gateAt(target{root: p.root, run: p.run, gate: msg.page.Gate}); g != nil {
		p.state = g.State
	}
	p.gate, p.round, p.content = msg.page.Gate, msg.page.Round, msg.page.Content
	if msg.err != nil {
		p.lines = strings.Split(msg.err.Error(), "\n")
		p.text = len(p.lines)
	}
}

// tail opens what an agent says, as it says it.
func (m *paging) tail(r *row) tea.Cmd {
	what := speaker(r)
	title := r.run.ID
	if what != "" {
		title = what + " in " + title
	}
	ctx, stop := context.WithCancel(m.ctx)
	p := &pageView{title: "output of " + title, root: r.repo.root, run: r.run.ID, tails: true, follow: true, stop: stop,
		row: *r}
	m.open(p)
	n, host, send := m.page.n, m.host, m.send
	return func() tea.Msg {
		err := host.Tail(ctx, p.root, p.run, what, func(line string) { send(lineSaid{n: n, lines: []string{line}}) })
		return lineSaid{n: n, err: err}
	}
}

// speaker returns whose output a row means: the reviewer's while it judges or just after, else the
// step's; "" = the last launch's.
func speaker(r *row) string {
	switch {
	case r.gate != nil &&
		(r.gate.State == engine.OnReview || r.gate.State == engine.OnNotice || r.gate.State == engine.OnWindow):
		return r.gate.ID
	case r.step != nil:
		return r.step.ID
	}
	for _, s := range r.run.Steps {
		if s.State == engine.Running {
			return s.ID
		}
	}
	return ""
}

func (m *paging) seeLine(msg lineSaid) {
	p := m.page
	if p == nil || p.n != msg.n || !p.tails {
		return
	}
	p.lines = append(p.lines, msg.lines...)
	if msg.err != nil && m.ctx.Err() == nil {
		p.lines = append(p.lines, strings.Split(msg.err.Error(), "\n")...)
	}
	if over := len(p.lines) - linesMost; over > linesMost/4 {
		p.lines, p.width = slices.Clone(p.lines[over:]), 0
	}
}

func (m *paging) read(k tea.KeyPressMsg) tea.Cmd {
	p, room := m.page, m.room()
	by := 0
	switch k.String() {
	case "up", "k":
		by = -1
	case "down", "j", "enter":
		by = 1
	case "pgup", "b", "ctrl+b":
		by = -max(room-1, 1)
	case "pgdown", "space", "ctrl+f":
		by = max(room-1, 1)
	case "home", "g":
		by = -len(p.wrapped)
	case "end", "G":
		by = len(p.wrapped)
	case "q", "esc":
		return m.close()
	case "left", "h":
		if !m.one.alone() {
			return m.close()
		}
	case "?":
		if p.run == "" {
			return m.close()
		}
		m.open(helpPage(m.one))
	case "p", "f", "v", "d", "c", "n", "o", "P", "a", "r", "t", "s", "w":
		return m.onPage(k.String())
	}
	if by != 0 {
		p.top = max(min(p.top+by, len(p.wrapped)-room), 0)
		p.follow = p.tails && p.top >= len(p.wrapped)-room
	}
	return nil
}

// stale says how the gate differs from what the page shows; "" = it does not.
func (p *pageView) stale(g *daemon.GateStatus) string {
	switch {
	case p.loads:
	case g.Round != p.round:
		return fmt.Sprintf("is at round %d by now", g.Round)
	case g.Reviewed != p.content:
		return "has other work by now"
	case g.State != p.state && g.ByKind != "":
		return fmt.Sprintf("is %s by now, by %s", g.State, text.Line(render.By(g.ByKind, g.By)))
	case g.State != p.state:
		return "is at " + g.State + " by now"
	}
	return ""
}

func (m *paging) onPage(k string) tea.Cmd {
	p := m.page
	if p.run == "" {
		return nil
	}
	r := p.row
	r.run = cmp.Or(m.run(p.root, p.run), r.run)
	switch k {
	case "r", "s":
		return m.show(&r)
	case "o":
		r.since = !p.since
		return m.show(&r)
	case "t":
		return m.tail(&r)
	case "w":
		r.since = p.since
		return m.pager(&r)
	case "n":
		m.noteAt(&r, reading)
		return nil
	case "P":
		return m.pauseOrResume(&r)
	case "a":
		m.abort(&r, reading)
		return nil
	}
	if p.gate == "" {
		m.tell("there is no gate on this page")
		return nil
	}
	_, g := r.run.Gate(p.gate)
	switch {
	case g == nil:
		m.tell(notTaken(k))
		return nil
	case p.stale(g) != "":
		m.tell(p.gate + " " + p.stale(g) + ", so nothing was decided: r shows it")
		return nil
	case !takes(g, k):
		m.tell(standing(g) + ": " + notTaken(k))
		return nil
	}
	return m.decide(k, target{root: p.root, run: p.run, gate: p.gate, round: p.round, content: p.content}, reading)
}

// close goes back to the list, if there is one.
func (m *paging) close() tea.Cmd {
	if m.one.alone() {
		if m.page.tails || m.page.run == "" {
			return m.show(&m.one.row)
		}
		return m.quit(false)
	}
	if m.page != nil && m.page.stop != nil {
		m.page.stop()
		m.page.stop = nil
	}
	m.mode, m.page.tails = browsing, false
	return nil
}

// fit wraps new lines of the page for the width.
func (p *pageView) fit(width int) {
	if p.width != width || p.done > len(p.lines) {
		p.wrapped, p.done, p.width = nil, 0, width
	}
	for ; p.done < len(p.lines); p.done++ {
		line := p.lines[p.done]
		switch {
		case p.run == "", p.tails:
			p.wrapped = append(p.wrapped, wrapWords(line, width, 0)...)
		case p.done < p.text && strings.HasPrefix(line, " "):
			p.wrapped = append(p.wrapped, wrapWords(line, width, console.FieldAt)...)
		case p.done < p.text:
			p.wrapped = append(p.wrapped, wrapWords(line, width, 0)...)
		default:
			p.wrapped = append(p.wrapped, wrapChange(line, width)...)
		}
	}
}

// wrapWords breaks a line between words into lines of at most width cells, each with its style. All but
// the first are indented, if that leaves more room than it takes.
func wrapWords(line string, width, indent int) []string {
	if width <= 0 || console.Width(line) <= width {
		return []string{line}
	}
	if indent > width/2 {
		indent = 0
	}
	parts := styled(console.Wrap(ansi.Cut(line, indent, console.Width(line)), width-indent))
	margin := ansi.Cut(line, 0, indent)
	for i := range parts {
		parts[i] = margin + parts[i]
		margin = strings.Repeat(" ", indent)
	}
	return parts
}

// wrapChange breaks a line of changes anywhere. What continues it never begins where a line has its + or -, by which
// alone a screen without colour tells them apart.
func wrapChange(line string, width int) []string {
	if width <= 3 || console.Width(line) <= width {
		return Wrap(line, width)
	}
	parts := Wrap(line, width-3)
	for i := 1; i < len(parts); i++ {
		parts[i] = " ↳ " + parts[i]
	}
	return parts
}

// Wrap breaks a line anywhere into lines of at most width cells, each with its style.
func Wrap(line string, width int) []string {
	if width <= 0 || console.Width(line) <= width {
		return []string{line}
	}
	return styled(strings.Split(ansi.Hardwrap(line, width, true), "\n"))
}

// styled has the last style of each part of a line continue in the next.
func styled(parts []string) []string {
	style := ""
	for i, s := range parts {
		parts[i] = style + s
		for rest := s; ; {
			at := strings.Index(rest, "\x1b[")
			end := strings.IndexByte(rest[max(at, 0):], 'm')
			if at < 0 || end < 0 {
				break
			}
			style = rest[at : at+end+1]
			rest = rest[at+end+1:]
		}
		if style == "\x1b[0m" {
			style = ""
		}
		if style != "" {
			parts[i] += "\x1b[0m"
		}
	}
	return parts
}
