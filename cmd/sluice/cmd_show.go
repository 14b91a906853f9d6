package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sluice/agents"
	"sluice/daemon"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/form"
	"sluice/internal/press"
	"sluice/internal/prompt"
	"sluice/internal/render"
	"sluice/internal/schema"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// Bounds of what show prints.
const (
	showDiff  = 64 << 10 // bytes of the patch with --diff
	showFiles = 20       // files listed
	showText  = 4000     // characters of a text of several lines
	showLines = 12       // lines of what a criterion's command printed
	// showOutput is how much of it is read.
	showOutput = 8 << 10
)

func (a *app) showCommand() *cobra.Command {
	var run string
	var diff, since bool
	cmd := &cobra.Command{
		Use:   "show [RUN] GATE|STEP",
		Short: "show what one needs to decide: task, criterion, verdict, changes, earlier rounds",
		Long: `Everything about the work that a gate holds, on one page: what was to be done, what the step
says of itself, what a machine checked, what the reviewer says, which files changed, what it
cost, and what failed before. --diff prints the changes themselves, --since those since the
attempt before. In a terminal, a key then decides a gate that waits for you: f and v ask for the
reason, p asks once more. Keys that were typed before it asks, or pasted, decide nothing.`,
		Example: "sluice show XG-2-end\nsluice show last XG-2-end\nsluice show X-2 --diff | less -R\nsluice show X-2 --since",
		Args:    console.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := ofRun(&run, args)
			if err != nil {
				return err
			}
			var sh *shown
			var at *place
			err = a.withView(cmd.Context(), func(p *place, v viewer, served bool) error {
				r, err := runWith(cmd.Context(), v, run, args[0])
				if err != nil {
					return err
				}
				if sh, err = a.gather(cmd.Context(), p, v, r, args[0]); err != nil {
					return err
				}
				at = p
				if a.JSON {
					return a.Document(sh)
				}
				a.printShow(sh)
				switch {
				case since:
					return a.printSince(cmd.Context(), p, sh)
				case diff:
					return a.printDiff(cmd.Context(), p, sh)
				}
				return nil
			})
			if err != nil || a.JSON || !a.Interactive() {
				return err
			}
			return a.decideHere(cmd.Context(), at, sh)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "of this `RUN` (the newest that has it)")
	cmd.Flags().BoolVar(&diff, "diff", false, "print the changes too")
	cmd.Flags().BoolVar(&since, "since", false, "print the changes since the attempt before")
	return a.JSONFlag(cmd)
}

// shown is all about a step and the gate that holds it.
type shown struct {
	dir string // the run's folder

	Run      string              `json:"run"`
	Workflow string              `json:"workflow"`
	Stubbed  bool                `json:"stubbed,omitempty"` // stand-ins play the run's agents
	Trust    string              `json:"trust,omitempty"`
	Exposed  string              `json:"exposed,omitempty"` // of file: why
	For      string              `json:"for,omitempty"`     // of a child run: whose it is, and its task as the file has it
	Step     string              `json:"step"`
	StepName string              `json:"step_name,omitempty"`
	Task     string              `json:"task,omitempty"`
	Criteria []string            `json:"criteria,omitempty"`
	Outputs  []string            `json:"outputs,omitempty"`
	Gate     *daemon.GateStatus  `json:"gate,omitempty"`
	LookFor  string              `json:"look_for,omitempty"`
	Attempt  *engine.Attempt     `json:"attempt,omitempty"`
	Usage    engine.Usage        `json:"usage,omitzero"`
	Notes    []engine.Note       `json:"notes,omitempty"` // a person's words for the step
	Changed  []string            `json:"changed,omitempty"`
	Cut      bool                `json:"changed_cut,omitempty"`
	Taken    string              `json:"taken,omitempty"`  // the commit that the gate judges
	Beside   []tree.Beside       `json:"beside,omitempty"` // files that are judged with it and do not ship
	Law      []tree.Beside       `json:"law,omitempty"`    // files that decide, are in no commit and changed
	Hidden   []tree.Beside       `json:"hidden,omitempty"` // files that only ignore rules of the run's own keep out of the commit
	More     int                 `json:"more_hidden,omitempty"`
	Files    string              `json:"files,omitempty"` // prompt, output and signal of the attempt
	Checked  []checkedBy         `json:"checked,omitempty"`
	Unread   *unread             `json:"unread,omitempty"` // the reply that no answer or verdict could be read from
	Earlier  []engine.Round      `json:"earlier,omitempty"`
	Tasks    []daemon.TaskStatus `json:"tasks,omitempty"` // of a list, with their answers

	tree, base string
}

