package folders

import (
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/internal/tree"
)

func agentsOf(s settings.Settings, spec *engine.Spec) (out []gates.Agent) {
	used, named := map[string]bool{}, map[string][]string{}
	role := func(name string) {
		r := s.Role(name)
		for _, a := range r.Agent {
			used[a], named[a] = true, append(named[a], filesNamed(r.Args)...)
			named[a] = append(named[a], readBy(s.Agents[a])...)
			if file := path.Clean(filepath.ToSlash(r.PromptFile)); r.PromptFile != "" {
				named[a] = append(named[a], file, path.Join(layout.WorkflowDir, file))
			}
		}
	}
	for _, st := range spec.Steps {
		role(st.Role())
	}
	for _, g := range spec.Gates {
		role(g.Reviewer.AgentType)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		out = append(out, gates.Agent{Name: name, Command: s.Agents[name].Command, Used: used[name], Named: named[name]})
	}
	return out
}

// readBy returns the files that one program alone reads by itself, and those that its command names.
func readBy(a settings.Agent) (out []string) {
	if a.Format == "opencode" { // it takes instructions from there, where a repo has no others
		out = append(out, "**/CONTEXT.md")
	}
	if len(a.Command) == 0 {
		return out
	}
	switch path.Base(a.Command[0]) {
	case "gemini", "qwen": // the address of the model
		out = append(out, "**/.env")
	}
	for _, name := range filesNamed(a.Command[1:]) {
		if strings.ContainsAny(name, "/.") && !strings.HasSuffix(name, "/**") { // a word may be a subcommand
			out = append(out, name) // and a folder the one in which it works
		}
	}
	return out
}

// filesNamed returns the files and folders that arguments may name: an agent's settings and tools,
// which decide what it may do.
func filesNamed(args []string) (out []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			_, arg, _ = strings.Cut(arg, "=")
		}
		if arg = path.Clean(filepath.ToSlash(arg)); arg != "." && !strings.HasPrefix(arg, "**") {
			out = append(out, arg, arg+"/**")
		}
	}
	return out
}

