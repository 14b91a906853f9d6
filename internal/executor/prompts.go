package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/job"
	"sluice/internal/prompt"
	"sluice/internal/settings"
)

// PromptsDir holds the project's own prompts of roles, one a file: `<role>.md`.
const PromptsDir = ".workflow/prompts"

// Prompt is the prompt of a role as a launch will take it.
type Prompt struct {
	File string // absolute; "" = built in
	Text string // "" = built in
}

// PromptFault is what is wrong with a role's prompt file.
type PromptFault struct {
	File string // absolute
	prompt.TemplateFault
}

func (f PromptFault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Message)
}

// ReadPrompt reads the prompt of a role in the repo at root: the file that its settings name, else the project's own below
// PromptsDir, else the built-in one. judges says that the role judges work. The errors are PromptFaults, or say what cannot
// be read.
func ReadPrompt(s settings.Settings, root, role string, judges bool) (Prompt, []error) {
	named := s.Role(role).PromptFile
	own := prompt.TemplateName(role, judges)
	names, bases := []string{own + ".md"}, []string{filepath.Join(root, filepath.FromSlash(PromptsDir))}
	if judges && own != role && prompt.Judges(role) {
		names = []string{role + ".md", own + ".md"} // a reviewer by another name
	}
	if named != "" {
		names, bases = []string{filepath.FromSlash(named)}, []string{filepath.Join(root, ".workflow"), root}
	}
	var first error
	for _, base := range bases {
		for _, name := range names {
			data, _, err := atomicfile.OpenRegular(base, name, maxTemplate)
			if err == nil {
				p := Prompt{File: filepath.Join(base, name), Text: string(data)}
				return p, faultsOf(p)
			}
			if first == nil || errors.Is(first, fs.ErrNotExist) {
				first = fmt.Errorf("%s: %w", filepath.Join(base, name), err)
			}
		}
	}
	if named == "" && errors.Is(first, fs.ErrNotExist) {
		return Prompt{}, nil
	}
	if named != "" {
		return Prompt{}, []error{fmt.Errorf("role %s: prompt_file %s: %s: write it below .workflow/, or take it out of the settings", role, named, fault.WithoutPath(first))}
	}
	return Prompt{}, []error{fmt.Errorf("role %s: %w: make it a file that can be read, or remove it", role, first)}
}

// maxTemplate is how much of a prompt file is read: one that is too long is told as such.
const maxTemplate = 2 * prompt.MaxTemplate

func faultsOf(p Prompt) []error {
	var out []error
	for _, f := range prompt.CheckTemplate(p.Text) {
		out = append(out, PromptFault{p.File, f})
	}
	return out
}

// template gives the text of the role's prompt; "" where it is the built-in one.
func (e *Executor) template(w who, judges bool) (string, error) {
	s := e.opt.Settings()
	p, faults := ReadPrompt(s, e.Root, w.role, judges)
	if len(faults) == 0 {
		return p.Text, nil
	}
	var f PromptFault
	if errors.As(faults[0], &f) {
		return "", job.Fatal("role %s: the prompt %s:%d:%d: %s", w.role, e.Shown(f.File), f.Line, f.Col, f.Message)
	}
	return "", job.Fatal("%v", faults[0])
}

// marked is a text of the spec in which what others said is held by marks, for gates.Filled.
func marked(t engine.Text, env *engine.Env, v *prompt.Values) (string, error) {
	own := engine.Env{}
	if env != nil {
		own = *env
	}
	own.Foreign = v.Mark
	return t.String(&own)
}
