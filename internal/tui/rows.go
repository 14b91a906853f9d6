package tui

import (
	"fmt"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/render"
	"sluice/internal/text"
)

type kind int

const (
	headRow kind = iota // a heading: the cursor skips it
	waitRow             // something waits for a person
	runRow
	emptyRow // says that there is nothing, and what to do
	stepRow  // of an unfolded run
	gateRow
)

// row is a line of the list. Its words are created on drawing.
type row struct {
	kind kind
	repo *repo
	run  *daemon.RunStatus
	step *daemon.StepStatus
	gate *daemon.GateStatus
	wait *daemon.Wait
	text string // of a heading

	since bool // its page shows the changes since the attempt before only
}

// rowKey identifies what a row is about, in any state.
type rowKey struct {
	root, run, step, gate string
	wait                  string // the kind of wait
	kind                  kind
}

// key identifies the row for the cursor.
func (r *row) key() rowKey {
	k := rowKey{kind: r.kind}
	if r.repo != nil {
		k.root = r.repo.root
	}
	if r.run != nil {
		k.run = r.run.ID
	}
	if r.step != nil {
		k.step = r.step.ID
	}
	if r.gate != nil {
		k.gate = r.gate.ID
	}
	if r.wait != nil {
		k.wait = r.wait.Kind
	}
	return k
}

// sense is what a decision at the row would be about. If it changes, the person has not seen it
// yet.
type sense struct {
	key   rowKey
	round int
	state string
}

func (r *row) sense() sense {
	s := sense{key: r.key()}
	if r.gate != nil {
		s.round, s.state = r.gate.Round, r.gate.State
	}
	return s
}

func (r *row) selectable() bool { return r.kind != headRow && r.kind != emptyRow }

// talks returns the step or gate of the row whose agent runs; "" = none.
func (r *row) talks() string {
	switch {
	case r.kind == stepRow && (r.step.State == engine.Running || r.step.State == engine.Signalled):
		return r.step.ID
	case r.kind == gateRow && r.gate.State == engine.OnReview:
		return r.gate.ID
	}
	return ""
}

// what returns the step or gate for show and tail.
func (r *row) what() string {
	switch {
	case r.gate != nil:
		return r.gate.ID
	case r.step != nil:
		return r.step.ID
	}
	return ""
}

// layOut creates stale rows anew, and keeps the cursor on its row.
func (m *listing) layOut() {
	if m.stale {
		m.stale = false
		var was sense
		if r := m.current(); r != nil {
			was = r.sense()
		}
		m.rows = m.rowsNow()
		m.find(was)
	}
	m.scroll()
}

// find puts the cursor on its former row. If that is gone, it takes the next one that waits for a
// person, if it was on such a row; the top if nothing waits or the person has not moved it.
func (m *listing) find(was sense) {
	i := slices.IndexFunc(m.rows, func(r row) bool { return r.key() == was.key })
	switch {
	case m.chosen && i >= 0:
		m.at = i
	case m.chosen && was.key.kind == waitRow:
		m.at = max(min(m.at, len(m.rows)-1), 0)
		for m.at > 0 && m.rows[m.at].kind != waitRow {
			m.at--
		}
		m.chosen = m.at > 0
	case !m.chosen:
		m.at = 0
	}
	m.at = max(min(m.at, len(m.rows)-1), 0)
	m.step(0)
}

// step moves the cursor by selectable rows; 0 = to the nearest.
func (m *listing) step(by int) {
	to := func(from, way int) bool {
		for i := from; i >= 0 && i < len(m.rows); i += way {
			if m.rows[i].selectable() {
				m.at = i
				return true
			}
		}
		return false
	}
	if by == 0 {
		_ = to(m.at, 1) || to(m.at, -1)
	}
	for ; by > 0 && to(m.at+1, 1); by-- {
	}
	for ; by < 0 && to(m.at-1, -1); by++ {
	}
}

// scroll brings the cursor's row onto the screen, with a heading right above it.
func (m *listing) scroll() {
	room := m.room()
	top := m.at
	for top > 0 && !m.rows[top-1].selectable() {
		top--
	}
	if m.at-top >= room {
		top = m.at
	}
	end := m.at
	for m.reveal && end+1 < len(m.rows) && m.rows[end+1].kind >= stepRow && end+1-top < room {
		end++
	}
	m.reveal = false
	m.first = min(m.first, top)
	m.first = max(m.first, end-room+1)
	m.first = max(min(m.first, len(m.rows)-room), 0)
}

func (m *drawing) visible() []row {
	if m.first >= len(m.rows) {
		return nil
	}
	return m.rows[m.first:min(m.first+m.room(), len(m.rows))]
}

