package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/internal/text"
)

// requested starts a run.
func (d *decider) requested(ev RunRequested) {
	w := d.specs(ev.Digest)
	if w == nil || w.ID != ev.Workflow {
		d.ignore("", ev.EventKind(), fmt.Sprintf("workflow %s: its spec cannot be loaded", ev.Workflow), &ev.By)
		return
	}
	if _, why := d.startRun(w, ev); why != "" {
		d.ignore("", ev.EventKind(), why, &ev.By)
	}
}

// startRun starts a run, and returns its id, or why it does not.
func (d *ending) startRun(w *Spec, ev RunRequested) (id, why string) {
	vars, why := startVars(w, ev.Vars)
	if live := d.s.index.ownLive(); live >= MaxPending {
		why = fmt.Sprintf("%d runs are live in this repo, the maximum: end some first", live)
	}
	if why == "" && len(ev.Stubs) > 0 && (len(ev.Stubs) > MaxStubs || !json.Valid(ev.Stubs)) {
		why = fmt.Sprintf("its stub script is not JSON of at most %d KiB", MaxStubs>>10)
	}
	if why != "" {
		return "", why
	}
	n := max(d.s.Numbers[w.ID], ev.After) + 1
	for d.s.Runs[fmt.Sprintf("%s-%d", w.ID, n)] != nil { // ids of workflows a and a-1 can collide
		n++
	}
	id = fmt.Sprintf("%s-%d", w.ID, n)
	d.put(RunStarted{of: Of(id), Workflow: w.ID, N: n, Digest: ev.Digest, File: ev.File, Source: ev.Source,
		Vars: vars, Trees: ev.Trees, Parallel: ev.Parallel, Workspace: workspace(w, id),
		MaxSteps: w.Limits.MaxSteps, TimeLimit: w.Limits.MaxDuration,
		UsageLimit: Usage{Tokens: w.Limits.MaxTokens, CostUSD: w.Limits.MaxCostUSD}, RoleLimits: w.Limits.Roles,
		Stubs: ev.Stubs, Ratio: w.Limits.MaxFailedRatio, By: ev.By, Fired: ev.Fired})
	if ev.Paused {
		d.put(RunPaused{of: Of(id), Why: "user", By: &ev.By})
	}
	return id, ""
}

// startVars returns the run's vars from the declared and the given ones, or what is wrong.
func startVars(w *Spec, given map[string]any) (map[string]any, string) {
	out, known := map[string]any{}, []string{}
	for _, v := range w.Vars {
		known = append(known, v.Name)
		x, ok := given[v.Name]
		if !ok && v.Required {
			return nil, fmt.Sprintf("workflow %s wants the var %s: sluice start %s --var %s=…", w.ID, v.Name,
				w.ID, v.Name)
		}
		if !ok {
			x = v.Default
		}
		if x, ok = sameType(v.Default, x); !ok {
			return nil, fmt.Sprintf("var %s of workflow %s: want a value like %v, found %v", v.Name, w.ID,
				v.Default, given[v.Name])
		}
		out[v.Name] = x
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := out[name]; ok {
			continue
		}
		why := fmt.Sprintf("workflow %s has no var %s", w.ID, name)
		if near := text.Nearest(name, known); near != "" {
			why += fmt.Sprintf(": did you mean %s?", near)
		} else if len(known) > 0 {
			why += ": it has " + strings.Join(known, ", ")
		}
		return nil, why
	}
	if b, err := json.Marshal(out); err != nil || len(b) > MaxVars {
		return nil, fmt.Sprintf("the vars of workflow %s take more than %d KiB", w.ID, MaxVars>>10)
	}
	return out, ""
}

// sameType converts x to the default's type, if it can. A required var has no default and accepts any type.
func sameType(def, x any) (any, bool) {
	s, text := x.(string)
	switch def.(type) {
	case bool:
		if text && (s == "true" || s == "false") {
			return s == "true", true
		}
		_, ok := x.(bool)
		return x, ok
	case float64, int, int64:
		var f float64
		if text {
			if err := json.Unmarshal([]byte(s), &f); err != nil {
				return nil, false
			}
			return f, true
		}
		b, err := json.Marshal(x)
		if err != nil || json.Unmarshal(b, &f) != nil {
			return nil, false
		}
		return f, true
	case string:
		return x, text
	}
	return x, true
}

