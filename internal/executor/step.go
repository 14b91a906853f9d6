package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"sluice/agents/program"
	"sluice/daemon"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/job"
	"sluice/internal/tree"
	"sluice/signals"
)

// corrections is how often an agent is asked again for an answer that cannot be read.
const corrections = gates.MaxCorrections

// step carries out a step's process; nil where ctx ended first.
func (e *Executor) step(ctx context.Context, j job.Job, c *clock) *engine.ProcessEnded {
	st := j.Spec.Step(j.Proc.Step)
	rel := e.JobDir(j)
	e.Expect(j)
	l := order{key: j.Key, dir: rel, agent: st.Run == nil, idle: e.idle(st), since: j.Attempt.Launched, clock: c}
	end, err := e.ensure(ctx, l, func() (process, error) { return e.prepare(ctx, j, st, rel, j.Key) })
	if err != nil {
		return nil
	}
	if st.Signal.Type != engine.SignalExit {
		end = end.undenied() // its signal says whether it got on without what it was not allowed
	}
	if end.dir != "" { // something was started
		e.Readable(ctx, j, st)
		if !end.clean() {
			e.TakenIn(ctx, j, st)
		}
	}
	ev := &engine.ProcessEnded{Exit: end.exit}
	last := end
	ev.Answer, err = e.answer(j, st, rel, j.Key, end)
	for try := 1; err != nil && st.Run == nil && end.clean() && try <= corrections; try++ {
		var a asked
		if last, a, err = e.askAgain(ctx, j, st, c, try, err, last); err != nil {
			return nil
		}
		if withCorrection(&ev.Exit, last.exit); ev.Exit.Class != "" {
			break // a limit, or what a person has to mend: the attempt is not over
		}
		if !last.clean() {
			err = fmt.Errorf("asked again, it gave none: %s", orCode(last))
			break
		}
		ev.Answer, err = e.answer(j, st, a.dir, a.key, last)
	}
	if err != nil {
		ev.AnswerBad = err.Error()
	}
	e.keepOutput(ev, j, st, end)
	if st.Run == nil {
		e.Sum(j.Key, ev)
	}
	e.receive(ctx, j)
	e.Salvage(ctx, j, st)
	return ev
}

// keepOutput adds the end of the output, where it matters: it failed, its signal is missing, or the spec reads it.
func (e *Executor) keepOutput(ev *engine.ProcessEnded, j job.Job, st *engine.Step, end ended) {
	switch {
	case !end.clean() || ev.AnswerBad != "":
		ev.Output = end.output()
	case readsStdout(j.Spec):
		ev.Output = end.stdout(engine.MaxOutput)
	case st.Signal.Type != engine.SignalExit && !e.said(j, st):
		ev.Output = end.output()
	}
}

// said says that the attempt's sentinel lies in its inbox, or was taken in.
func (e *Executor) said(j job.Job, st *engine.Step) bool {
	return e.Sentinel(j, st) != nil
}

// prepare makes all that a step's launch needs, and says what to start.
func (e *Executor) prepare(ctx context.Context, j job.Job, st *engine.Step, rel, key string) (process, error) {
	if err := e.firstLaunch(j); err != nil {
		return process{}, err
	}
	b, err := e.Begun(ctx, j, st, j.Attempt.N)
	if err != nil {
		return process{}, err
	}
	if err := e.MakeBelow(rel, 0o700); err != nil {
		return process{}, err
	}
	w := e.whose(st.Role(), j.Turn)
	prompt, answer := e.promptOf(rel)
	vars := job.StepVars(j, st)
	vars["SLUICE_ANSWER"] = answer
	if f := e.signalTold(j, st); f != "" {
		vars["SLUICE_SIGNAL"] = f
	}
	p := process{cwd: b.Dir, who: w, work: &tree.Order{Run: j.Run, Step: st.ID, N: j.Attempt.N, Base: b.Head}}
	if b.Look != "" {
		if p.judged, err = e.lookFrom(ctx, b, key); err != nil {
			return p, err
		}
		b, p.cwd, p.work = p.judged.Begin, p.judged.host, nil
	}
	if p.writes, err = e.declared(st, j.Env); err != nil {
		return p, err
	}
	if st.Run != nil {
		if _, err := e.Needed(ctx, j, st, b); err != nil {
			return p, err
		}
		t := job.Turn(j, j.Attempt.N, 0)
		t.Step = st.ID
		if p.argv, err = e.command(j, st.Run, j.Env, rel, t, st, b); err != nil {
			return p, err
		}
		if p.env, err = e.environ(j, w, key, st.Env, vars); err != nil {
			return p, err
		}
	} else {
		if w, err = e.stepPlayer(j, st, b, rel, 0); err != nil {
			return p, err
		}
		p.who = w
		text, err := e.stepPrompt(ctx, j, st, b, w, answer)
		if err != nil {
			return p, err
		}
		if err := e.WriteFile(rel+"/prompt.md", []byte(text)); err != nil {
			return p, err
		}
		vars["SLUICE_PROMPT"] = prompt
		need := e.needsOf(rel, st.Answer, false, e.mayCost(j, w.role))
		name, err := conversation(st.Agent.Session, job.WithAttempt(j, st))
		if err != nil {
			return p, err
		}
		need.talk = e.takeTalk(j.Run, name, key, w)
		maps.Copy(vars, program.Vars(w.agent.Format, e.variable, need.dirs))
		if p.env, err = e.environ(j, w, key, st.Env, vars); err != nil {
			return p, err
		}
		if err := e.keepProgram(rel, key, w, need.talk, p.env); err != nil {
			return p, err
		}
		if p.argv, p.stdin, err = e.agentLine(w, prompt, text, need); err != nil {
			return p, err
		}
	}
	return p.native(w), nil
}

