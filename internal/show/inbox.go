package show

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// Waiting is one thing that waits for a person.
type Waiting struct {
	Repo string `json:"repo"`
	Run  string `json:"run"`
	For  string `json:"child_of,omitempty"` // of a child run: its task and parent
	Kind string `json:"kind"`               // human, window, offer, paused
	Step string `json:"step,omitempty"`
	Gate string `json:"gate,omitempty"`
	Name string `json:"name,omitempty"`
	Why  string `json:"why,omitempty"`
	Text string `json:"text,omitempty"`     // of a run that an error or a limit has paused: which one
	Look string `json:"look_for,omitempty"` // of a gate: its reviewer.prompt

	AnswerSchema   json.RawMessage `json:"answer_schema,omitempty"`   // of the answer of a pass
	AnswerRequired bool            `json:"answer_required,omitempty"` // a pass needs one

	Stub   bool      `json:"stubbed,omitempty"` // stubs play the run's agents
	Trust  string    `json:"trust,omitempty"`   // what separates its agents from its gates
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	Served bool      `json:"served"`
	Type   string    `json:"type"` // what to type
}

// AllInboxes returns what waits in all known repos and in that of dir, the oldest first. It prints
// a note about each repo that cannot be read, which unread counts. It asks several repos at once: one that hangs delays
// no other.
func AllInboxes(ctx context.Context, con *console.Console, dir string) (items []Waiting, unread int, err error) {
	places, err := workspace.All(ctx, con, dir)
	if err != nil {
		return nil, 0, err
	}
	found, stalls, faults := make([][]Waiting, len(places)), make([]string, len(places)), make([]error, len(places))
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, p := range places {
		slots <- struct{}{}
		all.Go(func() {
			found[i], stalls[i], faults[i] = inboxOf(ctx, con, p)
			<-slots
		})
	}
	all.Wait()
	for i, p := range places {
		if err := faults[i]; err != nil {
			unread++
			con.Warn("%s: %s", p.Root, text.Message(err.Error()))
		}
		if stalls[i] != "" {
			con.Warn("%s: %s", p.Root, stalls[i])
		}
	}
	items = append([]Waiting{}, slices.Concat(found...)...) // not nil: for --json
	slices.SortStableFunc(items, func(x, y Waiting) int { return x.Since.Compare(y.Since) })
	return items, unread, nil
}

// atOnce is how many repos are asked at once: each that nobody serves is a journal in memory.
const atOnce = 16

func inboxOf(ctx context.Context, con *console.Console, p *workspace.Workspace) ([]Waiting, string, error) {
	v, served, err := p.View(ctx)
	if err != nil {
		return nil, "", err
	}
	defer v.Close()
	return Inbox(ctx, con, v, served)
}

// Inbox returns what waits in a repo, with --json also what to look for at each gate, and what render.Stall says.
func Inbox(ctx context.Context, con *console.Console, v workspace.Viewer, served bool) ([]Waiting, string, error) {
	st, err := v.Status(ctx, "")
	if err != nil {
		return nil, "", err
	}
	var specOf func(daemon.RunStatus) *engine.Spec
	if con.JSON {
		specOf = SpecsOf(func(r daemon.RunStatus) (*engine.Spec, error) { return workspace.SpecOf(ctx, v, r) })
	}
	return Waits(st, served, specOf), render.Stall(st), nil
}

// SpecsOf returns what reads the spec of runs, once for each digest; nil = it cannot be read, which the page of a run
// reports.
func SpecsOf(read func(daemon.RunStatus) (*engine.Spec, error)) func(daemon.RunStatus) *engine.Spec {
	all := map[string]*engine.Spec{}
	return func(r daemon.RunStatus) *engine.Spec {
		spec, known := all[r.Digest]
		if !known {
			spec, _ = read(r)
			all[r.Digest] = spec
		}
		return spec
	}
}

