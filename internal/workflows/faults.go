package workflows

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/prompt"
	"sluice/internal/settings"
	"sluice/internal/shells"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/specs"
)

// Line is a fault as `sluice validate --json` prints it.
type Line struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
}

// String returns the fault as one line, with the parts of its place that are known.
func (f Line) String() string {
	switch {
	case f.File == "":
		return text.Line(f.Message)
	case f.Col == 0:
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, text.Line(f.Message))
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, text.Line(f.Message))
}

// LinesOf returns faults of specs as lines.
func LinesOf(faults []specs.Fault) (out []Line) {
	for _, f := range faults {
		out = append(out, Line{layout.ShortPath(f.File), f.Line, f.Col, f.Message})
	}
	return out
}

// printFaults prints faults as `sluice validate` does.
func printFaults(con *console.Console, faults []specs.Fault) {
	for _, l := range LinesOf(faults) {
		fmt.Fprintln(con.Err, l)
	}
}

// rootOf returns the root of the repo whose .workflow/specs has the file; "" = none.
func rootOf(file string) string {
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if filepath.Join(root, layout.SpecsDir) != filepath.Dir(file) {
		return ""
	}
	return root
}

// SettingsFaults returns the faults in the settings of the specs' repos; each repo is read once.
func SettingsFaults(con *console.Console, files []string) []Line {
	var out []Line
	looked := map[string]bool{}
	for _, f := range files {
		root := rootOf(f)
		if root == "" || looked[root] {
			continue
		}
		looked[root] = true
		if _, err := workspace.Settings(con, root, nil); err != nil {
			for _, one := range settings.Faults(err) {
				out = append(out, lineOf(one))
			}
		}
	}
	return out
}

// StubFaults returns the faults in the workflow's stub script, if it has one.
func StubFaults(file string, spec *engine.Spec) []specs.Fault {
	script := stubsOf(file)
	if spec == nil || !layout.IsFile(script) {
		return nil
	}
	_, faults := specs.LoadStubs(script, spec)
	return faults
}

// stubsOf returns the path of a workflow's stub script; "" if the spec is outside a .workflow folder.
func stubsOf(file string) string {
	root := rootOf(file)
	if root == "" {
		return ""
	}
	return filepath.Join(root, filepath.FromSlash(layout.StubsDir), ID(file)+".yaml")
}

