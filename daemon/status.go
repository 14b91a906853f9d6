package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
)

// statusOf returns a repo's status. With full, it includes all attempts and rounds. The loop waits
// for it, so it opens no file; drift adds which specs have changed, from the returned sources of
// the live runs.
func statusOf(c *core, root string, only string, full bool, today func() (string, engine.Spend, engine.Spend)) (s Status, sources map[string]string) {
	s = Status{Root: root, Runs: []RunStatus{}, Notices: len(c.state.Notices)}
	s.Seq, _ = c.log.Last()
	if s.Today = (Today{Day: c.state.Today.Day, Here: c.state.Today.Usage}); today != nil {
		day, all, budget := today()
		if s.Today.Day != day {
			s.Today.Here = engine.Spend{}
		}
		s.Today.Day, s.Today.All, s.Today.Budget = day, all, budget
	}
	sources = map[string]string{}
	// the same for all that wait
	taken := sync.OnceValue(func() engine.Taken { return c.state.Taken(c.spec) })
	for _, id := range c.state.Order {
		if r := c.state.Runs[id]; only == "" || only == id {
			s.Runs = append(s.Runs, runStatus(c, r, full, taken))
			if r.Live() && c.spec(r.Digest) != nil {
				sources[r.Digest] = c.sources[r.Digest]
			}
		}
	}
	s.unpassed(c)
	return s, sources
}

// levels adds what separates an agent from a gate, for the repo and its live runs.
func (s *Status) levels(w World) {
	s.Trust, s.Exposed = w.Level("")
	for i := range s.Runs {
		if r := &s.Runs[i]; r.Ended.IsZero() {
			r.Trust, r.Exposed = w.Level(r.ID)
		}
	}
}

// drift records for each run whether its workflow's file has changed since. A child run has no file
// of its own: its parent reports it.
func (s *Status) drift(sources map[string]string) {
	type pinned struct{ workflow, digest, file string }
	changed := map[pinned]bool{}
	for i := range s.Runs {
		r := &s.Runs[i]
		source, live := sources[r.Digest]
		if !live || !r.Ended.IsZero() || r.Child != nil {
			continue
		}
		key := pinned{r.Workflow, r.Digest, r.file}
		is, known := changed[key]
		if !known {
			is = drifted(s.Root, r.Workflow, r.file, source)
			changed[key] = is
		}
		r.SpecDrift = is
	}
}

func runStatus(c *core, r *engine.Run, full bool, taken func() engine.Taken) RunStatus {
	out := RunStatus{ID: r.ID, Workflow: r.Workflow, Name: r.Workflow, Phase: r.Phase, Started: r.Started, Ended: r.Ended, EndWhy: r.EndWhy,
		Stubbed: r.Stubbed(), By: r.By, Usage: r.Usage, Budget: r.UsageLimit, Roles: maps.Clone(r.Roles), RoleBudgets: maps.Clone(r.RoleLimits), Near: near(r), Notes: slices.Clone(r.Notes), Vars: r.Vars, Digest: r.Digest, file: r.File, Steps: []StepStatus{}}
	if r.Paused {
		out.Paused = r.PausedWhy
		w := Wait{Kind: "paused", Text: "it is paused (" + r.PausedWhy + "): sluice resume " + r.ID}
		if r.Child != nil && r.PausedWhy == engine.PausedParent { // nobody needs to resume it
			w = Wait{Kind: "parent", Text: "for " + r.Child.Parent + ", which is paused"}
		}
		out.Waits = append(out.Waits, w)
	}
	spec := c.spec(r.Digest)
	if spec == nil {
		out.Paused = "spec: " + c.unread[r.Digest]
		return out
	}
	out.Name = spec.Name
	out.Child, out.Dir = copied(r.Child), r.Folder()
	out.Workspace, out.Branch = r.Workspace, engine.WorkspaceBranch(r.Workspace)
	for _, st := range spec.Steps {
		out.Steps = append(out.Steps, stepStatus(c.state, r, spec, st, full))
	}
	if full {
		out.Children = childSteps(c, r)
	}
	if r.Live() {
		out.Waits = append(out.Waits, waits(c, r, spec, taken)...)
	}
	return out
}

// Made returns what the run has made in its own worktree. Its status must include the rounds.
func (s *RunStatus) Made() job.Made {
	m := job.Made{Run: s.ID, Title: cmp.Or(s.Name, s.Workflow), Workspace: s.Workspace, Branch: s.Branch}
	for _, st := range slices.Concat(s.Steps, s.Children) {
		for _, g := range st.Gates {
			for i, q := range g.Rounds {
				m.Rounds = append(m.Rounds, job.MadeRound{Round: q, Gate: g.ID, Worktree: st.Worktree, All: passedAll(st, q), Said: i == len(g.Rounds)-1 && !g.Implicit})
			}
		}
	}
	return m
}