// checkedBy is what a command of the step's criterion printed when the attempt was checked.
type checkedBy struct {
	Command string `json:"command"`
	Output  string `json:"output"`
}

// gather puts together what there is about a gate or a step.
func (a *app) gather(ctx context.Context, p *place, v viewer, r daemon.RunStatus, id string) (*shown, error) {
	spec, err := goesBy(ctx, v, r)
	if err != nil {
		return nil, err
	}
	sh := &shown{Run: r.ID, Workflow: r.Workflow, Stubbed: r.Stubbed, Trust: r.Trust, Exposed: r.Exposed, For: childTask(r.Child), dir: r.Dir}
	var st daemon.StepStatus
	for _, s := range r.Steps {
		for i, g := range s.Gates {
			if g.ID == id || s.ID == id && (!g.Implicit || g.State == engine.OnHuman) && (sh.Gate == nil || g.State == engine.OnHuman) {
				st, sh.Gate = s, &s.Gates[i]
			}
		}
		if s.ID == id {
			st = s
		}
	}
	sh.Step, sh.StepName = st.ID, st.Name
	if st.List != nil {
		sh.Tasks = st.List.Tasks
	}
	env := render.KnownOf(r, st)
	if step := spec.Step(st.ID); step != nil {
		sh.of(step, env)
	}
	if sh.Gate != nil {
		if g := spec.Gate(sh.Gate.ID); g != nil {
			sh.LookFor = render.TextOf(g.Reviewer.Prompt, env)
		}
		for _, q := range sh.Gate.Rounds {
			if (q.State == engine.Refused || q.State == engine.ByRoute || q.State == engine.Superseded && q.Outcome != "") && q.N != sh.Gate.Round {
				sh.Earlier = append(sh.Earlier, q)
			}
		}
	}
	for _, n := range r.Notes {
		if n.Step == "" || n.Step == st.ID {
			sh.Notes = append(sh.Notes, n)
		}
	}
	if n := len(st.Attempts); n > 0 {
		sh.Attempt = &st.Attempts[n-1]
		for _, x := range st.Attempts {
			sh.Usage = sh.Usage.Plus(attemptUsage(x))
		}
		sh.Files = daemon.AttemptDir(p.root, r.Dir, st.ID, sh.Attempt.N, sh.Attempt.K)
		if step := spec.Step(st.ID); step != nil {
			sh.checked(p.root, step)
		}
		sh.changes(ctx, p, r.ID)
	}
	sh.reply(p.root)
	return sh, nil
}

// attemptUsage is what an attempt has cost so far; of one that an older release counted, its last launch alone.
func attemptUsage(x engine.Attempt) engine.Usage {
	if x.Usage == (engine.Usage{}) && x.Exit != nil {
		return x.Exit.Usage
	}
	return x.Usage
}

// of takes what the spec says of the step.
func (sh *shown) of(step *engine.Step, env *engine.Env) {
	if step.Agent != nil {
		sh.Task = render.TextOf(step.Agent.Prompt, env)
	}
	if step.Run != nil && !step.Run.Nothing() {
		sh.Task = "run: " + commandWords(step.Run)
	}
	for _, c := range step.Criteria {
		sh.Criteria = append(sh.Criteria, prompt.CriterionWords(c))
	}
	for _, o := range step.Outputs {
		sh.Outputs = append(sh.Outputs, render.TextOf(o.Path, env))
	}
}

// childTask says whose child a run is, with the words of its task; "" of a run that is nobody's.
func childTask(c *engine.ChildOf) string {
	var task struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	if c == nil || json.Unmarshal(c.Body, &task) != nil { // a run without a task has no body
		return c.Title()
	}
	return strings.TrimSpace(c.Title() + "\n" + task.Title + "\n\n" + task.Description)
}

// checked finds what the commands of the criterion printed, at the newest check of the attempt.
func (sh *shown) checked(root string, step *engine.Step) {
	dir := daemon.AttemptDir(root, sh.dir, sh.Step, sh.Attempt.N, 1)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	newest, last := "", int64(-1)
	for _, e := range entries {
		if n, err := strconv.ParseInt(strings.TrimPrefix(e.Name(), "check-"), 10, 64); err == nil && n > last && e.IsDir() {
			newest, last = e.Name(), n
		}
	}
	for i, c := range step.Criteria {
		if c.Command == nil || newest == "" {
			continue
		}
		at := filepath.Join(dir, newest, strconv.Itoa(i))
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			continue
		}
		sh.Checked = append(sh.Checked, checkedBy{Command: commandWords(c.Command), Output: string(agents.Tail(at, showOutput))})
	}
}

