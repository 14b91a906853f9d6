package prompt

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/settings"
)

// dir has the project's own templates, one a role: `<role>.md`.
const dir = ".workflow/prompts"

// maxRead is how much of a template's file is read: enough to say that it is too long.
const maxRead = 2 * maxTemplate

// Template is a role's template as a launch takes it. A built-in one has neither.
type Template struct {
	File string // absolute
	Text string
}

// Fault is a fault in a role's template. Line and Col count from 1.
type Fault struct {
	File      string // absolute
	Line, Col int
	Message   string
}

func (f Fault) Error() string { return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Message) }

// Read reads the template of a role in the repo at root: the file that the settings name, else the project's own,
// else the built-in one. judges means that the role judges work. An error is a Fault, or says what cannot be read.
func Read(s settings.Settings, root, role string, judges bool) (Template, []error) {
	named := s.Role(role).PromptFile
	own := templateName(role, judges)
	names, bases := []string{own + ".md"}, []string{filepath.Join(root, filepath.FromSlash(dir))}
	if judges && own != role && mayJudge(role) {
		names = []string{role + ".md", own + ".md"} // a reviewer by another name
	}
	if named != "" {
		names, bases = []string{filepath.FromSlash(named)}, []string{filepath.Join(root, ".workflow"), root}
	}
	var first error
	for _, base := range bases {
		for _, name := range names {
			t, err := readTemplate(base, name)
			if err == nil {
				return t, faultsOf(t)
			}
			if first == nil || errors.Is(first, fs.ErrNotExist) {
				first = err
			}
		}
	}
	switch {
	case named != "":
		return Template{}, []error{fmt.Errorf("role %s: prompt_file %s: %s: "+
			"write it below .workflow/, or take it out of the settings", role, named, fault.WithoutPath(first))}
	case errors.Is(first, fs.ErrNotExist):
		return Template{}, nil
	}
	return Template{}, []error{fmt.Errorf("role %s: %w: make it a file that can be read, or remove it", role, first)}
}

func readTemplate(base, name string) (Template, error) {
	file := filepath.Join(base, name)
	data, _, err := atomicfile.OpenRegular(base, name, maxRead)
	if err != nil {
		return Template{}, fmt.Errorf("%s: %w", file, err)
	}
	return Template{File: file, Text: string(data)}, nil
}

func faultsOf(t Template) []error {
	var out []error
	for _, f := range checkTemplate(t.Text) {
		f.File = t.File
		out = append(out, f)
	}
	return out
}