// rowsNow returns all rows: what waits for a person, then each repo with its runs, live ones first,
// the newest on top.
func (m *listing) rowsNow() []row {
	var waits, rest []row
	if m.one != nil {
		waits, rest = m.one.rows(m)
		return append(inOrder(waits), rest...)
	}
	lives := 0
	for _, r := range m.repos {
		for run := range r.all() {
			if run.Live() {
				lives++
			}
		}
	}
	for _, r := range m.repos {
		waits = append(waits, m.waitsOf(r)...)
		rest = append(rest, m.runsOf(r, lives <= foldedOver)...)
	}
	return append(inOrder(waits), rest...)
}

// inOrder puts what waits for a person in order, below a heading.
func inOrder(waits []row) []row {
	slices.SortStableFunc(waits, func(x, y row) int {
		if a, b := urgency(x.wait.Kind), urgency(y.wait.Kind); a != b {
			return a - b
		}
		if x.wait.Kind == "window" {
			return x.wait.Until.Compare(y.wait.Until)
		}
		return x.wait.Since.Compare(y.wait.Since)
	})
	if len(waits) > 0 {
		waits = append([]row{{kind: headRow, text: fmt.Sprintf("waits for you (%d)", len(waits))}}, waits...)
	}
	return waits
}

// urgency orders waits: what stands still, what soon continues by itself, what nobody took, what is
// paused.
func urgency(wait string) int {
	return slices.Index([]string{"human", "window", "offer", "paused"}, wait)
}

func (m *listing) waitsOf(r *repo) []row {
	var out []row
	for run := range r.all() {
		if run.Live() && m.matches(r, run) {
			out = append(out, waitsIn(r, run)...)
		}
	}
	return out
}

// waitsIn returns what waits for a person in a run.
func waitsIn(r *repo, run *daemon.RunStatus) (out []row) {
	for i := range run.Waits {
		w := &run.Waits[i]
		if urgency(w.Kind) < 0 {
			continue
		}
		x := row{kind: waitRow, repo: r, run: run, wait: w}
		if x.step, x.gate = run.Gate(w.Gate); x.gate == nil {
			x.step = run.Step(w.Step)
		}
		out = append(out, x)
	}
	return out
}

func (m *listing) runsOf(r *repo, unfolded bool) []row {
	lives, ended, ofTasks := 0, 0, 0
	var alive, dead []row
	for _, id := range slices.Backward(r.order) {
		run := r.runs[id]
		rows := &dead
		switch {
		case run.Live():
			lives++
			rows = &alive
		case run.Child != nil && m.filter == "": // their list shows them, as for `sluice ls`
			ofTasks++
			continue
		default:
			ended++
		}
		if !m.matches(r, run) {
			continue
		}
		*rows = append(*rows, row{kind: runRow, repo: r, run: run})
		if open, said := m.folds[runKey{r.root, id}]; said && open || !said && unfolded && run.Live() {
			*rows = append(*rows, stepsOf(r, run)...)
		}
	}
	head := row{kind: headRow, repo: r, text: fmt.Sprintf("%s · %d live, %d ended", text.Line(r.name), lives, ended)}
	if ofTasks > 0 {
		head.text += fmt.Sprintf(", %d ended of tasks (/ finds them)", ofTasks)
	}
	switch {
	case len(alive)+len(dead)+ofTasks > 0:
		return slices.Concat([]row{head}, alive, dead)
	case lives+ended > 0:
		return []row{head, {kind: emptyRow, repo: r, text: "no run matches the filter: / changes it, Esc removes it"}}
	case !r.known:
		return []row{head, {kind: emptyRow, repo: r, text: "…"}}
	}
	return []row{head, {kind: emptyRow, repo: r, text: render.NoRun}}
}

func stepsOf(r *repo, run *daemon.RunStatus) []row {
	var out []row
	for s := range run.Steps {
		st := &run.Steps[s]
		out = append(out, row{kind: stepRow, repo: r, run: run, step: st})
		for g := range st.Gates {
			if gate := &st.Gates[g]; gate.Listed() {
				out = append(out, row{kind: gateRow, repo: r, run: run, step: st, gate: gate})
			}
		}
	}
	return out
}

// matches reports whether all words of the filter are in the run's name, its state, its repo's name
// or its steps and gates.
func (m *known) matches(r *repo, run *daemon.RunStatus) bool {
	if m.filter == "" {
		return true
	}
	for word := range strings.FieldsSeq(strings.ToLower(m.filter)) {
		if !has(word, r.name, run.ID, run.Name, render.RunState(*run)) &&
			!slices.ContainsFunc(run.Steps, func(s daemon.StepStatus) bool {
				return has(word, s.ID, s.Name) ||
					slices.ContainsFunc(s.Gates, func(g daemon.GateStatus) bool { return has(word, g.ID, g.Name) })
			}) {
			return false
		}
	}
	return true
}

func has(word string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), word) })
}