func (d *steering) pause(ev PauseRequested) {
	r := d.s.Runs[ev.Run]
	if why := notLive(r, ev.Run); why != "" || r.Paused {
		d.ignore(ev.Run, ev.EventKind(), cmp.Or(why, fmt.Sprintf("run %s is paused already", ev.Run)), &ev.By)
		return
	}
	d.put(RunPaused{of: Of(r.ID), Why: "user", By: &ev.By})
	d.pauseChildren(r)
}

// PausedParent is the PausedWhy of a run whose parent is paused.
const PausedParent = "parent"

// pauseChildren pauses the live children of a paused run.
func (d *steering) pauseChildren(r *Run) {
	for _, k := range slices.Clone(r.kids) {
		if k.Live() && !k.Paused {
			d.put(RunPaused{of: Of(k.ID), Why: PausedParent})
			d.pauseChildren(k)
		}
	}
}

// resumeChildren resumes what pauseChildren paused.
func (d *steering) resumeChildren(r *Run) {
	for _, k := range slices.Clone(r.kids) {
		if k.Live() && k.PausedWhy == PausedParent {
			d.put(RunResumed{of: Of(k.ID)})
			d.reopenWindows(k)
			d.takeUpEnds(k)
			d.resumeChildren(k)
		}
	}
}

// notLive returns why nothing more can be done in a run, or "".
func notLive(r *Run, id string) string {
	switch {
	case r == nil:
		return fmt.Sprintf("no run %s is known", id)
	case !r.Live():
		return fmt.Sprintf("run %s is over (%s): sluice retry %s STEP continues it", id, r.Phase, id)
	}
	return ""
}

func (d *steering) resume(ev ResumeRequested) {
	r := d.s.Runs[ev.Run]
	why := notLive(r, ev.Run)
	if why == "" && !r.Paused {
		why = fmt.Sprintf("run %s is not paused", ev.Run)
	}
	if o := d.s.Parent(r); why == "" && o != nil && o.Paused {
		why = fmt.Sprintf("run %s is not resumed while %s is paused: sluice resume %s", ev.Run, o.ID, o.ID)
	}
	if why == "" && d.spec(r) == nil {
		why = fmt.Sprintf("run %s cannot go on: the spec it was started with cannot be read by this release", ev.Run)
	}
	if why != "" {
		d.ignore(ev.Run, ev.EventKind(), why, &ev.By)
		return
	}
	d.put(RunResumed{of: Of(r.ID), By: &ev.By, Grant: d.allowance(r, strings.TrimPrefix(r.PausedWhy, pausedByLimit))})
	d.reopenWindows(r)
	d.takeUpEnds(r)
	d.resumeChildren(r)
}

// takeUpEnds revisits children that ended while the run's spec could not be read.
func (d *steering) takeUpEnds(r *Run) {
	for _, k := range d.s.Children(r.ID) {
		if !k.Live() && d.settles(k) {
			d.again.add(k)
		}
	}
}

func (d *steering) reopenWindows(r *Run) {
	w := d.spec(r)
	if w == nil {
		return
	}
	for _, st := range w.Steps { // a notice attempted during the pause did not open its window
		if g, q := r.openRound(st); q != nil && q.State == OnNotice && d.s.Notices[gateNotice(r.ID, g, q.N)] == nil {
			d.openWindow(r, g, q)
		}
	}
}

// allowance returns one more portion of the limit with this key.
func (d *steering) allowance(r *Run, key string) Grant {
	w := d.spec(r)
	if w == nil {
		return Grant{}
	}
	switch key {
	case "max_steps":
		return Grant{Steps: w.Limits.MaxSteps}
	case "max_duration":
		return Grant{Time: w.Limits.MaxDuration}
	case maxFailedRatio:
		return Grant{Ratio: w.Limits.MaxFailedRatio}
	case "max_tokens":
		return Grant{Usage: Usage{Tokens: w.Limits.MaxTokens}}
	case "max_cost_usd":
		return Grant{Usage: Usage{CostUSD: w.Limits.MaxCostUSD}}
	}
	if role, bound, ok := roleKey(key); ok {
		return Grant{Role: role, Spend: w.Limits.Roles[role].only(bound)}
	}
	return Grant{}
}

