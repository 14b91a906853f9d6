package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/folders"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/stub"
	"sluice/internal/tree"
)

// Check checks an attempt's outputs and criteria; nil = ctx ended first.
func (js *Judges) Check(ctx context.Context, j job.Job) *engine.ProcessEnded {
	st := j.Spec.Step(j.Proc.Step)
	if js.Persist(ctx, j.Key, func() error { return js.folders.FirstLaunch(j) }) != nil && ctx.Err() != nil {
		return nil
	}
	b, err := js.folders.BegunAgain(ctx, j, st)
	if ctx.Err() != nil {
		return nil
	}
	var r engine.CheckResult
	if err != nil {
		r.Broken = err.Error()
	} else {
		r = js.checked(ctx, j, st, b)
	}
	if j.Offers(st) { // no process of the daemon's ended
		js.folders.Salvage(ctx, j, st)
	}
	if ctx.Err() != nil {
		return nil
	}
	return &engine.ProcessEnded{Check: &r}
}

func (js *Judges) checked(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin) engine.CheckResult {
	env := job.WithAnswer(j)
	done := j.Attempt.Status == "" || j.Attempt.Status == engine.StatusDone
	in := gates.CheckInput{Root: js.Root, Worktree: b.Dir}
	var why []string
	made, written, err := job.Outputs(st.Outputs, env)
	if err != nil {
		why = append(why, err.Error())
	}
	switch {
	case !done: // it reports itself as not done: its outputs are not asked for
		for _, c := range st.Criteria {
			if c.Text != "" {
				in.Criteria = append(in.Criteria, c)
			}
		}
	default:
		in.Criteria, in.Outputs = st.Criteria, append(made, written...)
		if bad := AnswerFits(j, st); bad != "" {
			why = append(why, bad)
		}
		why = append(why, js.folders.WriteValues(ctx, j.Key, st.Outputs, env, b.Dir)...)
	}
	outs := append(made, written...)
	c, law, err := js.folders.Taken(ctx, j, st, b, outs)
	if err == nil {
		err = js.uncovered(ctx, j, st, b, c.Taken.Commit)
	}
	if ctx.Err() != nil {
		return engine.CheckResult{}
	}
	var no *tree.Refused
	switch {
	case errors.As(err, &no):
		why = append(why, no.Why)
	// An attempt that breaks git is not one that changed nothing.
	case err != nil:
		return engine.CheckResult{Why: strings.Join(why, "\n"), Broken: folders.Unseen("", err)}
	}
	if len(why) > 0 { // run no command on missing files
		r := engine.CheckResult{Why: strings.Join(why, "\n")}
		law.Put(&r)
		return js.folders.Digested(ctx, j, st, c, r)
	}
	in.Run = func(ctx context.Context, i int, cmd engine.Command) (int, string, error) {
		at := c.Taken.Commit
		if in.Criteria[i].Folder {
			at = ""
		}
		return js.criterion(ctx, j, st, b, at, i, cmd)
	}
	r := js.checkedAt(ctx, j.Key, b, c.Taken.Commit, in)
	if c.Taken.Commit != "" && slices.ContainsFunc(in.Criteria, func(c engine.Criterion) bool { return c.Folder }) {
		r = js.withUnshipped(ctx, b, c.Taken.Commit, r)
	}
	law.Put(&r)
	return js.folders.Digested(ctx, j, st, c, r)
}

// checkedAt checks the criteria in the tree of the taken commit; "" = in the folder. Declared
// outputs that git ignores are in no tree, and are looked for in the folder.
func (js *Judges) checkedAt(ctx context.Context, key string, b tree.Begin, commit string,
	in gates.CheckInput) engine.CheckResult {
	if !in.LooksAtFiles() {
		return gates.Check(ctx, in)
	}
	var j launch.Judged
	err := js.Persist(ctx, key, func() (err error) {
		j, err = js.seated(ctx, b, commit, key, nil)
		return err
	})
	if err != nil {
		return engine.CheckResult{Broken: folders.Unseen("", err)}
	}
	if j.Seat != nil {
		defer js.Vacate(js.PIDFile(key))
		in.Worktree, in.Shown, in.Beside = j.Host, b.Dir, b.Dir
	}
	return gates.Check(ctx, in)
}

// AnswerFits returns why the attempt's answer does not fit the spec. An answer that came with a
// sentinel was not checked before.
func AnswerFits(j job.Job, st *engine.Step) string {
	if st.Answer == nil {
		return ""
	}
	if len(j.Attempt.Answer) == 0 {
		return "the step gave no answer, and its spec wants one: write it to the file that SLUICE_ANSWER names"
	}
	if _, err := ReadAnswer(j, st, j.Attempt.Answer); err != nil {
		return err.Error()
	}
	return ""
}

// launchesOfCheck is how often a command of success_criterion is launched. One lost with the
// machine says nothing about the work, but one that always ends its own host must stop.
const launchesOfCheck = 3

// criterion runs one command of success_criterion on the taken commit; "" = in the folder.
func (js *Judges) criterion(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, commit string, i int,
	c engine.Command) (int, string, error) {
	rel := fmt.Sprintf("%s/%s/%d", js.LaunchDir(j.Run, st.ID, j.Attempt.N, 1), lastPart(j.Key), i)
	key := fmt.Sprintf("%s/%d", j.Key, i)
	once := func(key, rel string) (launch.Ended, error) {
		return js.launches.Ensure(ctx, launch.Order{Key: key, Of: j.Key, Dir: rel}, func() (launch.Process, error) {
			seen, err := js.JudgeAt(ctx, j, b, commit, key)
			if err != nil {
				return launch.Process{}, err
			}
			_, taken := TakenOf(j)
			seen.Alone = taken
			argv, err := js.launches.Command(j, &c, j.Env, rel, stub.Turn{}, "")
			if err != nil {
				return launch.Process{}, err
			}
			w := js.launches.Whose(st.Role(), j.Turn)
			env, err := js.launches.Environ(j, w, key, st.Env, withBase(b, job.StepVars(j, st)))
			return launch.Process{Cwd: seen.Host, Argv: argv, Env: env, Who: w, Judged: seen}, err
		})
	}
	end, err := once(key, rel)
	for n := 2; err == nil && end.Exit.Lost && n <= launchesOfCheck; n++ {
		end, err = once(fmt.Sprintf("%s-%d", key, n), fmt.Sprintf("%s-%d", rel, n))
	}
	switch {
	case err != nil:
		return 0, "", err
	case end.Exit.Refused != "":
		return 126, end.Exit.Refused, nil
	case end.Exit.Class == engine.ClassFatal:
		return 127, end.Exit.NotStarted, nil
	case end.Failure() != "":
		return 0, "", errors.New(end.Failure())
	case end.Exit.Signal != "":
		return -1, end.Output(), nil
	}
	return end.Exit.Code, end.Output(), nil
}

// lastPart returns what follows the step in a key: "check-17".
func lastPart(key string) string { return layout.PathElement(key[strings.LastIndexByte(key, '.')+1:]) }
