package decide

import (
	"slices"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/form"
	"sluice/internal/press"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// unknown returns the error where no live run has the gate: the run is not known, or the decision comes
// too late. known are the gates that there are.
func (d *Decision) unknown(con *console.Console, st daemon.Status, known []string) error {
	named := func(r daemon.RunStatus) bool { return r.ID == d.Run }
	if d.Run != "" && !slices.ContainsFunc(st.Runs, named) {
		id, err := workspace.PickRun(st.Runs, d.Run)
		if err == nil { // a workflow: the decision could be for any of its runs
			err = fault.Failed("name the run: --run "+id, "no run %q in this repo", text.Line(d.Run))
		}
		return err
	}
	for _, r := range slices.Backward(st.Runs) {
		if step, g := r.Gate(d.Gate); g != nil && g.Round > 0 && !r.Live() && (d.Run == "" || named(r)) {
			again := r.ID + " " + step.ID
			if r.Child != nil {
				again = r.Child.Parent + " " + r.Child.Step
			}
			return fault.Failed("`sluice retry "+again+"` reopens it", "%s of %s %s; the run has ended (%s) %s ago",
				text.Line(d.Gate), r.ID, end(*g), r.Phase, render.Ago(con.Now().Sub(r.Ended)))
		}
	}
	advice := text.MeantOr("`sluice inbox` lists what waits for you", "", d.Gate, known)
	if d.Run != "" {
		return fault.Failed(advice, "no gate %q in a live run %q", text.Line(d.Gate), text.Line(d.Run))
	}
	return fault.Failed(advice, "no gate %q in a live run", text.Line(d.Gate))
}

// sure asks at a terminal before a pass or a route that names no run where another run had the gate too, as a command
// does that is typed again; and before a pass that goes on without the work.
func sure(con *console.Console, runs []daemon.RunStatus, d Decision) error {
	if d.Run == "" || engine.Refuses(d.Outcome) || d.Signed != "" {
		return nil
	}
	q := press.Pass{Run: d.Run, Gate: d.Gate, Round: d.Round, Answer: form.Shown(d.answer)}
	if d.Outcome != engine.OutcomePass {
		q.Route = d.Outcome
	}
	other := false
	for _, r := range runs {
		step, g := r.Gate(d.Gate)
		switch {
		case g == nil:
		case r.ID == d.Run:
			q.GateName, q.Step, q.StepName, q.Content = g.Name, step.ID, step.Name, g.Reviewed
			q.Untaken = q.Route == "" && g.State == engine.OnHuman && step.Untaken
		default:
			other = other || g.Round > 0
		}
	}
	switch {
	case !q.Untaken && (d.inRun || !other):
		return nil
	case q.Untaken && !con.Asks():
		con.Note("the run goes on without the work of %s, which gave no result: it is in no commit", q.Step)
		fallthrough
	case !con.Asks():
		return nil
	}
	yes, err := con.Ask(q.Question())
	if err == nil && !yes {
		err = fault.Failed("`sluice show "+daemon.Named(d.Gate, d.Run, true)+"` shows it", "nothing was decided")
	}
	return err
}

// end says how the newest round of a gate in an ended run was decided.
func end(g daemon.GateStatus) string {
	words := "was not decided"
	switch g.State {
	case engine.Approved:
		words = "was passed"
	case engine.Refused, engine.ByRoute:
		words = "was decided (" + render.Failed(g.Outcome, false) + ")"
	}
	if g.ByKind != "" && words != "was not decided" {
		words += " by " + render.By(g.ByKind, g.By)
	}
	return text.Line(words)
}
