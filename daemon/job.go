package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/job"
)

// orders turns what the state owes into jobs for the World. A job shares nothing with the state.
type orders struct {
	core  *core
	hold  bool            // RepoOptions.Hold
	found map[string]bool // keys of the launches that were on the record at the start
}

func newOrders(c *core, hold bool) *orders {
	o := &orders{core: c, hold: hold, found: map[string]bool{}}
	for _, run := range c.state.Runs {
		for _, p := range run.Procs {
			o.found[p.Key] = true
		}
	}
	return o
}

// owedBy appends what a debtor owes. With hold it drops what begins work.
func (o *orders) owedBy(out []engine.Effect, who engine.Debtor) []engine.Effect {
	n := len(out)
	out = o.core.state.OwedBy(out, who, o.core.spec)
	if !o.hold {
		return out
	}
	return append(out[:n], slices.DeleteFunc(out[n:], begins)...)
}

// begins reports whether the effect starts or continues work, rather than ending or reporting it.
func begins(e engine.Effect) bool {
	switch e.Kind {
	case engine.DoStop, engine.DoNotify, engine.DoWrite, engine.DoMove, engine.DoSave:
		return false
	case engine.DoRun:
		return e.Proc.Kind != engine.ProcHook || e.Proc.Step != ""
	}
	return true
}

// job gathers what an effect needs, so that its goroutine shares nothing with the state.
func (o *orders) job(e engine.Effect) job.Job {
	c := o.core
	j := job.Job{Effect: e, Config: c.state.Config, Found: o.found[e.Key]}
	j.Effect.Proc, j.Effect.Notice, j.Effect.Write, j.Effect.Move = copied(e.Proc), copied(e.Notice), copied(e.Write),
		copied(e.Move)
	if a := c.state.Armed[e.Armed]; a != nil {
		j.Effect.Firing, j.Spec, j.Armed, j.Tips = copied(e.Firing), c.spec(a.Digest), a.Digest, maps.Clone(a.Tips)
	}
	run := c.state.Runs[e.Run]
	if run == nil {
		return j
	}
	j.Spec = c.spec(run.Digest)
	j.Vars = run.Vars
	j.RunInfo = runInfo(c, run, e)
	if e.Kind == engine.DoTasks || e.Kind == engine.DoSave {
		j.Tasks = taskFile(run.List, run.Stubbed(), e.Kind == engine.DoSave)
	}
	if j.Spec == nil {
		return j
	}
	if st := j.Spec.List(); e.Kind == engine.DoSave && st != nil && len(run.List.Make) > 0 {
		j.Tasks.Make, j.Tasks.From, j.Tasks.Own = run.List.Make, st.ForEach.From.Source, run.List.Own == run.List.Path
	}
	j.History, j.Sent = history(run, j.Spec), sent(run, j.Spec)
	if asksMade(e) {
		s := runStatus(c, run, true, shared{taken: func() engine.Taken { return engine.Taken{} }})
		made := s.Made()
		made.Asked = j.Spec.Description
		j.Made = &made
	}
	if e.Write != nil && e.Write.Sweep {
		j.Live, j.Known = liveRuns(c.state), slices.Clone(c.state.Order)
	}
	for o := run; e.Proc != nil && o != nil; o = c.state.Parent(o) {
		role := e.Proc.Role
		j.RunInfo.Bounds = append(j.RunInfo.Bounds, engine.Bound{Most: o.UsageLimit, Used: o.Usage},
			engine.Bound{Most: o.RoleLimits[role].Usage, Used: o.Roles[role].Usage})
	}
	ofStep(c, run, &j)
	return j
}

// ofStep adds what an effect needs of the step, or the round, that it is about.
func ofStep(c *core, run *engine.Run, j *job.Job) {
	e := j.Effect
	step, n := e.Step, e.N
	if g := j.Spec.Gate(e.Gate); e.Gate != "" && g != nil {
		if rounds := run.Rounds[e.Gate]; n >= 1 && n <= len(rounds) {
			j.Round = copied(rounds[n-1])
			j.Env = c.state.GateEnv(run, j.Spec, e.Gate, j.Round)
			step, n = j.Round.Step, j.Round.Attempt
		}
	}
	if j.Spec.Step(step) == nil {
		return
	}
	j.Attempt = copied(run.Attempt(step, n))
	if j.Env == nil {
		j.Env = c.state.StepEnv(run, j.Spec, step, n)
	}
	if run.Workspace != "" {
		j.Works = works(c, run, step)
	}
	if e.Proc != nil && j.Spec.SetupOf(j.Spec.Step(step)) != nil {
		j.Passed = passed(c.state, run)
	}
	if e.Proc != nil && e.Proc.Kind == engine.ProcCheck {
		j.Left, j.LeftPassed = engine.LeftIn(c.state, j.Attempt.Tree)
	}
	j.Earlier = earlier(run, j.Spec, step, n)
	if l := run.List; l != nil && l.To == step && l.For == "" && e.Gate == "" {
		j.RunInfo.FileWhy = l.Why
	}
	if e.Gate == "" {
		j.Notes = notesFor(run, step)
	}
	j.Nth, j.Turn = nth(run, j.Spec, e)
}

