package setup

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/specs"
)

// Ignored is the .gitignore of `.workflow/`: what comes and goes while runs go on is not committed.
const Ignored = `# Files that runs make and remove. Commit the rest: specs, settings, prompts and the audit.
/signals/
/worktrees/
/runs/
/retry-context/
/backlog/
`

// Written is what was written below .workflow/, and what was there before and was kept.
type Written struct {
	Root       string
	Made, Kept []string
}

// put writes a file if there is none by that name.
func (w *Written) put(name string, data []byte) error {
	file := filepath.Join(w.Root, layout.WorkflowDir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	err := atomicfile.WriteNew(file, data, 0o644)
	if errors.Is(err, fs.ErrExist) {
		w.Kept = append(w.Kept, layout.WorkflowDir+"/"+name)
		return nil
	}
	if err == nil {
		w.Made = append(w.Made, layout.WorkflowDir+"/"+name)
	}
	return err
}

// write writes a file, and makes its folder.
func write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(name, data, 0o644)
}

// Prompts writes the built-in prompts of roles, to be changed.
func Prompts(root string) (*Written, error) {
	w := &Written{Root: root}
	for _, r := range prompt.Roles() {
		if err := w.put("prompts/"+r.Name+".md", []byte(r.Text)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Template makes the folders and files of a template with the choice filled in. It keeps what is there.
func Template(root string, t specs.Template, c *Choice) (*Written, error) {
	w := &Written{Root: root}
	for _, dir := range []string{"signals", "runs", "retry-context", "backlog", "audit"} {
		if err := os.MkdirAll(filepath.Join(root, layout.WorkflowDir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	if err := w.put(".gitignore", []byte(Ignored)); err != nil {
		return nil, err
	}
	if err := w.put(specs.SchemaFile, specs.Schema()); err != nil {
		return nil, err
	}
	err := fs.WalkDir(t.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(t.Files, name)
		if err != nil {
			return err
		}
		return w.put(path.Clean(name), c.fit(path.Clean(name), data))
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// RequiredVars returns the arguments that a run of the spec needs, with a place left open in each.
func RequiredVars(file string) string {
	spec, _ := specs.LoadFile(file)
	if spec == nil {
		return ""
	}
	var b strings.Builder
	for _, v := range spec.Vars {
		if v.Required {
			b.WriteString(" --var " + v.Name + `="…"`)
		}
	}
	return b.String()
}
