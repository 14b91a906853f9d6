package show

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/agents"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/internal/render"
	"sluice/internal/tree"
	"sluice/internal/workspace"
)

// Limits of what is printed.
const (
	maxFiles = 20 // files listed
	maxLines = 12 // lines printed by a criterion's command
	// maxOutput is how many bytes of its output are read.
	maxOutput = 8 << 10
)

// Shown is what is known about a step and its gate.
type Shown struct {
	dir  string             // the run's folder
	runs []daemon.RunStatus // of the repo

	Run      string              `json:"run"`
	Workflow string              `json:"workflow"`
	Stubbed  bool                `json:"stubbed,omitempty"` // stubs play the run's agents
	Trust    string              `json:"trust,omitempty"`
	Exposed  string              `json:"exposed,omitempty"` // for level file: why
	For      string              `json:"for,omitempty"`     // of a child run: its parent and task
	Also     []string            `json:"also,omitempty"`    // other runs that ask at a gate of the name
	Step     string              `json:"step"`
	StepName string              `json:"step_name,omitempty"`
	Task     string              `json:"task,omitempty"`
	Criteria []string            `json:"criteria,omitempty"`
	Outputs  []string            `json:"outputs,omitempty"`
	Gate     *daemon.GateStatus  `json:"gate,omitempty"`
	LookFor  string              `json:"look_for,omitempty"`
	Attempt  *engine.Attempt     `json:"attempt,omitempty"` // the one that the gate judged; of a step the newest
	Newest   int                 `json:"newest,omitempty"`  // attempt of the step
	Usage    engine.Usage        `json:"usage,omitzero"`
	Notes    []engine.Note       `json:"notes,omitempty"` // a person's words for the step
	Changed  []string            `json:"changed,omitempty"`
	Cut      bool                `json:"changed_cut,omitempty"`
	Taken    string              `json:"taken,omitempty"`   // the commit that the gate judges
	Untaken  bool                `json:"untaken,omitempty"` // there is none, so a pass goes on without the work
	Beside   []tree.Beside       `json:"beside,omitempty"`  // judged too, but not shipped
	Law      []tree.Beside       `json:"law,omitempty"`     // deciding files, changed and in no commit
	Hidden   []tree.Beside       `json:"hidden,omitempty"`  // hidden by the run's own ignore rules
	More     int                 `json:"more_hidden,omitempty"`
	Files    string              `json:"files,omitempty"` // prompt, output and signal
	Checked  []checkedBy         `json:"checked,omitempty"`
	Unread   *unread             `json:"unread,omitempty"` // a reply that could not be read
	Judged   []Judged            `json:"judged,omitempty"` // by other gates, the newest last
	Earlier  []engine.Round      `json:"earlier,omitempty"`
	Since    []Since             `json:"since,omitempty"` // of the findings of the last of these
	Tasks    []daemon.TaskStatus `json:"tasks,omitempty"` // of a list, with their answers

	tree, base string
	left       string // the commit that keeps what was not taken
	recorded   bool   // what the attempt changed was recorded as its work was taken
	machine    bool   // a machine checks some of the criteria
	nobody     bool   // and nobody judges the others
}

// checkedBy is the output of a criterion's command in the attempt's check.
type checkedBy struct {
	Command string `json:"command"`
	Output  string `json:"output"`
}

// Gather returns what is known about a gate or a step of a run, by the spec that the run follows.
func Gather(ctx context.Context, from *workspace.Workspace, v workspace.Viewer, r daemon.RunStatus,
	id string) (*Shown, error) {
	spec, err := workspace.SpecOf(ctx, v, r)
	if err != nil {
		return nil, err
	}
	sh := gather(ctx, from, spec, r, id)
	st, err := v.Status(ctx, "")
	if err != nil {
		return nil, err
	}
	sh.runs = st.Runs
	if g := sh.Gate; g != nil && (g.State == engine.OnHuman || g.State == engine.OnWindow) {
		sh.Also = asking(st.Runs, g.ID, r.ID)
	}
	return sh, nil
}

// attemptOf returns the attempt that is shown: at a gate the one that its newest round judged.
func attemptOf(st daemon.StepStatus, g *daemon.GateStatus, id string) *engine.Attempt {
	if g != nil && g.ID == id && len(g.Rounds) > 0 {
		q := g.Rounds[len(g.Rounds)-1]
		for i := range st.Attempts {
			if q.Step == st.ID && st.Attempts[i].N == q.Attempt {
				return &st.Attempts[i]
			}
		}
	}
	return &st.Attempts[len(st.Attempts)-1]
}

