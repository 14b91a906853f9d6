package specs

import (
	"embed"
	"io/fs"
)

// The shipped workflows, each a folder with the form of `.workflow/`.
//
//go:embed templates
var templates embed.FS

// Template is a shipped workflow: `sluice init --template NAME` installs it.
type Template struct {
	Name  string
	Line  string // what it does, in one line
	Files fs.FS  // arranged like .workflow/: specs/NAME.yaml, config.yaml
}

// Templates lists the shipped workflows.
func Templates() []Template {
	lines := [][2]string{
		{"gated-pipeline", "tests first, then the work, each behind a gate: one agent reviews, you have the last word"},
		{"dev-cycle", "a plan with tasks, reviewed; the tasks done in order; the code reviewed with five scores; a " +
			"summary, commits and a pull request if you like"},
		{"backlog", "the tasks of a file, one per iteration, each with a fresh context, until a review pass says " +
			"project-done"},
		{"goal-loop", "a goal split into 3 to 8 tasks; each coded, tested, fixed and verified; a task that keeps failing " +
			"is split again; at the end: is the goal reached?"},
		{"supervised-loop", "plan, suggest commands, review, control: at most ten rounds, and no command without " +
			"your yes"},
		{"release", "notes and changelog by an agent; commit, tag and push after your yes: `sluice release`"},
		{"document-example", "the example of sluice's design document, with its ids (X-1, XG-1-2) and a task of yours"},
	}
	var out []Template
	for _, l := range lines {
		files, err := fs.Sub(templates, "templates/"+l[0])
		if err != nil {
			panic("specs: a template's name is no path: " + l[0])
		}
		out = append(out, Template{Name: l[0], Line: l[1], Files: files})
	}
	return out
}