// asksMade reports whether who carries the effect out tells others what the run has made.
func asksMade(e engine.Effect) bool {
	switch e.Kind {
	case engine.DoWrite:
		return e.Write.Kind == engine.WriteLand
	case engine.DoNotify:
		return e.Notice.Kind == engine.NoticeEnded
	case engine.DoRun:
		return e.Proc.Forge
	}
	return e.Kind == engine.DoForge
}

// runInfo returns what an effect gets of its run.
func runInfo(c *core, run *engine.Run, e engine.Effect) job.RunInfo {
	out := job.RunInfo{ID: run.ID, Workflow: run.Workflow, Phase: run.Phase,
		EndWhy: run.EndWhy, RetryDir: run.RetryDir, File: run.File, Stubs: run.Stubs, Workspace: run.Workspace}
	if run.Child != nil {
		out.Child = copied(run.Child)
		if o := c.state.Parent(run); o != nil {
			if t := o.List.Task(run.Child.Task); t != nil {
				out.Tried, out.TaskStatus = slices.Clone(t.Tried), o.List.Status(t)
				out.SentBack = sentBack(o, c.spec(o.Digest))
			}
		}
	}
	out.Tasks = taskNames(c.state, run)
	for o := run; o != nil; o = c.state.Parent(o) {
		if o.List != nil {
			out.Lists = append(out.Lists, o.List.Path)
		}
	}
	if e.Notice != nil && e.Notice.Kind == engine.NoticeEnded ||
		e.Proc != nil && e.Proc.Kind == engine.ProcHook && e.Proc.Step == "" {
		s := Status{Runs: []RunStatus{{ID: run.ID}}}
		s.unpassed(c)
		out.Unpassed = len(s.Runs[0].Unpassed) + s.Runs[0].More
	}
	return out
}

// taskNames returns the tasks that a run is done for, innermost first. A name belongs to the
// innermost list that has it; an outer task of the same name is left out.
func taskNames(s *engine.State, run *engine.Run) (out []job.TaskName) {
	var inner []*engine.TaskList
	for o := run; o != nil && o.Child != nil; o = s.Parent(o) {
		id := o.Child.Task
		if id == "" {
			continue
		}
		if !slices.ContainsFunc(inner, func(l *engine.TaskList) bool { return l.Task(id) != nil }) {
			out = append(out, job.TaskName{ID: id, Try: o.Child.Try, Own: o == run})
		}
		if p := s.Parent(o); p != nil && p.List != nil {
			inner = append(inner, p.List)
		}
	}
	return out
}

// works returns the step results of all runs that share the run's workspace, as seen from step.
func works(c *core, run *engine.Run, step string) []job.Work {
	// run -> which of its steps precede; of their child runs, all do
	before := map[string]func(step string) bool{}
	for r, at := run, step; r != nil; r = c.state.Parent(r) {
		spec, to := c.spec(r.Digest), at
		before[r.ID] = func(s string) bool { return spec != nil && spec.LeadsTo(s, to) }
		if r.Child != nil {
			at = r.Child.Step
		}
	}
	var out []job.Work
	for _, id := range c.state.Order { // parents come before their children
		r := c.state.Runs[id]
		if r.Workspace != run.Workspace {
			continue
		}
		if before[id] == nil && r.Child != nil && before[r.Child.Parent] != nil {
			all := before[r.Child.Parent](r.Child.Step)
			before[id] = func(string) bool { return all }
		}
		for s, as := range r.Attempts {
			if a := as[len(as)-1]; before[id] != nil && !a.Reads {
				out = append(out, job.Work{Run: id, Step: s, N: a.N, Tree: a.Tree, Live: a.Live(),
					Passed: a.State == engine.Passed, To: slices.Clone(a.To), Upstream: before[id](s)})
			}
		}
	}
	slices.SortFunc(out,
		func(a, b job.Work) int { return cmp.Or(strings.Compare(a.Run, b.Run), strings.Compare(a.Step, b.Step)) })
	return out
}

