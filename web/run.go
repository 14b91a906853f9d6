package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// runPage is one run.
type runPage struct {
	runItem
	Workflow, By string
	Served       bool
	Live, Paused bool
	Failed       bool // it can be tried again
	Why          string
	Warnings     []string
	Graph        template.HTML // specs/graph made it
	Waits        []waitLine
	Steps        []stepLine
	Lines        []logLine
	Earlier      int  // lines that are not shown
	Older        bool // there are lines before those, uncounted
	Roles        []roleCost
	Budget       string
	Vars         []field
	Children     []runItem
	Take         string // how to take its work, or that it has landed
}

// waitLine is one thing that the run waits for.
type waitLine struct {
	Words, URL, Do string
}

// stepLine is a step with its attempts and gates.
type stepLine struct {
	ID, Name, State, Words string
	Attempts               []attemptLink
	Gates                  []gateLine
	Done, Total            int // of a list
}

type attemptLink struct{ Name, URL, State, Spent string }

type gateLine struct{ ID, Name, State, URL, Words string }

type roleCost struct {
	Role, Words string
	Part        float64 // of the role that cost most, 0 to 1
}

type logLine struct {
	At            time.Time
	Subject, Text string
	Class         string
	Gate          string // that it is about, if any
	Below         string // the run of a task that it is about
	URL           string // of what it is about; "" = the run
}

// varMost is how much of a value that a run was given is shown, in characters.
const varMost = 300

func (s *Server) run(r *http.Request) (v view, err error) {
	err = s.look(r, func(at repo, vw workspace.Viewer, served bool, run daemon.RunStatus) error {
		now := s.con.Now()
		p := runPage{runItem: itemOf(at.Name, run, now), Workflow: text.Title(run.Workflow, run.Name), Served: served,
			Live: run.Live(), Paused: run.Paused != "", Why: text.Message(run.EndWhy),
			By: run.By.Who, Warnings: render.WentOn(run)}
		p.Failed = run.Phase == engine.RunFailed
		if run.Live() && run.Trust == "file" {
			p.Warnings = append(p.Warnings, render.Unheld(run))
		}
		for _, n := range run.Near {
			p.Warnings = append(p.Warnings, render.NearBudget(n))
		}
		if run.SpecDrift {
			p.Warnings = append(p.Warnings, "the workflow's file has changed; this run keeps the version it was started with")
		}
		if !served && run.Live() {
			p.Warnings = append(p.Warnings, "the daemon does not serve this repo now, so the run stands still")
		}
		for _, name := range slices.Sorted(maps.Keys(run.Vars)) {
			value := text.Clean(fmt.Sprint(run.Vars[name]), varMost)
			if run.Paused == engine.PausedConfirm { // it is decided on
				value = text.Reveal(fmt.Sprint(run.Vars[name]))
			}
			if value != "" {
				p.Vars = append(p.Vars, field{name, value})
			}
		}
		p.waits(run, now)
		p.steps(run)
		p.costs(run)
		if p.Lines, p.Earlier, p.Older, err = s.repos.log(r.Context(), at, vw, run.ID); err != nil {
			return err
		}
		p.link(run)
		if spec, err := s.repos.spec(r.Context(), at, vw, run); err == nil {
			p.Graph = drawn(spec, run, p.URL, now)
		}
		if err := p.children(r.Context(), at, vw, run, now); err != nil {
			return err
		}
		p.Take = s.repos.logOf(at, run.ID).toTake(r.Context(), at, run)
		v = view{title: run.ID, nav: "inbox", body: "run", parts: []string{"runhead", "graph", "runwaits", "control", "steps",
			"costs", "children", "lines"}, repos: []string{at.Root}, run: run.ID, data: p}
		return nil
	})
	return v, err
}

