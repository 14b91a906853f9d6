package show

import (
	"context"
	"os"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/git"
	"sluice/internal/land"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/settings"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// endedShown is how many ended runs ls shows.
const endedShown = 10

// Runs prints the runs of a repo, one per line, and what is wrong with the repo; all includes all
// ended runs, and does not look for their branches.
func Runs(ctx context.Context, con *console.Console, st daemon.Status, served, all bool) error {
	if con.JSON {
		return con.Document(map[string]any{"served": served, "status": st})
	}
	runs := st.Runs
	var repo *git.Repo
	if !all {
		runs = withoutOld(runs)
		if repo, _ = git.Open(ctx, st.Root); repo != nil {
			defer repo.Close()
		}
	}
	t := &console.Table{Columns: []console.Column{{}, {}, {}, {}, {Fit: console.Cut}}}
	for _, r := range runs {
		state := render.RunState(r)
		sign, style := render.Mark(state)
		look := style
		if unpassed := render.NotPassed(r.More + len(r.Unpassed)); unpassed != "" {
			state, look = state+", "+unpassed, console.Yellow
		}
		last := render.FirstWait(r, con.Now(), render.WaitWords)
		if last == "" && repo != nil {
			last = land.Unlanded(ctx, repo, r)
		}
		t.Row(
			console.Styled(sign+" "+r.ID, style),
			console.Styled(state+render.StubMark(r.Stubbed)+render.UnheldMark(r.Trust), look),
			console.Styled(render.ProgressMark(r), console.Plain),
			console.Styled(render.RunAge(con, r), console.Dim),
			console.Styled(last, console.Plain))
	}
	con.PrintTable(t)
	if len(st.Runs) == 0 {
		printNoRun(con, st.Root)
	} else if len(runs) < len(st.Runs) {
		con.Note("%s: --all", leftOut(st.Runs, runs))
	}
	printHealth(con, st, served)
	return nil
}

// leftOut counts the ended runs that are not shown, child runs separately.
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
		parts = append(parts, text.Plural(n, "ended run")+" more")
	}
	if n := children - shownChildren; n > 0 {
		parts = append(parts, text.Plural(n, "ended run")+" of tasks")
	}
	return strings.Join(parts, ", ")
}

// withoutOld removes ended runs of tasks, which their lists show, and all but the last other ended
// runs.
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

// printNoRun says that a repo has no run; one that was moved has had some.
func printNoRun(con *console.Console, root string) {
	con.PrintWrapped(0, console.Styled(render.NoRun, console.Plain))
	if where := workspace.Moved(con, root); where != "" {
		con.Note("%s", where)
	}
}

// printHealth prints what is wrong with the repo.
func printHealth(con *console.Console, st daemon.Status, served bool) {
	for _, h := range st.Health {
		con.Warn("%s", text.Message(h))
	}
	if c := st.Cluster; c != nil && c.Machine != "" && !c.Leads {
		con.Warn("this machine only follows: decisions go to the machine that leads")
	}
	if stall := render.Stall(st); stall != "" {
		con.Note("%s %s", con.PaintErr(console.Red, "stalled:"), stall)
	}
	if !served && st.Cluster == nil && slices.ContainsFunc(st.Runs, daemon.RunStatus.Live) {
		noteUnserved(con, st.Root, ".")
	}
}

// noteUnserved says of a repo, which commands name dir, that nobody serves it, what to type, and which decisions and
// signals nobody has read.
func noteUnserved(con *console.Console, root, dir string) {
	repo, in := "this repo", ""
	if dir != "." {
		repo, in = dir, "-C "+text.Typed(dir)+" "
	}
	con.Warn("no sluice process serves %s: `sluice %srun RUN` continues it here, `sluice %[2]swatch add` and "+
		"`sluice daemon` in the background", repo, in)
	if files := inboxFiles(root); len(files) > 0 {
		con.Warn("given, and not read yet: %s", text.JoinMost(files))
	}
}

