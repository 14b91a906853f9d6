package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
	"sluice/internal/text"
)

func (a *app) lsCommand() *cobra.Command {
	var all bool
	var status string
	cmd := &cobra.Command{
		Use:   "ls [TASKS.json]",
		Short: "list the runs of this repo, or the tasks of a task file",
		Long: `One line a run, the newest last: its state, how far it is, since when, and what a live one
waits for. Left out unless --all: ended runs beyond the last ten, and ended runs of a task.
With a task file: its tasks by status, in each as they are selected, and what they wait for.`,
		Example: "sluice ls\nsluice ls --json\nsluice ls to-do.json --status blocked",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && isTaskFile(args[0]):
				return a.listTasks(args[0], status)
			case len(args) == 1:
				return fault.Misused("a task file ends in .json; `sluice status "+clean(args[0])+"` tells of a run", "%s: no task file", clean(args[0]))
			case status != "":
				return fault.Misused("as in `sluice ls to-do.json --status todo`", "--status is of tasks: name their file")
			}
			return a.withView(cmd.Context(), func(p *place, v viewer, served bool) error {
				st, err := v.Status(cmd.Context(), "")
				if err != nil {
					return err
				}
				return a.listRuns(st, served, all)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all runs that are known")
	cmd.Flags().StringVar(&status, "status", "", "of a task file: only tasks that are `STATUS` (todo, doing, done, blocked)")
	return a.JSONFlag(cmd)
}

// withView finds the repo and whoever can tell about it.
func (a *app) withView(ctx context.Context, do func(p *place, v viewer, served bool) error) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	v, served, err := a.view(ctx, p)
	if err != nil {
		return err
	}
	defer v.Close()
	return do(p, v, served)
}

// endedShown is how many ended runs ls shows.
const endedShown = 10

func (a *app) listRuns(st daemon.Status, served, all bool) error {
	if a.JSON {
		return a.Document(map[string]any{"served": served, "status": st})
	}
	runs := st.Runs
	if !all {
		runs = withoutOld(runs)
	}
	t := &console.Table{}
	for _, r := range runs {
		state := runState(r)
		sign, style := mark(state)
		look := style
		if unpassed := render.NotPassed(r.More + len(r.Unpassed)); unpassed != "" {
			state, look = state+", "+unpassed, console.Yellow
		}
		t.Row(console.Styled(sign+" "+r.ID, style), console.Styled(state+stubMark(r.Stubbed)+unheldMark(r.Trust), look), console.Styled(progress(r), console.Plain), console.Styled(a.runTime(r), console.Dim), console.Styled(firstWait(r, a.Now()), console.Plain))
	}
	a.PrintTable(t)
	if len(st.Runs) == 0 {
		a.Print("no run yet: `sluice run WORKFLOW` starts one")
	} else if len(runs) < len(st.Runs) {
		a.Note("%s: --all", leftOut(st.Runs, runs))
	}
	a.health(st, served)
	return nil
}

// leftOut counts the ended runs that are not shown, those that are children of others by themselves.
func leftOut(all, shown []daemon.RunStatus) string {
	count := func(runs []daemon.RunStatus) (own, children int) {
		for _, r := range runs {
			if r.Child != nil {
				children++
			} else {
				own++
			}
		}
		return own, children
	}
	own, children := count(all)
	shownOwn, shownChildren := count(shown)
	var parts []string
	if n := own - shownOwn; n > 0 {
		parts = append(parts, plural(n, "ended run")+" more")
	}
	if n := children - shownChildren; n > 0 {
		parts = append(parts, plural(n, "ended run")+" of tasks")
	}
	return strings.Join(parts, ", ")
}

// withoutOld leaves out ended runs of tasks, which their lists tell of, and other ended runs beyond the last.
func withoutOld(all []daemon.RunStatus) []daemon.RunStatus {
	runs := slices.DeleteFunc(slices.Clone(all), func(r daemon.RunStatus) bool { return r.Child != nil && !r.Live() })
	over := len(runs) - endedShown
	return slices.DeleteFunc(runs, func(r daemon.RunStatus) bool {
		if over > 0 && !r.Live() {
			over--
			return true
		}
		return false
	})
}

// progress is how many steps are behind a run.
func progress(r daemon.RunStatus) string {
	done := 0
	for _, s := range r.Steps {
		if s.State == engine.Passed || s.State == engine.Skipped || s.State == engine.Routed {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(r.Steps))
}

func (a *app) runTime(r daemon.RunStatus) string {
	switch {
	case r.Started.IsZero():
		return "not begun"
	case r.Ended.IsZero():
		return "for " + ago(a.Now().Sub(r.Started))
	}
	return fmt.Sprintf("took %s, %s ago", ago(r.Ended.Sub(r.Started)), ago(a.Now().Sub(r.Ended)))
}

// firstWait is what a run waits for, the oldest wait first; of an ended one why it ended.
func firstWait(r daemon.RunStatus, now time.Time) string {
	if !r.Live() {
		return clean(r.EndWhy)
	}
	if len(r.Waits) == 0 {
		return ""
	}
	s := waitWords(r.Waits[0], now)
	if n := len(r.Waits) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// waitWords says what a run waits for and since when.
func waitWords(w daemon.Wait, now time.Time) string {
	s := clean(w.Text)
	if !w.Since.IsZero() {
		s = "since " + ago(now.Sub(w.Since)) + " " + s
	}
	if !w.Until.IsZero() {
		s += " (" + ago(w.Until.Sub(now)) + " left)"
	}
	return s
}

// health tells what is wrong with the repo as a whole.
func (a *app) health(st daemon.Status, served bool) {
	for _, h := range st.Health {
		a.Note("%s %s", a.PaintErr(console.Yellow, "note:"), oneLine(h))
	}
	if st.Stalled != "" {
		a.Note("%s the journal cannot be written, so nothing is started: %s", a.PaintErr(console.Red, "stalled:"), oneLine(st.Stalled))
	}
	if !served && slices.ContainsFunc(st.Runs, daemon.RunStatus.Live) {
		a.Note("%s no sluice process serves this repo: `sluice run RUN` goes on with it here, `sluice watch add` and `sluice daemon` in the background", a.PaintErr(console.Yellow, "note:"))
	}
}

func (a *app) statusCommand() *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use:   "status [RUN]",
		Short: "show a run step by step, and what it waits for since when",
		Long: `RUN is a run's id (phase-4-1), a workflow (its newest run) or "last". Without one: every live
run, or the last that ended. Shows too what stands between an agent and a gate (trust), and
whether the spec's file has changed since the run started.`,
		Example: "sluice status\nsluice status last --json",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withView(cmd.Context(), func(p *place, v viewer, served bool) error {
				return a.status(cmd.Context(), p, v, served, args)
			})
		},
	})
}