// OwnPaths returns sluice's own files and folders in a checkout, from its top.
func (x *ground) OwnPaths(b tree.Begin) []string {
	own := slices.Clone(b.Lists)
	for _, base := range []string{x.Root, b.Top} {
		rel, inside := layout.Rel(b.Top, base)
		if !inside {
			continue
		}
		for _, name := range layout.OwnFolders() {
			own = append(own, path.Join(rel, layout.WorkflowDir, name))
		}
	}
	for _, dir := range append([]string{x.State}, x.opt.Hidden...) {
		if rel, inside := layout.Rel(b.Top, dir); inside && rel != "." { // a home that is the root
			own = append(own, rel)
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}

func (x *ground) folder(ctx context.Context, j job.Job, b tree.Begin) (tree.Folder, error) {
	l, err := x.law(ctx, j, b)
	return tree.Folder{Repo: x.opt.Git, Top: b.Top, Own: x.OwnPaths(b), Law: l.MayDecide}, err
}

func (x *ground) law(ctx context.Context, j job.Job, b tree.Begin) (gates.Law, error) {
	named, err := x.gitFiles(ctx, j, b)
	return gates.LawOf(j.Spec, agentsOf(x.opt.Settings(), j.Spec), named, job.KnownVars(j),
		gates.Bases{Root: x.Root, Top: b.Top, Dir: b.Dir, Path: x.opt.Path()}), err
}

// follow adds to the law what its programs start in turn, what instructions import and what links lead to, all as they
// were before the run, and links that the work changed.
func (x *ground) follow(ctx context.Context, l *gates.Law, was tree.Before, now []git.Change,
	ignored []tree.Beside) error {
	before, err := x.before(ctx, l, was.Found)
	if err != nil {
		return err
	}
	blobs := maps.Clone(before.links)
	for _, ch := range now {
		if ch.Old == git.ModeLink || ch.New == git.ModeLink {
			blobs[ch.Path] = ""
		}
	}
	links := slices.Sorted(maps.Keys(blobs))
	for _, f := range ignored {
		links = append(links, f.Path)
	}
	read := map[string]string{}
	return l.Follow(links, func(link string) (_ string, err error) {
		var written []byte
		if _, ok := read[link]; !ok && blobs[link] != "" {
			written, err = git.BlobStart(ctx, x.opt.Git, blobs[link], maxLink)
			read[link] = string(written)
		}
		return read[link], err
	})
}

// maxLink is the longest path that a link holds, in bytes, as on Linux.
const maxLink = 4096

// changed lists the changed parts of the law and the new content of each: "" if one file's content
// cannot tell.
type changed struct {
	names, as []string
	by        []string // the earlier run of each, "" = this one; nil = all by this one
}

// Put adds them to a check's result.
func (l changed) Put(r *engine.CheckResult) {
	r.Protected, r.ProtectedAs, r.ProtectedBy = l.names, l.as, l.by
}

// lawAmong returns the parts of the law among the changes from was to a commit and to files that no commit has.
func (x *ground) lawAmong(ctx context.Context, j job.Job, b tree.Begin, was tree.Before, commit string,
	ignored []tree.Beside, outs []string) (law changed, err error) {
	list, err := x.opt.Git.ChangesBetween(ctx, was.Found, commit)
	if err != nil {
		return changed{}, err
	}
	var files []string
	as := contents(list)
	for _, ch := range list {
		files = append(files, ch.Path)
	}
	for _, f := range ignored {
		files = append(files, f.Path)
		if info, err := os.Lstat(filepath.Join(b.Top, filepath.FromSlash(f.Path))); err == nil && info.Mode().IsRegular() {
			as[f.Path] = f.Digest
		}
	}
	l, err := x.law(ctx, j, b)
	if err == nil && len(files) > 0 {
		err = x.follow(ctx, &l, was, list, ignored)
	}
	law.names, law.as = l.GuardedAs(files, outs, as)
	return law, err
}

// contents returns the new content of changed files. Links have none, as their target can change
// alone; nor have deleted files behind one.
func contents(list []git.Change) map[string]string {
	as, links := map[string]string{}, map[string]bool{}
	plain := func(mode string) bool { return strings.HasPrefix(mode, "100") }
	for _, ch := range list {
		links[ch.Path] = !plain(ch.New) && !ch.Deleted()
	}
	for _, ch := range list {
		behind := false
		for dir := path.Dir(ch.Path); dir != "." && !behind; dir = path.Dir(dir) {
			behind = links[dir]
		}
		if plain(ch.New) || ch.Deleted() && !behind {
			as[ch.Path] = ch.New + " " + ch.NewID
		}
	}
	return as
}

// beside returns the declared outputs that are in no tree: those in .workflow/, and ignored ones. taken has files
// that are in the tree.
func (x *ground) beside(ctx context.Context, b tree.Begin, c *tree.Covered,
	taken map[string]bool) ([]tree.Beside, error) {
	var fromTop []string
	for _, m := range c.Made {
		rel, inside := layout.Rel(b.Top, filepath.Join(b.Dir, filepath.FromSlash(m)))
		if inside && !taken[rel] {
			fromTop = append(fromTop, rel)
		}
	}
	ignored, err := x.opt.Git.Ignored(ctx, b.Top, fromTop)
	if err != nil {
		return nil, err
	}
	var out []tree.Beside
	add := func(base, file string) error {
		d, err := git.Digest(ctx, base, []string{file})
		out = append(out, tree.Beside{Path: file, Digest: d})
		return err
	}
	for _, f := range c.Root {
		if err := add(x.Root, f); err != nil {
			return nil, err
		}
	}
	for _, f := range fromTop {
		if !ignored[f] {
			continue
		}
		if err := add(b.Top, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}
