package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/prompt"
)

// Turn is one launch of a conversation with an agent: the first, or a request for a correction.
type Turn struct {
	Key string // of the launch
	Dir string // of its files, below the root
	Try int    // which correction it asks for; 0 = the first launch

	bad  error // why the last answer could not be read
	last Ended
	goOn bool // continue the conversation of the last launch
}

// Question is for an agent or a command.
type Question struct {
	Order // of the first launch
	// Prepare returns the process to start for a turn.
	Prepare func(Turn) (Process, error)
	// Read reads the answer of an ended launch, however it ended. The agent is shown its error.
	Read func(Turn, Ended) error
	// Undenied: a denied tool alone is no failure of the agent.
	Undenied bool
}

// Answered is how a conversation ended.
type Answered struct {
	First Ended       // how the first launch ended
	Exit  engine.Exit // its exit, with the cost of the corrections and the limit that they met
	Bad   error       // why no answer could be read; nil = one was
}

// Converse asks, and asks an agent that ended cleanly again while its answer is unreadable, at most
// gates.MaxCorrections times. The error is ctx's.
func (ls *Launches) Converse(ctx context.Context, q Question) (a Answered, err error) {
	t := Turn{Key: q.Key, Dir: q.Dir}
	end, err := ls.Ensure(ctx, q.Order, func() (Process, error) { return q.Prepare(t) })
	for err == nil {
		if q.Undenied {
			end = end.undenied()
		}
		if t.Try == 0 {
			a.First, a.Exit = end, end.Exit
		} else {
			a.Exit = withCorrection(a.Exit, end.Exit)
		}
		a.Bad = q.Read(t, end)
		if a.Bad == nil || !q.Agent || !end.Clean() || t.Try == gates.MaxCorrections {
			return a, nil
		}
		t, end, err = ls.again(ctx, q, t.Try+1, a.Bad, end)
	}
	return a, err
}

// again asks for the try-th correction: in the same conversation or, if that is gone, in a new one.
func (ls *Launches) again(ctx context.Context, q Question, try int, bad error, last Ended) (Turn, Ended, error) {
	t := Turn{Key: layout.Correction(q.Key, try), Dir: fmt.Sprintf("%s/again-%d", q.Dir, try), Try: try, bad: bad,
		last: last, goOn: true}
	ask := func() (Ended, error) {
		l := Order{Key: t.Key, Of: q.Key, Dir: t.Dir, Agent: true, Idle: q.Idle, Clock: q.Clock, On: q.On}
		return ls.Ensure(ctx, l, func() (Process, error) { return q.Prepare(t) })
	}
	end, err := ask()
	if err != nil || !end.gone {
		return t, end, err
	}
	ls.Logf("%s: %s", t.Key, end.Exit.Why)
	t.Key, t.Dir, t.goOn = t.Key+layout.Afresh, t.Dir+"-new", false
	end, err = ask()
	return t, end, err
}

// withCorrection adds a correction's cost to a launch's end, and a limit or a fault that a person
// must fix. Neither is a failure of the work.
func withCorrection(x, of engine.Exit) engine.Exit {
	x.Usage = x.Usage.Plus(of.Usage)
	if of.Class != "" && of.Class != engine.ClassWork {
		x.Class, x.Why, x.ResumeAt, x.Budget = of.Class, of.Why, of.ResumeAt, of.Budget
	}
	return x
}

// Ask is what an agent is asked in a turn.
type Ask struct {
	Turn
	Job     job.Job
	Who     Who
	Cwd     string
	Argv    []string        // a command in place of the agent; it has the environment and network of Who
	Prompt  string          // of the first turn; corrections have their own
	Session engine.Text     // names its conversation
	Values  *engine.Env     // for Session
	Schema  json.RawMessage // of the answer; nil = none
	Nulls   bool            // optional keys of the answer may be null
	Judges  bool            // it changes nothing
	Env     []engine.EnvVar
	Vars    map[string]string
	Resume  string        // the conversation to continue, if another machine has chosen it
	Base    program.Usage // what that has cost
}