// inboxFiles returns the files in a repo's inbox, below it.
func inboxFiles(root string) (names []string) {
	inbox := layout.InboxOf(root)
	for _, below := range []string{"[^.]*", "*/[^.]*"} {
		files, _ := atomicfile.Glob(inbox, below)
		for _, f := range files {
			name, _ := layout.Rel(inbox, f)
			if info, err := os.Lstat(f); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(name, "rejected/") {
				names = append(names, text.Name(name))
			}
		}
	}
	return names
}

// Status prints a run step by step: that of args or, without one, each live run, else the last.
func Status(ctx context.Context, con *console.Console, p *workspace.Workspace, v workspace.Viewer, served bool,
	args []string) error {
	st, err := chosen(ctx, v, args)
	if err != nil {
		return err
	}
	if _, err := workspace.Settings(con, p.Root, nil); err != nil {
		for _, f := range settings.Faults(err) {
			st.Health = append(st.Health, "the settings are not in force: "+f.Error())
		}
	}
	late := lateOf(ctx, p, st)
	if con.JSON {
		doc := map[string]any{"served": served, "status": st}
		if len(late) > 0 {
			doc["late"] = late
		}
		return con.Document(doc)
	}
	for i, r := range st.Runs {
		if i > 0 {
			con.Print("")
		}
		con.PrintLines(render.RunLines(con, r, con.Now()))
		printGiven(con, r)
		printLate(con, late, r.ID)
		if st.Cluster != nil && !st.Cluster.Leads { // it is taken where it has ended
			continue
		}
		if gone := land.Gone(ctx, p.Root, r); gone != "" {
			con.PrintWrapped(2, console.Styled(gone, console.Yellow))
		}
		if take := land.ToTake(ctx, p.Root, p.State, r, true, &land.Last{}); take != "" {
			con.Print("  %s", text.Line(take)) // one line: a person copies the command
		}
	}
	if len(st.Runs) == 0 {
		printNoRun(con, st.Root)
	}
	if words := render.TodayWords(st.Today); words != "" {
		con.PrintWrapped(0, console.Styled(words, console.Dim))
	}
	printCluster(con, st.Cluster)
	printLevels(con, st)
	printHeld(con, p, st)
	printHealth(con, st, served)
	return nil
}

// chosen returns the status with the run that the argument names; else with the live runs, or the last.
func chosen(ctx context.Context, v workspace.Viewer, args []string) (daemon.Status, error) {
	if len(args) == 1 {
		return workspace.StatusNamed(ctx, v, args[0])
	}
	st, err := v.Status(ctx, "")
	st.Runs = liveOrLast(st.Runs)
	return st, err
}

// liveOrLast returns the live runs or, without any, the last that has ended.
func liveOrLast(runs []daemon.RunStatus) []daemon.RunStatus {
	if slices.ContainsFunc(runs, daemon.RunStatus.Live) {
		return slices.DeleteFunc(runs, func(r daemon.RunStatus) bool { return !r.Live() })
	}
	own := slices.DeleteFunc(slices.Clone(runs), func(r daemon.RunStatus) bool { return r.Child != nil })
	if len(own) > 0 { // a task's run outlives its forgotten parent
		runs = own
	}
	slices.SortStableFunc(runs, func(a, b daemon.RunStatus) int { return a.Ended.Compare(b.Ended) })
	return runs[max(0, len(runs)-1):]
}

// printLevels prints what separates agents from gates. A run with less says so itself.
func printLevels(con *console.Console, st daemon.Status) {
	words, differs, live := "", false, false
	switch st.Trust {
	case engine.TrustFile:
		words = text.Unheld + ": nothing keeps an agent from answering a gate (" + text.Message(st.Exposed) + ")"
	case engine.TrustSandbox:
		words = "trust: sandbox: an agent cannot answer a gate"
	}
	for _, r := range st.Runs {
		if !r.Live() {
			continue
		}
		same := r.Trust == st.Trust && r.Exposed == st.Exposed
		if same && r.Trust == engine.TrustFile { // its own line says so
			return
		}
		live, differs = true, differs || !same
	}
	if differs && words != "" {
		words = "new launches: " + words
	}
	if live && words != "" {
		con.PrintWrapped(0, console.Styled(words, console.Dim))
	}
}
