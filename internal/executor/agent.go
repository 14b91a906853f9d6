package executor

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
	"sluice/internal/prompt"
)

// agentProcess says what to start to have an agent answer the text.
func (ls *Launches) agentProcess(j job.Job, w who, key, dir, cwd, text string, need needs, env []engine.EnvVar, vars map[string]string) (process, error) {
	prompt, answer := ls.promptOf(dir)
	if err := ls.WriteFile(dir+"/prompt.md", []byte(text)); err != nil {
		return process{}, err
	}
	vars = maps.Clone(vars)
	vars["SLUICE_ANSWER"], vars["SLUICE_PROMPT"] = answer, prompt
	maps.Copy(vars, program.Vars(w.agent.Format, ls.variable, need.dirs))
	p := process{cwd: cwd, who: w}
	var err error
	if p.env, err = ls.environ(j, w, key, env, vars); err != nil {
		return p, err
	}
	if err := ls.keepProgram(dir, key, w, need.talk, p.env); err != nil {
		return p, err
	}
	if p.argv, p.stdin, err = ls.agentLine(w, prompt, text, need); err != nil {
		return p, err
	}
	return p.native(w), nil
}

// againDir is the folder of the try-th correction of a launch.
func againDir(rel string, try int) string { return fmt.Sprintf("%s/again-%d", rel, try) }

func orCode(d ended) string {
	if why := d.failure(); why != "" {
		return why
	}
	if d.exit.Signal != "" {
		return "it was ended by " + d.exit.Signal
	}
	return fmt.Sprintf("it ended with exit code %d", d.exit.Code)
}

// idle is the idle_timeout that was written down for the step, its role or all; 0 = none.
func (ls *Launches) idle(st *engine.Step) time.Duration {
	if st.IdleTimeout > 0 {
		return time.Duration(st.IdleTimeout)
	}
	s := ls.opt.Settings()
	if role := st.Role(); role != "" && s.Role(role).IdleTimeout > 0 {
		return time.Duration(s.Role(role).IdleTimeout)
	}
	return time.Duration(s.IdleTimeout)
}

// answerFile reads what lies at SLUICE_ANSWER; nil where nothing does.
func (ls *Launches) answerFile(rel string) []byte {
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

// withCorrection adds to a launch's end that of a correction of its answer: what it cost, and a limit or a fault that a
// person has to mend, which are not the work's.
func withCorrection(x *engine.Exit, of engine.Exit) {
	x.Usage.Tokens += of.Usage.Tokens
	x.Usage.CostUSD += of.Usage.CostUSD
	if of.Class != "" && of.Class != engine.ClassWork {
		x.Class, x.Why, x.ResumeAt, x.Budget = of.Class, of.Why, of.ResumeAt, of.Budget
	}
}

// promptText is what a launch was asked.
func (ls *Launches) promptText(rel string) []byte {
	data, _, err := atomicfile.OpenRegular(ls.Root, filepath.FromSlash(rel+"/prompt.md"), prompt.Max)
	if err != nil {
		return nil // then no quote of it is known as one
	}
	return data
}
