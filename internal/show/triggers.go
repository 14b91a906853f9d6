package show

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/specs"
)

// TriggersOf is how the triggers of a workflow stand, and whether its spec is still the one that a
// person armed.
type TriggersOf struct {
	daemon.Triggers
	Changed  bool              `json:"changed,omitempty"`
	Fault    string            `json:"fault,omitempty"`     // of its spec
	Refused  workflows.Refusal `json:"refused,omitzero"`    // the last refused request for its webhook
	NoSecret bool              `json:"no_secret,omitempty"` // so its webhook takes no request
}

// Triggers returns the triggers of the repo's workflows, in order of id; workflow "" = all that have
// some.
func Triggers(ctx context.Context, p *workspace.Workspace, workflow string) ([]TriggersOf, error) {
	st, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := []TriggersOf{}
	var ids []string
	if workflow != "" {
		if _, err := workflows.File(p, workflow); err != nil {
			return nil, err
		}
		ids = []string{workflow}
	} else {
		files, err := specs.Find(p.Root)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			ids = append(ids, workflows.ID(f))
		}
		for _, t := range st.Triggers {
			ids = append(ids, t.Workflow)
		}
		slices.Sort(ids)
	}
	for _, id := range slices.Compact(ids) {
		t, any := triggersOf(p, st, id)
		if !any {
			continue
		}
		if slices.ContainsFunc(t.Each, func(x daemon.Trigger) bool { return x.Kind == engine.OnWebhook }) {
			_, err := workflows.Secret(p, id)
			t.Refused, t.NoSecret = workflows.Refused(p, id), errors.Is(err, workflows.ErrNoSecret)
		}
		out = append(out, t)
	}
	return out, nil
}

func triggersOf(p *workspace.Workspace, st daemon.Status, id string) (t TriggersOf, any bool) {
	i := slices.IndexFunc(st.Triggers, func(o daemon.Triggers) bool { return o.Workflow == id })
	if t.Workflow = id; i >= 0 {
		t.Triggers = st.Triggers[i]
	}
	ev, _, err := workflows.Armable(p, id)
	if err != nil {
		t.Fault, t.Changed = err.Error(), t.Armed
		return t, i >= 0
	}
	t.Changed = t.Armed && t.Digest != ev.Digest
	if t.Armed {
		return t, true
	}
	spec, err := workspace.Compile(ev.Source)
	if err != nil || spec.On == nil {
		return t, false
	}
	t.Each, t.Most = nil, spec.On.MaxPerDay
	for _, o := range spec.On.Triggers {
		t.Each = append(t.Each, daemon.Trigger{Name: o.Name, Kind: o.Kind})
	}
	return t, true
}

// held returns why armed triggers start nothing, or "".
func (w TriggersOf) held() string {
	switch {
	case w.Armed && w.Changed:
		return "held: its spec has changed since it was armed: look at it, then sluice triggers arm " + w.Workflow
	case w.Armed && w.Held != "":
		return "held: " + w.Held
	}
	return ""
}

// printHeld prints which armed triggers start nothing.
func printHeld(con *console.Console, p *workspace.Workspace, st daemon.Status) {
	for _, t := range st.Triggers {
		if w, _ := triggersOf(p, st, t.Workflow); w.held() != "" {
			con.Warn("the triggers of %s are %s", w.Workflow, text.Message(w.held()))
		}
	}
}

// PrintTriggers prints how triggers stand.
func PrintTriggers(con *console.Console, all []TriggersOf) {
	for i, w := range all {
		if i > 0 {
			con.Print("")
		}
		word, style := "armed"+render.Who(&w.By), console.Green
		switch held := w.held(); {
		case !w.Armed:
			word, style = "not armed: sluice triggers arm "+w.Workflow, console.Yellow
		case held != "":
			word, style = held, console.Yellow
		case w.Full != "":
			word, style = fullWords(w), console.Yellow
		}
		con.PrintWrapped(0, console.Joined(console.Styled(w.Workflow, console.Bold), console.Styled("  "+word, style)))
		if w.Fault != "" {
			con.PrintWrapped(2, console.Styled(w.Fault, console.Red))
		}
		if w.Armed {
			con.PrintWrapped(2, console.Styled(today(con, w), console.Dim))
		}
		t := &console.Table{Indent: 2, Columns: []console.Column{{}, {}, {Fit: console.Wrapped}}}
		for _, x := range w.Each {
			for _, row := range rowsOf(x, w) {
				t.Row(row...)
			}
		}
		con.PrintTable(t)
	}
}

// today says how many runs were started of those that may be.
func today(con *console.Console, w TriggersOf) string {
	n := w.Today
	if con.Now().Sub(w.Since) >= 24*time.Hour {
		n = 0
	}
	words := text.Plural(n, "run") + " of at most " + strconv.Itoa(w.Most) + " within 24 hours"
	if w.Waiting > 0 {
		words += "; " + text.Plural(w.Waiting, "firing") + " to start"
	}
	return words
}

func fullWords(w TriggersOf) string {
	switch w.Full {
	case engine.FullDay:
		return "max_per_day is reached: more is taken in from " + stamp(w.Since.Add(24*time.Hour))
	case engine.FullQueue:
		return "the limit of waiting firings is reached: more are taken in when their runs have begun"
	}
	return "its limit of remembered keys is reached: give the workflow a new id"
}

func rowsOf(x daemon.Trigger, w TriggersOf) [][]console.Cell {
	cell := func(label, s string) []console.Cell {
		return []console.Cell{console.Styled("", ""), console.Styled(label, console.Dim), console.Styled(s, "")}
	}
	var rows [][]console.Cell
	if !x.Next.IsZero() && w.held() == "" {
		rows = append(rows, cell("next", stamp(x.Next)))
	}
	if o := x.Last; o.Key != "" {
		run := cmp.Or(o.Run, "its run has not started")
		rows = append(rows, cell("last", stamp(o.At)+"  "+run+"  "+o.Key))
	}
	if o := x.Skipped; !o.At.IsZero() {
		rows = append(rows, cell("skipped", stamp(o.At)+"  "+o.Key+"  "+o.Why))
	}
	switch {
	case x.Kind != engine.OnWebhook:
	case w.NoSecret:
		rows = append(rows, cell("", "takes no request yet: sluice triggers secret "+w.Workflow))
	case !w.Refused.At.IsZero():
		rows = append(rows, cell("refused", stamp(w.Refused.At)+"  "+w.Refused.Why))
	}
	if len(rows) == 0 {
		rows = append(rows, cell("", "has not fired"))
	}
	rows[0][0] = console.Styled(x.Name, "")
	return rows
}

func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
