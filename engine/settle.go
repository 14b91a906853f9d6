package engine

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"time"
)

// settleMost bounds the rounds of one settling; more would be a bug.
const settleMost = 100_000

// settle draws what follows from the state alone: what is due starts, what is ready is launched, what is quiet ends.
func (d *decider) settle() {
	for n := 0; ; n++ {
		must(n < settleMost, "settling does not end")
		before := len(d.out)
		for _, id := range slices.Clone(d.s.Order) {
			r := d.s.Runs[id]
			if r != nil && (d.touched[id] || d.across && d.waitsAcross(r)) {
				d.advance(r)
			}
		}
		d.schedule()
		if len(d.out) == before {
			return
		}
	}
}

// waitsAcross says that the run may wait for another one.
func (d *decider) waitsAcross(r *Run) bool {
	if !r.Live() {
		return false
	}
	if r.Phase == RunPending {
		return true
	}
	w := d.spec(r)
	return w != nil && slices.ContainsFunc(w.Steps, func(s *Step) bool { return len(s.ExtNeeds) > 0 })
}

// view is what the law of joins says of each step of a run (8-semantics 7-9).
type view struct {
	active, pending, due, blocked map[string]bool
}

// led says that something that stands leads to the step.
func (d *decider) led(r *Run, w *Spec, id string) bool {
	if w.graph.start[id] || w.graph.byNeed[id] {
		return true
	}
	if _, ok := r.Sent[id]; ok {
		return true
	}
	for _, u := range w.graph.order {
		a := r.Current(u)
		if a != nil && (a.State == Passed || a.State == Routed || a.State == Skipped) && slices.Contains(a.To, id) {
			return true
		}
	}
	return false
}

