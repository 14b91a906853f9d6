package workspace

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/internal/fault"
	"sluice/internal/text"
)

// Status returns the runs of a repo.
func (p *Workspace) Status(ctx context.Context) (daemon.Status, error) {
	v, _, err := p.View(ctx)
	if err != nil {
		return daemon.Status{}, err
	}
	defer v.Close()
	return v.Status(ctx, "")
}

// StatusOf returns the whole state of one run.
func (p *Workspace) StatusOf(ctx context.Context, run string) (*daemon.RunStatus, error) {
	v, _, err := p.View(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	r, err := RunOf(ctx, v, run)
	return &r, err
}

// RunOf returns the whole state of the run that RunNamed names.
func RunOf(ctx context.Context, v Viewer, name string) (daemon.RunStatus, error) {
	id, err := RunNamed(ctx, v, name)
	if err != nil {
		return daemon.RunStatus{}, err
	}
	return v.Run(ctx, id)
}

// LastRun names the newest run of a repo.
const LastRun = "last"

// RunNamed finds a run: by its id, by "last", or by its workflow, whose newest run it is.
func RunNamed(ctx context.Context, v Viewer, name string) (string, error) {
	st, err := StatusNamed(ctx, v, cmp.Or(name, LastRun))
	if err != nil {
		return "", err
	}
	return st.Runs[0].ID, nil
}

// StatusNamed returns the status with that run alone; "" = with all runs. All are read only if the name
// is no id.
func StatusNamed(ctx context.Context, v Viewer, name string) (daemon.Status, error) {
	st, err := v.Status(ctx, name)
	if name == "" || err == nil && len(st.Runs) == 1 {
		return st, err
	}
	if st, err = v.Status(ctx, ""); err != nil {
		return st, err
	}
	id, err := PickRun(st.Runs, name)
	st.Runs = slices.DeleteFunc(st.Runs, func(r daemon.RunStatus) bool { return r.ID != id })
	return st, err
}

// PickRun is RunNamed among known runs.
func PickRun(runs []daemon.RunStatus, name string) (string, error) {
	if len(runs) == 0 {
		return "", fault.Failed("`sluice run WORKFLOW` starts one", "no run %q: this repo has no run yet", text.Line(name))
	}
	var known []string
	newest := ""
	for _, r := range runs {
		if r.ID == name {
			return r.ID, nil
		}
		if r.Child != nil { // only its id names it
			known = append(known, r.ID)
			continue
		}
		if r.Workflow == name || name == LastRun || name == "" {
			newest = r.ID
		}
		known = append(known, r.ID)
	}
	if newest != "" {
		return newest, nil
	}
	advice := text.MeantOr("`sluice ls` names them", "", name, known)
	return "", fault.Failed(advice, "no run %q in this repo", text.Line(name))
}

// RunWith finds a run with the step or gate: the named run, else the newest of those in which it matters
// most (see matters).
func RunWith(ctx context.Context, v Viewer, name, what string) (daemon.RunStatus, error) {
	st, err := StatusNamed(ctx, v, name)
	if err != nil {
		return daemon.RunStatus{}, err
	}
	found, known := runWith(st.Runs, what)
	if found != nil {
		return v.Run(ctx, found.ID)
	}
	advice := text.MeantOr("`sluice status` names the steps and gates", "", what, known)
	return daemon.RunStatus{}, fault.Failed(advice, "no step or gate %q in a run of this repo", text.Line(what))
}

// Shown returns the run in which a command that names none finds the step or gate; "" if there is none.
func Shown(runs []daemon.RunStatus, what string) string {
	if found, _ := runWith(runs, what); found != nil {
		return found.ID
	}
	return ""
}

func runWith(runs []daemon.RunStatus, what string) (found *daemon.RunStatus, known []string) {
	most := 0
	for i, r := range runs {
		ids := idsOf(r)
		known = append(known, ids...)
		if found != nil && !r.Live() && !found.Live() && strings.HasPrefix(r.Dir, cmp.Or(found.Dir, found.ID)+"/") {
			continue // it was a part of that run
		}
		if n := matters(r, what); slices.Contains(ids, what) && n >= most {
			found, most = &runs[i], n
		}
	}
	return found, known
}

// matters ranks what a run has to show of a step or gate: it waits for a person there, it got there and is
// live, it is live, it is over.
func matters(r daemon.RunStatus, what string) int {
	asks := func(w daemon.Wait) bool {
		return (w.Gate == what || w.Step == what) && (w.Asks() || w.Kind == "offer")
	}
	reached := func(s daemon.StepStatus) bool {
		return s.ID == what && s.Attempt > 0 ||
			slices.ContainsFunc(s.Gates, func(g daemon.GateStatus) bool { return g.ID == what && g.Round > 0 })
	}
	switch {
	case !r.Live():
		return 0
	case slices.ContainsFunc(r.Waits, asks):
		return 3
	case slices.ContainsFunc(r.Steps, reached):
		return 2
	}
	return 1
}

func idsOf(r daemon.RunStatus) []string {
	var ids []string
	for _, s := range r.Steps {
		ids = append(ids, s.ID)
		for _, g := range s.Gates {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

// RunMeant returns the run of an argument, or the only live one.
func RunMeant(ctx context.Context, v Viewer, args []string) (string, error) {
	if len(args) > 0 {
		return RunNamed(ctx, v, args[0])
	}
	st, err := v.Status(ctx, "")
	if err != nil {
		return "", err
	}
	var alive []string
	for _, r := range st.Runs {
		if r.Live() {
			alive = append(alive, r.ID)
		}
	}
	switch len(alive) {
	case 0:
		return "", fault.Failed("`sluice ls` lists the runs", "no run is live in this repo")
	case 1:
		return alive[0], nil
	}
	return "", fault.Misused("name one: "+text.JoinMost(alive), "%s are live in this repo", text.Plural(len(alive), "run"))
}

// UnservedRun explains why a run cannot be steered in a repo that nobody serves: a wrong name comes
// first.
func (p *Workspace) UnservedRun(ctx context.Context, names []string) error {
	if v, _, err := p.View(ctx); err == nil {
		defer v.Close()
		if _, err := RunMeant(ctx, v, names); err != nil {
			return err
		}
	}
	return p.notServed()
}
