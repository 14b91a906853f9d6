package web

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/render"
	"sluice/internal/show"
	"sluice/internal/text"
)

// Limits of the inbox.
const (
	endedMost  = 30 // runs that ended today
	stripsMost = 50 // live runs with a small graph
)

// inboxPage has what waits for a person, the live runs, and those that ended today.
type inboxPage struct {
	Title  string
	Waits  []waitItem
	Runs   []runItem
	Ended  []runItem
	More   int // ended ones that are not shown
	Faults []string
}

// waitItem is one thing that waits for a person.
type waitItem struct {
	Repo, URL, Do   string
	Run, Gate, Kind string
	Title, Words    string
	Spent, Trust    string
	Stub            bool
	Since, Until    time.Time
}

// runItem is a run in a list.
type runItem struct {
	Repo, URL    string
	ID, State    string
	Words, Spent string
	Trust        string
	NotPassed    string // how much went on without a pass
	Stub         bool
	Since, Ended time.Time
	Done, Steps  int
	Strip        template.HTML // specs/graph made it
	OfTask       string
	over         time.Time
}

func (s *Server) inbox(r *http.Request) (view, error) {
	ctx := r.Context()
	known, err := s.repos.all(ctx)
	if err != nil {
		return view{}, err
	}
	var p inboxPage
	var live []liveRun
	now := s.con.Now()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	for _, at := range known {
		st, waits, err := s.repos.waits(ctx, at, midnight)
		if err != nil {
			p.Faults = append(p.Faults, at.Name+": "+text.Message(err.Error()))
			continue
		}
		if stall := render.Stall(st); stall != "" {
			p.Faults = append(p.Faults, at.Name+": "+stall)
		}
		p.More += st.Left
		spent := make(map[string]string, len(st.Runs))
		for i := range st.Runs {
			x := &st.Runs[i]
			spent[x.ID] = render.Spent(x.Usage, x.Budget)
			switch {
			case x.Live() && x.Child == nil:
				live = append(live, liveRun{at, x})
			case !x.Live() && x.Child == nil && x.Ended.After(midnight):
				p.Ended = append(p.Ended, itemOf(at.Name, *x, now))
			}
		}
		for _, w := range waits {
			p.Waits = append(p.Waits, waitOf(at.Name, w, spent[w.Run]))
		}
	}
	slices.SortStableFunc(live, func(a, b liveRun) int { return b.Started.Compare(a.Started) })
	for i, x := range live {
		item := itemOf(x.at.Name, *x.RunStatus, now)
		if spec := s.repos.compiled(x.at, x.Digest); i < stripsMost && spec != nil {
			item.Strip = strip(spec, *x.RunStatus, x.at.Name, s.pages.now())
		}
		p.Runs = append(p.Runs, item)
	}
	slices.SortStableFunc(p.Waits, func(a, b waitItem) int { return a.Since.Compare(b.Since) })
	slices.SortStableFunc(p.Ended, func(a, b runItem) int { return b.over.Compare(a.over) })
	if n := len(p.Ended) - endedMost; n > 0 {
		p.Ended, p.More = p.Ended[:endedMost], p.More+n
	}
	p.Title = inboxTitle(len(p.Waits))
	return view{title: p.Title, nav: "inbox", body: "inbox", parts: []string{"waits", "runs", "ended"},
		data: p}, nil
}

// liveRun is a run with its repo.
type liveRun struct {
	at repo
	*daemon.RunStatus
}

// waits returns the status of a repo with what waits in it, by one request for all its runs. The
// specs of its live runs are known afterwards.
func (p *repos) waits(ctx context.Context, at repo, midnight time.Time) (daemon.Status, []show.Waiting, error) {
	v, served, err := at.View(ctx)
	if err != nil {
		return daemon.Status{}, nil, err
	}
	defer v.Close()
	st, err := v.Recent(ctx, midnight, endedMost)
	if err != nil {
		return st, nil, err
	}
	specOf := show.SpecsOf(func(r daemon.RunStatus) (*engine.Spec, error) { return p.spec(ctx, at, v, r) })
	for _, r := range st.Runs {
		if r.Live() {
			specOf(r)
		}
	}
	return st, show.Waits(st, served, specOf), nil
}

func inboxTitle(waits int) string {
	if waits == 0 {
		return "Inbox"
	}
	return "(" + text.Plural(waits, "question") + ") Inbox"
}

// waitOf returns a wait as the inbox shows it: one thing to do, on one page.
func waitOf(repo string, w show.Waiting, spent string) waitItem {
	out := waitItem{Repo: repo, Run: w.Run, Gate: w.Gate, Kind: w.Kind,
		Words: render.WhyElse(w.Why), Spent: spent, Trust: w.Trust, Stub: w.Stub, Since: w.Since, Until: w.Until}
	out.Title = cmp.Or(w.Look, text.Title(cmp.Or(w.Gate, w.Step), w.Name))
	if out.URL, out.Do = reviewOf(runURL(repo, w.Run), w.Kind, w.Gate); out.URL == "" {
		out.URL, out.Do = runURL(repo, w.Run), "Open"
	}
	switch w.Kind {
	case "offer":
		out.Words = "Anyone can take this step, with sluice next in a terminal"
	case "paused":
		out.Title = w.Run + " is paused"
	}
	return out
}

// itemOf returns a run as a list shows it.
func itemOf(repo string, r daemon.RunStatus, now time.Time) runItem {
	out := runItem{Repo: repo, URL: runURL(repo, r.ID), ID: r.ID, State: render.RunState(r), Trust: r.Trust,
		Stub: r.Stubbed, NotPassed: render.NotPassed(r.More + len(r.Unpassed)),
		Words: render.FirstWait(r, now, waitWords), Spent: render.Spent(r.Usage, r.Budget), Since: r.Started, Ended: r.Ended,
		OfTask: r.Child.Title(), over: r.Ended}
	out.Done, out.Steps = render.Progress(r)
	return out
}
