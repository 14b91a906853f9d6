package judge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/collect"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/internal/tree"
)

const maxDiffRead = 128 << 10 // bytes of a diff; the prompt has its own limit

// Review carries out a round's review; nil = ctx ended first.
func (js *Judges) Review(ctx context.Context, j job.Job, emit func(engine.Event)) *engine.ProcessEnded {
	g := j.Spec.Gate(j.Proc.Gate)
	if g.Reviewer.Run != nil {
		return js.reviewByCommand(ctx, j, g)
	}
	var verdict engine.Judgement
	a, err := js.launches.Converse(ctx, launch.Question{
		Order: launch.Order{Key: j.Key, Dir: js.JobDir(j), Agent: true, Idle: js.launches.Idle(g.Reviewer.AgentType, 0),
			Since: j.Proc.Began, Clock: launch.NewClock(j, j.Round.Deadline, emit)},
		Undenied: true, // a verdict may do without a denied tool, and says so
		Prepare:  func(t launch.Turn) (launch.Process, error) { return js.prepareReview(ctx, j, g, t) },
		Read: func(t launch.Turn, end launch.Ended) (err error) {
			if !end.Clean() {
				verdict = engine.Judgement{Inconclusive: "the reviewer gave no verdict: " + launch.OrCode(end)}
				return nil
			}
			if err = end.Whole(); err == nil {
				verdict, err = gates.ReadVerdict(js.verdictInput(g, t, end))
			}
			if err != nil || verdict.Inconclusive != "" {
				js.collector.KeepReply(t.Dir, end)
			}
			return err
		},
	})
	if err != nil {
		return nil
	}
	if a.Bad != nil {
		verdict = gates.Unread(a.Bad)
	}
	return &engine.ProcessEnded{Exit: a.Exit, Verdict: &verdict}
}

func (js *Judges) reviewByCommand(ctx context.Context, j job.Job, g *engine.Gate) *engine.ProcessEnded {
	end, err := js.launches.Ensure(ctx, launch.Order{Key: j.Key, Dir: js.JobDir(j), Since: j.Proc.Began},
		func() (launch.Process, error) {
			b, err := js.folders.Begun(ctx, j, j.Spec.Step(g.Step), j.Attempt.N)
			if err != nil {
				return launch.Process{}, err
			}
			commit, _ := TakenOf(j)
			seen, err := js.JudgeAt(ctx, j, b, commit, j.Key)
			if err != nil {
				return launch.Process{}, err
			}
			t := job.Turn(j, j.Round.N, 0)
			t.Gate = g.ID
			argv, err := js.launches.Command(j, g.Reviewer.Run, j.Env, js.JobDir(j), t, "")
			if err != nil {
				return launch.Process{}, err
			}
			env, err := js.launches.Environ(j, launch.Who{}, j.Key, nil, reviewVars(j, g, seen.Agents))
			return launch.Process{Cwd: seen.Host, Argv: argv, Env: env, Judged: seen}, err
		})
	if err != nil {
		return nil
	}
	ev := &engine.ProcessEnded{Exit: end.Exit}
	var verdict engine.Judgement
	switch why := end.Failure(); {
	case why != "":
		verdict.Inconclusive = "the reviewer's command gave no verdict: " + why
		// A missing command, or one without a value, is the spec's fault and no failure of the
		// work.
		ev.Exit.Refused, ev.Exit.Class, ev.Exit.Why = "", "", ""
	case end.Exit.Signal != "":
		verdict = gates.CommandVerdict(-1, end.Output())
	default:
		verdict = gates.CommandVerdict(end.Exit.Code, end.Output())
	}
	ev.Verdict = &verdict
	return ev
}

func reviewVars(j job.Job, g *engine.Gate, b tree.Begin) map[string]string {
	return withBase(b, map[string]string{"SLUICE_GATE": g.ID, "SLUICE_STEP": g.Step,
		"SLUICE_ATTEMPT": strconv.Itoa(j.Attempt.N), "SLUICE_ROUND": strconv.Itoa(j.Round.N)})
}

