package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
)

// statusOf returns a repo's status. The loop waits for it, so it opens no file; drift adds which
// specs have changed, from the returned sources of the live runs.
func statusOf(c *core, root string, q query,
	today func() (string, engine.Spend, engine.Spend)) (s Status, sources map[string]string) {
	s = Status{Root: root, Notices: len(c.state.Notices)}
	s.Seq, _ = c.log.Last()
	if s.Today = (Today{Day: c.state.Today.Day, Here: c.state.Today.Usage}); today != nil {
		day, all, budget := today()
		if s.Today.Day != day {
			s.Today.Here = engine.Spend{}
		}
		s.Today.Day, s.Today.All, s.Today.Budget = day, all, budget
	}
	sources = map[string]string{}
	q.recent, s.Left = recent(c, q)
	all := shared{taken: sync.OnceValue(func() engine.Taken { return c.state.Taken(c.spec) }), unserved: q.unserved}
	most := len(c.state.Order)
	if q.run != "" {
		most = 1
	}
	s.Runs = make([]RunStatus, 0, most)
	for _, id := range c.state.Order {
		if r := c.state.Runs[id]; q.wants(r) {
			s.Runs = append(s.Runs, runStatus(c, r, q.full, all))
			if r.Live() && c.spec(r.Digest) != nil {
				sources[r.Digest] = c.sources[r.Digest]
			}
		}
	}
	s.unpassed(c)
	s.Triggers = triggersOf(c)
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

// awaited adds what rounds wait for at the forge, which the world knows.
func (s *Status) awaited(w World) {
	for i := range s.Runs {
		for k := range s.Runs[i].Waits {
			x := &s.Runs[i].Waits[k]
			if x.Kind != "review" && x.Kind != "human" {
				continue
			}
			if what := w.Awaits(s.Runs[i].ID, x.Gate); what != "" {
				x.Text = x.Gate + " " + what
			}
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

func runStatus(c *core, r *engine.Run, full bool, all shared) RunStatus {
	out := RunStatus{ID: r.ID, Workflow: r.Workflow, Name: r.Workflow, Phase: r.Phase, Started: r.Started,
		Ended: r.Ended, EndWhy: r.EndWhy,
		Stubbed: r.Stubbed(), By: r.By, Usage: r.Usage, Budget: r.UsageLimit, Roles: maps.Clone(r.Roles),
		RoleBudgets: maps.Clone(r.RoleLimits), Near: near(r), Notes: slices.Clone(r.Notes), Vars: r.Vars,
		Digest: r.Digest, file: r.File, Steps: []StepStatus{}}
	if r.Paused {
		out.Paused = r.PausedWhy
		resume := Resume(r.ID, !all.unserved)
		out.PausedText = strings.ReplaceAll(r.PausedText, Resume(r.ID, true), resume)
		w := Wait{Kind: "paused", Text: cmp.Or(out.PausedText, "it is paused")}
		if !strings.Contains(w.Text, resume) {
			w.Text += ": " + resume
		}
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
	out.Steps = make([]StepStatus, 0, len(spec.Steps))
	for _, st := range spec.Steps {
		out.Steps = append(out.Steps, stepStatus(c.state, r, spec, st, full))
	}
	if full {
		out.Children = childSteps(c, r)
	}
	if r.Live() {
		out.Waits = append(out.Waits, waits(c, r, spec, all)...)
	}
	return out
}

// Made returns what the run has made in its own worktree. Its status must include the rounds.
func (s *RunStatus) Made() job.Made {
	m := job.Made{Run: s.ID, Title: cmp.Or(s.Name, s.Workflow), Workspace: s.Workspace, Branch: s.Branch, Vars: s.Vars}
	for _, w := range s.Waits {
		m.Stands = append(m.Stands, w.Text)
	}
	for n, st := range slices.Concat(s.Steps, s.Children) {
		if st.Summary != "" && n < len(s.Steps) {
			m.Did = append(m.Did, job.Did{Step: st.ID, Summary: st.Summary})
		}
		for _, g := range st.Gates {
			for i, q := range g.Rounds {
				m.Rounds = append(m.Rounds,
					job.MadeRound{Round: q, Gate: g.ID, Worktree: st.Worktree, All: passedAll(st, q),
						Said: i == len(g.Rounds)-1 && !g.Implicit, Own: n < len(s.Steps)})
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

// near returns the budgets that were reported as almost used up, with what is used of each; not those that were raised
// since. Time goes on between two looks, so that of a time limit only the part is said at which it was reported.
func near(r *engine.Run) []string {
	type spent struct{ used, limit string }
	const most = "over four fifths"
	if len(r.Near) == 0 {
		return nil
	}
	all := map[string]spent{
		"max_tokens":   {fmt.Sprint(r.Usage.Tokens), fmt.Sprint(r.UsageLimit.Tokens)},
		"max_cost_usd": {dollars(r.Usage.CostUSD), dollars(r.UsageLimit.CostUSD)},
		"max_steps":    {fmt.Sprint(r.Begun), fmt.Sprint(r.Allowance)},
		"max_duration": {most, r.TimeLimit.String()},
	}
	for role, limit := range r.RoleLimits {
		used, key := r.Roles[role], "roles."+role+"."
		all[key+"max_tokens"] = spent{fmt.Sprint(used.Tokens), fmt.Sprint(limit.Tokens)}
		all[key+"max_cost_usd"] = spent{dollars(used.CostUSD), dollars(limit.CostUSD)}
		all[key+"max_launches"] = spent{fmt.Sprint(used.Launches), fmt.Sprint(limit.Launches)}
		all[key+"max_duration"] = spent{most, limit.Time.String()}
	}
	var out []string
	for _, budget := range slices.Sorted(maps.Keys(r.Near)) {
		if s := all[budget]; s.limit == r.Near[budget] {
			out = append(out, budget+" "+s.used+" of "+s.limit)
		}
	}
	return out
}

// dollars formats an amount as the limits in facts are.
func dollars(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

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

// Untaken reports whether a pass of the attempt goes on without its work: it gave no result in the run's own worktree,
// where only checked work is committed.
func Untaken(own string, a *engine.Attempt) bool {
	return own != "" && a.Worktree == own && a.Broken != "" && a.Content == "" && !a.Reads
}

func stepStatus(s *engine.State, r *engine.Run, spec *engine.Spec, st *engine.Step, full bool) StepStatus {
	out := StepStatus{ID: st.ID, Name: st.Name, Role: st.Role(), State: "waiting"}
	if as := r.Attempts[st.ID]; len(as) > 0 {
		a := as[len(as)-1]
		out.State, out.Attempt, out.Worktree, out.Summary, out.Failure = a.State, a.N, a.Worktree, a.Summary, a.Failure
		out.Since, out.Held, out.Untaken = sinceOf(a), copied(a.Held), Untaken(r.Workspace, a)
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
		for i := range out.List.Tasks {
			out.List.Tasks[i].Asks = asking(s.Runs[out.List.Tasks[i].Run])
		}
	}
	for _, id := range st.Gates {
		out.Gates = append(out.Gates, gateStatus(s, r, spec.Gate(id), full))
	}
	return out
}

// asking returns the gates at which a live run waits for a person.
func asking(r *engine.Run) (gates []string) {
	if r == nil || !r.Live() {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(r.Rounds)) {
		if q := r.CurrentRound(id); q.Open() && q.State == engine.OnHuman {
			gates = append(gates, id)
		}
	}
	return gates
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
		x := TaskStatus{ID: t.ID, Title: t.Title, State: t.State, Tries: t.Tries, Depth: t.Depth, StandsFor: t.For,
			Run: t.Child, Summary: t.Summary, Why: t.Why, Held: t.Held}
		x.Before = t.State == engine.TaskDone && t.Runs == 0
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
	out := GateStatus{ID: g.ID, Name: g.Name, Level: g.Reviewer.Level, Implicit: g.Implicit, Forced: r.Forced[g.ID],
		Count: r.Fails[g.ID], Routes: maps.Clone(r.Routes[g.ID]), Max: g.MaxRetries}
	if out.Forced {
		out.Level = engine.LevelHuman
	}
	qs := r.Rounds[g.ID]
	for _, q := range qs {
		if !q.Asked.IsZero() && q.Ended.After(q.Asked) {
			out.Waited += engine.Duration(q.Ended.Sub(q.Asked))
		}
	}
	if len(qs) > 0 {
		q := qs[len(qs)-1]
		out.State, out.Round, out.Why, out.Outcome, out.Score, out.Feedback = q.State, q.N, q.Why, q.Outcome, q.Score,
			q.Feedback
		out.Until, out.By, out.ByKind = q.WindowEnds, q.By, q.ByKind
		if q.State != engine.OnHuman {
			out.Why = ""
		}
		out.Due = q.State == engine.OnReview && r.Procs.Of(q.Key) == nil
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
			o := Offer{Run: id, Child: copied(r.Child), Step: st.ID, Name: st.Name, Attempt: a.N, Launch: st.Agent.Launch,
				Role: st.Role(), Since: a.Launched, Claimed: a.ClaimedBy,
				ByPerson: slices.Contains(a.Doers, a.ClaimedBy),
				Worktree: filepath.Join(root, a.Worktree),
				Prompt:   filepath.Join(AttemptDir(root, r.Folder(), st.ID, a.N, a.K), "prompt.md"), SignalType: st.Signal.Type}
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