func commandWords(c *engine.Command) string {
	if c.Shell != "" {
		return c.Shell
	}
	var words []string
	for _, w := range c.Argv {
		words = append(words, w.Source)
	}
	return strings.Join(words, " ")
}

// changes finds what the attempt changed, by what was recorded when it began and when its work was taken. Before that,
// what differs in its folder now is shown; nothing is decided by it.
func (sh *shown) changes(ctx context.Context, p *place, run string) {
	sh.tree = filepath.Join(p.root, sh.Attempt.Worktree)
	var began struct {
		Head  string `json:"head"`
		Top   string `json:"top"`
		Found string `json:"found"`
	}
	record := filepath.Join(p.state, "attempts", run, fmt.Sprintf("%s.%d.", sh.Step, sh.Attempt.N))
	if recorded(record+"begin", &began) {
		sh.base = began.Head
		if began.Top != "" {
			sh.tree = began.Top
		}
	}
	var checked struct {
		Files []string   `json:"files"`
		Found string     `json:"found"`
		Taken tree.Taken `json:"taken"`
	}
	if recorded(record+"files", &checked) {
		t := checked.Taken
		sh.Changed, sh.base, sh.Taken, sh.Beside, sh.Law, sh.Hidden, sh.More = checked.Files, checked.Found, t.Commit, t.Beside, t.Law, t.Hidden, t.More
		return
	}
	repo, err := p.repo(ctx)
	if err != nil {
		return
	}
	defer repo.Close()
	if sh.base == "" && began.Found == "" {
		return // it was not begun
	}
	ch, err := repo.Changed(ctx, sh.tree, sh.base)
	if err != nil {
		return
	}
	sh.Changed, sh.Cut = ch.Files, ch.Cut
}

