package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/render"
	"sluice/internal/text"
)

func (a *app) logCommand() *cobra.Command {
	var follow, brief bool
	cmd := &cobra.Command{
		Use:   "log [RUN]",
		Short: "read the journal: what happened, who did it and why",
		Long: `The journal is the one truth of a repo: a line for each thing that was decided, in order.
With -f it goes on with what comes. --json prints the facts as they are kept.`,
		Example: "sluice log last\nsluice log -f",
		Args:    console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withView(cmd.Context(), func(p *place, v viewer, served bool) error {
				run := ""
				if len(args) == 1 {
					id, err := runNamed(cmd.Context(), v, args[0])
					if err != nil {
						return err
					}
					run = id
				}
				if follow && !served {
					a.Note("no sluice process serves this repo now: nothing more will come")
				}
				err := v.Facts(cmd.Context(), run, 0, follow, func(l daemon.Line) error { return logLine(&a.Console, l, run == "", brief) })
				if follow && errors.Is(err, context.Canceled) {
					return nil
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	cmd.Flags().BoolVar(&brief, "brief", false, "only what matters to a person")
	return a.JSONFlag(cmd)
}

func logLine(con *console.Console, l daemon.Line, withRun, brief bool) error {
	if con.JSON {
		return con.JSONLine(l)
	}
	s := render.Fact(l.Fact)
	if brief && !s.Key {
		return nil
	}
	con.Print("%s", render.Line(con, l, s, withRun))
	return nil
}

func (a *app) explainCommand() *cobra.Command {
	var run string
	cmd := &cobra.Command{
		Use:   "explain [RUN] STEP|GATE",
		Short: "say why a step or a gate is where it is, fact by fact",
		Long: `Every fact of the journal that made it so, in order; what followed from one and the same event
stands below it with a └. At the end: how it stands and what it waits for.`,
		Example: "sluice explain X-2\nsluice explain XG-1-2 --run phase-4-1",
		Args:    console.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := ofRun(&run, args)
			if err != nil {
				return err
			}
			return a.withView(cmd.Context(), func(p *place, v viewer, served bool) error {
				r, err := runWith(cmd.Context(), v, run, args[0])
				if err != nil {
					return err
				}
				return explainThing(cmd.Context(), &a.Console, v, r, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "of this `RUN` (the newest that has it)")
	return a.JSONFlag(cmd)
}

// ofRun takes the run off where it stands before the step or gate, as of the commands that take it first.
func ofRun(run *string, args []string) ([]string, error) {
	if len(args) < 2 {
		return args, nil
	}
	if *run != "" && *run != args[0] {
		return nil, fault.Misused("name the run once", "two runs are named: %s, and %s by --run", clean(args[0]), clean(*run))
	}
	*run = args[0]
	return args[1:], nil
}

// runWith finds the run that is meant and has the step or gate: the one named, else the newest, a live one first.
func runWith(ctx context.Context, v viewer, name, what string) (daemon.RunStatus, error) {
	st, err := v.Status(ctx, "")
	if err != nil {
		return daemon.RunStatus{}, err
	}
	if name != "" {
		if name, err = runNamed(ctx, v, name); err != nil {
			return daemon.RunStatus{}, err
		}
	}
	var known []string
	var found *daemon.RunStatus
	for i, r := range st.Runs {
		if name != "" && r.ID != name {
			continue
		}
		ids := idsOf(r)
		known = append(known, ids...)
		if slices.Contains(ids, what) && (found == nil || r.Live() || !found.Live()) {
			found = &st.Runs[i]
		}
	}
	if found != nil {
		return v.Run(ctx, found.ID)
	}
	mend := "`sluice status` names the steps and gates"
	if near := text.Meant(what, known); near != "" {
		mend = "did you mean " + near + "?"
	}
	return daemon.RunStatus{}, fault.Failed(mend, "no step or gate %q in a run of this repo", clean(what))
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

func explainThing(ctx context.Context, con *console.Console, v viewer, r daemon.RunStatus, what string) error {
	con.Title("%s of %s", what, r.ID)
	last := int64(0)
	err := v.Facts(ctx, r.ID, 0, false, func(l daemon.Line) error {
		s := render.Fact(l.Fact)
		if s.Step != what && s.Gate != what && !strings.HasPrefix(s.Subject, what+"#") && !strings.HasPrefix(s.Subject, what+".") {
			return nil
		}
		if con.JSON {
			return con.JSONLine(l)
		}
		lead := "  "
		if l.Seq == last {
			lead = "└ "
		}
		last = l.Seq
		s.Text = lead + s.Text
		con.Print("%s", render.Line(con, l, s, false))
		return nil
	})
	if err != nil || con.JSON {
		return err
	}
	con.Title("Now")
	for _, s := range r.Steps {
		if s.ID == what {
			con.Print("%s", render.StepLine(con, s, render.NameWidth(r), con.Now()))
		}
		for _, g := range s.Gates {
			if g.ID == what {
				con.Print("%s", render.GateLine(con, g, render.NameWidth(r)))
			}
		}
	}
	for _, w := range r.Waits {
		if w.Step == what || w.Gate == what || w.Step == "" {
			con.Print("  waits %s", render.WaitWords(w, con.Now()))
		}
	}
	return nil
}

func (a *app) tailCommand() *cobra.Command {
	var follow, errs, raw bool
	var lines int
	cmd := &cobra.Command{
		Use:   "tail [RUN [STEP]]",
		Short: "read what an agent says, as it says it",
		Long: `Prints the end of the newest attempt's output; with -f what comes. Without STEP: the step (or
the gate's reviewer) that was launched last, of a task list that of its tasks too. Of built-in
agents it tells what they say, the tools they use, the files they change and what it cost; --raw
prints their events as they come. Control characters are taken out.`,
		Example: "sluice tail -f\nsluice tail phase-4-1 X-2 -n 200",
		Args:    console.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.place(cmd.Context())
			if err != nil {
				return err
			}
			run := "last"
			if len(args) > 0 {
				run = args[0]
			}
			step := ""
			if len(args) == 2 {
				step = args[1]
			}
			folders, err := foldersOf(cmd.Context(), p, run, step == "")
			if err != nil {
				return err
			}
			dir, err := newestOutput(p, folders, step)
			if err != nil {
				return err
			}
			name := "stdout"
			if errs {
				name = "stderr"
			}
			say := a.plainLine
			if !raw && !errs {
				say = a.sayer(dir)
			}
			return tailFile(cmd.Context(), &a.Console, filepath.Join(dir, name), lines, follow, say)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	cmd.Flags().BoolVar(&errs, "stderr", false, "its standard error instead")
	cmd.Flags().BoolVar(&raw, "raw", false, "the lines of built-in agents as they are")
	cmd.Flags().IntVarP(&lines, "lines", "n", 40, "how many lines of the end, at most 10000")
	return cmd
}

// foldersOf are the folders of the run that is meant and, where all that it does is meant, of the runs that are its
// children: the agent at work may be theirs. They lie below .workflow/runs/, the run's own first.
func foldersOf(ctx context.Context, p *place, run string, all bool) ([]string, error) {
	v, _, err := viewOf(ctx, p)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	st, err := v.Status(ctx, "")
	if err != nil {
		return nil, err
	}
	id, err := named(st.Runs, run)
	if err != nil {
		return nil, err
	}
	runs := slices.DeleteFunc(slices.Clone(st.Runs), func(r daemon.RunStatus) bool { return r.ID != id })
	if all {
		runs = append(runs, daemon.Below(st.Runs, id)...)
	}
	var out []string
	for _, r := range runs {
		out = append(out, cmp.Or(r.Dir, r.ID))
	}
	return out, nil
}

// newestOutput is the folder of the launch that was written to last: of a step or gate, or of all that has a folder in runs,
// which are named below .workflow/runs/.
func newestOutput(p *place, runs []string, id string) (string, error) {
	var best string
	var at time.Time
	pattern := "*"
	if id != "" {
		if !ids.Valid(id) {
			return "", fault.Misused("`sluice status` names the steps", "%q is no id of a step or gate", clean(id))
		}
		pattern = id + ".*"
	}
	var dirs []string
	for _, run := range runs {
		root := globEscape(filepath.Join(p.root, filepath.FromSlash(runsDir), filepath.FromSlash(run)))
		for _, glob := range []string{pattern, filepath.Join(pattern, "launch-*")} {
			found, err := filepath.Glob(filepath.Join(root, glob))
			if err != nil {
				return "", err
			}
			dirs = append(dirs, found...)
		}
	}
	for _, d := range dirs {
		if id == "" && strings.HasPrefix(filepath.Base(d), "after_run.") {
			continue // the run's hook: nobody's words
		}
		if st, err := os.Stat(filepath.Join(d, "stdout")); err == nil && (best == "" || st.ModTime().After(at)) {
			best, at = d, st.ModTime()
		}
	}
	if best == "" {
		return "", fault.Failed("`sluice status` tells what runs", "no output yet of %s", strings.TrimSpace(clean(runs[0]+" "+id)))
	}
	return best, nil
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// tailPace is how often a followed file is looked at.
const (
	tailPace  = 200 * time.Millisecond
	tailLines = 10_000
	tailBytes = 1 << 20
)

// plainLine is a line for a person.
func (a *app) plainLine(line string) []string { return []string{text.Clean(line, engine.MaxOutput)} }

// eventsOf gives what turns a line of a program's stream into lines for a person.
func eventsOf(con *console.Console, format string) func(string) []string {
	r := program.NewReader(format, time.Now)
	return func(line string) (out []string) {
		for _, e := range r.Line([]byte(line)) {
			out = append(out, eventLines(con, e)...)
		}
		return out
	}
}

// eventLines tells an event in lines. Its texts are an agent's.
func eventLines(con *console.Console, e program.Event) (out []string) {
	sign, style := "", console.Plain
	switch e.Kind {
	case program.Began:
		sign, style = "— begins", console.Dim
	case program.Tool:
		sign, style = "▸", console.Blue
	case program.File:
		sign, style = "✎", console.Green
	case program.Failed:
		sign, style = "✗", console.Red
	case program.Denied:
		sign, style = "⊘ not allowed:", console.Yellow
	case program.Retry:
		sign, style = "↻", console.Dim
	case program.Limit:
		sign, style = "⏳ usage limit:", console.Yellow
	case program.Ended:
		sign, style = "— ended:", console.Dim
	}
	first := con.Paint(style, strings.TrimSpace(sign+" "+clean(e.Name)))
	for i, line := range strings.Split(strings.TrimSpace(e.Text), "\n") {
		line = text.Clean(line, engine.MaxOutput)
		switch {
		case i == 0:
			line = strings.TrimSpace(first + " " + line)
		case sign != "" && i == eventLinesMost:
			return append(out, con.Paint(console.Dim, "  …"))
		case sign != "":
			line = "  " + line
		}
		out = append(out, line)
	}
	return out
}

// eventLinesMost bounds what is shown of a tool's text; --raw has all.
const eventLinesMost = 5

// newestPart is where the newest output is: what exceeds the head of a stream goes to a file beside it.
func newestPart(file string) string {
	if _, err := os.Lstat(file + agents.TailSuffix); err == nil {
		return file + agents.TailSuffix
	}
	return file
}

// openOutput opens what an agent printed: a file, and nothing that an agent could have put there to hold up who looks.
func openOutput(name string) (*os.File, error) {
	f, _, err := atomicfile.Open(filepath.Dir(name), filepath.Base(name))
	return f, err
}

// nextPart opens the file that the output goes on in, and says from where; nil while that is f.
func nextPart(f *os.File, file string) (next *os.File, from int64) {
	name := newestPart(file)
	next, err := openOutput(name)
	if err != nil {
		return nil, 0
	}
	was, err1 := f.Stat()
	is, err2 := next.Stat()
	if err1 != nil || err2 != nil || os.SameFile(was, is) {
		next.Close()
		return nil, 0
	}
	if name == file { // it has ended, and all parts were joined: what they had was read
		from = is.Size()
	}
	return next, from
}

// tailFile prints the end of a file, and with follow what is added to it; say makes lines for a person of one of the file's.
func tailFile(ctx context.Context, con *console.Console, file string, lines int, follow bool, say func(string) []string) error {
	f, err := openOutput(newestPart(file))
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	at := max(st.Size()-tailBytes, 0)
	buf, err := io.ReadAll(io.NewSectionReader(f, at, tailBytes))
	if err != nil {
		return err
	}
	at += int64(len(buf))
	rest := ""
	if i := strings.LastIndexByte(string(buf), '\n'); follow && i+1 < len(buf) { // its end comes
		rest, buf = string(buf[i+1:]), buf[:i+1]
	}
	var all []string
	for _, l := range strings.Split(strings.TrimRight(string(buf), "\n"), "\n") {
		all = append(all, say(l)...)
	}
	for _, l := range all[max(len(all)-max(min(lines, tailLines), 0), 0):] {
		con.Print("%s", l)
	}
	tick := time.NewTicker(tailPace)
	defer tick.Stop()
	for follow {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		next, from := nextPart(f, file) // before the read: what is written after it is in the next
		buf, err := io.ReadAll(io.NewSectionReader(f, at, tailBytes))
		at += int64(len(buf))
		switch {
		case next != nil && err == nil && len(buf) == 0:
			f.Close()
			f, at = next, from
			continue
		case next != nil:
			next.Close() // it is found again
		}
		if err != nil {
			return err
		}
		parts := strings.Split(rest+string(buf), "\n")
		rest = parts[len(parts)-1]
		if len(rest) > tailBytes {
			parts, rest = append(parts, ""), ""
		}
		for _, l := range parts[:len(parts)-1] {
			for _, l := range say(l) {
				con.Print("%s", l)
			}
		}
	}
	return nil
}
