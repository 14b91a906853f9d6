package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/gates"
	"sluice/gates/judge"
	"sluice/internal/job"
	"sluice/internal/tree"
	"sluice/signals"
)

// Step runs a step's process; nil = ctx ended first.
func (k *Work) Step(ctx context.Context, j job.Job, emit func(engine.Event)) *engine.ProcessEnded {
	st := j.Spec.Step(j.Proc.Step)
	k.Inbox.Expect(j)
	ev, lost := &engine.ProcessEnded{}, error(nil)
	a, err := k.Launches.Converse(ctx, launch.Question{
		Order: launch.Order{Key: j.Key, Dir: k.JobDir(j), Agent: st.Run == nil,
			Idle:  k.Launches.Idle(st.Role(), st.IdleTimeout),
			Since: j.Attempt.Launched, Clock: launch.NewClock(j, j.Attempt.Deadline, emit), On: k.on(j, st),
			Found: j.Found},
		Undenied: st.Signal.Type != engine.SignalExit, // its signal decides
		Prepare:  func(t launch.Turn) (launch.Process, error) { return k.prepare(ctx, j, st, t) },
		Read: func(t launch.Turn, end launch.Ended) (err error) {
			if t.Try == 0 {
				if lost = k.returned(ctx, j, st, end); lost != nil {
					return nil
				}
			}
			if t.Try == 0 && end.Dir != "" { // something was started
				k.Inbox.Readable(ctx, j, st)
				if !end.Clean() {
					k.Inbox.TakenIn(ctx, j, st)
				}
			}
			ev.Answer, err = k.answer(j, st, t, end)
			return err
		},
	})
	if err != nil || ctx.Err() != nil {
		return nil
	}
	if ev.Exit = a.Exit; lost != nil { // it is launched again
		why := "the work of its worker cannot be taken: " + lost.Error()
		k.Logf("%s: %s", j.Key, why)
		return &engine.ProcessEnded{Exit: engine.Exit{Code: -1, Lost: true, Usage: a.Exit.Usage,
			Class: engine.ClassInfrastructure, Why: why}}
	}
	if a.Bad != nil {
		ev.AnswerBad = a.Bad.Error()
	}
	if err := a.First.Whole(); err != nil && a.First.Clean() && readsStdout(j.Spec) {
		ev.Exit.Class, ev.Exit.Why = engine.ClassInfrastructure, err.Error()
	}
	k.keepOutput(ev, j, st, a.First)
	if st.Run == nil {
		k.Launches.Log.Sum(j.Key, ev)
	}
	k.Launches.Receive(ctx, j)
	k.Folders.Salvage(ctx, j, st)
	return ev
}

// keepOutput adds the end of the output if it matters: the process failed, its signal is missing,
// or the spec reads it.
func (k *Work) keepOutput(ev *engine.ProcessEnded, j job.Job, st *engine.Step, end launch.Ended) {
	switch {
	case !end.Clean() || ev.AnswerBad != "":
		ev.Output = end.Output()
	case readsStdout(j.Spec):
		ev.Output = end.Stdout(engine.MaxOutput)
	case st.Signal.Type != engine.SignalExit && k.Inbox.Sentinel(j, st) == nil:
		ev.Output = end.Output()
	}
}

// prepare creates what a launch of the step needs, and returns its process. A correction does no
// work: it has no signal, may not write to .workflow/, and its commits are discarded.
func (k *Work) prepare(ctx context.Context, j job.Job, st *engine.Step, t launch.Turn) (launch.Process, error) {
	if t.Try == 0 {
		if err := k.Folders.FirstLaunch(j); err != nil {
			return launch.Process{}, err
		}
	}
	b, err := k.Folders.Begun(ctx, j, st, j.Attempt.N)
	if err != nil {
		return launch.Process{}, err
	}
	vars := job.StepVars(j, st)
	p := launch.Process{Cwd: b.Dir, Judged: launch.Judged{Begin: b},
		Work: new(workOrder(j, st, b))}
	if b.Look != "" {
		if p.Judged, err = k.Judges.LookFrom(ctx, b, t.Key); err != nil {
			return p, err
		}
		b, p.Cwd, p.Work = p.Judged.Begin, p.Judged.Host, nil
	}
	if t.Try > 0 {
		p.Work = nil
	} else {
		if f := k.Collector.SignalTold(j, st); f != "" {
			vars["SLUICE_SIGNAL"] = f
		}
		if p.Writes, err = k.declared(st, j.Env); err != nil {
			return p, err
		}
	}
	if st.Run != nil {
		return k.command(ctx, j, st, b, t, p, vars)
	}
	w, err := k.Launches.StepPlayer(j, st, b.Dir, t.Dir, t.Try)
	if err != nil {
		return p, err
	}
	_, answer := k.Launches.PromptOf(t.Dir)
	if w.Afar = len(k.on(j, st)) > 0; w.Afar {
		answer = ""
	}
	text, err := k.Collector.StepPrompt(ctx, j, st, b, w, answer)
	if err != nil {
		return p, err
	}
	ask := launch.Ask{Turn: t, Job: j, Who: w, Cwd: p.Cwd, Prompt: text, Session: st.Agent.Session,
		Values: job.WithAttempt(j, st), Env: st.Env, Vars: vars}
	if st.Answer != nil {
		ask.Schema = json.RawMessage(st.Answer.Source)
	}
	return k.begin(ctx, j, st, b, p, ask)
}

