package tui

import (
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/text"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// Parts of the screen of one run.
const (
	recentMost = 50  // facts that are kept
	logLeast   = 4   // rows that the log gets beside many steps
	graphFrom  = 120 // columns from which the graph is drawn at the right
	graphMost  = 64  // its columns
)

// one is the run that a screen of one run is about.
type one struct {
	id    string
	from  int64               // journal record of the first fact shown
	ours  bool                // this process serves the repo
	page  string              // only the page of this gate is shown; "" = the run
	row   row                 // of that page
	said  string              // the result of the last decision, if the person left before they saw it
	void  bool                // that decision did not count
	all   []*daemon.RunStatus // the run, and the live runs below it
	facts factsSeen
	graph graphSeen
	left  error // how the person left
}

// factsSeen are the newest important facts of the run.
type factsSeen []daemon.Line

// graphSeen draws the run's workflow with its states.
type graphSeen func(daemon.RunStatus) string

// find keeps the run and the live runs below it, the run first.
func (o *one) find(m *listing) {
	o.all = o.all[:0]
	for _, r := range m.repos {
		if r.runs[o.id] == nil {
			continue
		}
		o.all = append(o.all, r.runs[o.id])
		for run := range daemon.Below(r.all(), o.id) {
			if run.Live() {
				o.all = append(o.all, run)
			}
		}
	}
}

// over reports whether the run has ended, or is unknown by now. A page stays.
func (o *one) over(m *known) bool {
	return o != nil && !o.alone() && m.loaded && (len(o.all) == 0 || !o.all[0].Live())
}

// begin opens the page, if the screen is only about one.
func (o *one) begin(m *Model) tea.Cmd {
	if !o.alone() || m.page != nil || len(o.all) == 0 {
		return nil
	}
	_, gate := o.all[0].Gate(o.page)
	o.row = row{kind: gateRow, repo: m.repos[0], run: o.all[0], gate: gate}
	return m.show(&o.row)
}

// alone reports whether the screen is only about a page.
func (o *one) alone() bool { return o != nil && o.page != "" }

// keep keeps the result of a decision that comes as the person leaves.
func (o *one) keep(said string, counted bool) {
	if o != nil {
		o.said, o.void = said, !counted
	}
}

// leave keeps how the person leaves: asks the run to stop, or only stops looking.
func (o *one) leave(stop bool) {
	switch {
	case o == nil:
	case stop:
		o.left = ErrInterrupt
	default:
		o.left = ErrLeft
	}
}

// leaves is the key that leaves. The run continues only if another process serves it.
func (o *one) leaves() string {
	if o == nil {
		return "q quit"
	}
	switch {
	case len(o.all) > 0 && o.all[0].Paused != "":
		return "q leave"
	case o.ours:
		return "q pause and leave"
	}
	return "q leave (it goes on)"
}

// about returns the run that the screen is about just now: the one of the page, the question or the
// words; nil = none.
func (o *one) about(m *drawing) *daemon.RunStatus {
	id := o.id
	switch {
	case m.mode == writing:
		id = m.input.what.run
	case m.mode == asking && m.ask.pass != nil:
		id = m.ask.pass.run
	case m.backTo() == reading && m.page.run != "":
		id = m.page.run
	}
	for _, r := range m.repos {
		if run := r.runs[id]; run != nil {
			return run
		}
	}
	return nil
}

// rows returns what waits for a person in the run and below it, its steps, and the runs of its
// tasks.
func (o *one) rows(m *listing) (waits, rest []row) {
	o.find(m)
	for i, run := range o.all {
		r := m.repos[0]
		waits = append(waits, waitsIn(r, run)...)
		if i == 0 {
			rest = append(rest, row{kind: headRow, run: run, text: "steps"})
			rest = append(rest, stepsOf(r, run)...)
			continue
		}
		if i == 1 {
			rest = append(rest, row{kind: headRow, run: run, text: "runs of its tasks"})
		}
		rest = append(rest, row{kind: runRow, repo: r, run: run})
		if m.folds[runKey{r.root, run.ID}] {
			rest = append(rest, stepsOf(r, run)...)
		}
	}
	return waits, rest
}

// head returns the lines at the top: the run's state, progress, time, cost and trust, why it is
// paused, what else it waits for, and what is wrong.
func (o *one) head(m *drawing) []string {
	r := o.about(m)
	if r == nil {
		return []string{m.full(line{{console.Bold, text.Line(o.id)}})}
	}
	state := render.RunState(*r)
	sign, style := render.Mark(state)
	trust, tone := "trust "+text.Line(r.Trust), console.Dim
	if words := render.Unheld(*r); words != "" {
		trust, tone = words, console.Yellow
	}
	took := ""
	if !r.Started.IsZero() {
		took = render.Ago(m.now().Sub(r.Started))
	}
	stubbed, name := "", ""
	if r.Stubbed {
		stubbed = "stubbed"
	}
	if r.Name != r.Workflow {
		name = text.Line(r.Name)
	}
	l := line{{style, sign + " "}, {console.Bold, text.Line(r.ID) + " "}, {style, state},
		{console.Plain, gap(sep(render.ProgressMark(*r)+" steps", took, strings.TrimSpace(spent(r))))}}
	out := []string{m.full(append(l, span{console.Dim, gap(sep(stubbed, name))}))}
	if r.Trust != "" {
		out = append(out, m.full(line{{console.Plain, "  "}, {tone, trust}}))
	}
	if r.Paused != "" {
		out = append(out, Wrap(m.paint(console.Yellow, "‖ "+o.paused(r)), max(m.width, 1))...)
	}
	for _, s := range append(m.troubles(), concerns(r)...) {
		out = append(out, m.full(line{{console.Yellow, "! " + text.Line(s)}}))
	}
	for _, w := range r.Waits {
		if urgency(w.Kind) < 0 && !atSteps(w.Kind) {
			out = append(out, m.full(line{{console.Dim, "  " + render.WaitWords(w, m.now())}}))
		}
	}
	if most := max(m.height/3, 2); len(out) > most {
		out = append(out[:most-1], m.full(line{{console.Plain, strings.TrimSpace(ansi.Strip(out[most-1])) + " …"}}))
	}
	return out
}

// paused says who or what paused a run, and why as far as the log has it.
func (o *one) paused(r *daemon.RunStatus) string {
	for _, l := range slices.Backward(o.facts) {
		f, err := engine.DecodeFact(l.Fact)
		if p, ok := f.(engine.RunPaused); err == nil && ok && p.Run == r.ID && p.Why == r.Paused {
			return text.Line(render.PausedWords(p))
		}
	}
	return render.Paused(r.Paused, nil)
}

// atSteps reports whether the rows of steps and gates show a kind of wait.
func atSteps(wait string) bool { return slices.Contains([]string{"agent", "review", "tasks"}, wait) }

// concerns returns what a person should know about a run beside its state.
func concerns(r *daemon.RunStatus) (out []string) {
	if n := render.NotPassed(r.More + len(r.Unpassed)); n != "" {
		out = append(out, n+", and went on: `sluice status "+r.ID+"` names them")
	}
	if r.SpecDrift {
		out = append(out, render.SpecChanged)
	}
	for _, n := range r.Near {
		out = append(out, render.NearBudget(n))
	}
	return out
}

// logRows is how many rows the log has: what the list leaves, and a few in any case.
func (o *one) logRows(list, room int) int {
	if o == nil || len(o.facts) == 0 {
		return 0
	}
	n := max(room-list-1, 0)
	if n < logLeast && room >= 4*logLeast {
		n = logLeast
	}
	return min(n, len(o.facts)+1)
}

// log returns the newest facts below a line.
func (o *one) log(m *drawing, rows, width int) []string {
	if rows < 2 {
		return nil
	}
	out := []string{m.paint(console.Dim, strings.Repeat("─", max(min(width, 60), 1)))}
	for _, l := range o.facts[max(len(o.facts)-rows+1, 0):] {
		f := render.Fact(l.Fact)
		head, words := render.LineParts(l, f, l.Run() != o.id)
		out = append(out, m.draw(line{{console.Dim, head}, {f.Style, words}}, width, false))
	}
	return out
}

// beside puts the graph at the right of the screen's body, if the terminal is wide enough.
func (o *one) beside(m *drawing, body []string) []string {
	width := o.bodyWidth(m)
	if width == m.width {
		return body
	}
	if len(o.all) == 0 {
		return body
	}
	graph := strings.Split(strings.TrimRight(o.graph(*o.all[0]), "\n"), "\n")
	room := m.width - width - 3
	for i := range body {
		right := line{}
		switch {
		case i == len(body)-1 && len(graph) > len(body):
			right = line{{console.Plain, "…"}}
		case i < len(graph):
			node, state, _ := strings.Cut(graph[i], "\t")
			if right = (line{{console.Plain, node}}); state != "" {
				sign, style := render.Mark(state)
				right = append(right, span{style, "  " + sign + " " + render.State(state)})
			}
		}
		body[i] = console.Pad(body[i], width) + m.paint(console.Dim, " │ ") + m.draw(right, room, false)
	}
	return body
}

// bodyWidth is the width of the rows and the log.
func (o *one) bodyWidth(m *drawing) int {
	if o == nil || o.graph == nil || m.width < graphFrom {
		return m.width
	}
	return m.width - min(graphMost, m.width/3+8) - 3
}