// children adds the runs of its tasks: only a list has any, and it takes all runs to find them.
func (p *runPage) children(ctx context.Context, at repo, v workspace.Viewer, run daemon.RunStatus,
	now time.Time) error {
	if !slices.ContainsFunc(run.Steps, func(st daemon.StepStatus) bool { return st.List != nil }) {
		return nil
	}
	st, err := v.Status(ctx, "")
	for b := range daemon.Below(daemon.Each(st.Runs), run.ID) {
		p.Children = append(p.Children, itemOf(at.Name, *b, now))
	}
	return err
}

func (p *runPage) waits(run daemon.RunStatus, now time.Time) {
	for _, w := range run.Waits {
		url, do := reviewOf(p.URL, w.Kind, w.Gate)
		p.Waits = append(p.Waits, waitLine{waitWords(w, now), url, do})
	}
}

// reviewOf returns the page on which a person does what a run waits for, and what that is; "" = there is none.
func reviewOf(run, kind, gate string) (url, do string) {
	switch kind {
	case "human":
		return run + "/g/" + gate, "Review"
	case "window":
		return run + "/g/" + gate, "Review or veto"
	}
	return "", ""
}

// waitWords returns what a run waits for, without the commands that a terminal would take.
func waitWords(w daemon.Wait, now time.Time) string {
	if w.Until.IsZero() {
		now = inSteps(now) // a countdown is exact
	}
	since := ""
	if !w.Since.IsZero() {
		since = " for " + render.Ago(now.Sub(w.Since))
	}
	switch w.Kind {
	case "human":
		return "Waiting for you at " + text.Line(w.Gate) + since
	case "window":
		return text.Line(w.Gate) + " passes in " + render.Ago(w.Until.Sub(now)) + " unless you veto"
	case "offer":
		return "Waiting for somebody to take " + text.Line(w.Step) + since
	case "paused":
		return "Paused"
	}
	words := render.WaitWords(w, now)
	if rest, ok := strings.CutPrefix(words, "waiting"); ok {
		return "Waiting" + rest
	}
	return words
}

func (p *runPage) steps(run daemon.RunStatus) {
	for _, st := range run.Steps {
		l := stepLine{ID: st.ID, Name: st.Name, State: st.State, Words: render.Quoted(st.Summary)}
		if st.Failure != "" {
			l.Words = text.Message(text.Brief(st.Failure))
		}
		l.Words = cmp.Or(render.PassedWithout(st), l.Words)
		if st.List != nil {
			l.Done, l.Total = st.List.Done, st.List.Total
		}
		for _, a := range st.Attempts {
			if !a.Launched.IsZero() {
				l.Attempts = append(l.Attempts, attemptLink{fmt.Sprint(a.N), attemptURL(p.URL, st.ID, a.N), stateOf(st, a),
					render.SpentShort(a.Usage, engine.Usage{})})
			}
		}
		for _, g := range st.Gates {
			if !g.Listed() {
				continue
			}
			words := render.GateState(g)
			if g.ByKind != "" && g.State == engine.Approved {
				words += " by " + render.By(g.ByKind, g.By)
			}
			if g.Round > 0 {
				words += fmt.Sprintf(" · round %d", g.Round)
			}
			if n := strings.Join(render.Counts(g.Count, g.Routes, g.Max), ", "); n != "" {
				words += " · " + n
			}
			l.Gates = append(l.Gates, gateLine{g.ID, g.Name, g.State, p.URL + "/g/" + g.ID, words})
		}
		p.Steps = append(p.Steps, l)
	}
}

// link gives each line the page of the gate or the attempt that it is about.
func (p *runPage) link(run daemon.RunStatus) {
	known := map[string]string{}
	for _, g := range run.Gates() {
		known["gate "+g.ID] = p.URL + "/g/" + g.ID
	}
	for _, st := range run.Steps {
		for _, a := range st.Attempts {
			known[render.Attempt(st.ID, a.N)] = attemptURL(p.URL, st.ID, a.N)
		}
	}
	for i, l := range p.Lines {
		if p.Lines[i].URL = cmp.Or(known["gate "+l.Gate], known[l.Subject]); l.Below != "" {
			p.Lines[i].URL = runURL(p.Repo, l.Below)
		}
	}
}