func (a *app) status(ctx context.Context, p *place, v viewer, served bool, args []string) error {
	st, err := v.Status(ctx, "")
	if err != nil {
		return err
	}
	if _, err := a.settingsOf(p.root, nil); err != nil {
		for _, f := range faultsIn(err) {
			st.Health = append(st.Health, "the settings are not gone by: "+f.Error())
		}
	}
	if len(args) == 1 {
		id, err := named(st.Runs, args[0])
		if err != nil {
			return err
		}
		st.Runs = slices.DeleteFunc(st.Runs, func(r daemon.RunStatus) bool { return r.ID != id })
	} else if slices.ContainsFunc(st.Runs, daemon.RunStatus.Live) {
		st.Runs = slices.DeleteFunc(st.Runs, func(r daemon.RunStatus) bool { return !r.Live() })
	} else if n := len(st.Runs); n > 1 {
		own := slices.DeleteFunc(slices.Clone(st.Runs), func(r daemon.RunStatus) bool { return r.Child != nil })
		if len(own) > 0 { // a task's run outlives its parent's where that is forgotten
			st.Runs = own
		}
		st.Runs = st.Runs[len(st.Runs)-1:]
	}
	for i := range st.Runs {
		if err := tellPause(ctx, v, &st.Runs[i]); err != nil {
			return err
		}
	}
	if a.JSON {
		return a.Document(map[string]any{"served": served, "status": st})
	}
	for i, r := range st.Runs {
		if i > 0 {
			a.Print("")
		}
		for _, l := range a.runLines(r, a.Now()) {
			a.Print("%s", console.ClipPainted(l, a.Width()))
		}
		if take := a.toTake(ctx, p.root, r); take != "" {
			a.Print("  %s", console.ClipPainted(take, a.Width()-2))
		}
	}
	if len(st.Runs) == 0 {
		a.Print("no run yet: `sluice run WORKFLOW` starts one")
	}
	if words := todayWords(st.Today); words != "" {
		a.Print("%s", a.Paint(console.Dim, words))
	}
	a.levels(st)
	a.health(st, served)
	return nil
}

