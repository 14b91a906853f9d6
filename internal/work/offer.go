package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// offered is the contents of an offer's file, for whoever takes the step.
type offered struct {
	Run      string `json:"run"`
	Step     string `json:"step"`
	Attempt  int    `json:"attempt"`
	Role     string `json:"role,omitempty"`
	Worktree string `json:"worktree"`
	Prompt   string `json:"prompt"`
	Signal   string `json:"signal,omitempty"`

	Inputs  []string `json:"inputs,omitempty"`  // as seen from the worktree
	Outputs []string `json:"outputs,omitempty"` // that it must create
}

// Offer creates what an offered step needs, and waits until the offer ends. If it cannot, it
// reports the step as failed.
func (k *Work) Offer(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	st := j.Spec.Step(j.Step)
	if st == nil || st.Agent == nil || j.Attempt == nil {
		k.Note(j.Key, "its step or attempt is not known: it cannot be offered")
		<-ctx.Done()
		return nil
	}
	k.Inbox.Expect(j)
	var no *job.Refusal
	if !k.Retry(ctx, j.Key, func() error {
		err := k.layOut(ctx, j, st)
		if errors.As(err, &no) {
			return nil
		}
		return err
	}) {
		return nil
	}
	if no != nil {
		emit(k.failedOffer(j, st, no))
	}
	<-ctx.Done()
	return nil
}

// layOut creates the worktree, the prompt and the offer's file.
func (k *Work) layOut(ctx context.Context, j job.Job, st *engine.Step) error {
	rel := k.LaunchDir(j.Run, st.ID, j.Attempt.N, j.K)
	if err := k.Launches.Expose(j.Run, "",
		fmt.Sprintf("step %s is on offer: it is done outside the sandbox", st.ID)); err != nil {
		return err
	}
	if err := k.Folders.FirstLaunch(j); err != nil {
		return err
	}
	b, err := k.Folders.Begun(ctx, j, st, j.Attempt.N)
	if err != nil {
		return err
	}
	path := filepath.Join(k.Path(rel), layout.OfferName)
	if _, err := os.Lstat(path); err == nil {
		return nil // already on offer: its sources may have been used up
	}
	prompt, answer := k.Launches.PromptOf(rel)
	told := *st
	if st.Answer != nil {
		// No process ends whose answer file could be read.
		agent := *st.Agent
		agent.Prompt = engine.Text{Eval: func(env *engine.Env) (string, error) {
			text, err := st.Agent.Prompt.String(env)
			return text + "\n\nThis step is on offer: whoever takes it gives the answer as the key \"answer\" of the " +
				"signal file.", err
		}}
		told.Agent = &agent
	}
	text, err := k.Collector.StepPrompt(ctx, j, &told, b, k.Launches.Whose(st.Role(), j.Turn), answer)
	if err != nil {
		return err
	}
	if err := k.WriteFile(rel+"/prompt.md", []byte(text)); err != nil {
		return err
	}
	inputs, _, err := k.Folders.Inputs(j, st, b.Dir)
	if err != nil {
		return err
	}
	outs, _, err := job.Outputs(st.Outputs, j.Env)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(offered{Run: j.Run, Step: st.ID, Attempt: j.Attempt.N, Role: st.Role(),
		Worktree: b.Dir,
		Prompt:   prompt, Signal: k.SignalFile(j.Run, st), Inputs: inputs, Outputs: outs}, "", "  ")
	if err != nil {
		return err
	}
	return k.WriteFile(rel+"/offer.json", append(data, '\n'))
}

// failedOffer is the signal of a step that cannot be offered, as no process can send it.
func (k *Work) failedOffer(j job.Job, st *engine.Step, no *job.Refusal) engine.Event {
	name := st.ID + "-done.json" // also if its signal is a commit, which is no file
	if f := k.SignalFile(j.Run, st); f != "" {
		name = filepath.Base(f)
	}
	return engine.FileSeen{
		Name: name, Dir: j.Run, Written: k.Now(), TokenOf: j.Key,
		By: engine.Actor{Who: "sluice", Via: "daemon", Trust: engine.TrustFile},
		Sentinel: &engine.Sentinel{Step: st.ID, Status: engine.StatusFailed, Summary: no.Error(), Run: j.Run,
			Attempt: j.Attempt.N, Launch: j.K},
	}
}