// recorded reads a file of the state folder, where it is there and whole.
func recorded(file string, into any) bool {
	raw, _, err := atomicfile.OpenRegular(filepath.Dir(file), filepath.Base(file), maxRecord)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// maxRecord bounds a record of an attempt that is read.
const maxRecord = 8 << 20

func (a *app) printShow(sh *shown) {
	if g := sh.Gate; g != nil {
		a.title("%s at %s, %s of %s%s", text.Title(g.ID, g.Name), render.GateState(*g), render.Round(g.ID, g.Round), sh.Run, render.UnheldMark(sh.Trust))
		if g.Why != "" {
			a.field("why you", render.Why(g.Why))
		}
	} else {
		a.title("%s of %s%s", text.Title(sh.Step, sh.StepName), sh.Run, render.UnheldMark(sh.Trust))
	}
	if sh.Stubbed {
		a.field("note", a.Paint(console.Yellow, render.StubWords))
	}
	if sh.For != "" {
		a.text("for", sh.For)
	}
	a.field("step", text.Title(sh.Step, sh.StepName))
	a.text("task", sh.Task)
	for _, c := range sh.Criteria {
		a.field("done when", c)
	}
	for _, n := range sh.Notes {
		a.text(fmt.Sprintf("note %d", n.N), n.Text+"  ("+n.By.Who+")")
	}
	if at := sh.Attempt; at != nil {
		a.printAttempt(sh, at)
	}
	for _, line := range render.TaskLines(sh.Tasks) {
		a.field("", line)
	}
	a.printChanged(sh)
	if g := sh.Gate; g != nil {
		a.printVerdict(sh, g)
	}
	if u := sh.Unread; u != nil {
		a.text("its reply", cmp.Or(u.End, "(empty)"))
		a.field("", "the whole reply: "+shortPath(u.File))
	}
	for _, q := range sh.Earlier {
		a.text(fmt.Sprintf("round %d", q.N), fmt.Sprintf("%s by %s: %s", cmp.Or(q.Outcome, "failed"), render.By(q.ByKind, q.By), q.Feedback))
		if q.Said != q.Feedback {
			a.text("before", q.Said)
		}
		a.printFindings(q)
	}
	if sh.Files != "" {
		a.field("files", shortPath(sh.Files))
	}
	if g := sh.Gate; g != nil && g.Trust == engine.TrustSigned {
		who := "anybody of `sluice keys ls`"
		if len(g.Approvers) > 0 {
			who = strings.Join(g.Approvers, " or ")
		}
		a.field("signed by", clean(who)+"; sluice pass, fail and veto sign")
	}
	if g := sh.Gate; g != nil && g.State == engine.OnHuman {
		a.Print("\nDecide: %s", decideWords(*g))
	} else if g != nil && g.State == engine.OnWindow {
		a.Print("\nIt goes on by itself in %s: sluice veto %s -m \"…\" stops it", render.Ago(g.Until.Sub(a.Now())), g.ID)
	}
}

// decideWords is what a person may type at a gate.
func decideWords(g daemon.GateStatus) string {
	pass := "sluice pass " + g.ID
	if s, err := schema.Compile(g.AnswerSchema); g.AnswerRequired && err == nil {
		pass += " " + clean(s.Example())
	}
	out := []string{pass, "sluice fail " + g.ID + " -m \"…\""}
	for _, o := range g.Outcomes {
		if o != engine.OutcomePass && o != engine.OutcomeFail && o != engine.OutcomeVeto {
			out = append(out, "sluice decide "+g.ID+" "+o)
		}
	}
	return strings.Join(out, "  ·  ")
}

func (a *app) printAttempt(sh *shown, at *engine.Attempt) {
	s := fmt.Sprintf("%d, %s", at.N, at.State)
	if !at.Launched.IsZero() {
		end := at.Ended
		if end.IsZero() {
			end = a.Now()
		}
		s += ", " + render.Ago(end.Sub(at.Launched))
	}
	if g := sh.Gate; g != nil && g.Reviewed != "" {
		s += ", content " + press.Content(g.Reviewed) // as the question before a pass names it
	}
	if at.Restarts > 0 {
		s += fmt.Sprintf(", launched again %d×", at.Restarts)
	}
	a.field("attempt", s)
	if at.Held != nil {
		a.field("held", "taken over"+render.Who(at.Held)+": sluice handback "+sh.Step)
	}
	if at.Status != "" {
		a.text("it says", render.Because(at.Status, at.Summary))
	}
	a.text("it asks", render.Because(at.Question, strings.Join(at.Options, " | ")))
	if len(at.Answer) > 0 {
		a.text("answer", readable(at.Answer))
	}
	switch {
	case at.Failure != "":
		a.text("failed", at.Failure)
	case at.Broken != "":
		a.text("broken", at.Broken)
	case at.Checked && len(sh.Criteria) > 0:
		held := "holds"
		if len(at.ToReview) > 0 {
			held = "what a machine can check holds; for a reviewer: " + strings.Join(at.ToReview, "; ")
		}
		a.field("criterion", held)
	}
	for _, c := range sh.Checked {
		lines := strings.Split(strings.TrimSpace(text.CleanLines(c.Output, showOutput)), "\n")
		if more := len(lines) - showLines; more > 0 {
			lines = append([]string{fmt.Sprintf("… %d lines before", more)}, lines[more:]...)
		}
		a.text("printed", strings.Join(lines, "\n"))
	}
	if at.Unshipped > 0 {
		a.field("judged", text.Unshipped(at.Unshipped))
	}
	if len(at.Protected) > 0 {
		a.field("protected", "changed: "+strings.Join(at.Protected, ", "))
	}
	if sh.Usage != (engine.Usage{}) {
		a.field("cost", fmt.Sprintf("%d tokens, %.2f USD", sh.Usage.Tokens, sh.Usage.CostUSD))
	}
}

func (a *app) printChanged(sh *shown) {
	for i, f := range sh.Changed {
		if i == showFiles {
			a.field("", fmt.Sprintf("… and %d more", len(sh.Changed)-showFiles))
			break
		}
		label := ""
		if i == 0 {
			label = "changed"
		}
		a.field(label, clean(f))
	}
	for _, f := range sh.Beside {
		a.field("", clean(f.Path)+" is judged too, and does not ship")
	}
	for _, f := range sh.Law {
		a.field("", clean(f.Path)+" decides too, has changed, and does not ship")
	}
	for i, f := range sh.Hidden {
		if i == showFiles {
			break
		}
		label := ""
		if i == 0 {
			label = "hidden"
		}
		a.field(label, clean(f.Path)+" does not ship: only ignore rules of this run hide it")
	}
	if n := len(sh.Hidden) + sh.More - showFiles; n > 0 {
		a.field("", fmt.Sprintf("… and %d more", n))
	}
	if len(sh.Changed) > 0 {
		more := "sluice show " + sh.Step + " --diff prints the changes"
		if sh.Attempt != nil && sh.Attempt.N > 1 {
			more += ", --since those since the attempt before"
		}
		a.field("", a.Paint(console.Dim, more))
	}
}

func (a *app) printVerdict(sh *shown, g *daemon.GateStatus) {
	a.text("look for", sh.LookFor)
	if len(g.AnswerSchema) > 0 && g.AnswerRequired {
		if f, err := form.New(g.AnswerSchema); err == nil {
			a.text("asks for", strings.Join(f.Questions(), "\n"))
		}
	}
	if len(g.Answer) > 0 {
		a.text("answer", readable(g.Answer))
	}
	if len(g.Rounds) == 0 {
		return
	}
	q := g.Rounds[len(g.Rounds)-1]
	if q.Outcome != "" {
		s := q.Outcome
		if q.Score != nil {
			s += fmt.Sprintf(", score %g", *q.Score)
		}
		a.text("verdict", render.Because(s, q.Feedback))
	} else {
		a.text("feedback", q.Feedback)
	}
	if q.Read != "" {
		a.field("read from", q.Read)
	}
	a.text("no verdict", q.MissWhy)
	var said struct {
		Summary string `json:"summary"`
	}
	if json.Unmarshal(q.Answer, &said) == nil {
		a.text("summary", said.Summary)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Scores)) {
		a.text("score", fmt.Sprintf("%s %g", name, q.Scores[name]))
	}
	a.printFindings(q)
	if g.Count > 0 {
		a.field("failures", fmt.Sprintf("%d of %d, then the gate is yours", g.Count, g.Max))
	}
	for _, name := range slices.Sorted(maps.Keys(g.Routes)) {
		a.field("route", fmt.Sprintf("%s %d of %d, then the gate is yours", name, g.Routes[name], g.Max))
	}
}