// StrayStubs returns the stub scripts (.yaml, .yml) that belong to no workflow, usually by a typing
// mistake in their names.
func StrayStubs(files []string) (out []Line) {
	var known, ids []string
	dir := ""
	for _, f := range files {
		if s := stubsOf(f); s != "" {
			dir, known, ids = filepath.Dir(s), append(known, s), append(ids, ID(f))
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil { // there are none
		return nil
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".yaml" && ext != ".yml" || strings.HasPrefix(e.Name(), ".") {
			continue // a .gitkeep, a README, what an editor left
		}
		if s := filepath.Join(dir, e.Name()); e.Type().IsRegular() && !slices.Contains(known, s) {
			out = append(out, Line{layout.ShortPath(s), 1, 1,
				"no workflow has this stub script: name it after the workflow's id, or move it elsewhere" +
					text.DidYouMean(ID(s), ids)})
		}
	}
	return out
}

// lineOf returns an error as a fault, with its place if it has one.
func lineOf(err error) Line {
	var f *fault.Error
	if !errors.As(err, &f) || f.Line == 0 {
		return Line{Message: err.Error()}
	}
	bare := &fault.Error{Cause: f.Cause, Advice: f.Advice}
	return Line{f.File, f.Line, f.Col, bare.Error()}
}

// PromptFaults returns the faults in the prompts of a spec's roles, under the settings of its repo.
func PromptFaults(con *console.Console, file string, spec *engine.Spec) []specs.Fault {
	root, s, ok := under(con, file)
	if spec == nil || !ok {
		return nil
	}
	var out []specs.Fault
	for _, err := range promptFaults(root, spec, s) {
		f := specs.Fault{File: file, Line: 1, Col: 1, Message: err.Error()}
		if of, ok := errors.AsType[prompt.Fault](err); ok {
			f = specs.Fault{File: of.File, Line: of.Line, Col: of.Col, Message: of.Message}
		}
		out = append(out, f)
	}
	return out
}

// under returns the root and the settings of a spec's repo. It is not ok if there is none, or if the settings have
// faults, which are reported elsewhere.
func under(con *console.Console, file string) (root string, s settings.Settings, ok bool) {
	if root = rootOf(file); root == "" {
		return "", s, false
	}
	l, err := workspace.Settings(con, root, nil)
	if err != nil {
		return "", s, false
	}
	return root, l.Settings, true
}

// promptFaults returns the faults in the prompts of a spec's roles.
func promptFaults(root string, spec *engine.Spec, s settings.Settings) []error {
	var out []error
	said := map[string]bool{}
	eachRole(spec, func(role string, judges bool) {
		_, faults := prompt.Read(s, root, role, judges)
		for _, f := range faults {
			if !said[f.Error()] {
				said[f.Error()] = true
				out = append(out, f)
			}
		}
	})
	return out
}

// eachRole calls look with each role that an agent plays, of steps and of gates.
func eachRole(spec *engine.Spec, look func(role string, judges bool)) {
	for _, w := range spec.All() {
		for _, st := range w.Steps {
			if role := st.Role(); role != "" && st.Run == nil {
				look(role, false)
			}
		}
		for _, g := range w.Gates {
			if role := g.Reviewer.AgentType; role != "" && g.Reviewer.Run == nil {
				look(role, true)
			}
		}
	}
}

// RoleNotes reports agent types that have no settings and whose name is almost that of a role with settings: the
// agent of the role * plays them.
func RoleNotes(con *console.Console, file string, spec *engine.Spec) (out []Line) {
	_, s, ok := under(con, file)
	if spec == nil || !ok {
		return nil
	}
	src, _ := os.ReadFile(file) // it was just read; without it the place is not known
	known, said := slices.Sorted(maps.Keys(s.Roles)), map[string]bool{}
	eachRole(spec, func(role string, _ bool) {
		_, is := s.Roles[role]
		near := text.Nearest(role, known)
		if is || said[role] || near == "" {
			return
		}
		said[role] = true
		at := regexp.MustCompile(`\b(agent_)?type: *["']?` + regexp.QuoteMeta(role) + `\b`)
		line := 1
		if m := at.FindIndex(src); m != nil {
			line += strings.Count(string(src[:m[0]]), "\n")
		}
		out = append(out, Line{File: layout.ShortPath(file), Line: line, Message: fmt.Sprintf("agent type %s has no "+
			"settings, so the agent of the role * plays it: did you mean %s?", role, near)})
	})
	return out
}

// LawNotes reports files that a judge's scripts, make targets and npm scripts start and that a step can change without
// a person being asked.
func LawNotes(file string, spec *engine.Spec) (out []Line) {
	root := rootOf(file)
	repo, err := os.OpenRoot(root)
	if spec == nil || err != nil {
		return nil
	}
	defer func() { _ = repo.Close() }()
	src, _ := os.ReadFile(file) // it was just read; without it the place is not known
	l := gates.LawOf(spec, nil, nil, nil, gates.Bases{Root: root, Top: root, Dir: root})
	turn, _ := l.InTurn(filesOf(repo)) // that has no error
	for _, u := range turn.Others {
		id := u.Where[strings.LastIndexByte(u.Where, ' ')+1:]
		out = append(out, Line{File: layout.ShortPath(file), Line: criterionLine(string(src), id, ""),
			Message: fmt.Sprintf("%s: its scripts start %s, which a step can change unasked: name what judges under `protect`",
				u.Where, text.JoinMost(u.Files))})
	}
	return out
}

// filesOf reads files of a repo.
func filesOf(repo *os.Root) gates.ReadFile {
	return func(name string) (string, bool, error) {
		name = filepath.FromSlash(name)
		info, err := repo.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return "", false, nil
		}
		f, err := repo.Open(name)
		if err != nil {
			return "", true, nil
		}
		defer func() { _ = f.Close() }()
		text, _ := io.ReadAll(io.LimitReader(f, shells.MaxFile)) // one that cannot be read starts nothing here
		return string(text), true, nil
	}
}

// JudgingNotes reports what nobody judges: criteria that no machine can check, of steps whose gates ask nobody, which
// count as held; and what a list's tasks change in worktrees of their own, where its gate seems to judge it.
func JudgingNotes(file string, spec *engine.Spec) (out []Line) {
	if spec == nil {
		return nil
	}
	src, _ := os.ReadFile(file) // it was just read; without it the place is not known
	for _, st := range spec.Steps {
		why := prompt.Unjudged(spec, st)
		if why == "" {
			if unseen(st) {
				out = append(out, Line{File: layout.ShortPath(file), Line: criterionLine(string(src), st.ID, "for_each"),
					Message: fmt.Sprintf("step %s: its gates show no change of its tasks, since each works in a worktree of its "+
						"own: give the tasks a gate, with workflow: ID", st.ID)})
			}
			continue
		}
		give := "the gate"
		if spec.LastGate(st).Implicit {
			give = "the step a gate with"
		}
		for _, c := range st.Criteria {
			if c.Text != "" {
				out = append(out, Line{File: layout.ShortPath(file), Line: criterionLine(string(src), st.ID, c.Text),
					Message: fmt.Sprintf("step %s: success_criterion %q: nobody judges it: %s; write it as a command "+
						"(\"CMD exits 0\"), or give %s an agent_type or a person", st.ID, c.Text, why, give)})
			}
		}
	}
	return out
}

// unseen reports whether tasks of the step change what none of its gates is over.
func unseen(st *engine.Step) bool {
	if st.ForEach == nil || st.Child == nil || !st.Child.Inline {
		return false
	}
	work := st.Child.Step(st.ID)
	return work != nil && work.Agent != nil && work.Agent.Worktree.Source != "" && !work.Reads()
}

// criterionLine returns the line of a step's criterion; if the text is not on one line, that of the step's id.
func criterionLine(src, step, sentence string) int {
	at := 0
	id := regexp.MustCompile(`\bid: *["']?` + regexp.QuoteMeta(step) + `["']?\s*[,}#\n\r]`)
	if m := id.FindStringIndex(src); m != nil {
		at = m[0]
	}
	if i := strings.Index(src[at:], sentence); i >= 0 {
		at += i
	}
	return 1 + strings.Count(src[:at], "\n")
}