// declared gives the folders below .workflow/ in which a step's outputs lie, where it is held.
func (e *Executor) declared(st *engine.Step, env *engine.Env) ([]string, error) {
	if box, _ := e.box(); box == nil {
		return nil, nil
	}
	made, _, err := job.Outputs(st.Outputs, env)
	if err != nil {
		return nil, err
	}
	return stateWrites(made)
}

// askAgain has the step's agent give its answer again. The error is ctx's.
func (e *Executor) askAgain(ctx context.Context, j job.Job, st *engine.Step, c *clock, try int, bad error, last ended) (ended, asked, error) {
	l := order{of: j.Key, agent: true, idle: e.idle(st), clock: c}
	return e.again(ctx, l, e.JobDir(j), try, func(key, dir string, goOn bool) (process, error) {
		b, err := e.Begun(ctx, j, st, j.Attempt.N)
		if err != nil {
			return process{}, err
		}
		var seen judged
		if b.Look != "" {
			if seen, err = e.lookFrom(ctx, b, key); err != nil {
				return process{}, err
			}
			b = seen.Begin
		}
		w, err := e.stepPlayer(j, st, b, dir, try)
		if err != nil {
			return process{}, err
		}
		_, answer := e.promptOf(dir)
		before, err := e.stepPrompt(ctx, j, st, b, w, answer)
		if err != nil {
			return process{}, err
		}
		need, text := e.needsOf(dir, st.Answer, false, e.mayCost(j, w.role)), gates.Correction(bad, try, false)
		name, err := conversation(st.Agent.Session, job.WithAttempt(j, st))
		if err != nil {
			return process{}, err
		}
		if need.talk = e.goOn(j, name, w, last, goOn); need.talk.resume == "" {
			text = again(text, before, last.stdout(maxReplyShown))
		}
		p, err := e.agentProcess(j, w, key, dir, cmp.Or(seen.host, b.Dir), text, need, st.Env, job.StepVars(j, st))
		p.judged = seen
		return p, err
	})
}

// answer reads a step's structured answer. Where the spec wants none, one that is there and can be read is taken.
func (e *Executor) answer(j job.Job, st *engine.Step, rel, key string, end ended) (json.RawMessage, error) {
	if end.dir == "" {
		return nil, nil
	}
	in := gates.VerdictInput{WantToken: e.Token(key), AnswerFile: e.answerFile(rel), Structured: end.structured()}
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
	if end.clean() {
		in.Output = []byte(end.stdout(gates.MaxReply))
	}
	data, err := gates.Find(in, func(data []byte) error {
		_, err := readAnswer(j, st, data)
		return err
	})
	if said := e.sentinelAnswer(j, st); err != nil && said != nil {
		// Its signal bears the answer: that is read where it is taken in, and held against the schema with the outputs.
		return nil, nil
	}
	if errors.Is(err, gates.ErrNothing) {
		if !end.clean() {
			return nil, nil // how it ended says enough
		}
		err = fmt.Errorf("no answer: %w", err)
	}
	if err == nil {
		data, err = readAnswer(j, st, data)
	}
	if err != nil {
		e.keepReply(rel, end)
		return nil, err
	}
	return data, nil
}

// sentinelAnswer is the answer in the attempt's sentinel, if it has one that fits.
func (e *Executor) sentinelAnswer(j job.Job, st *engine.Step) json.RawMessage {
	data := e.Sentinel(j, st)
	if data == nil {
		return nil
	}
	s, state, _ := signals.ParseSentinel(data)
	if state != signals.Whole {
		return nil
	}
	if s.Status != signals.Done {
		return json.RawMessage("null") // it says that it is not done: no answer is asked of it
	}
	if s.Answer == nil {
		return nil
	}
	if _, err := gates.ReadAnswer(s.Answer, st.Answer); err != nil {
		return nil
	}
	return s.Answer
}

// readsStdout says that some expression of the spec reads what a step printed.
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

// keepReply keeps the words that no answer, or no verdict, could be read from, for a person to look at.
func (e *Executor) keepReply(rel string, end ended) {
	if end.dir == "" {
		return
	}
	if err := e.WriteFile(rel+"/"+daemon.ReplyFile, []byte(end.stdout(gates.MaxReply))); err != nil {
		e.opt.Logf("%s: %v", rel, err)
	}
}