// plain returns a line of the log without the command that its link replaces.
func plain(s render.FactLine) string {
	for _, command := range []string{"show", "veto"} {
		s.Text = strings.Replace(s.Text, ": sluice "+command+" "+s.Gate, "", 1)
	}
	return s.Text
}

func (p *runPage) costs(run daemon.RunStatus) {
	p.Budget = render.Spent(run.Usage, run.Budget)
	most := 0.0
	weight := func(u engine.Spend) float64 {
		if run.Usage.CostUSD > 0 {
			return u.CostUSD
		}
		return float64(u.Tokens)
	}
	for _, u := range run.Roles {
		most = max(most, weight(u))
	}
	for _, role := range slices.Sorted(maps.Keys(run.Roles)) {
		c := roleCost{Role: role, Words: render.SpentInAllShort(run.Roles[role], run.RoleBudgets[role])}
		if most > 0 {
			c.Part = weight(run.Roles[role]) / most
		}
		p.Roles = append(p.Roles, c)
	}
}

// keptPage is shown when words for a run were not taken in, and has them.
type keptPage struct {
	errorPage
	URL, RunURL, Run string
	Text, Step, Sure string
}

// steer pauses, resumes, retries or aborts a run, or adds a note to it. Words that are not taken in come
// back.
func (s *Server) steer(r *http.Request) (to string, v *view, err error) {
	words := strings.TrimSpace(r.PostForm.Get("text"))
	if to, v, err = s.steered(r, words); err == nil || words == "" {
		return to, v, err
	}
	at := r.URL.EscapedPath()
	p := keptPage{URL: at, RunURL: at[:strings.LastIndexByte(at, '/')], Run: r.PathValue("run"), Text: words,
		Step: r.PostForm.Get("step"), Sure: r.PostForm.Get("sure")}
	_, p.errorPage = told(s.opt.Log, r, err)
	return "", &view{title: "That did not work", nav: "inbox", body: "kept", data: p}, nil
}

func (s *Server) steered(r *http.Request, words string) (to string, v *view, err error) {
	at, err := s.repos.named(r.Context(), r.PathValue("repo"))
	if err != nil {
		return "", nil, err
	}
	id := r.PathValue("run")
	to = runURL(at.Name, id)
	if len(words) > engine.MaxFeedback {
		return "", nil, fault.New("put it into a file in the repo and name that file", "the note has more than %d bytes",
			engine.MaxFeedback)
	}
	var ev engine.Event
	switch what := r.PathValue("what"); what {
	case "pause":
		ev = engine.PauseRequested{Run: id}
	case "resume":
		ev = engine.ResumeRequested{Run: id}
	case "retry":
		ev = engine.RetryRequested{Run: id}
	case "note":
		if words == "" {
			return "", nil, fault.New("write what the agents should know", "the note is empty")
		}
		ev = engine.NoteGiven{Run: id, Step: r.PostForm.Get("step"), Text: words}
	case "abort":
		if r.PostForm.Get("sure") != id {
			return "", &view{title: "Abort " + id, nav: "inbox", body: "abort", ask: true,
				data: struct{ Run, URL string }{id, to}}, nil
		}
		ev = engine.AbortRequested{Run: id, Why: words}
	default:
		return "", nil, errNotFound{fmt.Sprintf("a run has no action %q", text.Line(what))}
	}
	done, err := at.Do(r.Context(), ev, s.passkeys.via(r))
	if err != nil {
		return "", nil, err
	}
	if done.Ignored != "" {
		return "", nil, fault.New("look at the run again", "nothing was done: %s", done.Ignored)
	}
	return to, nil, nil
}

// via names this page in the record of who did what.
const via = "page"