// taskFile returns what to look for in a list's file, or what to write into it.
func taskFile(l *engine.TaskList, stubbed, save bool) *job.TaskFile {
	out := &job.TaskFile{Path: l.Path, Seen: l.Seen}
	if !save {
		return out
	}
	for _, t := range l.Tasks {
		if t.Writing == "" {
			continue
		}
		c := job.TaskChange{ID: t.ID, Status: t.Writing, Summary: t.Summary, For: t.For, Stubbed: stubbed,
			Tried: t.Writing == engine.TaskDone && len(t.Tried) > 0, Blockers: t.Blockers}
		replaced := t.Writing == engine.TaskDone && t.State != engine.TaskDone // others have done it
		if t.Unblocked || replaced && len(t.Blockers) > 0 {
			c.Blockers = []string{}
		}
		if t.Base == "" {
			c.Body = t.Body
		}
		if replaced {
			c.Summary = ""
		} else if c.Summary == "" && t.State != engine.TaskDone {
			c.Summary = t.Why
		}
		out.Changes = append(out.Changes, c)
	}
	return out
}

func liveRuns(s *engine.State) []string {
	var out []string
	for _, run := range s.LiveRuns() {
		out = append(out, run.ID)
	}
	return out
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// history lists the run's retry-context files in the order they were written.
func history(run *engine.Run, spec *engine.Spec) []job.RetryFile {
	var out []job.RetryFile
	for _, g := range spec.Gates {
		for _, q := range run.Rounds[g.ID] {
			if q.File > 0 {
				out = append(out, job.RetryFile{Gate: g.ID,
					Path: engine.RetryPath(g.RetryContext, run.RetryDir, q.File), Step: q.Step, To: q.To})
			}
		}
	}
	return out
}

// sentBack returns the retry-context files of the gates that sent the run's list back.
func sentBack(run *engine.Run, spec *engine.Spec) []job.RetryFile {
	if spec == nil {
		return nil
	}
	return slices.DeleteFunc(history(run, spec),
		func(h job.RetryFile) bool { return !spec.Concerns(run.List.Step, h.Step, h.To) })
}

// maxSent is the most routed rounds per gate in a job.
const maxSent = 20

// sent lists each gate's newest rounds that took a route to a step, in the order they ended.
func sent(run *engine.Run, spec *engine.Spec) []job.Sent {
	var out []job.Sent
	for _, g := range spec.Gates {
		qs, n := run.Rounds[g.ID], 0
		for i := len(qs) - 1; i >= 0 && n < maxSent; i-- {
			if q := qs[i]; q.Route != "" && q.To != "" && !engine.IsEnd(q.To) {
				out = append(out, job.Sent{Gate: g.ID, Round: *q})
				n++
			}
		}
	}
	slices.SortFunc(out, func(a, b job.Sent) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Seq, b.Seq)) })
	return out
}

// earlier describes the step's attempts before n.
func earlier(run *engine.Run, spec *engine.Spec, step string, n int) []string {
	var out []string
	for _, a := range run.Attempts[step] {
		if a.N >= n {
			break
		}
		line := fmt.Sprintf("attempt %d: %s", a.N, a.Status)
		for _, id := range spec.Step(step).Gates {
			for _, q := range run.Rounds[id] {
				if q.Attempt == a.N && q.Outcome != "" {
					line += fmt.Sprintf("; %s at %s", q.Outcome, id)
				}
			}
		}
		out = append(out, line)
	}
	return out
}

func notesFor(run *engine.Run, step string) []engine.Note {
	var out []engine.Note
	for _, n := range run.Notes {
		if n.Step == "" || n.Step == step {
			out = append(out, n)
		}
	}
	return out
}

// nth returns how often the effect's role was launched in the run before, and whose turn it is. A
// relaunch keeps its attempt's turn, whatever was launched beside it. A task's run continues after
// the runs of the list's earlier tasks.
func nth(run *engine.Run, spec *engine.Spec, e engine.Effect) (launches, turn int) {
	role, own := "", 0
	if g := spec.Gate(e.Gate); e.Gate != "" && g != nil {
		role = g.Reviewer.AgentType
		if rounds := run.Rounds[e.Gate]; e.N >= 1 && e.N <= len(rounds) {
			own = rounds[e.N-1].Turn
		}
	} else if st := spec.Step(e.Step); st != nil {
		role = st.Role()
		if a := run.Attempt(e.Step, e.N); a != nil {
			own = a.Turn
		}
	}
	count := func(k, at int) {
		if launches += k; k > 0 && (own == 0 || at <= own) {
			turn++
		}
	}
	for _, st := range spec.Steps {
		if st.Role() == role {
			for _, a := range run.Attempts[st.ID] {
				count(a.K, a.Turn)
			}
		}
	}
	for _, g := range spec.Gates {
		if g.Reviewer.AgentType == role {
			for _, q := range run.Rounds[g.ID] {
				count(q.K, q.Turn)
			}
		}
	}
	launches, turn = max(launches-1, 0), max(turn-1, 0)
	if run.Child != nil {
		turn += run.Child.Turn
	}
	return launches, turn
}
