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
	"sluice/internal/text"
)

// lawGlobs are the files that define how work is done and judged. If a step changes one, a person
// must look, whatever `protect` names.
func lawGlobs() []string {
	return []string{".workflow/specs/**", ".workflow/prompts/**", ".workflow/schemas/**", ".workflow/config.yaml"}
}

// lawNames are files and folders that do so in any folder: git reads them, or agents' programs take instructions,
// hooks, the model's address, or what a search leaves out from them.
func lawNames() []string {
	return []string{".gitattributes", ".gitmodules", ".gitignore", ".lfsconfig",
		".ignore", ".rgignore", ".geminiignore", ".qwenignore",
		"CLAUDE.md", "CLAUDE.local.md", ".claude", ".mcp.json",
		"AGENTS.md", "AGENTS.override.md", ".codex", ".agents",
		opencodeFile, opencodeFile + "c", ".opencode",
		"GEMINI.md", ".gemini", "QWEN.md", ".qwen"}
}

// pushStarts are the files that start something at a forge when their branch is pushed, from the top of the checkout.
func pushStarts() []string {
	return []string{".github/workflows/", ".github/actions/", ".circleci/", ".buildkite/", ".semaphore/", ".woodpecker/",
		".tekton/", ".teamcity/", ".travis.yml", ".cirrus.yml", ".cirrus.star", ".drone.yml", ".woodpecker.yml",
		".woodpecker.yaml", ".gitlab-ci.yml", "appveyor.yml", ".appveyor.yml", "azure-pipelines.yml",
		"bitbucket-pipelines.yml", "bitrise.yml", "buildspec.yml", "cloudbuild.yaml", "cloudbuild.json", "codemagic.yaml",
		"Jenkinsfile"}
}

// maxProtected is the most protected files that a check names.
const maxProtected = 100

// Bases are the folders from which a changed file can be named.
type Bases struct {
	Root string // of the repo
	Top  string // of the checkout
	Dir  string // where commands run
	Path string // the PATH of the commands; "" = no program of the checkout is found by it
}

// Law is the set of files that decide over a run's work: those in `protect`, those that define how
// it is judged, and the programs that gates, criteria, hooks and roles start.
type Law struct {
	at       Bases
	views    []view
	rules    []rule   // of globs
	protect  int      // how many of them are from `protect`
	names    []string // of files and folders
	settings started  // files named by the person's git settings
	programs started
	below    []string // names of files that tools find in any folder by themselves; * is any text
	unknown  []string // commands whose programs cannot be determined
	sources  []source
	folders  map[string]bool // commands start scripts in these in turn
	work     map[string]bool // files that are outputs of steps
}

// started are the files that a command starts, relative to the top of the checkout.
type started struct {
	files   map[string]bool
	folders []string        // with a trailing slash: everything in them
	above   map[string]bool // folders of these
	ends    []string        // with a leading slash: in any folder
	within  []string        // with both slashes: everything in such folders
	modules map[string]bool // with a trailing slash, "" for the top: Python's own modules are replaced here
}

func (s started) has(file string) bool {
	if ext, ok := strings.CutSuffix(file, ".so"); ok {
		dir, name := path.Split(ext)
		if name, tag, ok := strings.Cut(name, "."); ok && tag != "" && s.has(dir+name+".so") { // x.abi3.so is x.so to Python
			return true
		}
	}
	return s.files[file] || slices.ContainsFunc(s.folders, func(d string) bool { return strings.HasPrefix(file, d) }) ||
		slices.ContainsFunc(s.ends, func(end string) bool { return strings.HasSuffix("/"+file, end) }) ||
		slices.ContainsFunc(s.within, func(d string) bool { return strings.Contains("/"+file, d) }) || s.replaces(file)
}

// replaces reports whether Python imports a file in place of one of its own library.
func (s started) replaces(file string) bool {
	if len(s.modules) == 0 {
		return false
	}
	for _, end := range shells.ModuleEnds() {
		rest, ok := strings.CutSuffix(file, end)
		if dir, name := path.Split(rest); ok && s.modules[dir] && shells.OwnModule(name) {
			return true
		}
	}
	return false
}