// withBase adds the commit to compare the work with: the folder before it.
func withBase(b tree.Begin, vars map[string]string) map[string]string {
	if b.Found != "" {
		vars["SLUICE_BASE"] = b.Found
	}
	return vars
}

func (js *Judges) verdictInput(g *engine.Gate, t launch.Turn, end launch.Ended) gates.VerdictInput {
	first := t.Dir // a correction in the same conversation does not have the work again
	if t.Try > 0 {
		first = path.Dir(first)
	}
	in := gates.VerdictInput{Structured: end.Structured(), AnswerFile: js.launches.AnswerFile(t.Dir),
		WantToken: js.Token(t.Key), Output: []byte(end.Stdout(gates.MaxReply + 1)),
		ByReply: end.Said != nil, ExitCode: end.Exit.Code, Prompt: js.collector.PromptText(first), Schema: g.Answer,
		Rubric: g.Reviewer.Rubric}
	in.Allowed, in.Computed = gates.Allowed(g)
	return in
}

// prepareReview creates what a reviewer needs, and returns its process.
func (js *Judges) prepareReview(ctx context.Context, j job.Job, g *engine.Gate, t launch.Turn) (launch.Process, error) {
	st := j.Spec.Step(g.Step)
	b, err := js.folders.Begun(ctx, j, st, j.Attempt.N)
	if err != nil {
		return launch.Process{}, err
	}
	commit, _ := TakenOf(j)
	seen, err := js.JudgeAt(ctx, j, b, commit, t.Key)
	if err != nil {
		return launch.Process{}, err
	}
	w, err := js.launches.ReviewPlayer(j, g, t.Dir, t.Try)
	if err != nil {
		return launch.Process{}, err
	}
	_, answer := js.launches.PromptOf(t.Dir)
	text, err := js.reviewPrompt(ctx, j, g, st, seen, w, answer)
	if err != nil {
		return launch.Process{}, err
	}
	outcomes, computed := gates.Allowed(g)
	p, err := js.launches.Agent(launch.Ask{
		Turn: t, Job: j, Who: w, Cwd: seen.Host, Prompt: text, Session: g.Reviewer.Session, Values: j.Env, Judges: true,
		Vars:   reviewVars(j, g, b),
		Schema: gates.VerdictSchema(outcomes, g.Reviewer.Rubric, computed, g.Answer),
		Nulls:  g.Answer == nil, // only sluice reads this verdict: null counts as missing
	})
	p.Judged = seen
	return p, err
}

func (js *Judges) reviewPrompt(ctx context.Context, j job.Job, g *engine.Gate, st *engine.Step, b launch.Judged,
	w launch.Who, answer string) (string, error) {
	template, err := js.collector.Template(w, true)
	if err != nil {
		return "", err
	}
	values := prompt.NewValues()
	look, err := values.Text(g.Reviewer.Prompt, j.Env)
	if err != nil {
		return "", job.Refused("prompt of %s: %v", g.ID, err)
	}
	in := prompt.ReviewInput{
		Role: w.Role, Template: template, Workflow: j.RunInfo.Workflow, Description: j.Spec.Description, Run: j.Run,
		Gate: g.ID, GateName: g.Name, Round: j.Round.N, Step: st.ID, StepName: st.Name, Look: look,
		Task: js.task(j, st, values), Values: values, Given: collect.Given(j),
		ContextFiles: js.collector.ContextFiles(j.Spec, st, b.Dir), Criteria: j.Attempt.ToReview, Summary: j.Attempt.Summary,
		Answer: j.Attempt.Answer, Rubric: g.Reviewer.Rubric, Schema: g.Answer, AnswerPath: answer,
	}
	in.ByReply = program.Known(w.Agent.Format)
	in.Allowed, in.Computed = gates.Allowed(g)
	env := job.WithAttempt(j, st)
	ofStep := j
	ofStep.Env = env
	if found, missing, err := js.folders.Inputs(ofStep, st, b.Dir); err == nil {
		for _, f := range found {
			in.Inputs = append(in.Inputs, prompt.Input{Path: f, There: true})
		}
		for _, f := range missing {
			in.Inputs = append(in.Inputs, prompt.Input{Path: f})
		}
	}
	for _, c := range st.Criteria {
		if c.Text == "" {
			in.Held = append(in.Held, c)
		}
	}
	if made, written, err := job.Outputs(st.Outputs, env); err == nil {
		for _, p := range append(made, written...) {
			if layout.IsState(p) {
				in.Outputs = append(in.Outputs, js.collector.TextFile(js.Root, p, b.Dir))
			} else {
				in.Outputs = append(in.Outputs, js.outputOf(b, p))
			}
		}
	}
	for _, h := range j.History {
		if h.Gate == g.ID {
			in.Retry = append(in.Retry, js.collector.TextFile(js.Root, js.RetryPath(j.Run, h.Path), b.Dir))
		}
	}
	in.Sent = collect.SentOf(j, func(q job.Sent) bool { return q.Gate == g.ID })
	if err := js.changes(ctx, j, st, b.Agents, &in); err != nil {
		return "", err
	}
	in.Rewritten = rewritten(b, in)
	if why := in.Cut(); why != "" {
		return "", job.Unready("%s", why)
	}
	return prompt.Review(in), ctx.Err()
}

