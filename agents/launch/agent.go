package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// AgentProcess returns what to start to have an agent answer the text.
func (ls *Launches) AgentProcess(j job.Job, w Who, key, dir, cwd, text string, need Needs, env []engine.EnvVar, vars map[string]string) (Process, error) {
	prompt, answer := ls.PromptOf(dir)
	if err := ls.WriteFile(dir+"/prompt.md", []byte(text)); err != nil {
		return Process{}, err
	}
	vars = maps.Clone(vars)
	vars["SLUICE_ANSWER"], vars["SLUICE_PROMPT"] = answer, prompt
	maps.Copy(vars, program.Vars(w.Agent.Format, ls.Variable, need.Dirs))
	p := Process{Cwd: cwd, Who: w}
	var err error
	if p.Env, err = ls.Environ(j, w, key, env, vars); err != nil {
		return p, err
	}
	if err := ls.keepProgram(dir, key, w, need.Talk, p.Env); err != nil {
		return p, err
	}
	if p.Argv, p.Stdin, err = ls.AgentLine(w, prompt, text, need); err != nil {
		return p, err
	}
	return p.Native(w), nil
}

// OrCode says how a process ended: why there is no exit code to go by, the signal, or the code.
func OrCode(d Ended) string {
	if why := d.Failure(); why != "" {
		return why
	}
	if d.Exit.Signal != "" {
		return "it was ended by " + d.Exit.Signal
	}
	return fmt.Sprintf("it ended with exit code %d", d.Exit.Code)
}

// Idle is the idle_timeout that was written down for the step, its role or all; 0 = none.
func (ls *Launches) Idle(st *engine.Step) time.Duration {
	if st.IdleTimeout > 0 {
		return time.Duration(st.IdleTimeout)
	}
	s := ls.opt.Settings()
	if role := st.Role(); role != "" && s.Role(role).IdleTimeout > 0 {
		return time.Duration(s.Role(role).IdleTimeout)
	}
	return time.Duration(s.IdleTimeout)
}

// AnswerFile reads what lies at SLUICE_ANSWER; nil where nothing does.
func (ls *Launches) AnswerFile(rel string) []byte {
	data, _, err := atomicfile.OpenRegular(ls.Root, filepath.FromSlash(rel+"/"+layout.OwnDir+"/answer.json"), longestAnswer)
	if errors.Is(err, fs.ErrNotExist) {
		data, _, err = atomicfile.OpenRegular(ls.Root, filepath.FromSlash(rel+"/answer.json"), longestAnswer)
	}
	switch {
	case err == nil:
		return data
	case errors.Is(err, atomicfile.ErrTooLarge):
		return []byte(strings.Repeat("[", 1+longestAnswer)) // too much to be read: told as such, not as missing
	}
	return nil
}

// WithCorrection adds the end of a correction to the end of its launch: its cost, and a limit or a fault that a person has to
// fix. Neither is a failure of the work.
func WithCorrection(x *engine.Exit, of engine.Exit) {
	x.Usage.Tokens += of.Usage.Tokens
	x.Usage.CostUSD += of.Usage.CostUSD
	if of.Class != "" && of.Class != engine.ClassWork {
		x.Class, x.Why, x.ResumeAt, x.Budget = of.Class, of.Why, of.ResumeAt, of.Budget
	}
}