func (k *Work) command(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, l launch.Turn,
	p launch.Process, vars map[string]string) (launch.Process, error) {
	if _, err := k.Folders.Needed(ctx, j, st, b); err != nil {
		return p, err
	}
	t := job.Turn(j, j.Attempt.N, 0)
	t.Step = st.ID
	argv, err := k.Launches.Command(j, st.Run, j.Env, l.Dir, t, b.Dir)
	if err != nil {
		return p, err
	}
	return k.begin(ctx, j, st, b, p, launch.Ask{Turn: l, Job: j, Who: k.Launches.Whose(st.Role(), j.Turn), Cwd: p.Cwd,
		Argv: argv, Env: st.Env, Vars: vars})
}

// begin returns what starts the step, here or on a worker, with what p has already.
func (k *Work) begin(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, p launch.Process,
	a launch.Ask) (launch.Process, error) {
	if len(k.on(j, st)) > 0 {
		return k.send(ctx, j, st, b, a, p.Work != nil)
	}
	started, err := k.Launches.Agent(a)
	started.Judged, started.Writes, started.Work = p.Judged, p.Writes, p.Work
	return started, err
}

// declared returns the folders below .workflow/ of a held step's outputs.
func (k *Work) declared(st *engine.Step, env *engine.Env) ([]string, error) {
	if box, _ := k.Launches.Box(); box == nil {
		return nil, nil
	}
	made, _, err := job.Outputs(st.Outputs, env)
	if err != nil {
		return nil, err
	}
	return launch.StateWrites(made)
}

// answer reads a step's structured answer. If the spec wants none, a readable one is taken anyway.
func (k *Work) answer(j job.Job, st *engine.Step, t launch.Turn, end launch.Ended) (json.RawMessage, error) {
	if t.Try > 0 && !end.Clean() {
		if class := end.Exit.Class; class != "" && class != engine.ClassWork {
			return nil, nil // a limit, or a fault for a person: the attempt is not over
		}
		return nil, fmt.Errorf("asked again, it gave none: %s", launch.OrCode(end))
	}
	if end.Dir == "" {
		return nil, nil
	}
	in := gates.VerdictInput{WantToken: k.Token(t.Key), AnswerFile: k.Launches.AnswerFile(t.Dir),
		Structured: end.Structured()}
	if st.Answer == nil {
		data, err := gates.Find(in, nil)
		if err != nil || data == nil {
			return nil, nil
		}
		out, err := gates.ReadAnswer(data, nil)
		if err != nil {
			return nil, nil
		}
		return out, nil
	}
	if end.Clean() && end.Whole() == nil {
		in.Output = []byte(end.Stdout(gates.MaxReply))
	}
	data, err := gates.Find(in, func(data []byte) error {
		_, err := judge.ReadAnswer(j, st, data)
		return err
	})
	if err != nil && k.sentinelAnswers(j, st) {
		return nil, nil // its answer is read with it and checked with the outputs
	}
	if errors.Is(err, gates.ErrNothing) {
		if !end.Clean() {
			return nil, nil // how it ended says enough
		}
		err = fmt.Errorf("no answer: %w", cmp.Or(end.Whole(), err))
	}
	if err == nil {
		data, err = judge.ReadAnswer(j, st, data)
	}
	if err != nil {
		k.Collector.KeepReply(t.Dir, end)
		return nil, err
	}
	return data, nil
}

// sentinelAnswers reports whether the attempt's sentinel has a valid answer, or says that there is none to ask for.
func (k *Work) sentinelAnswers(j job.Job, st *engine.Step) bool {
	data := k.Inbox.Sentinel(j, st)
	if data == nil {
		return false
	}
	s, state, _ := signals.ParseSentinel(data)
	switch {
	case state != signals.Whole:
		return false
	case s.Status != signals.Done:
		return true
	case s.Answer == nil:
		return false
	}
	_, err := gates.ReadAnswer(s.Answer, st.Answer)
	return err == nil
}

// readsStdout reports whether an expression of the spec reads a step's output.
func readsStdout(spec *engine.Spec) bool {
	found := false
	look := func(sources ...string) {
		for _, s := range sources {
			found = found || strings.Contains(s, "stdout")
		}
	}
	text := func(ts ...engine.Text) {
		for _, t := range ts {
			if t.Eval != nil {
				look(t.Source)
			}
		}
	}
	command := func(c *engine.Command) {
		if c != nil {
			text(c.Argv...)
		}
	}
	for _, st := range spec.Steps {
		look(st.When.Source)
		text(st.Inputs...)
		command(st.Run)
		if st.Agent != nil {
			text(st.Agent.Prompt, st.Agent.Worktree, st.Agent.Branch)
		}
		for _, v := range st.Env {
			text(v.Value)
		}
		for _, o := range st.Outputs {
			text(o.Path)
			look(o.Value.Source)
		}
		for _, c := range st.Criteria {
			command(c.Command)
		}
	}
	for _, g := range spec.Gates {
		look(g.When.Source)
		text(g.Reviewer.Prompt)
		command(g.Reviewer.Run)
		for _, r := range g.Verdict.Rules {
			look(r.When.Source)
		}
		if g.Verdict.Name != nil {
			text(*g.Verdict.Name)
		}
		for _, o := range g.Outputs {
			text(o.Path)
			look(o.Value.Source)
		}
	}
	return found
}
