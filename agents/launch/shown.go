package launch

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/agents/sandbox"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/job"
)

// homeShown returns the paths below a home that most tools need and that hold no secret.
func homeShown() []string {
	return []string{".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
		".local/bin", ".local/share/claude", ".nvm/versions", ".volta", ".asdf", ".rustup", ".cargo/bin", ".pyenv",
		".bun/bin", ".deno/bin", "go/bin", "sdk"}
}

// tools returns the mounts for tools and for what the settings name. Folders that agents can write
// are for agents alone: a judge would believe what they left there, such as a cached test result.
func (x *Cage) tools(base sandbox.Plan, hidden []string, writes bool) []sandbox.Mount {
	home, s := base.Home, x.opt.Settings()
	show := func(p string, write bool) {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = filepath.Join(home, rest)
		}
		real, err := atomicfile.RealPath(p)
		if err != nil || !filepath.IsAbs(p) {
			return // it is missing
		}
		if slices.ContainsFunc(base.Tools, func(m sandbox.Mount) bool { return m.Shows(real, p, write) }) {
			return // each mount costs a launch a tenth of a millisecond
		}
		base.Tools = append(base.Tools, sandbox.Mount{Path: real, At: p, Write: write})
		if real != p && !base.Sees(real) { // a program may ask for its real path
			base.Tools = append(base.Tools, sandbox.Mount{Path: real, Write: write})
		}
	}
	if home != "" && home != "/" {
		for _, name := range homeShown() {
			if _, err := os.Lstat(filepath.Join(home, name)); err == nil {
				show(filepath.Join(home, name), false)
			}
		}
	}
	for _, dir := range filepath.SplitList(x.Variable("PATH")) {
		if !filepath.IsAbs(dir) || base.Sees(dir) {
			continue
		}
		for _, dir := range []string{sandbox.Toolchain(dir, home), dir} {
			if !holds(hidden, dir, home) {
				show(dir, false)
				break
			}
		}
	}
	for _, p := range s.Sandbox.Read {
		show(p, false)
	}
	for _, p := range s.Sandbox.Write {
		if writes {
			show(p, true)
		}
	}
	return sandbox.Uncovered(base.Tools)
}

// holds reports whether a folder contains the home or a hidden folder, or is in a hidden one: it is
// not shown for its tools.
func holds(hidden []string, dir, home string) bool {
	if home != "" && sandbox.Inside(dir, home) {
		return true
	}
	return slices.ContainsFunc(hidden, func(h string) bool { return sandbox.Inside(dir, h) || sandbox.Inside(h, dir) })
}

// Found looks the command up where the launch will, and shows what it needs. A known agent's
// program, such as claude, may be anywhere. Its errors replace bwrap's, which do not help people.
func (x *Cage) Found(argv, env []string, p Process, plan *sandbox.Plan) ([]string, error) {
	cwd := plan.Cwd
	if p.Judged.Covers {
		cwd = p.Judged.Host
	}
	name, err := agents.LookUp(argv[0], env, cwd)
	if err != nil {
		return nil, job.Fatal("%v", err)
	}
	real, err := atomicfile.RealPath(name)
	if err != nil {
		return nil, job.Fatal("command %s: %s", name, fault.WithoutPath(err))
	}
	at := ""
	if p.Judged.Covers {
		if at, err = p.Judged.program(name); err != nil {
			return nil, err
		}
	}
	if at == "" {
		at, err = name, x.showProgram(name, real, program.Known(p.Who.Agent.Format), plan)
	}
	if err != nil {
		return nil, err
	}
	if by := interpreter(real, env, cwd); by != "" && !plan.Sees(by) {
		return nil, notShown("command %s: its first line wants %s, which the sandbox does not show", name, by)
	}
	return append([]string{at}, argv[1:]...), nil
}

// showProgram adds a program, whose file is real, to the plan.
func (x *Cage) showProgram(name, real string, agent bool, plan *sandbox.Plan) error {
	// A link of the person's own tool is followed, never one that an agent could have put there.
	tool := *plan
	tool.Shown = nil
	tool.Tools = slices.DeleteFunc(slices.Clone(plan.Tools), func(m sandbox.Mount) bool { return m.Write })
	switch {
	case plan.Sees(name) && plan.Sees(real):
	case !plan.Sees(name) && !agent && name != x.opt.Self:
		return job.Fatal("command %s: the sandbox does not show it: name %s under sandbox.read in your own settings",
			name, filepath.Dir(name))
	case !plan.Sees(name):
		plan.Tools = append(plan.Tools, shownAlone(name), shownAlone(real))
	case tool.Sees(name) && !holds(x.hidden(), filepath.Dir(real), plan.Home):
		plan.Tools = append(plan.Tools, sandbox.Mount{Path: sandbox.Toolchain(filepath.Dir(real), plan.Home)})
	default:
		return notShown("command %s: it leads to %s, which the sandbox does not show", name, real)
	}
	return nil
}

// shownAlone shows a program without its neighbours, except the packages that it belongs to.
func shownAlone(file string) sandbox.Mount {
	if dir := sandbox.Toolchain(filepath.Dir(file), ""); filepath.Base(dir) == "node_modules" {
		return sandbox.Mount{Path: dir}
	}
	return sandbox.Mount{Path: file}
}

func notShown(format, name, file string) error {
	return job.Fatal(format+": name %s under sandbox.read in your own settings", name, file, filepath.Dir(file))
}

// maxFirstLine is how many bytes of it the kernel reads.
const maxFirstLine = 256

// interpreter returns the program in a script's first line, also by way of env; "" if the file is
// no script, or has none that can be found.
func interpreter(file string, env []string, cwd string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxFirstLine)).ReadString('\n') // a part is enough
	rest, script := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !script || len(words) == 0 {
		return ""
	}
	by := words[0]
	if filepath.Base(by) == "env" && len(words) == 2 {
		if by, err = agents.LookUp(words[1], env, cwd); err != nil {
			return ""
		}
	}
	real, _ := atomicfile.RealPath(by) // "" if it is missing
	return real
}