// levels tells what stands between an agent and a gate. Of a run of which that is less, its own lines tell.
func (a *app) levels(st daemon.Status) {
	if !slices.ContainsFunc(st.Runs, daemon.RunStatus.Live) {
		return
	}
	switch st.Trust {
	case engine.TrustFile:
		a.Print("%s", a.Paint(console.Dim, "trust: file, unprotected: nothing stands between an agent and a gate but its own good will ("+oneLine(st.Exposed)+")"))
	case engine.TrustSandbox:
		a.Print("%s", a.Paint(console.Dim, "trust: sandbox: an agent cannot answer a gate"))
	}
}

// tellPause adds to a run that something other than a person paused what its journal says of why.
func tellPause(ctx context.Context, v viewer, r *daemon.RunStatus) error {
	if r.Paused == "" || r.Paused == "user" || !r.Live() {
		return nil
	}
	why := ""
	err := v.Facts(ctx, r.ID, 0, false, func(l daemon.Line) error {
		if f, err := engine.DecodeFact(l.Fact); err == nil {
			if p, ok := f.(engine.RunPaused); ok {
				why = p.Text
			}
		}
		return nil
	})
	for i, w := range r.Waits {
		if w.Kind == "paused" && why != "" {
			r.Waits[i].Text = clean(why) + ": sluice resume " + r.ID
		}
	}
	return err
}

// runLines draws a run: its head, each step with its gates, and what it waits for.
func (a *app) runLines(r daemon.RunStatus, now time.Time) []string {
	state := runState(r)
	sign, style := mark(state)
	head := fmt.Sprintf("%s %s", a.Paint(style, sign), a.Paint(console.Bold, r.ID))
	if r.Name != "" && r.Name != r.Workflow {
		head += "  " + clean(r.Name)
	}
	if r.Child != nil {
		head += "  " + a.Paint(console.Dim, "for "+clean(r.Child.Title()))
	}
	out := []string{head, "  " + a.Paint(style, state) + a.Paint(console.Dim, " · "+progress(r)+" steps · "+a.runTime(r))}
	if r.Stubbed {
		out = append(out, "  "+a.Paint(console.Yellow, stubWords))
	}
	if words := unheld(r); words != "" {
		out = append(out, "  "+a.Paint(console.Yellow, words))
	}
	if r.SpecDrift {
		out = append(out, "  "+a.Paint(console.Yellow, "the spec's file has changed since; this run goes by the old one"))
	}
	if words := spentWords(r.Usage, r.Budget); words != "" {
		out = append(out, "  "+a.Paint(console.Dim, "used "+words))
	}
	for _, role := range slices.Sorted(maps.Keys(r.RoleBudgets)) {
		out = append(out, "  "+a.Paint(console.Dim, "role "+clean(role)+" used "+render.SpentInAll(r.Roles[role], r.RoleBudgets[role])))
	}
	for _, n := range r.Near {
		out = append(out, "  "+a.Paint(console.Yellow, "comes near its budget: "+clean(n)))
	}
	width := nameWidth(r)
	for _, s := range r.Steps {
		if s.State == "waiting" && !r.Live() { // for nothing any more
			s.State = "not begun"
		}
		out = append(out, a.stepLine(s, width, now))
		if s.Failure != "" && s.State != engine.Passed {
			out = append(out, "      "+a.Paint(console.Red, clean(s.Failure)))
		}
		out = append(out, a.listLines(s.List)...)
		for _, g := range s.Gates {
			if g.Implicit && g.State != engine.OnHuman {
				continue
			}
			out = append(out, a.gateLine(g, width))
			if g.Feedback != "" && g.State != engine.Approved {
				out = append(out, "        "+a.Paint(console.Yellow, "“"+clean(g.Feedback)+"”"))
			}
		}
	}
	out = append(out, a.unpassedLines(r)...)
	for _, n := range r.Notes {
		head := fmt.Sprintf("note %d ", n.N)
		if n.Step != "" {
			head = fmt.Sprintf("note %d for %s ", n.N, n.Step)
		}
		out = append(out, "  "+a.Paint(console.Dim, head)+"“"+clean(n.Text)+"”")
	}
	for _, w := range r.Waits {
		out = append(out, "  "+a.Paint(console.Dim, "waits ")+waitWords(w, now))
	}
	if r.EndWhy != "" {
		out = append(out, "  "+clean(r.EndWhy))
	}
	return out
}