// put adds files, and folders, which end with a slash.
func (s *started) put(names ...string) {
	for _, name := range names {
		s.reach(name)
		if !strings.HasSuffix(name, "/") {
			s.files[name] = true
		} else if !slices.Contains(s.folders, name) {
			s.folders = append(s.folders, name)
		}
	}
}

// imports adds a folder from which Python imports.
func (s *started) imports(folder string) {
	folder = strings.TrimPrefix(folder+"/", "./")
	s.reach(folder)
	s.modules[folder] = true
}

// reach records the folders above a file or folder.
func (s *started) reach(name string) {
	if s.files == nil {
		s.files, s.above, s.modules = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		s.above[name[:i]] = true
	}
}

// add adds files as package shells names them, except those outside the checkout.
func (s *started) add(j Bases, files []string) {
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
				at = dir + "/"
			}
			s.put(at)
		}
	}
}

// Places returns the paths, from the top of the checkout, of a file that a command names. A file named in the root is
// also the one at the same path in the checkout, which the root will get.
func (j Bases) Places(file string) []string {
	return slices.DeleteFunc(j.places(file), func(at string) bool { return at == "." })
}

// places is Places with the top, ".", itself.
func (j Bases) places(file string) (out []string) {
	at := filepath.FromSlash(file)
	for _, base := range []string{j.Dir, j.Root, j.Top} {
		full := at
		if !filepath.IsAbs(at) {
			full = filepath.Join(base, at)
		}
		for _, top := range []string{j.Root, j.Top} {
			if rel, inside := layout.Rel(top, full); inside {
				out = append(out, rel)
			}
		}
	}
	return out
}

// LawOf returns the law of a spec. agents come from the settings, settings are the files that git's
// settings name, and vars are the run's.
func LawOf(spec *engine.Spec, agents []Agent, settings []string, vars shells.Vars, j Bases) Law {
	for _, st := range spec.Steps {
		for _, e := range st.Env {
			if e.Name == "PATH" {
				j.Path += string(filepath.ListSeparator) + e.Value.Source
			}
		}
	}
	l := Law{at: j, views: j.views(), names: lawNames(), work: map[string]bool{}, folders: map[string]bool{}}
	l.addRules(spec.Protect...)
	l.protect = len(l.rules)
	l.addRules(lawGlobs()...)
	for _, st := range spec.Steps { // what judges are given was made from these files
		if s := spec.SetupOf(st); s != nil {
			l.addRules(s.Files...)
		}
		for _, o := range st.Outputs {
			for _, at := range j.Places(o.Path.Source) { // a path with an expression is none
				l.work[at] = true
			}
		}
	}
	if spec.AtForge() || spec.OnDone.Land == engine.LandPR {
		l.programs.put(pushStarts()...)
	}
	for _, judge := range judges(spec) {
		l.starts(judge.where, judge.command.Words(), vars)
	}
	for _, st := range spec.Steps { // its criteria and its setup get them
		for _, e := range st.Env {
			if !strings.HasSuffix(e.Name, "PATH") { // else all sources would be law
				l.starts("env of "+st.ID, []string{e.Name + "=" + e.Value.Source}, vars)
			}
		}
	}
	for _, a := range agents {
		known := len(l.unknown)
		l.starts("agents."+a.Name+".command", a.Command, nil)
		if !a.Used {
			l.unknown = l.unknown[:known]
		}
		l.settings.add(j, a.Named)
	}
	l.settings.add(j, settings)
	return l
}

// Agent is an agent in the settings.
type Agent struct {
	Name    string
	Command []string
	Used    bool     // a role of the spec uses it
	Named   []string // files that those roles' arguments may name
}

// starts adds what a command starts.
func (l *Law) starts(where string, argv []string, vars shells.Vars) {
	s := shells.Starts(argv, vars)
	if s.Unknown != "" {
		l.unknown = append(l.unknown, where+": "+s.Unknown)
	}
	of := source{where: where, words: shells.Words(strings.Join(argv, " ")), below: ofPackages(s)}
	for _, f := range l.include(s, s.Files) {
		of.files = append(of.files, l.at.anywhere(f)...)
	}
	if len(of.files) > 0 {
		l.sources = append(l.sources, of)
	}
}