// Agent returns the process that answers, or that of a command.
func (ls *Launches) Agent(a Ask) (Process, error) {
	promptFile, answer := ls.PromptOf(a.Dir)
	vars := maps.Clone(a.Vars)
	vars["SLUICE_ANSWER"] = answer
	if len(a.Argv) > 0 {
		if err := ls.MakeBelow(a.Dir, 0o700); err != nil { // for its answer
			return Process{}, err
		}
		env, err := ls.Environ(a.Job, a.Who, a.Key, a.Env, vars)
		return Process{Cwd: a.Cwd, Argv: a.Argv, Env: env, Who: a.Who}.Native(a.Who), err
	}
	t, text, err := ls.spoken(a)
	if err != nil {
		return Process{}, err
	}
	if err := ls.WriteFile(a.Dir+"/prompt.md", []byte(text)); err != nil {
		return Process{}, err
	}
	dirs := ls.dirsOf(a)
	vars["SLUICE_PROMPT"] = promptFile
	maps.Copy(vars, program.Vars(a.Who.Agent.Format, ls.Variable, dirs))
	p := Process{Cwd: a.Cwd, Who: a.Who, Told: program.Known(a.Who.Agent.Format) && !a.Who.Stub}
	if p.Env, err = ls.Environ(a.Job, a.Who, a.Key, a.Env, vars); err != nil {
		return p, err
	}
	if err := ls.keepProgram(a.Dir, a.Key, a.Who, t, p.Env); err != nil {
		return p, err
	}
	if p.Argv, p.Stdin, err = ls.agentLine(a, promptFile, text, dirs, t.resume); err != nil {
		return p, err
	}
	return p.Native(a.Who), nil
}

// speaksIn names the ask's conversation; "" = none. A judge's are apart from those of the steps, whatever
// the spec calls them: whom it judges has spoken in those, and written their homes. No spec's name has a
// tab.
func (a Ask) speaksIn() (string, error) {
	name, err := a.Session.String(a.Values)
	if err != nil {
		return "", job.Refused("session: %v", err)
	}
	if a.Judges && name != "" {
		name = "judge\t" + name
	}
	return name, nil
}

// spoken returns the conversation in which the agent is asked, and the prompt.
func (ls *Launches) spoken(a Ask) (talk, string, error) {
	name, err := a.speaksIn()
	if err != nil {
		return talk{}, "", err
	}
	if a.Resume != "" {
		return talk{resume: a.Resume, base: a.Base}, a.Prompt, nil
	}
	if a.Try == 0 {
		return ls.takeTalk(a.Job.Run, name, a.Key, a.Who), a.Prompt, nil
	}
	t := ls.goOn(a, name)
	return t, a.correction(t), nil
}

// correction returns the prompt that asks for one. Outside the conversation it has what was asked and answered.
func (a Ask) correction(t talk) string {
	text := gates.Correction(a.bad, a.Try, a.Judges && program.Known(a.Who.Agent.Format))
	if t.resume == "" {
		text = prompt.Again(text, a.Prompt, a.last.Stdout(prompt.MaxReplyShown))
	}
	return text
}

// goOn returns the conversation of a correction: the last one, if its program can continue it.
func (ls *Launches) goOn(a Ask, name string) talk {
	switch {
	case !a.Turn.goOn:
		return talk{}
	case name != "":
		return ls.takeTalk(a.Job.Run, name, a.Job.Key, a.Who)
	case a.last.Said == nil || !talks(a.Who) ||
		!program.CanResume(a.Who.Agent.Format, a.Who.Agent.Command[1:], a.last.Said.Session):
		return talk{}
	}
	return talk{resume: a.last.Said.Session, base: a.last.total}
}

// dirsOf returns the folders that an agent's program needs beside its own: its files', for the
// answer. Workers also need the inbox and the repo's git folder, which is not below a worktree.
func (ls *Launches) dirsOf(a Ask) []string {
	dirs := []string{ls.Path(a.Dir)}
	if a.Judges {
		return dirs
	}
	dirs = append(dirs, ls.Signals())
	if ls.Cage.opt.Git.Checkout() {
		dirs = append(dirs, ls.Cage.opt.Git.CommonDir())
	}
	return dirs
}
