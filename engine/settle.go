package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// settleMost limits the rounds of one settling; more would be a bug.
const settleMost = 100_000

// settle applies what follows from the state alone: due steps start, ready ones are launched, quiet
// runs end.
func (d *decider) settle() {
	for n := 0; ; n++ {
		if n == settleMost {
			wrong("settling does not end")
		}
		before := len(d.out)
		d.advanceAll()
		d.schedule()
		if len(d.out) == before {
			return
		}
	}
}

// advanceAll advances the runs touched by a fact since their last advance, in order of start.
func (d *decider) advanceAll() {
	for at := 0; ; {
		i := slices.IndexFunc(d.again, func(r *Run) bool { return r.seq > at })
		if i < 0 {
			return
		}
		r := d.again[i]
		d.again = slices.Delete(d.again, i, i+1)
		at = r.seq
		if d.s.Runs[r.ID] == r { // not forgotten
			d.advance(r)
		}
	}
}

// advance moves one run as far as the state allows.
func (d *decider) advance(r *Run) {
	for n := 0; d.advanceOne(r); n++ {
		if n == settleMost {
			wrong("a run does not come to rest")
		}
	}
}

// advanceOne makes one move in a run, and reports whether to continue at once: what a gate decides
// comes before any launch, because a limit may pause the run.
func (d *decider) advanceOne(r *Run) bool {
	w := d.spec(r)
	if w == nil {
		return false
	}
	if r.Child != nil && !r.Live() {
		d.afterRun(r, w) // its parent continues when the hook is over too
	}
	if r.Child != nil && d.advanceChild(r) {
		return true
	}
	if r.Phase == RunPending {
		d.begin(r, w)
	}
	if r.Phase != RunRunning {
		d.afterRun(r, w)
		return false
	}
	if d.endedUnread(r, w) || d.toGates(r, w) {
		return true
	}
	d.nearLimits(r)
	if d.overUsage(r, w) || d.overRoles(r, w) {
		return false
	}
	d.overBudget(r)
	if d.advanceChildren(r, w) {
		return true
	}
	v := r.view(w)
	waiting := false
	for i, st := range w.Steps {
		if v.due == 0 || r.Paused {
			break
		}
		if !v.of[i].due {
			continue
		}
		if len(st.ExtNeeds) > 0 && !d.extMet(r, st) {
			waiting = true
			continue
		}
		d.startStep(r, w, st)
		return false
	}
	if waiting || v.due > 0 {
		return false
	}
	if d.stuck(r, w, v) {
		return false
	}
	if v.active == 0 && len(r.Procs) == 0 && len(r.Writes) == 0 && len(r.kids) == 0 {
		d.complete(r, w)
	}
	return false
}

// begin starts a pending run unless something holds it.
func (d *decider) begin(r *Run, w *Spec) {
	if r.Paused {
		return
	}
	if !r.Parallel && !r.flow.turn(r) {
		return
	}
	for _, n := range w.Needs {
		if _, ok := d.extPassed(r, n, ""); !ok {
			return
		}
	}
	d.put(RunBegan{of: Of(r.ID), RetryDir: d.retryDir(r, w)})
}

// retryDir returns the run's own retry-context folder if a running run has a gate of the same name,
// else "".
func (d *decider) retryDir(r *Run, w *Spec) string {
	if r.Child != nil {
		return r.ID
	}
	running := func(o *Run) bool { return o != r && o.Phase == RunRunning && o.Child == nil }
	for digest, kin := range d.s.index.kin {
		o := d.specs.Of(digest)
		if o == nil || !slices.ContainsFunc(w.Gates, func(g *Gate) bool { return o.Gate(g.ID) != nil }) {
			continue
		}
		if slices.ContainsFunc(*kin, running) {
			return r.ID
		}
	}
	return ""
}

// retryDirAgain is retryDir for a reopened run. It also looks at runs that began later: they moved
// its files away, and the shared folder is theirs.
func (d *steering) retryDirAgain(r *Run, w *Spec) string {
	if r.RetryDir != "" {
		return ""
	}
	for _, id := range d.s.Order {
		o := d.s.Runs[id]
		if o == r || o.Child != nil || o.Phase == RunPending || !o.Live() && !o.Started.After(r.Started) {
			continue
		}
		if other := d.spec(o); other != nil &&
			slices.ContainsFunc(w.Gates, func(g *Gate) bool { return other.Gate(g.ID) != nil }) {
			return r.ID
		}
	}
	return ""
}

// stuck ends the run if work was led to a step whose needs can no longer be met and nothing else is
// at work.
func (d *decider) stuck(r *Run, w *Spec, v *view) bool {
	if v.active == 0 || v.active != v.pending {
		return false
	}
	for i, st := range w.Steps {
		if !v.of[i].blocked {
			continue
		}
		id := st.ID
		var unmet []string
		for _, n := range st.Needs {
			if !r.Current(n).Done() {
				unmet = append(unmet, n)
			}
		}
		d.end(r, RunEnded{Phase: RunFailed, Step: id, Why: fmt.Sprintf(
			"step %s was led to, but %s, which it needs, can no longer pass", id, strings.Join(unmet, ", "))})
		return true
	}
	return false
}

// toGates opens the first gate of an attempt that has reported and whose process, check and hook
// are done.
func (d *decider) toGates(r *Run, w *Spec) bool {
	for _, a := range w.inOrder(r.alive) {
		if a.State != Signalled || r.Procs.atWork(a.step) {
			continue
		}
		st := w.Step(a.step)
		if afterWord(r, w, st, a) != "" {
			continue
		}
		d.openGate(r, w, st, 0)
		return true
	}
	return false
}