// include adds started files, with what the command's programs find by themselves. It returns the files and those
// programs that PATH may find in the checkout.
func (l *Law) include(s shells.Started, files []string) []string {
	files = slices.Clip(files) // the caller's stay as they are
	for _, dir := range filepath.SplitList(l.at.Path) {
		for _, name := range s.Programs {
			files = append(files, filepath.Join(dir, name))
		}
	}
	l.programs.add(l.at, files)
	for _, name := range s.Below {
		if !slices.Contains(l.below, name) {
			l.below = append(l.below, name)
		}
	}
	for _, dir := range s.Modules {
		for _, at := range l.at.places(dir) {
			l.programs.imports(at)
		}
	}
	return files
}

// Has reports whether a file, named from the top of its checkout, is law, and whether only as a
// program.
func (l Law) Has(file string) (is, program bool) {
	if is, program = l.HasBeside(file); is {
		return is, program
	}
	program = l.runs(file) || slices.ContainsFunc(l.below, func(name string) bool {
		if dir, all := strings.CutSuffix(name, "**"); all {
			return strings.Contains("/"+file, "/"+dir)
		}
		same, _ := path.Match(name, path.Base(file))
		return same || strings.HasSuffix(file, "/"+name)
	})
	return program, program
}

// HasBeside is Has for a file that git may ignore. There, what tools find in any folder does not count: the
// dependencies that a setup installs have thousands of such files.
func (l Law) HasBeside(file string) (is, program bool) {
	for part := range strings.SplitSeq(file, "/") {
		if slices.Contains(l.names, part) {
			return true, false
		}
	}
	if l.settings.has(file) {
		return true, false
	}
	program = l.programs.has(file)
	if anyMatches(l.rules, file) {
		return true, false
	}
	return program, program
}

// MayDecide reports whether a file, which git may ignore, is law, or a link that can have law behind it.
func (l Law) MayDecide(file string) bool {
	is, _ := l.HasBeside(file)
	return is || l.Above(file)
}

// Protects reports whether `protect` names a file.
func (l Law) Protects(file string) bool { return anyMatches(l.rules[:l.protect], file) }

// Guarded returns the changed files that are law, except programs that the step was to write (outs,
// relative to where commands run).
func (l Law) Guarded(files, outs []string) []string {
	names, _ := l.GuardedAs(files, outs, nil)
	return names
}

// GuardedAs is Guarded with what each file became, from as; "" for an entry of several files.
func (l Law) GuardedAs(files, outs []string, as map[string]string) (names, became []string) {
	var is, others []string
	for _, f := range files {
		law, program := l.Has(f)
		if program || !law && len(l.unknown) > 0 {
			names := append(l.seenAs(f), filepath.ToSlash(filepath.Join(l.at.Top, filepath.FromSlash(f))))
			if slices.ContainsFunc(outs,
				func(o string) bool { return slices.Contains(names, path.Clean(filepath.ToSlash(o))) }) {
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
		names, became = append(names, text.Name(f)), append(became, as[f])
	}
	if n := len(is) - len(names); n > 0 { // a person is asked about them anyway
		names, became = append(names, fmt.Sprintf("%d more", n)), append(became, "")
	}
	if len(others) > 0 && l.protect == 0 {
		names = append(names, text.Name(others[0])+more(others)+" (what is run is unknown, "+l.unknown[0]+
			": name it under protect)")
		became = append(became, ofAll(others, as))
	}
	return names, became
}

// ofAll combines what the files became; "" if any is unknown.
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

type judgeOf struct {
	where   string
	command *engine.Command
}

func judges(spec *engine.Spec) []judgeOf {
	out := []judgeOf{{"hook after_step", spec.AfterStep}, {"hook after_task", spec.AfterTask},
		{"hook after_run", spec.AfterRun}}
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