// rewritten returns those of the files to read first that the work has changed.
func rewritten(b launch.Judged, in prompt.ReviewInput) (out []string) {
	for _, f := range in.ContextFiles {
		at, inside := layout.Rel(b.Top, filepath.Join(b.Dir, f))
		within := func(c prompt.Changed) bool { return git.Within([]string{at}, c.Path) }
		if inside && slices.ContainsFunc(in.Changed, within) {
			out = append(out, f)
		}
	}
	return out
}

// task describes what the step was to do.
func (js *Judges) task(j job.Job, st *engine.Step, values *prompt.Values) string {
	if st.Run != nil {
		if st.Run.Shell != "" {
			return "Run this command: " + st.Run.Shell
		}
		var words []string
		for _, a := range st.Run.Argv {
			words = append(words, strconv.Quote(a.Source))
		}
		return "Run this command: " + strings.Join(words, " ")
	}
	if st.Agent == nil { // a list of tasks, or a child run
		if st.Child != nil && len(st.Child.Steps) == 1 && st.Child.Steps[0].Agent != nil {
			return "Each task of a list was done for itself, with these words:\n\n" + st.Child.Steps[0].Agent.Prompt.Source
		}
		return "The work was done step by step in runs of its own."
	}
	text, err := values.Text(st.Agent.Prompt, job.WithAttempt(j, st))
	if err != nil {
		return st.Agent.Prompt.Source
	}
	return text
}

// changes sets what the step changed: the name of every file, and as much of the diff as is read.
func (js *Judges) changes(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, in *prompt.ReviewInput) error {
	if b.Top == "" {
		return nil
	}
	var c tree.Covered
	err := layout.Load(js.AttemptFile(j.Run, st.ID, j.Attempt.N, layout.CheckedFile), &c)
	if errors.Is(err, fs.ErrNotExist) || err == nil && c.Taken.Commit == "" {
		return nil
	}
	var files []git.Change
	if err == nil {
		files, err = js.opt.Git.ChangesBetween(ctx, c.Found, c.Taken.Commit)
	}
	if err != nil {
		return job.Unready("the changed files could not be listed: %v", err)
	}
	for _, f := range files {
		how := "changed"
		if f.Added() {
			how = "added"
		} else if f.Deleted() {
			how = "removed"
		}
		in.Changed = append(in.Changed, prompt.Changed{Path: f.Path, How: how})
	}
	diff, cut, err := js.opt.Git.Between(ctx, c.Found, c.Taken.Commit, maxDiffRead, git.Look{})
	switch in.Diff = string(diff); {
	case err != nil && ctx.Err() == nil:
		js.Logf("diff of %s: %v", js.Shown(b.Top), err)
		in.Diff = fmt.Sprintf("(the diff could not be made: look at the files in %s)", filepath.Base(b.Dir))
	case cut:
		in.Diff += "\n[there is more of it: look at the files]\n"
	}
	return nil
}