// asking returns the other live runs in which a gate waits for a person.
func asking(runs []daemon.RunStatus, gate, but string) (ids []string) {
	for _, r := range runs {
		asks := func(w daemon.Wait) bool { return w.Gate == gate && w.Asks() }
		if r.Live() && r.ID != but && slices.ContainsFunc(r.Waits, asks) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func gather(ctx context.Context, from *workspace.Workspace, spec *engine.Spec, r daemon.RunStatus, id string) *Shown {
	sh := &Shown{Run: r.ID, Workflow: r.Workflow, Stubbed: r.Stubbed, Trust: r.Trust, Exposed: r.Exposed,
		For: childTask(r.Child), dir: r.Dir}
	var st daemon.StepStatus
	for _, s := range r.Steps {
		for i, g := range s.Gates {
			if g.ID == id || s.ID == id && g.Listed() &&
				(sh.Gate == nil || g.State == engine.OnHuman) {
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
		sh.of(spec, step, env)
	}
	if sh.Gate != nil {
		if g := spec.Gate(sh.Gate.ID); g != nil {
			sh.LookFor = render.TextOf(g.Reviewer.Prompt, env)
		}
		for _, q := range sh.Gate.Rounds {
			if (q.State == engine.Refused || q.State == engine.ByRoute || q.State == engine.Superseded && q.Outcome != "") &&
				q.N != sh.Gate.Round {
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
		sh.Attempt = attemptOf(st, sh.Gate, id)
		sh.Newest, sh.Untaken = st.Attempts[n-1].N, daemon.Untaken(r.Workspace, sh.Attempt)
		for _, x := range st.Attempts {
			sh.Usage = sh.Usage.Plus(AttemptUsage(x))
		}
		sh.Files = daemon.AttemptDir(from.Root, r.Dir, st.ID, sh.Attempt.N, sh.Attempt.K)
		if step := spec.Step(st.ID); step != nil {
			sh.checked(from.Root, step)
		}
		sh.changes(ctx, from, r.ID)
		sh.since(ctx, from)
	}
	sh.judged(r)
	sh.reply(from.Root)
	return sh
}

// AttemptUsage returns an attempt's cost so far; for one counted by an older release, only its last
// launch's.
func AttemptUsage(x engine.Attempt) engine.Usage {
	if x.Usage == (engine.Usage{}) && x.Exit != nil {
		return x.Exit.Usage
	}
	return x.Usage
}

func (sh *Shown) of(spec *engine.Spec, step *engine.Step, env *engine.Env) {
	if step.Agent != nil {
		sh.Task = render.TextOf(step.Agent.Prompt, env)
	}
	if step.Run != nil && !step.Run.Nothing() {
		sh.Task = "run: " + commandWords(step.Run)
	}
	sh.nobody = prompt.Unjudged(spec, step) != ""
	for _, c := range step.Criteria {
		sh.machine = sh.machine || c.Text == ""
		sh.Criteria = append(sh.Criteria, prompt.CriterionWords(c, sh.nobody))
	}
	for _, o := range step.Outputs {
		sh.Outputs = append(sh.Outputs, render.TextOf(o.Path, env))
	}
}

// childTask returns a child run's parent and the words of its task; "" for other runs.
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

// checked adds what the criterion's commands printed in the attempt's newest check.
func (sh *Shown) checked(root string, step *engine.Step) {
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
		sh.Checked = append(sh.Checked,
			checkedBy{Command: commandWords(c.Command), Output: string(agents.Tail(at, maxOutput))})
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

// changes adds what the attempt changed, from the records of its beginning and of its taken work.
// Before the work is taken it shows the folder's current changes; nothing is decided by them.
func (sh *Shown) changes(ctx context.Context, from *workspace.Workspace, run string) {
	sh.tree = filepath.Join(from.Root, sh.Attempt.Worktree)
	var began struct {
		Head  string `json:"head"`
		Top   string `json:"top"`
		Found string `json:"found"`
	}
	record := func(what string) string {
		return layout.Layout{State: from.State}.AttemptFile(run, sh.Step, sh.Attempt.N, what)
	}
	if layout.Load(record(layout.BeganFile), &began) == nil {
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
	if layout.Load(record(layout.CheckedFile), &checked) == nil {
		t := checked.Taken
		sh.Changed, sh.base, sh.Taken, sh.Beside, sh.Law, sh.Hidden, sh.More = checked.Files, checked.Found, t.Commit,
			t.Beside, t.Law, t.Hidden, t.More
		sh.recorded = true
		return
	}
	repo, err := from.Open(ctx)
	if err != nil {
		return
	}
	defer repo.Close()
	if sh.Untaken && sh.kept(ctx, repo) == nil {
		return
	}
	if sh.base == "" && began.Found == "" {
		return // it was not begun
	}
	ch, err := repo.Changed(ctx, sh.tree, sh.base)
	if err != nil {
		return
	}
	sh.Changed, sh.Cut = ch.Files, ch.Cut
}

// kept adds what an attempt left that was not taken: later steps work in its folder.
func (sh *Shown) kept(ctx context.Context, repo *git.Repo) error {
	left, base, err := repo.Kept(ctx, layout.AttemptName(sh.Run, sh.Step, sh.Attempt.N))
	if err != nil {
		return err
	}
	changes, err := repo.ChangesBetween(ctx, base, left)
	if err != nil {
		return err
	}
	sh.base, sh.left = base, left
	for _, c := range changes {
		sh.Changed = append(sh.Changed, c.Path)
	}
	return nil
}

// Again reports whether there was an attempt before the one shown.
func (sh *Shown) Again() bool { return sh.Attempt != nil && sh.Attempt.N > 1 }

// Base returns the commit that the changes are against; "" if it is not known.
func (sh *Shown) Base() string { return sh.base }