// passedAll reports whether all gates of a step passed what a round was about.
func passedAll(st StepStatus, q engine.Round) bool {
	return !slices.ContainsFunc(st.Gates, func(g GateStatus) bool {
		return !slices.ContainsFunc(g.Rounds, func(o engine.Round) bool {
			return o.State == engine.Approved && o.Attempt == q.Attempt && o.Digest == q.Digest
		})
	})
}

// near returns the budgets that were reported as almost used up.
func near(r *engine.Run) []string {
	var out []string
	for _, budget := range slices.Sorted(maps.Keys(r.Near)) {
		out = append(out, budget+" "+r.Near[budget])
	}
	return out
}

// maxSpecFile is the largest spec file read; a larger one counts as changed.
const maxSpecFile = 128 << 10

// drifted reports whether the workflow's file differs from what the run uses. Nothing at that path
// can block the open.
func drifted(root, workflow, file, source string) bool {
	most := int64(len(source))
	if file != "" {
		most = maxSpecFile
	}
	now, _, err := atomicfile.OpenRegular(filepath.Join(root, ".workflow", "specs"), workflow+".yaml", most)
	switch {
	case err != nil:
		return true
	case file != "": // the source has schemas and values written into it
		return digestOf(string(now)) != file
	}
	return string(now) != source
}

func stepStatus(s *engine.State, r *engine.Run, spec *engine.Spec, st *engine.Step, full bool) StepStatus {
	out := StepStatus{ID: st.ID, Name: st.Name, Role: st.Role(), State: "waiting"}
	if as := r.Attempts[st.ID]; len(as) > 0 {
		a := as[len(as)-1]
		out.State, out.Attempt, out.Worktree, out.Summary, out.Failure = a.State, a.N, a.Worktree, a.Summary, a.Failure
		out.Since, out.Held = sinceOf(a), copied(a.Held)
		switch {
		case a.State == engine.Superseded && r.Live():
			out.State = "waiting"
		case a.State == engine.Superseded && r.Phase == engine.RunFailed && r.EndStep == st.ID:
			out.State = engine.RunFailed // as every failure does, what ended the run undid it
		}
		if full {
			for _, x := range as {
				out.Attempts = append(out.Attempts, *x)
			}
		}
	}
	if st.ForEach != nil && r.List != nil {
		out.List = listStatus(r.List, full)
	}
	for _, id := range st.Gates {
		out.Gates = append(out.Gates, gateStatus(s, r, spec.Gate(id), full))
	}
	return out
}

func listStatus(l *engine.TaskList, full bool) *ListStatus {
	out := &ListStatus{Tally: l.Tally(), File: l.Path, Fault: l.Why}
	if l.File == engine.FileMissing {
		out.Fault = l.Path + " is missing"
	}
	for _, t := range l.Tasks {
		if t.Child == "" && !full {
			continue
		}
		x := TaskStatus{ID: t.ID, Title: t.Title, State: t.State, Tries: t.Tries, Depth: t.Depth, StandsFor: t.For, Run: t.Child, Summary: t.Summary, Why: t.Why, Held: t.Held}
		if l.StoodFor(t) && l.Done(t) {
			x.State = engine.TaskDone
		}
		if full && t.State == engine.TaskDone { // as expressions have it
			x.Answer = l.Answers[t.ID]
		}
		out.Tasks = append(out.Tasks, x)
	}
	return out
}

func sinceOf(a *engine.Attempt) time.Time {
	switch {
	case !a.Ended.IsZero():
		return a.Ended
	case !a.Launched.IsZero():
		return a.Launched
	}
	return a.Started
}