// Waits returns what waits for a person in a repo of this status; with SpecsOf also what to look for at each gate.
func Waits(st daemon.Status, served bool, specOf func(daemon.RunStatus) *engine.Spec) []Waiting {
	out := []Waiting{}
	in := "sluice -C " + text.Typed(st.Root)
	for _, r := range st.Runs {
		if !r.Live() {
			continue
		}
		for _, w := range r.Waits {
			i := Waiting{Repo: st.Root, Run: r.ID, For: r.Child.Title(), Kind: w.Kind, Step: w.Step, Gate: w.Gate,
				Since: w.Since, Until: w.Until, Served: served, Stub: r.Stubbed, Trust: r.Trust}
			named := daemon.Named(w.Gate, r.ID, true)
			switch w.Kind {
			case "human":
				i.Type = in + " show " + named
			case "window":
				i.Type = in + " veto " + named + " -m …"
			case "offer":
				i.Type = in + " next"
			case "paused":
				i.Type, i.Why = in+strings.TrimPrefix(daemon.Resume(r.ID, served), "sluice"), r.Paused
				i.Text = strings.TrimSuffix(r.PausedText, ": "+daemon.Resume(r.ID, served)) // the row has the command
			default:
				continue
			}
			if _, g := r.Gate(w.Gate); g != nil {
				i.Name, i.Why = g.Name, g.Why
				i.AnswerSchema, i.AnswerRequired = g.AnswerSchema, g.AnswerRequired
				if specOf != nil {
					i.Look = lookFor(specOf(r), r, w)
				}
			}
			out = append(out, i)
		}
	}
	return out
}

// lookFor returns what a person should look for at the gate of a wait.
func lookFor(spec *engine.Spec, r daemon.RunStatus, w daemon.Wait) string {
	s := r.Step(w.Step)
	if spec == nil || s == nil || spec.Gate(w.Gate) == nil || spec.Gate(w.Gate).Reviewer.Prompt.Source == "" {
		return ""
	}
	return render.TextOf(spec.Gate(w.Gate).Reviewer.Prompt, render.KnownOf(r, *s))
}

// PrintInbox prints what waits; unread repos may have more.
func PrintInbox(con *console.Console, items []Waiting, unread int) error {
	if con.JSON {
		return con.Document(items)
	}
	if len(items) == 0 {
		where := ""
		if unread > 0 {
			where = " in the repos that could be read"
		}
		con.Print("Nothing waits for you%s.", where)
		return nil
	}
	t := &console.Table{Columns: inboxColumns()}
	for _, i := range items {
		left := ""
		if !i.Until.IsZero() {
			left = render.Ago(i.Until.Sub(con.Now())) + " left"
		}
		since := ""
		if !i.Since.IsZero() {
			since = render.Ago(con.Now().Sub(i.Since))
		}
		why := render.Why(i.Why)
		if i.Kind == "paused" {
			why = text.Line(render.PausedWords(engine.RunPaused{Why: i.Why, Text: i.Text}))
		}
		state := i.Kind
		if state == "human" {
			state = engine.OnHuman
		}
		sign, style := render.Mark(state)
		t.Row(
			console.Styled(sign+" "+i.Kind, style),
			console.Styled(text.Title(cmp.Or(i.Gate, i.Step), i.Name), console.Bold),
			console.Styled(i.Run+render.StubMark(i.Stub)+render.UnheldMark(i.Trust), console.Plain),
			console.Styled(since, console.Dim),
			console.Styled(left, console.Yellow),
			console.Styled(why, console.Plain),
			console.Styled(i.Type, console.Dim))
	}
	con.PrintTable(t)
	var unserved []string
	for _, i := range items {
		if !i.Served && !slices.Contains(unserved, i.Repo) {
			unserved = append(unserved, i.Repo)
			noteUnserved(con, i.Repo, layout.ShortPath(i.Repo))
		}
	}
	return nil
}

// inboxColumns returns the columns of the inbox: the reason and the command to type are whole,
// below the row if need be.
func inboxColumns() []console.Column {
	return []console.Column{{}, {Most: 40}, {}, {}, {}, {Fit: console.Below}, {Fit: console.Below}}
}