func (d *steering) abort(ev AbortRequested) {
	r := d.s.Runs[ev.Run]
	if why := notLive(r, ev.Run); why != "" {
		d.ignore(ev.Run, ev.EventKind(), why, &ev.By)
		return
	}
	why := "aborted by " + ev.By.Who
	if ev.Why != "" {
		why += ": " + clip(ev.Why, MaxFeedback)
	}
	d.end(r, RunEnded{Phase: RunAborted, Why: why, By: &ev.By, Cause: CausePerson})
}

// stopFor pauses the run automatically and notifies a person.
func (d *steering) stopFor(r *Run, why, text string) {
	d.put(RunPaused{of: Of(r.ID), Why: why, Text: clip(text, MaxFeedback)})
	d.pauseChildren(r)
	d.notice(Notice{ID: fmt.Sprintf("%s.paused-%d", r.ID, d.s.Clock), Kind: NoticePaused, Run: r.ID,
		Text: clip(text, 2000)})
}

// pausedByLimit is the prefix of PausedWhy before the key of a limit.
const pausedByLimit = "limit:"

// limit handles a run's limit that was hit.
func (d *steering) limit(r *Run, w *Spec, key, step string) {
	text := fmt.Sprintf("the limit %s is hit", key)
	switch hit := w.Limits.OnHit[key]; hit {
	case Human:
		d.stopFor(r, pausedByLimit+key, text+": sluice resume "+r.ID+" grants the same amount once more")
		role, bound, ok := roleKey(key)
		if ok && bound != maxLaunches || key == maxTokens || key == maxCost {
			d.stopSpending(r, role, "the run's "+key+" is used up")
		}
	default:
		d.end(r, RunEnded{Phase: endPhase(hit), Step: step, Why: text, Cause: causeLimit, Limit: key})
	}
}

// retry reopens an ended run, or sends a step of a running one back (8-semantics 31).
func (d *steering) retry(ev RetryRequested) {
	r := d.s.Runs[ev.Run]
	step, why := ev.Step, ""
	var w *Spec
	if r != nil {
		w = d.spec(r)
		if step == "" && len(r.Attempts[r.EndStep]) > 0 { // a limit can end a run before its step has started
			step = r.EndStep
		}
	}
	switch {
	case r == nil:
		why = fmt.Sprintf("no run %s is known", ev.Run)
	case r.Child != nil:
		why = fmt.Sprintf("run %s is a child of %s: sluice retry %s %s", r.ID, r.Child.Parent, r.Child.Parent,
			r.Child.Step)
	case w == nil:
		why = fmt.Sprintf("run %s cannot go on: the spec it was started with cannot be read by this release", ev.Run)
	case r.Phase == RunPending:
		why = fmt.Sprintf("run %s has not begun", r.ID)
	case step != "" && w.Step(step) == nil:
		why = fmt.Sprintf("run %s has no step %s", r.ID, step)
	case step != "" && len(r.Attempts[step]) == 0:
		why = fmt.Sprintf("step %s of %s has not been reached", step, r.ID)
	case r.Phase == RunRunning && step == "":
		why = fmt.Sprintf("run %s is running: say which step (sluice retry %s STEP)", r.ID, r.ID)
	case r.Phase == RunRunning && r.Current(step) == nil:
		why = fmt.Sprintf("step %s of %s will run by itself", step, r.ID)
	case r.Phase == RunCompleted && step == "":
		why = fmt.Sprintf("run %s is completed: say which step (sluice retry %s STEP)", r.ID, r.ID)
	}
	if why != "" {
		d.ignore(ev.Run, ev.EventKind(), why, &ev.By)
		return
	}
	if !r.Live() {
		d.put(RunReopened{of: Of(r.ID), By: &ev.By, Grant: d.allowance(r, r.EndLimit), RetryDir: d.retryDirAgain(r, w)})
	}
	if step == "" {
		return
	}
	st := w.List()
	again := st != nil && r.List != nil && (step == st.ID || r.follows(w, step)[st.ID])
	if r.Current(step) != nil {
		d.undo(r, w, step, "", false, "retry by "+ev.By.Who)
	}
	if again {
		d.put(ListUnsent{of: Of(r.ID), Again: true})
	}
	d.reset(r, w.Step(step)) // a person has looked: the counts from here on restart
	for _, id := range w.Downstream(step) {
		d.reset(r, w.Step(id))
	}
}