// printFindings prints what a reviewer found, each with its place.
func (a *app) printFindings(q engine.Round) {
	for _, f := range gates.ReadFindings(q.Findings) {
		at := f.File
		if f.File != "" && f.Line > 0 {
			at += fmt.Sprintf(":%d", f.Line)
		}
		a.text("finding", strings.Join(strings.Fields(f.Severity+" "+at), " ")+" "+f.Message)
	}
}

// field prints a label and a line of foreign text.
func (a *app) field(label, s string) {
	if s != "" {
		a.Print("  %s  %s", a.Paint(console.Dim, console.Pad(label, labelWidth)), s)
	}
}

// text prints a label and a text of several lines, cleaned.
func (a *app) text(label, s string) {
	s = strings.TrimSpace(text.CleanLines(s, showText))
	if s == "" {
		return
	}
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			label = ""
		}
		a.Print("  %s  %s", a.Paint(console.Dim, console.Pad(label, labelWidth)), l)
	}
}

const labelWidth = 10

// printDiff prints the changes of the attempt as a patch.
func (a *app) printDiff(ctx context.Context, p *place, sh *shown) error {
	repo, err := p.repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	var patch []byte
	var cut bool
	if sh.Taken != "" {
		patch, cut, err = repo.Between(ctx, sh.base, sh.Taken, showDiff)
	} else {
		patch, cut, err = repo.Diff(ctx, sh.tree, sh.base, showDiff)
	}
	if err != nil {
		return err
	}
	a.Print("")
	a.printPatch(patch)
	if cut {
		a.Note("there is more: sluice attempt diff %s %s.%d", sh.Run, sh.Step, sh.Attempt.N)
	}
	return nil
}

// printPatch prints a patch.
func (a *app) printPatch(patch []byte) {
	for l := range strings.Lines(string(patch)) {
		style := console.Plain
		switch {
		case strings.HasPrefix(l, "+"):
			style = console.Green
		case strings.HasPrefix(l, "-"):
			style = console.Red
		case strings.HasPrefix(l, "@@"), strings.HasPrefix(l, "diff "):
			style = console.Bold
		}
		a.Print("%s", a.Paint(style, text.Reveal(strings.TrimRight(l, "\n"))))
	}
}

// readable lays JSON out for people: a line for each value, and no character written as its number.
func readable(raw json.RawMessage) string {
	var v any
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if json.Unmarshal(raw, &v) != nil || out.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSpace(b.String())
}