func gateStatus(s *engine.State, r *engine.Run, g *engine.Gate, full bool) GateStatus {
	out := GateStatus{ID: g.ID, Name: g.Name, Level: g.Reviewer.Level, Implicit: g.Implicit, Forced: r.Forced[g.ID], Count: r.Fails[g.ID], Routes: maps.Clone(r.Routes[g.ID]), Max: g.MaxRetries}
	if out.Forced {
		out.Level = engine.LevelHuman
	}
	qs := r.Rounds[g.ID]
	if len(qs) > 0 {
		q := qs[len(qs)-1]
		out.State, out.Round, out.Why, out.Outcome, out.Score, out.Feedback = q.State, q.N, q.Why, q.Outcome, q.Score, q.Feedback
		out.Until, out.By, out.ByKind = q.WindowEnds, q.By, q.ByKind
		if q.State != engine.OnHuman {
			out.Why = ""
		}
		out.Due = q.State == engine.OnReview && r.Proc(q.Key) == nil
		if q.State == engine.OnHuman {
			out.Outcomes, out.AnswerRequired = g.Outcomes(), g.AsksAnswer()
			if g.Answer != nil {
				out.AnswerSchema = g.Answer.Source
			}
		}
		if q.State == engine.Approved && q.ByKind == engine.Human {
			out.Answer = q.Answer
		}
		out.Trust, out.Approvers, out.Reviewed = s.WantsTrust(q), g.Reviewer.Approvers, q.Digest
	}
	if full {
		for _, q := range qs {
			out.Rounds = append(out.Rounds, *q)
		}
	}
	return out
}

// waits lists what the run waits for, oldest first.
func waits(c *core, r *engine.Run, spec *engine.Spec, taken func() engine.Taken) []Wait {
	var out []Wait
	if r.Phase == engine.RunPending {
		return []Wait{{Kind: "need", Since: r.Requested, Text: pendingFor(c.state, r)}}
	}
	for _, st := range spec.Steps {
		a := r.Current(st.ID)
		if a == nil {
			if len(st.ExtNeeds) > 0 && r.Met[st.ID] == nil {
				for _, n := range st.ExtNeeds {
					out = append(out, Wait{Kind: "need", Step: st.ID, Text: fmt.Sprintf("%s for %s/%s", st.ID, n.Workflow, n.Step)})
				}
			}
			continue
		}
		if w, ok := waitOf(c, r, spec, st, a, taken); ok {
			out = append(out, w)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Since.Before(out[j].Since) })
	return out
}

// pendingFor returns what a pending run waits for: an earlier run of its workflow, or what the
// workflow needs of others.
func pendingFor(s *engine.State, r *engine.Run) string {
	for _, id := range s.Order {
		if id == r.ID || r.Parallel {
			break
		}
		if o := s.Runs[id]; o.Workflow == r.Workflow && o.Child == nil && o.Live() {
			return "for " + o.ID + " to end, an earlier run of " + r.Workflow
		}
	}
	return "for what the workflow needs of others"
}

func waitOf(c *core, r *engine.Run, spec *engine.Spec, st *engine.Step, a *engine.Attempt, taken func() engine.Taken) (Wait, bool) {
	w := Wait{Step: st.ID, Since: sinceOf(a)}
	switch a.State {
	case engine.Ready:
		w.Kind, w.Text = "slot", st.ID+" for the run to be resumed"
		if !r.Paused {
			w.Text = st.ID + launchWait(c, r, st.ID, a.Holds(), !r.Offers(st), taken())
		}
		if a.LimitWait {
			w = limitWait(w, st.ID, a.NotBefore, a.BudgetWait)
		} else if !a.NotBefore.IsZero() {
			w.Kind, w.Until, w.Text = "backoff", a.NotBefore, st.ID+" to be tried again"
		}
		if a.Held != nil {
			w.Kind, w.Until, w.Text = "held", time.Time{}, fmt.Sprintf("%s for %s, who has taken it over: sluice handback %s", st.ID, a.Held.Who, st.ID)
		}
	case engine.Running:
		switch {
		case a.List:
			w.Kind, w.Text = "tasks", st.ID+" for its tasks"
			if r.List != nil {
				n := r.List.Tally()
				w.Text = fmt.Sprintf("%s for its tasks: %d of %d done", st.ID, n.Done, n.Total)
			}
		case a.Children:
			w.Kind, w.Text = "tasks", st.ID+" for its run "+a.Child
		case a.Offered && a.ClaimedBy == "":
			w.Kind, w.Text = "offer", st.ID+" for somebody to do it: sluice next"
		case a.Offered:
			w.Kind, w.Text = "offer", st.ID+" for "+a.ClaimedBy
		case !a.GraceUntil.IsZero():
			w.Kind, w.Until, w.Text = "grace", a.GraceUntil, st.ID+" for its signal, its process has ended"
		default:
			w.Kind, w.Text = "agent", st.ID+" for its agent"
			if st.Agent == nil {
				w.Text = st.ID + " for its command"
			}
		}
	case engine.Signalled:
		w.Kind, w.Text = "agent", st.ID+" for its process to end and its criterion to be checked"
	case engine.Gating:
		return gateWait(c, r, spec, st, w, taken)
	default:
		return w, false
	}
	return w, true
}

