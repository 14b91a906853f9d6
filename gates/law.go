package gates

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/shells"
)

// lawGlobs are what says how work is done and judged: a step that changed some of it has a person look, whatever `protect`
// names.
func lawGlobs() []string {
	return []string{".workflow/specs/**", ".workflow/prompts/**", ".workflow/schemas/**", ".workflow/config.yaml"}
}

// lawNames are files that say so in whatever folder they are: to git, or to the agents that come after.
func lawNames() []string {
	return []string{".gitattributes", ".gitmodules", ".gitignore", "CLAUDE.md", "AGENTS.md"}
}

// maxProtected is how many protected files a check names.
const maxProtected = 100

// Bases are the folders from which a changed file may be named.
type Bases struct {
	Root string // of the repo
	Top  string // of the checkout
	Dir  string // where commands run
}

func (j Bases) names(file string) []string {
	names := []string{file}
	abs := filepath.Join(j.Top, filepath.FromSlash(file))
	for _, base := range []string{j.Root, j.Dir} {
		if rel, err := filepath.Rel(base, abs); base != "" && err == nil && filepath.IsLocal(rel) {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return append(names, filepath.ToSlash(abs))
}

// Law is what decides over the work of a run: what `protect` names, what says how it is judged, and the programs that
// gates, criteria, hooks and roles start.
type Law struct {
	at       Bases
	globs    []string
	protect  int      // how many of the globs are those of `protect`
	names    []string // base names
	settings started  // what the person's git settings name
	programs started
	unknown  []string // commands of which it cannot be told what they start
	plain    bool     // `protect` names nothing: the globs are those of .workflow/
}

// started are files that a command starts, as named from the top of the checkout.
type started struct {
	files   map[string]bool
	folders []string // with a slash behind: all in them
	ends    []string // with a slash in front: in whatever folder
	within  []string // with a slash on both sides: all in such a folder, wherever that is
}

func (s started) has(file string) bool {
	return s.files[file] || slices.ContainsFunc(s.folders, func(d string) bool { return strings.HasPrefix(file, d) }) ||
		slices.ContainsFunc(s.ends, func(end string) bool { return strings.HasSuffix("/"+file, end) }) ||
		slices.ContainsFunc(s.within, func(d string) bool { return strings.Contains("/"+file, d) })
}

// add adds files as package shells names them. Those outside of the checkout are left out.
func (s *started) add(j Bases, files []string) {
	if s.files == nil {
		s.files = map[string]bool{}
	}
	for _, f := range files {
		if end, anywhere := strings.CutPrefix(f, "**"); anywhere {
			if dir, all := strings.CutSuffix(end, "/**"); all {
				s.within = append(s.within, dir+"/")
			} else {
				s.ends = append(s.ends, end)
			}
			continue
		}
		for _, at := range j.Places(f) {
			if dir, all := strings.CutSuffix(at, "/**"); all {
				s.folders = append(s.folders, dir+"/")
			} else {
				s.files[at] = true
			}
		}
	}
	slices.Sort(s.folders)
	s.folders = slices.Compact(s.folders)
}

// Places are where a file that a command names may lie, from the top of the checkout. One that is named in the root is
// meant in the checkout as well: there the work lies that will be in the root.
func (j Bases) Places(file string) (out []string) {
	at := filepath.FromSlash(file)
	for _, base := range []string{j.Dir, j.Root, j.Top} {
		full := at
		if !filepath.IsAbs(at) {
			full = filepath.Join(base, at)
		}
		for _, top := range []string{j.Root, j.Top} {
			if rel, err := filepath.Rel(top, full); err == nil && filepath.IsLocal(rel) && rel != "." {
				out = append(out, filepath.ToSlash(rel))
			}
		}
	}
	return out
}

// LawOf makes the law of a spec. agents are those that the settings know, settings the files that git's settings name,
// vars those of the run.
func LawOf(spec *engine.Spec, agents []Agent, settings []string, vars shells.Vars, j Bases) Law {
	l := Law{at: j, globs: append(slices.Clone(spec.Protect), lawGlobs()...), names: lawNames(), protect: len(spec.Protect), plain: len(spec.Protect) == 0}
	for _, st := range spec.Steps { // what those who judge were given was made of them as they were
		if s := spec.SetupOf(st); s != nil {
			l.globs, l.plain = append(l.globs, s.Files...), false
		}
	}
	for _, judge := range judges(spec) {
		l.starts(judge.where, shells.Starts(judge.command.Words(), vars))
	}
	for _, a := range agents {
		s := shells.Starts(a.Command, nil)
		if !a.Used {
			s.Unknown = ""
		}
		l.starts("agents."+a.Name+".command", s)
		l.settings.add(j, a.Named)
	}
	l.settings.add(j, settings)
	return l
}

// Agent is an agent that the settings name.
type Agent struct {
	Name    string
	Command []string
	Used    bool     // a role of the spec has it
	Named   []string // what the arguments of those roles may name
}

// starts adds what a command starts.
func (l *Law) starts(where string, s shells.Started) {
	if s.Unknown != "" {
		l.unknown = append(l.unknown, where+": "+s.Unknown)
	}
	l.programs.add(l.at, s.Files)
}

// has reports whether a file, named from the top of its checkout, is law, and whether only as a program.
func (l Law) Has(file string) (is, program bool) {
	if slices.Contains(l.names, path.Base(file)) || l.settings.has(file) {
		return true, false
	}
	program = l.programs.has(file)
	if !program && l.plain && !strings.Contains(file, ".workflow/") && !strings.Contains(filepath.ToSlash(l.at.Top), ".workflow") {
		return false, false // most of 500,000 files
	}
	names := l.at.names(file)
	for _, g := range l.globs {
		if slices.ContainsFunc(names[:len(names)-1], func(n string) bool { return Matches(g, n) }) {
			return true, false
		}
	}
	return program, program
}

// Protects reports whether `protect` names a file.
func (l Law) Protects(file string) bool {
	names := l.at.names(file)
	return slices.ContainsFunc(l.globs[:l.protect], func(g string) bool {
		return slices.ContainsFunc(names[:len(names)-1], func(n string) bool { return Matches(g, n) })
	})
}

// Guarded names the changed files that are law, but programs which the step was to write (outs, from where commands run).
func (l Law) Guarded(files, outs []string) []string {
	names, _ := l.GuardedAs(files, outs, nil)
	return names
}

// GuardedAs is guarded with what each file became, as has it; "" where that is not of one file alone.
func (l Law) GuardedAs(files, outs []string, as map[string]string) (names, became []string) {
	var is, others []string
	for _, f := range files {
		law, program := l.Has(f)
		if program || !law && len(l.unknown) > 0 {
			names := l.at.names(f)
			if slices.ContainsFunc(outs, func(o string) bool { return slices.Contains(names, path.Clean(filepath.ToSlash(o))) }) {
				continue
			}
			if !program {
				others = append(others, f)
			}
		}
		if law {
			is = append(is, f)
		}
	}
	for _, f := range is[:min(len(is), maxProtected)] {
		names, became = append(names, f), append(became, as[f])
	}
	if n := len(is) - len(names); n > 0 { // whatever is among them is asked about
		names, became = append(names, fmt.Sprintf("%d more", n)), append(became, "")
	}
	if len(others) > 0 && l.plain {
		names = append(names, others[0]+more(others)+" (what is run cannot be told, "+l.unknown[0]+": name it under protect)")
		became = append(became, ofAll(others, as))
	}
	return names, became
}

// ofAll is what the files became, as one; "" where that is not known of each.
func ofAll(files []string, as map[string]string) string {
	var b strings.Builder
	for _, f := range files {
		if as[f] == "" {
			return ""
		}
		fmt.Fprintf(&b, "%s %q\n", as[f], f)
	}
	return layout.HexSum([]byte(b.String()))
}

func more(files []string) string {
	if len(files) == 1 {
		return ""
	}
	return fmt.Sprintf(" and %d more", len(files)-1)
}

// judgeOf is a command that judges, and what it is of.
type judgeOf struct {
	where   string
	command *engine.Command
}

// judges are the commands of gates, criteria, setups and hooks.
func judges(spec *engine.Spec) []judgeOf {
	out := []judgeOf{{"hook after_step", spec.AfterStep}, {"hook after_task", spec.AfterTask}, {"hook after_run", spec.AfterRun}}
	for _, g := range spec.Gates {
		out = append(out, judgeOf{"gate " + g.ID, g.Reviewer.Run})
	}
	for _, st := range spec.Steps {
		for i, c := range st.Criteria {
			out = append(out, judgeOf{fmt.Sprintf("criterion %d of %s", i+1, st.ID), c.Command})
		}
		if s := spec.SetupOf(st); s != nil {
			out = append(out, judgeOf{"setup of " + st.ID, &s.Run})
		}
	}
	return slices.DeleteFunc(out, func(j judgeOf) bool { return j.command == nil })
}