// afterWord returns what must still run between the step's report and its gate: a check, a hook or
// "".
func afterWord(r *Run, w *Spec, st *Step, a *Attempt) string {
	switch {
	// with children, it runs after each child's steps
	case !a.Hooked && w.AfterStep != nil && a.Via != viaSpec && !a.Children:
		// before the check: a formatter's changes are part of what is checked, reviewed and bound
		// to an answer
		return ProcHook
	case !a.Checked && a.Broken == "" && a.Via != viaSpec && w.Checks(st, r.Workspace != ""):
		return ProcCheck
	}
	return ""
}

// viaSpec marks a step that could not be launched: a `when` or a path of the spec had no value.
const viaSpec = "spec"

// Checks reports whether there is something to check, to take or to bind an answer to before the
// gate. With workspace, the run's own worktree, all work is taken for its branch; so it is if any
// step reads taken work.
func (w *Spec) Checks(st *Step, workspace bool) bool {
	if (workspace || w.Looked) && st.ForEach == nil && st.Child == nil {
		return true
	}
	if len(st.Outputs) > 0 || len(st.Criteria) > 0 || len(w.Protect) > 0 || st.Answer != nil {
		return true
	}
	return slices.ContainsFunc(st.Gates, func(id string) bool {
		g := w.Gate(id)
		return g.Reviewer.Level != LevelAuto || !g.Reviewer.FromStep
	})
}

// startStep starts the next attempt of a due step, or skips it.
func (d *decider) startStep(r *Run, w *Spec, st *Step) {
	n := len(r.Attempts[st.ID]) + 1
	env := func() *Env { return d.s.StepEnv(r, w, st.ID, n) }
	ok, err := holds(st.When, env)
	if err == nil && !ok {
		to := w.LastGate(st).OnPass
		d.put(StepSkipped{of: Of(r.ID), Step: st.ID, N: n, To: to, When: st.When.Source})
		d.renew(r, st.ID)
		d.ends(r, st.ID, to)
		return
	}
	if r.Allowance > 0 && r.Begun >= r.Allowance && st.ForEach == nil {
		d.limit(r, w, "max_steps", st.ID)
		return
	}
	f := StepStarted{of: Of(r.ID), Step: st.ID, N: n, Pins: r.Met[st.ID], Children: st.Child != nil &&
		err == nil, List: st.ForEach != nil}
	f.Reads = st.Reads() && !f.Children
	if err == nil {
		f.Worktree, f.Tree, err = d.tree(r, st, env)
	}
	if err != nil {
		f.Tree = "."
	}
	d.put(f)
	if err != nil { // a `when` or path without a value fails the step
		a := r.Current(st.ID)
		d.put(StepLaunched{of: Of(r.ID), Step: st.ID, N: n, K: a.K + 1, Key: launchKey(r.ID, st.ID, n, a.K+1),
			Tree: f.Tree, Offered: true, SignalType: st.Signal.Type})
		d.signalled(StepSignalled{of: Of(r.ID), Step: st.ID, N: n, K: a.K, Status: StatusFailed, Via: viaSpec,
			Failure: err.Error()})
	}
}

// tree returns the step's evaluated worktree and the key of its checkout.
func (d *decider) tree(r *Run, st *Step, env func() *Env) (string, string, error) {
	if st.Agent == nil || st.Agent.Worktree.Source == "" {
		if r.Workspace != "" {
			return r.Workspace, r.Workspace, nil
		}
		return "", ".", nil
	}
	text := st.Agent.Worktree.Source
	if st.Agent.Worktree.Eval != nil {
		var err error
		if text, err = st.Agent.Worktree.Eval(env()); err != nil {
			return "", "", fmt.Errorf("worktree: %w", err)
		}
	}
	clean := path.Clean(text)
	if clean == "." {
		return "", ".", nil
	}
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", "", fmt.Errorf("worktree %q leaves the repo", text)
	}
	if key, ok := r.Trees[clean]; ok {
		return clean, key, nil
	}
	return clean, clean, nil
}

// extMet reports whether what the step needs from other workflows is available, and unchanged since
// it was looked at.
func (d *decider) extMet(r *Run, st *Step) bool {
	pins := []string{}
	for _, n := range st.ExtNeeds {
		pin, ok := d.extPassed(r, n, st.ID)
		if !ok {
			return false
		}
		pins = append(pins, pin)
	}
	return slices.Equal(r.Met[st.ID], pins)
}

// extPassed looks at the newest started run of the needed workflow (8-semantics 33). If that failed
// or was aborted, a person is notified.
func (d *decider) extPassed(r *Run, n Need, step string) (pin string, ok bool) {
	o := d.s.index.newest(n.Workflow, r)
	if o == nil {
		return "", false
	}
	if a := o.Current(n.Step); a.Done() {
		return fmt.Sprintf("%s/%s#%d", o.ID, n.Step, a.N), true
	}
	if o.Phase == RunFailed || o.Phase == RunAborted {
		d.notice(Notice{ID: fmt.Sprintf("%s/%s.need-%s", r.ID, step, o.ID), Kind: NoticeInfo, Run: r.ID,
			Step: step, Once: true,
			Text: fmt.Sprintf("%s waits for %s/%s, but %s has %s", r.ID, n.Workflow, n.Step, o.ID, o.Phase)})
	}
	return "", false
}