func (d *decider) view(r *Run, w *Spec) view {
	v := view{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	up := map[string]bool{} // something upstream is active
	for _, id := range w.graph.topo {
		a := r.Current(id)
		if a.Live() {
			v.active[id] = true
		} else if a == nil && d.led(r, w, id) {
			d.viewPending(r, w, id, v, up)
		}
		if v.active[id] {
			for t := range w.graph.down[id] {
				up[t] = true
			}
		}
	}
	return v
}

// viewPending looks at a step that is led to and has no current attempt.
func (d *decider) viewPending(r *Run, w *Spec, id string, v view, up map[string]bool) {
	met, dead := true, false
	for _, n := range w.Step(id).Needs {
		if !r.Current(n).Done() {
			met = false
			if !v.active[n] && !up[n] {
				dead = true
			}
		}
	}
	if w.graph.byNeed[id] && dead {
		return // not reached: it holds up nobody
	}
	v.active[id], v.pending[id] = true, true
	switch {
	case up[id]:
	case met:
		v.due[id] = true
	case dead:
		v.blocked[id] = true
	}
}

// advance moves one run on as far as the state allows.
func (d *decider) advance(r *Run) {
	w := d.spec(r)
	if w == nil {
		return
	}
	if r.Phase == RunPending {
		d.begin(r, w)
	}
	if r.Phase != RunRunning {
		d.afterRun(r, w)
		return
	}
	if d.endedUnread(r, w) || d.toGates(r, w) || d.overUsage(r, w) {
		return
	}
	v := d.view(r, w)
	waiting := false
	for _, id := range w.graph.order {
		if !v.due[id] || r.Paused {
			continue
		}
		if len(w.Step(id).ExtNeeds) > 0 && !d.extMet(r, w.Step(id)) {
			waiting = true
			continue
		}
		d.startStep(r, w, w.Step(id))
		return
	}
	if waiting || len(v.due) > 0 {
		return
	}
	if d.stuck(r, w, v) {
		return
	}
	if len(v.active) == 0 && len(r.Procs) == 0 && len(r.Writes) == 0 {
		d.end(r, RunCompleted, "", "", nil)
	}
}

// endedUnread judges the end of a step's process that came while the run's spec could not be read (8-semantics 37).
func (d *decider) endedUnread(r *Run, w *Spec) bool {
	for _, st := range w.Steps {
		a := r.Current(st.ID)
		if a == nil || a.State != Running || a.Offered || a.Exit == nil || !a.GraceUntil.IsZero() || r.Proc(a.Key) != nil {
			continue
		}
		d.stepEnded(r, st, a, Proc{Key: a.Key, Kind: ProcStep, Step: st.ID, N: a.N, K: a.K}, ProcessEnded{Run: r.ID, Key: a.Key, Exit: *a.Exit, Output: a.Output, Answer: a.Answer})
		return true
	}
	return false
}

// begin lets a pending run start, where nothing holds it.
func (d *decider) begin(r *Run, w *Spec) {
	if r.Paused {
		return
	}
	if !r.Parallel {
		for _, id := range d.s.Order {
			if id == r.ID {
				break
			}
			if o := d.s.Runs[id]; o.Workflow == r.Workflow && o.Live() {
				return
			}
		}
	}
	for _, n := range w.Needs {
		if _, ok := d.extPassed(r, n, ""); !ok {
			return
		}
	}
	d.put(RunBegan{of: Of(r.ID), RetryDir: d.retryDir(r, w)})
}

// retryDir gives a run a folder of its own for its retry context where one that lives has a gate of the same name.
func (d *decider) retryDir(r *Run, w *Spec) string {
	for _, id := range d.s.Order {
		o := d.s.Runs[id]
		if o == r || o.Phase != RunRunning || d.spec(o) == nil {
			continue
		}
		for _, g := range w.Gates {
			if d.spec(o).Gate(g.ID) != nil {
				return r.ID
			}
		}
	}
	return ""
}

// stuck ends the run where work was led to a step whose needs can no longer be met and nothing else is at work.
func (d *decider) stuck(r *Run, w *Spec, v view) bool {
	if len(v.active) == 0 || len(v.active) != len(v.pending) {
		return false
	}
	for _, id := range w.graph.order {
		if !v.blocked[id] {
			continue
		}
		var unmet []string
		for _, n := range w.Step(id).Needs {
			if !r.Current(n).Done() {
				unmet = append(unmet, n)
			}
		}
		d.end(r, RunFailed, id, fmt.Sprintf("step %s was led to, but %s, which it needs, can no longer pass", id, strings.Join(unmet, ", ")), nil)
		return true
	}
	return false
}

// toGates takes attempts that have said their word, whose process is gone and whose check and hook are done, to their
// first gate.
func (d *decider) toGates(r *Run, w *Spec) bool {
	for _, st := range w.Steps {
		a := r.Current(st.ID)
		if a == nil || a.State != Signalled || r.atWork(st.ID) || afterWord(w, st, a) != "" {
			continue
		}
		d.openGate(r, w, st, 0)
		return true
	}
	return false
}

// atWork says that a process of the step itself, its check or its hook is alive.
func (r *Run) atWork(step string) bool {
	return slices.ContainsFunc(r.Procs, func(p *Proc) bool { return p.Step == step && p.Kind != ProcReview })
}

// afterWord says what is still to run between the step's word and its gate: a check, a hook or nothing.
func afterWord(w *Spec, st *Step, a *Attempt) string {
	switch {
	case !a.Hooked && w.AfterStep != nil && a.Via != viaSpec:
		return ProcHook // before the check: what a formatter changes is what is checked, reviewed and bound to an answer
	case !a.Checked && a.Broken == "" && a.Via != viaSpec && needsCheck(w, st):
		return ProcCheck
	}
	return ""
}

// viaSpec marks the word of a step that could not even be launched: a `when` or a path of the spec had no value.
const viaSpec = "spec"

// needsCheck says that there is something to check, or to hold an answer against, between the word and the gate.
func needsCheck(w *Spec, st *Step) bool {
	if len(st.Outputs) > 0 || len(st.Criteria) > 0 || len(w.Protect) > 0 || st.Answer != nil {
		return true
	}
	return slices.ContainsFunc(st.Gates, func(id string) bool {
		g := w.Gate(id)
		return g.Reviewer.Level != LevelAuto || !g.Reviewer.FromStep
	})
}

// Checks says that what an attempt of the step has changed is looked at before its gates.
func (w *Spec) Checks(st *Step) bool { return needsCheck(w, st) }

// overUsage ends or pauses a run that has spent what it may.
func (d *decider) overUsage(r *Run, w *Spec) bool {
	if r.Paused {
		return false
	}
	key := ""
	if m := r.UsageLimit.Tokens; m > 0 && r.Usage.Tokens >= m {
		key = "max_tokens"
	} else if m := r.UsageLimit.CostUSD; m > 0 && r.Usage.CostUSD >= m {
		key = "max_cost_usd"
	}
	if key == "" {
		return false
	}
	d.limit(r, w, key, "")
	return true
}

// startStep starts the next attempt of a due step, or skips it.
func (d *decider) startStep(r *Run, w *Spec, st *Step) {
	n := len(r.Attempts[st.ID]) + 1
	env := d.stepEnv(r, w, st, n)
	ok, err := d.holds(st.When, r, w, env)
	if err == nil && !ok {
		to := w.LastGate(st).OnPass
		d.put(StepSkipped{of: Of(r.ID), Step: st.ID, N: n, To: to, When: st.When.Source})
		d.ends(r, st.ID, to)
		return
	}
	if r.Allowance > 0 && r.Begun >= r.Allowance {
		d.limit(r, w, "max_steps", st.ID)
		return
	}
	f := StepStarted{of: Of(r.ID), Step: st.ID, N: n, Pins: r.Met[st.ID]}
	if err == nil {
		f.Worktree, f.Tree, err = d.tree(r, st, env)
	}
	if err != nil {
		f.Tree = "."
	}
	d.put(f)
	if err != nil { // "not there yet" in a `when` or a path is a failed step
		a := r.Current(st.ID)
		d.put(StepLaunched{of: Of(r.ID), Step: st.ID, N: n, K: a.K + 1, Key: launchKey(r.ID, st.ID, n, a.K+1), Tree: f.Tree, Offered: true, SignalType: st.Signal.Type})
		d.signalled(StepSignalled{of: Of(r.ID), Step: st.ID, N: n, K: a.K, Status: StatusFailed, Via: viaSpec, Failure: err.Error()})
	}
}

// tree gives the step's worktree as evaluated and the key of the checkout it lies in.
func (d *decider) tree(r *Run, st *Step, env *Env) (string, string, error) {
	if st.Agent == nil || st.Agent.Worktree.Source == "" {
		return "", ".", nil
	}
	text, err := st.Agent.Worktree.String(env)
	if err != nil {
		return "", "", fmt.Errorf("worktree: %w", err)
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

// extMet says that what the step needs of other workflows is there, looked at and unchanged since.
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

// extPassed looks at the newest started run of the needed workflow (8-semantics 33). A person is told where it ended
// otherwise.
func (d *decider) extPassed(r *Run, n Need, step string) (pin string, ok bool) {
	o := d.s.newest(n.Workflow)
	if o == nil {
		return "", false
	}
	if a := o.Current(n.Step); a.Done() {
		return fmt.Sprintf("%s/%s#%d", o.ID, n.Step, a.N), true
	}
	if o.Phase == RunFailed || o.Phase == RunAborted {
		d.notice(Notice{ID: fmt.Sprintf("%s/%s.need-%s", r.ID, step, o.ID), Kind: NoticeInfo, Run: r.ID, Step: step, Once: true,
			Text: fmt.Sprintf("%s waits for %s/%s, but %s has %s", r.ID, n.Workflow, n.Step, o.ID, o.Phase)})
	}
	return "", false
}

// newest gives the newest run of the workflow that has begun.
func (s *State) newest(workflow string) *Run {
	var out *Run
	for _, id := range s.Order {
		if r := s.Runs[id]; r.Workflow == workflow && r.Phase != RunPending && (out == nil || r.N > out.N) {
			out = r
		}
	}
	return out
}

// afterRun starts the hook of an ended run when all its processes are gone.
func (d *decider) afterRun(r *Run, w *Spec) {
	if r.Live() || r.Hooked || w.AfterRun == nil || len(r.Procs) > 0 {
		return
	}
	d.put(HookStarted{of: Of(r.ID), N: int(d.s.Clock), Key: hookKey(r.ID, "", int(d.s.Clock)), Deadline: d.at.Add(time.Duration(d.s.Config.Timeout))})
}

// candidate is something that is ready to be launched.
type candidate struct {
	since int64
	tree  string
	run   string
	step  string
	gate  string
	kind  string // ProcStep, ProcReview, ProcCheck or ProcHook
}

// schedule launches what is ready, oldest first. Who cannot have its worktree does not hold up others.
func (d *decider) schedule() {
	holds, next, kept, used, ready := map[string]bool{}, map[string]bool{}, map[string]string{}, 0, []candidate(nil)
	for _, id := range d.s.Order {
		r := d.s.Runs[id]
		for _, p := range r.Procs {
			holds[p.Tree] = true
			if p.Kind == ProcStep || p.Kind == ProcReview {
				used++
			}
		}
		if r.Phase != RunRunning {
			continue
		}
		w := d.spec(r)
		if w == nil {
			r.holdUnread(holds)
			continue
		}
		for _, st := range w.Steps {
			if a := r.Current(st.ID); a != nil && r.keeps(st, a) {
				kept[a.Tree] = id + "/" + st.ID
			}
			ready = d.collect(r, w, st, holds, next, ready)
		}
	}
	sort.SliceStable(ready, func(i, j int) bool { return ready[i].since < ready[j].since })
	for _, c := range ready {
		if k := kept[c.tree]; k != "" && k != c.run+"/"+c.step {
			continue // a later gate's review, which has let go of the tree once, does not slip in either
		}
		slot := c.kind == ProcReview || c.kind == ProcStep && !d.offered(c)
		if holds[c.tree] || c.kind == ProcStep && next[c.tree] || slot && used >= d.s.Config.MaxParallel {
			if c.kind == ProcStep && !holds[c.tree] {
				next[c.tree] = true // it waits for a slot: nobody overtakes it in its own worktree
			}
			continue
		}
		d.launch(c)
		holds[c.tree] = true
		if slot {
			used++
		}
	}
}

// holdUnread marks the worktrees that are held without a process by a run whose spec cannot be read: offers, graces,
// words on their way to the gate, reviews that wait.
func (r *Run) holdUnread(holds map[string]bool) {
	for step := range r.Attempts {
		if a := r.Current(step); a != nil && (a.State == Running || a.State == Signalled) {
			holds[a.Tree] = true
		}
	}
	for gate := range r.Rounds {
		if q := r.CurrentRound(gate); q != nil && q.State == OnReview {
			holds[r.Attempt(q.Step, q.Attempt).Tree] = true
		}
	}
}

// keeps says that the attempt has its worktree without a gap since its launch: from the word through check, hook and
// reviewers to the verdict. A person, a window or a voided round lets go of it.
func (r *Run) keeps(st *Step, a *Attempt) bool {
	if a.State != Signalled && a.State != Gating {
		return false
	}
	for _, g := range st.Gates {
		for _, q := range r.Rounds[g] {
			if q.Attempt == a.N && q.State != OnReview && (q.State != Approved || q.Level != LevelAuto && q.ByKind != "when") {
				return false
			}
		}
	}
	return true
}

func (d *decider) offered(c candidate) bool {
	return d.spec(d.s.Runs[c.run]).Step(c.step).Offered()
}

func (d *decider) launch(c candidate) {
	r := d.s.Runs[c.run]
	w, a := d.spec(r), r.Current(c.step)
	st := w.Step(c.step)
	until := d.at.Add(time.Duration(d.s.Config.timeout(st.Timeout, st.Role()))) // of a check or hook
	switch c.kind {
	case ProcReview:
		d.launchReview(r, w.Gate(c.gate), c.tree)
	case ProcCheck:
		d.put(CheckStarted{of: Of(r.ID), Step: c.step, N: a.N, Key: checkKey(r.ID, c.step, a.N, d.s.Clock), Tree: c.tree, Deadline: until})
	case ProcHook:
		d.put(HookStarted{of: Of(r.ID), Step: c.step, N: a.N, Key: hookKey(r.ID, c.step, a.N), Tree: c.tree, Deadline: until})
	default:
		d.launchStep(r, st)
	}
}

// collect adds what of the step is ready, and marks the worktrees it holds without a process.
func (d *decider) collect(r *Run, w *Spec, st *Step, holds, next map[string]bool, ready []candidate) []candidate {
	a := r.Current(st.ID)
	if a == nil {
		return ready
	}
	switch a.State {
	case Ready:
		if !r.Paused && len(r.Writes) == 0 && !a.NotBefore.After(d.at) {
			ready = append(ready, candidate{since: a.Since, tree: a.Tree, run: r.ID, step: st.ID, kind: ProcStep})
		}
	case Running:
		if a.Offered || r.Proc(a.Key) == nil { // on offer, or in the grace after its exit
			holds[a.Tree] = true
		}
	case Signalled: // the tree is kept until its gate
		next[a.Tree] = true
		if kind := afterWord(w, st, a); kind != "" && !r.atWork(st.ID) {
			ready = append(ready, candidate{since: a.Since, tree: a.Tree, run: r.ID, step: st.ID, kind: kind})
		}
	case Gating:
		g, q := r.openRound(st)
		if q == nil || q.State != OnReview || r.Proc(q.Key) != nil {
			return ready
		}
		next[a.Tree] = true // the tree waits for its review: no step slips in between
		if !r.Paused && !q.NotBefore.After(d.at) {
			ready = append(ready, candidate{since: a.Since, tree: a.Tree, run: r.ID, step: st.ID, gate: g, kind: ProcReview})
		}
	}
	return ready
}

func (d *decider) launchStep(r *Run, st *Step) {
	a, c := r.Current(st.ID), d.s.Config
	f := StepLaunched{of: Of(r.ID), Step: st.ID, N: a.N, K: a.K + 1, Key: launchKey(r.ID, st.ID, a.N, a.K+1), Tree: a.Tree,
		Offered: st.Offered(), SignalType: st.Signal.Type, SignalValue: st.Signal.Value}
	if !f.Offered {
		f.Deadline = d.at.Add(time.Duration(c.timeout(st.Timeout, st.Role())))
	} else if st.Timeout > 0 {
		f.Deadline = d.at.Add(time.Duration(st.Timeout))
	}
	d.put(f)
}

func (d *decider) launchReview(r *Run, g *Gate, tree string) {
	q := r.CurrentRound(g.ID)
	d.put(ReviewStarted{of: Of(r.ID), Gate: g.ID, N: q.N, K: q.K + 1, Key: launchKey(r.ID, g.ID, q.N, q.K+1), Tree: tree,
		Deadline: d.at.Add(time.Duration(d.s.Config.timeout(0, g.Reviewer.AgentType)))})
}
