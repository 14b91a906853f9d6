package daemon

import (
	"fmt"
	"slices"
	"time"

	"sluice/engine"
)

// shared is the same for all that wait, found when it is first needed.
type shared struct {
	taken func() engine.Taken

	unserved bool
}

// waits lists what the run waits for, oldest first.
func waits(c *core, r *engine.Run, spec *engine.Spec, all shared) []Wait {
	var out []Wait
	if r.Phase == engine.RunPending && r.PausedWhy == engine.PausedConfirm {
		return nil // its pause says what it waits for
	}
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
		if w, ok := waitOf(c, r, spec, st, a, all); ok {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b Wait) int { return a.Since.Compare(b.Since) })
	return out
}

// pendingFor returns what a pending run waits for: an earlier run of its workflow, or what the
// workflow needs of others.
func pendingFor(s *engine.State, r *engine.Run) string {
	for _, id := range s.Order {
		if id == r.ID || r.Parallel {
			break
		}
		if o := s.Runs[id]; o.Workflow == r.Workflow && o.Child == nil && o.Live() &&
			(o.Phase != engine.RunPending || o.PausedWhy != engine.PausedConfirm) {
			return "for " + o.ID + " to end, an earlier run of " + r.Workflow
		}
	}
	return "for what the workflow needs of others"
}

func waitOf(c *core, r *engine.Run, spec *engine.Spec, st *engine.Step, a *engine.Attempt,
	all shared) (Wait, bool) {
	w := Wait{Step: st.ID, Since: sinceOf(a)}
	switch a.State {
	case engine.Ready:
		w.Kind, w.Text = "slot", st.ID+" for the run to be resumed"
		if !r.Paused {
			w.Text = st.ID + launchWait(c, r, st.ID, a.Holds(), !r.Offers(st), all.taken())
		}
		if a.LimitWait {
			w = limitWait(w, st.ID, a.NotBefore, a.BudgetWait)
		} else if !a.NotBefore.IsZero() {
			w.Kind, w.Until, w.Text = "backoff", a.NotBefore, st.ID+" to be tried again"
		}
		if a.Held != nil {
			w.Kind, w.Until, w.Text = "held", time.Time{},
				fmt.Sprintf("%s for %s, who has taken it over: sluice handback %s --run %s", st.ID, a.Held.Who, st.ID, r.ID)
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
		return gateWait(c, r, spec, st, w, all)
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
	h, held := taken.Holder(tree)
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

func gateWait(c *core, r *engine.Run, spec *engine.Spec, st *engine.Step, w Wait,
	all shared) (Wait, bool) {
	for _, id := range st.Gates {
		q := r.CurrentRound(id)
		if !q.Open() {
			continue
		}
		w.Gate, w.Since = id, q.Opened
		named := Named(id, r.ID, true)
		switch q.State {
		case engine.OnReview:
			w.Kind, w.Text = "review", id+" for its reviewer"
			if len(spec.Gate(id).Reviewer.Forge) > 0 {
				w.Text = id + " for the forge"
			}
			switch {
			case r.Procs.Of(q.Key) != nil:
			case r.Paused:
				w.Text = id + " for the run to be resumed: its review is due"
			default:
				w.Text = id + launchWait(c, r, q.Step, r.Attempt(q.Step, q.Attempt).HeldInReview(), true, all.taken())
			}
			if q.LimitWait && !r.Paused && r.Procs.Of(q.Key) == nil {
				w = limitWait(w, id, q.NotBefore, q.BudgetWait)
			}
		case engine.OnNotice:
			w.Kind, w.Text = "window", id+" for its notice"
		case engine.OnWindow:
			w.Kind, w.Until = "window", q.WindowEnds
			w.Text = id + " for a veto, until the window closes: sluice veto " + named
		default:
			w.Kind, w.Text = "human",
				fmt.Sprintf("%s for a person: sluice show %[2]s, then sluice pass %[3]s or sluice fail %[2]s -m …", id, named,
					AtRound(named, q.N))
		}
		return w, true
	}
	return w, false
}

// Resume returns the command that continues a paused run. Only a process that serves the repo can
// resume it; without one, `sluice run` continues it in the foreground.
func Resume(run string, served bool) string {
	if served {
		return "sluice resume " + run
	}
	return "sluice run " + run
}

// AtRound returns how a command that passes a gate, or takes a route, names it with its round. One that
// names no round is for the first.
func AtRound(named string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s --round %d", named, n)
	}
	return named
}

// Named returns how a command names a step or gate of a run, and with which its run: a command that decides is for
// that run alone, whenever it is typed. One that shows needs it where other runs have the id too.
func Named(id, run string, which bool) string {
	if which {
		return id + " --run " + run
	}
	return id
}