// unpassedLines name what went on in a run without a pass: the newest of it.
func (a *app) unpassedLines(r daemon.RunStatus) (out []string) {
	shown := r.Unpassed[max(len(r.Unpassed)-unpassedShown, 0):]
	if more := r.More + len(r.Unpassed) - len(shown); more > 0 {
		out = append(out, "  "+a.Paint(console.Yellow, text.GoneOnCount(more)+" earlier"))
	}
	for _, u := range shown {
		out = append(out, "  "+a.Paint(console.Yellow, clean(unpassedWords(u))))
	}
	return out
}

// unpassedWords says what let work go on that a gate did not pass.
func unpassedWords(u daemon.LetThrough) string {
	where, outcome, by := strings.TrimSpace(u.Run+" "+u.Gate), u.Outcome, ""
	if outcome == engine.OutcomePass {
		outcome = "on_exhausted"
	}
	if u.ByKind == "human" {
		by = ", by " + byWords(u.ByKind, u.By)
	}
	return render.Unpassed{Where: where, Outcome: outcome, Failures: u.Failures, Route: u.Route, Times: u.Times, To: u.To}.String() + by
}

// usageWords says what was used.
func usageWords(u engine.Usage) string { return spentWords(u, engine.Usage{}) }

// spentWords says what was used, and of what; "" where nothing was and nothing bounds it.
func spentWords(u, most engine.Usage) string { return render.Spent(u, most) }

// todayWords says what was used of the day, "" where nothing was and nothing bounds it.
func todayWords(t daemon.Today) string {
	said := render.SpentInAll(t.All, t.Budget)
	if said == "" {
		return ""
	}
	said = "today, all repos: " + said
	if here := usageWords(t.Here.Usage); here != "" && t.Here.Usage != t.All.Usage {
		said += " (this repo: " + here + ")"
	}
	return said
}

// nameWidth is the column of ids and names.
func nameWidth(r daemon.RunStatus) int {
	w := 0
	for _, s := range r.Steps {
		w = max(w, len(title(s.ID, s.Name)))
		for _, g := range s.Gates {
			w = max(w, len(title(g.ID, g.Name))+2)
		}
	}
	return min(w, maxName)
}

// maxName is how wide the column of names may be.
const maxName = 44

func title(id, name string) string { return text.Title(id, name) }

func (a *app) stepLine(s daemon.StepStatus, width int, now time.Time) string {
	sign, style := mark(s.State)
	parts := []string{a.Paint(style, console.Pad(s.State, 10))}
	if s.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", s.Attempt))
	}
	if since := ago(now.Sub(s.Since)); !s.Since.IsZero() {
		switch s.State { // of what is over, it is no length of time
		case engine.Passed, engine.Skipped, engine.Routed, engine.Superseded, engine.RunFailed:
			since += " ago"
		}
		parts = append(parts, since)
	}
	if s.Role != "" {
		parts = append(parts, s.Role)
	}
	if s.Held != nil {
		parts = append(parts, "taken over"+who(s.Held))
	}
	if s.Summary != "" {
		parts = append(parts, clean(s.Summary))
	}
	return fmt.Sprintf("  %s %s  %s", a.Paint(style, sign), console.Pad(console.Clip(title(s.ID, s.Name), width), width), strings.Join(parts, a.Paint(console.Dim, " · ")))
}

func (a *app) gateLine(g daemon.GateStatus, width int) string {
	sign, style := mark(g.State)
	state := g.State
	if state == "" || state == engine.Undone { // what it judged was undone: it judges the next attempt
		sign, style, state = "◇", console.Plain, "-"
	}
	if (g.State == engine.ByRoute || g.State == engine.Refused) && g.Outcome != "" && g.Outcome != engine.OutcomeFail { // a name says more
		sign, state = "↷", g.Outcome
	}
	if g.Due {
		sign, style, state = "·", console.Dim, render.Due
	}
	parts := []string{a.Paint(style, console.Pad(state, 10)), g.Level}
	if g.Forced {
		parts = append(parts, "forced")
	}
	parts = append(parts, render.Counts(g.Count, g.Routes, g.Max)...)
	if g.Score != nil {
		parts = append(parts, fmt.Sprintf("score %g", *g.Score))
	}
	if g.Why != "" {
		parts = append(parts, whyWords(g.Why))
	}
	if g.ByKind != "" && (g.State == engine.Approved || g.State == engine.Refused || g.State == engine.ByRoute) {
		parts = append(parts, "by "+byWords(g.ByKind, g.By))
	}
	return fmt.Sprintf("    %s %s  %s", a.Paint(style, sign), console.Pad(console.Clip(title(g.ID, g.Name), width-2), width-2), strings.Join(parts, a.Paint(console.Dim, " · ")))
}
