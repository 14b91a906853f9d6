package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/collect"
	"sluice/internal/folders"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/internal/tree"
)

// Write writes a retry-context file or a gate's outputs, moves a branch, or removes the files of
// ended runs.
func (k *Work) Write(ctx context.Context, j job.Job) engine.Event {
	ev := engine.FileWritten{Run: j.Run, ID: j.Write.ID}
	if j.Write.Sweep {
		if k.Persist(ctx, j.Key, func() error { return errors.Join(k.sweep(j.Live), k.prune(j.Live, j.Known)) }) != nil &&
			ctx.Err() != nil {
			return nil
		}
		return ev
	}
	if j.Write.Kind != "" {
		do := map[string]func(context.Context, job.Job) string{engine.WriteAdvance: k.Folders.Advance,
			engine.WriteRewind: k.Folders.Rewind, engine.WriteLand: k.Folders.Land}[j.Write.Kind]
		if ev.Why = do(ctx, j); ctx.Err() != nil {
			return nil
		}
		return ev
	}
	if j.Spec == nil || j.Spec.Gate(j.Write.Gate) == nil || j.Round == nil {
		ev.Why = "its gate or round is not known"
		return ev
	}
	gate := j.Spec.Gate(j.Write.Gate)
	if j.Write.File == 0 {
		ev.Why = strings.Join(k.gateOutputs(ctx, j, gate), "; ")
	} else {
		data := prompt.RetryContext(k.retryInput(j, gate))
		err := k.Persist(ctx, j.Key, func() error {
			if err := k.own(j.Write.Path, j.Run); err != nil {
				return err
			}
			return k.Folders.Put(j.Write.Path, k.Root, data)
		})
		if err != nil {
			ev.Why = fmt.Sprintf("%s: %v", j.Write.Path, err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if ev.Why != "" {
		k.Logf("%s: %s", j.Key, ev.Why)
	}
	return ev
}

func (k *Work) gateOutputs(ctx context.Context, j job.Job, g *engine.Gate) []string {
	st := j.Spec.Step(g.Step)
	if st == nil || j.Attempt == nil {
		return []string{"its step is not known"}
	}
	b, err := k.Folders.BegunAgain(ctx, j, st)
	if err != nil {
		return []string{err.Error()}
	}
	env := *j.Env
	if env.Answer == nil && len(j.Round.Answer) > 0 {
		if err := json.Unmarshal(j.Round.Answer, &env.Answer); err != nil {
			return []string{err.Error()}
		}
	}
	why := k.Folders.WriteValues(ctx, j.Key, g.Outputs, &env, b.Dir)
	if err := k.noteWritten(ctx, j, b, g.Outputs, &env); err != nil {
		why = append(why, err.Error())
	}
	return why
}

// noteWritten records files that were written into the run's own worktree after its work was taken.
func (k *Work) noteWritten(ctx context.Context, j job.Job, b tree.Begin, outs []engine.Output, env *engine.Env) error {
	if !job.InOwn(j) || b.Top == "" || len(outs) == 0 {
		return nil
	}
	_, written, err := job.Outputs(outs, env)
	if err != nil {
		return err
	}
	return k.Folders.NoteFolder(ctx, j, b.Top, func(r *folders.Record) {
		for _, p := range written {
			rel, err := filepath.Rel(b.Top, filepath.Join(b.Dir, filepath.FromSlash(p)))
			if rel = filepath.ToSlash(rel); err == nil && !layout.IsState(p) && !slices.Contains(r.Written, rel) {
				r.Written = append(r.Written, rel)
			}
		}
	})
}

func (k *Work) retryInput(j job.Job, g *engine.Gate) prompt.RetryInput {
	q := j.Round
	in := prompt.RetryInput{
		Workflow: j.RunInfo.Workflow, Run: j.Run, Gate: g.ID, GateName: g.Name, Step: q.Step, Attempt: q.Attempt,
		N: j.Write.File, Max: g.MaxRetries, Outcome: q.Outcome, Reviewer: collect.JudgedBy(g, q), At: q.Ended, Score: q.Score,
		Scores: q.Scores, Feedback: q.Feedback, Comments: q.Comments, Findings: q.Findings,
	}
	if q.ByKind == engine.Human {
		in.Asked, in.Missed, in.Said, in.SaidBy = q.Why, q.MissWhy, q.Said, collect.SaidBy(g, j.Attempt)
		if in.Feedback == in.Said {
			in.Feedback = "" // a decision without words is explained by these
		}
	}
	for _, h := range j.History {
		if h.Path != j.Write.Path {
			in.Earlier = append(in.Earlier, k.RetryPath(j.Run, h.Path))
		}
	}
	return in
}