// limitWait sets w to a wait for the end of a usage limit, or for a day with a budget.
func limitWait(w Wait, id string, until time.Time, day string) Wait {
	w.Kind, w.Until, w.Text = "limit", until, id+" for the usage limit"
	if day != "" {
		w.Kind, w.Text = "budget", id+" for the day's budget until "+until.Local().Format("15:04")
	}
	return w
}

// launchWait returns why a ready launch has not started: its worktree is in use, or no slot is
// free.
func launchWait(c *core, r *engine.Run, step, tree string, slot bool, taken engine.Taken) string {
	h, held := taken.Trees[tree]
	own := h.Run == r.ID && h.Step == step
	switch most := c.state.Config.MaxParallel; {
	case held && !own:
		s := fmt.Sprintf(" for its worktree, which %s/%s has", h.Run, h.Step)
		if h.Step == "" {
			s = " for its worktree, in which a hook of " + h.Run + " runs"
		}
		if h.Gate != "" {
			s += " until its gate " + h.Gate + " has decided"
		}
		if h.Paused {
			s += "; " + h.Run + " is paused"
		}
		return s
	case slot && taken.Slots >= most:
		return fmt.Sprintf(" for a free slot: %d of %d are taken (max_parallel)", taken.Slots, most)
	}
	return " to be launched"
}

func gateWait(c *core, r *engine.Run, spec *engine.Spec, st *engine.Step, w Wait, taken func() engine.Taken) (Wait, bool) {
	for _, id := range st.Gates {
		q := r.CurrentRound(id)
		if !q.Open() {
			continue
		}
		w.Gate, w.Since = id, q.Opened
		switch q.State {
		case engine.OnReview:
			w.Kind, w.Text = "review", id+" for its reviewer"
			switch {
			case r.Proc(q.Key) != nil:
			case r.Paused:
				w.Text = id + " for the run to be resumed: its review is due"
			default:
				w.Text = id + launchWait(c, r, q.Step, r.Attempt(q.Step, q.Attempt).HeldInReview(), true, taken())
			}
			if q.LimitWait && r.Proc(q.Key) == nil {
				w = limitWait(w, id, q.NotBefore, q.BudgetWait)
			}
		case engine.OnNotice:
			w.Kind, w.Text = "window", id+" for its notice"
		case engine.OnWindow:
			w.Kind, w.Until, w.Text = "window", q.WindowEnds, id+" for a veto, until the window closes: sluice veto "+id
		default:
			w.Kind, w.Text = "human", fmt.Sprintf("%s for a person: sluice show %s, then sluice pass %s or sluice fail %s -m …", id, id, id, id)
		}
		return w, true
	}
	return w, false
}

// offersOf lists the steps that someone may claim.
func offersOf(c *core, root string) []Offer {
	out := []Offer{}
	for _, id := range c.state.Order {
		r := c.state.Runs[id]
		spec := c.spec(r.Digest)
		if r.Phase != engine.RunRunning || spec == nil {
			continue
		}
		for _, st := range spec.Steps {
			a := r.Current(st.ID)
			if a == nil || a.State != engine.Running || !a.Offered {
				continue
			}
			o := Offer{Run: id, Child: copied(r.Child), Step: st.ID, Name: st.Name, Attempt: a.N, Launch: st.Agent.Launch, Role: st.Role(), Since: a.Launched, Claimed: a.ClaimedBy,
				Worktree: filepath.Join(root, a.Worktree), Prompt: filepath.Join(AttemptDir(root, r.Folder(), st.ID, a.N, a.K), "prompt.md"), SignalType: st.Signal.Type}
			switch st.Signal.Type {
			case engine.SignalFile:
				o.Signal = filepath.Join(root, ".workflow", "signals", id, filepath.Base(st.Signal.Value))
			case engine.SignalCommit:
				o.Marker = st.Signal.Value
			}
			out = append(out, o)
		}
	}
	return out
}

// AttemptDir returns the folder of a step's attempt or a gate's round. run is the run's folder
// (RunStatus.Dir). From the second launch on, each launch has its own folder in it.
func AttemptDir(root, run, id string, n, k int) string {
	dir := filepath.Join(root, ".workflow", "runs", run, fmt.Sprintf("%s.%d", id, n))
	if k > 1 {
		dir = filepath.Join(dir, fmt.Sprintf("launch-%d", k))
	}
	return dir
}
