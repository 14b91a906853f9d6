package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
)

// offered is what an offer's file says to whoever takes the step.
type offered struct {
	Run      string `json:"run"`
	Step     string `json:"step"`
	Attempt  int    `json:"attempt"`
	Role     string `json:"role,omitempty"`
	Worktree string `json:"worktree"`
	Prompt   string `json:"prompt"`
	Signal   string `json:"signal,omitempty"`

	Inputs  []string `json:"inputs,omitempty"`  // as seen from the worktree
	Outputs []string `json:"outputs,omitempty"` // that it has to make
}

// offer lays out what an offered step needs, and waits until it is owed no more. Where it cannot be done it says so in
// the step's name.
func (e *Executor) offer(ctx context.Context, job job.Job, emit func(engine.Event)) engine.Event {
	st := job.Spec.Step(job.Step)
	if st == nil || st.Agent == nil || job.Attempt == nil {
		e.Note(job.Key, "its step or attempt is not known: it cannot be offered")
		<-ctx.Done()
		return nil
	}
	e.notePlace(job)
	for pause := health.AgainFirst; ; pause = min(2*pause, health.AgainMost) {
		err := e.layOut(ctx, job, st)
		var no *refusal
		if errors.As(err, &no) {
			e.Note(job.Key, "")
			emit(e.failedOffer(job, st, no))
			break
		}
		if err == nil {
			e.Note(job.Key, "")
			break
		}
		if ctx.Err() != nil { // it is over: what was broken off went wrong in nothing
			return nil
		}
		e.Note(job.Key, err.Error())
		if !health.Wait(ctx, pause) {
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

// layOut makes the worktree, the prompt and the offer's file.
func (e *Executor) layOut(ctx context.Context, job job.Job, st *engine.Step) error {
	rel := e.LaunchDir(job.Run, st.ID, job.Attempt.N, job.K)
	if err := e.expose(job.Run, "", fmt.Sprintf("step %s is on offer, and whoever takes it is held by no sandbox", st.ID)); err != nil {
		return err
	}
	if err := e.firstLaunch(job); err != nil {
		return err
	}
	b, err := e.begun(ctx, job, st, job.Attempt.N)
	if err != nil {
		return err
	}
	path := filepath.Join(e.Root, filepath.FromSlash(rel), "offer.json")
	if _, err := os.Lstat(path); err == nil {
		return nil // it is on offer already: what it was made from may have been used up since
	}
	prompt, answer := e.promptOf(rel)
	told := *st
	if st.Answer != nil && st.Agent != nil {
		// No process ends whose answer file could be read.
		agent := *st.Agent
		agent.Prompt = engine.Text{Eval: func(env *engine.Env) (string, error) {
			text, err := st.Agent.Prompt.String(env)
			return text + "\n\nThis step is on offer: whoever takes it gives the answer as the key \"answer\" of the signal file.", err
		}}
		told.Agent = &agent
	}
	text, err := e.stepPrompt(ctx, job, &told, b, e.whose(st.Role(), job.Turn), answer)
	if err != nil {
		return err
	}
	if err := e.WriteFile(rel+"/prompt.md", []byte(text)); err != nil {
		return err
	}
	inputs, _, err := e.inputs(job, st, b.Dir)
	if err != nil {
		return err
	}
	outs, _, err := outputs(st.Outputs, job.Env)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(offered{Run: job.Run, Step: st.ID, Attempt: job.Attempt.N, Role: st.Role(), Worktree: b.Dir,
		Prompt: prompt, Signal: e.signalFile(job, st), Inputs: inputs, Outputs: outs}, "", "  ")
	if err != nil {
		return err
	}
	return e.WriteFile(rel+"/offer.json", append(data, '\n'))
}

// failedOffer is the word of a step that cannot be offered: no process ends that could say it.
func (e *Executor) failedOffer(job job.Job, st *engine.Step, no *refusal) engine.Event {
	name := st.ID + "-done.json" // also where its signal is a commit: it is no file
	if f := e.signalFile(job, st); f != "" {
		name = filepath.Base(f)
	}
	return engine.FileSeen{
		Name: name, Dir: job.Run, Written: e.opt.Now(), TokenOf: job.Key,
		By: engine.Actor{Who: "sluice", Via: "daemon", Trust: engine.TrustFile},
		Sentinel: &engine.Sentinel{Step: st.ID, Status: engine.StatusFailed, Summary: no.Error(), Run: job.Run,
			Attempt: job.Attempt.N, Launch: job.K},
	}
}
