package job

import (
	"encoding/json"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/shells"
)

// WithAnswer returns the job's environment with the attempt's answer, as outputs see it.
func WithAnswer(j Job) *engine.Env {
	env := engine.Env{}
	if j.Env != nil {
		env = *j.Env
	}
	if env.Answer == nil && j.Attempt != nil && len(j.Attempt.Answer) > 0 {
		_ = json.Unmarshal(j.Attempt.Answer, &env.Answer) // it was checked where it came in
	}
	return &env
}

// StepVars returns the environment variables of every process of an attempt.
func StepVars(j Job, st *engine.Step) map[string]string {
	return map[string]string{"SLUICE_STEP": st.ID, "SLUICE_ATTEMPT": strconv.Itoa(j.Attempt.N)}
}

// CommandLine returns the arguments of a spec's command. A value cannot add an option: an argument
// that begins with "-" only by a value is refused.
func CommandLine(c *engine.Command, env *engine.Env) ([]string, error) {
	if c.Shell != "" {
		return []string{"sh", "-c", c.Shell}, nil
	}
	var argv []string
	for i, a := range c.Argv {
		value, err := a.String(env)
		switch {
		case err != nil:
			return nil, Refused("run: argument %d: %v", i, err)
		case strings.ContainsRune(value, 0):
			return nil, Refused("run: argument %d has a NUL byte, which no argument can hold", i)
		case strings.HasPrefix(value, "-") && !strings.HasPrefix(a.Source, "-"):
			return nil, Refused("run: argument %d begins with \"-\" by a value (%.40q): it would be an option: put ./ or "+
				"-- before it", i, value)
		case i == 0 && value == "":
			return nil, Refused("run: the command's name is empty")
		}
		argv = append(argv, value)
	}
	if len(argv) == 0 {
		return nil, Refused("run: no command")
	}
	return argv, nil
}

// Texts evaluates texts of the spec; what names them in an error.
func Texts(in []engine.Text, env *engine.Env, what string) ([]string, error) {
	var out []string
	for _, t := range in {
		v, err := t.String(env)
		if err != nil {
			return nil, Refused("%s %s: %v", what, t.Source, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// Outputs returns a step's declared paths: those that its agent makes, and those that are written
// from an expression.
func Outputs(in []engine.Output, env *engine.Env) (made, written []string, err error) {
	for _, o := range in {
		p, err := o.Path.String(env)
		if err != nil {
			return nil, nil, Refused("output %s: %v", o.Path.Source, err)
		}
		if o.Value.Eval == nil {
			made = append(made, p)
		} else {
			written = append(written, p)
		}
	}
	return made, written, nil
}

// SpecOutputs returns the declared paths that the spec alone says: none with a value that agents or people wrote.
func SpecOutputs(in []engine.Output, env *engine.Env) (out []string) {
	foreign, own := false, *env
	own.Foreign = func(_, value string) string { foreign = true; return value }
	for _, o := range in {
		foreign = false
		if p, err := o.Path.String(&own); err == nil && !foreign {
			out = append(out, p)
		}
	}
	return out
}

// WithAttempt returns the job's environment as the step's own texts see it: with its id, the number
// of its attempt and its answer.
func WithAttempt(j Job, st *engine.Step) *engine.Env {
	env := *WithAnswer(j)
	if env.Step == "" { // else the engine has set both: in a task's run, the attempt is the list's
		env.Step, env.Attempt = st.ID, j.Attempt.N
	}
	return &env
}

const maxVarValue = 32 << 10 // bytes of a SLUICE_VAR_*; a longer value gets no variable

// ShellVars returns the run's vars as environment variables. It omits values that are too long, or
// that no variable can hold.
func ShellVars(j Job) shells.Vars {
	vars := shells.Vars{}
	for name, value := range j.Vars {
		text, ok := value.(string)
		if !ok {
			b, err := json.Marshal(value)
			if err != nil {
				continue
			}
			text = string(b)
		}
		if len(text) <= maxVarValue && !strings.ContainsRune(text, 0) {
			vars[shells.VarName(name)] = text
		}
	}
	return vars
}

// KnownVars are the ShellVars whose values are a person's who starts runs here.
func KnownVars(j Job) shells.Vars {
	vars := ShellVars(j)
	for _, v := range j.Spec.Vars {
		if v.Foreign {
			delete(vars, shells.VarName(v.Name))
		}
	}
	return vars
}

// InOwn reports whether the attempt works in the run's own worktree. Nobody else works there, so
// sluice may reset it.
func InOwn(j Job) bool {
	return j.RunInfo.Workspace != "" && j.Attempt != nil && j.Attempt.Worktree == j.RunInfo.Workspace
}
