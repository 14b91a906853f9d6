package launch

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

const (
	maxArgPrompt  = 100 << 10 // bytes of a prompt as an argument: the system allows 128 KiB
	longestAnswer = gates.MaxAnswer + 4096
)

// Environ returns the environment of a job's processes: what is allowed of the daemon's, then
// extra, SLUICE_* last.
func (ls *Launches) Environ(j job.Job, w Who, key string, env []engine.EnvVar,
	extra map[string]string) ([]string, error) {
	vars := map[string]string{}
	for _, v := range env {
		value, err := v.Value.String(j.Env)
		if err != nil {
			return nil, job.Refused("env %s: %v", v.Name, err)
		}
		if strings.ContainsRune(value, 0) {
			return nil, job.Refused("env %s: its value has a NUL byte, which no variable can hold", v.Name)
		}
		if !strings.HasPrefix(v.Name, "SLUICE_") {
			vars[v.Name] = value
		}
	}
	maps.Copy(vars, job.ShellVars(j))

	vars["SLUICE_RUN"], vars["SLUICE_WORKFLOW"] = j.Run, j.RunInfo.Workflow
	vars["SLUICE_FILES"] = filepath.Join(ls.Path(ls.RunDir(j.Run)), layout.FilesDir)
	vars[agents.TokenVar] = ls.Token(key)
	if w.Role != "" {
		vars["SLUICE_ROLE"] = w.Role
	}
	if c := j.RunInfo.Child; c != nil && c.Task != "" {
		vars["SLUICE_TASK"], vars["SLUICE_TASK_TRY"] = c.Task, strconv.Itoa(c.Try)
		vars["SLUICE_TASK_FILE"] = filepath.Join(ls.Path(ls.RunDir(j.Run)), layout.TaskName)
	}
	maps.Copy(vars, extra)
	return agents.Environ(ls.Cage.opt.Environ, slices.Concat(w.Agent.Env, w.Set.Env), vars), nil
}

const schemaFileName = "schema.json"

// agentLine returns the arguments of an agent's command, and the file it reads on standard input.
func (ls *Launches) agentLine(a Ask, promptFile, prompt string, dirs []string,
	resume string) (argv []string, stdin string, err error) {
	w := a.Who
	if !w.Known {
		return nil, "", job.Fatal("role %s: no agent: name one under roles.%s.agent in the settings", w.Role, w.Role)
	}
	if w.Agent.Format != settings.FormatText && !program.Known(w.Agent.Format) || len(w.Agent.Command) == 0 {
		return nil, "", job.Fatal("agent %s: its settings are invalid: sluice doctor shows why", w.Name)
	}
	if w.Stub {
		return w.Agent.Command, "", nil
	}
	argv, placed, err := filled(ls.Root, w, promptFile)
	if err != nil {
		return nil, "", err
	}
	schemaFile := ""
	if schema := program.SchemaFile(w.Agent.Format, a.Schema, a.Nulls); schema != nil {
		if err := ls.WriteFile(a.Dir+"/"+schemaFileName, schema); err != nil {
			return nil, "", err
		}
		schemaFile = filepath.Join(ls.Path(a.Dir), schemaFileName)
	}
	held, err := ls.Wanted()
	if err != nil {
		return nil, "", err
	}
	argv = append(argv, program.Args(w.Agent.Format, argv[1:],
		program.Launch{Args: roleArgs(ls.Root, w), Model: w.Set.Model, Dirs: dirs, Schema: a.Schema, SchemaFile: schemaFile,
			ReadOnly: a.Judges, Contained: held != nil, MaxCostUSD: ls.MayCost(a.Job, w.Role), Resume: resume})...)
	switch w.Agent.PromptVia {
	case settings.ViaArg:
		if len(prompt) > maxArgPrompt || strings.HasPrefix(prompt, "-") {
			prompt = "Read the file " + promptFile + " and do what it says. It is your whole task."
		}
		argv = append(argv, prompt)
	case settings.ViaFile:
		if !placed {
			argv = append(argv, promptFile)
		}
	default:
		stdin = promptFile
	}
	return argv, stdin, nil
}

// filled returns an agent's command with its values in place; placed: the prompt's file is one of them.
func filled(root string, w Who, promptFile string) (argv []string, placed bool, err error) {
	for i, arg := range w.Agent.Command {
		value := regexp.MustCompile(`\$\{\{\s*(role|model|prompt_file)\s*\}\}`).ReplaceAllStringFunc(arg,
			func(m string) string {
				switch {
				case strings.Contains(m, "prompt_file"):
					placed = true
					return promptFile
				case strings.Contains(m, "model"):
					return w.Set.Model
				}
				return w.Role
			})
		if strings.HasPrefix(value, "-") && !strings.HasPrefix(arg, "-") {
			return nil, false, job.Fatal("agent %s: argument %d begins with \"-\" by a value (%.40q): it would be an option",
				w.Name, i, value)
		}
		// The settings mean files of the root: whoever works in a worktree can change its copies.
		if i == 0 && strings.ContainsRune(value, '/') && !filepath.IsAbs(value) ||
			layout.IsState(arg) && strings.ContainsRune(arg, '/') {
			value = filepath.Join(root, filepath.FromSlash(value))
		}
		argv = append(argv, value)
	}
	return argv, placed, nil
}

// roleArgs returns the role's extra arguments. Paths below .workflow/ are those of the root.
func roleArgs(root string, w Who) (out []string) {
	for _, arg := range w.Set.Args {
		option, value, with := strings.Cut(arg, "=")
		switch {
		case layout.IsState(arg) && strings.ContainsRune(arg, '/'):
			arg = filepath.Join(root, filepath.FromSlash(arg))
		case with && strings.HasPrefix(option, "-") && layout.IsState(value) && strings.ContainsRune(value, '/'):
			arg = option + "=" + filepath.Join(root, filepath.FromSlash(value))
		}
		out = append(out, arg)
	}
	return out
}

// PromptOf returns the absolute paths of a launch's prompt and answer.
func (ls *Launches) PromptOf(rel string) (prompt, answer string) {
	dir := ls.Path(rel)
	answer = filepath.Join(dir, layout.AnswerName)
	if box, _ := ls.Box(); box != nil { // the launch reports why there is none
		answer = filepath.Join(dir, layout.OwnDir, layout.AnswerName)
	}
	return filepath.Join(dir, layout.PromptName), answer
}

// AnswerFile returns the contents of SLUICE_ANSWER; nil if there is no file.
func (ls *Launches) AnswerFile(rel string) []byte {
	data, _, err := atomicfile.OpenRegular(ls.Root, filepath.FromSlash(rel+"/"+layout.OwnDir+"/answer.json"),
		longestAnswer)
	if errors.Is(err, fs.ErrNotExist) {
		data, _, err = atomicfile.OpenRegular(ls.Root, filepath.FromSlash(rel+"/answer.json"), longestAnswer)
	}
	switch {
	case err == nil:
		return data
	case errors.Is(err, atomicfile.ErrTooLarge):
		return []byte(strings.Repeat("[", 1+longestAnswer)) // reported as too long, not as missing
	}
	return nil
}
