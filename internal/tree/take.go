package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// Folder is where an attempt works.
type Folder struct {
	Repo *git.Repo
	Top  string                 // the real path of its checkout's top level
	Own  []string               // sluice's own files and folders, from Top: not part of the work
	Law  func(file string) bool // reports deciding files, from Top; nil = none
}

// Before is a folder's state before a run worked in it.
type Before struct {
	Found string   `json:"found,omitempty"`
	Odd   []Odd    `json:"odd,omitempty"`
	Law   []Beside `json:"law,omitempty"`   // deciding files in no tree
	Lists string   `json:"lists,omitempty"` // digest of the ignore rules outside the folder; "" = unknown
}

// Find records a folder's state before an attempt: the commit of its files, or base itself if
// nothing differs.
func (f Folder) Find(ctx context.Context, o Order) (Before, error) {
	var was Before
	l, err := f.look(ctx)
	if err != nil {
		return was, err
	}
	was.Odd, was.Lists = l.Odd, f.Repo.IgnoreLists()
	if was.Law, err = f.outside(ctx, l); err != nil {
		return was, err
	}
	files, err := f.files(ctx, o.Base, l.Odd)
	if err != nil {
		return was, err
	}
	was.Found, err = f.commit(ctx, files, o.Base, fmt.Sprintf("The folder as %s found it\n", o.Step))
	if err != nil || was.Found == "" {
		return was, err
	}
	return was, f.Repo.Keep(ctx, git.Own("found", o.name()), was.Found)
}

// files returns the tree of the folder's files, built on a commit, without what is apart.
func (f Folder) files(ctx context.Context, from string, odd []Odd) (string, error) {
	own, err := f.apart(odd)
	if err != nil {
		return "", err
	}
	return f.Repo.FolderTree(ctx, f.Top, from, own)
}

func (o Order) name() string { return layout.AttemptName(o.Run, o.Step, o.N) }

// Take takes the work of an attempt whose processes are gone. tip is the agent's last commit; it is
// ignored unless it descends from the base. was is the folder before the run. A *Refused error is
// the attempt's fault.
func (f Folder) Take(ctx context.Context, o Order, tip string, was Before) (Taken, error) {
	t, err := f.take(ctx, o, tip, was)
	return t, damaged(ctx, f.Repo, o.Base, err)
}

func (f Folder) take(ctx context.Context, o Order, tip string, was Before) (_ Taken, fault error) {
	t := Taken{Tip: o.Base}
	own, err := f.apart(was.Odd)
	if err != nil {
		return t, err
	}
	if t.Tip, err = f.onto(ctx, o.Base, tip); err != nil {
		return t, err
	}
	if t.Tip != o.Base {
		if file, err := planted(ctx, f.Repo, t.Tip, o.Base); err != nil || file != "" {
			return t, errors.Join(err, refusedPlanted("a commit of the step has", file))
		}
	}
	looked := make(chan error, 1)
	go func() { // in parallel with git, which reads the same folders
		var err error
		t.Outside, err = f.judged(ctx, was)
		looked <- err
	}()
	files, rest, err := f.Repo.FolderTreeAhead(ctx, f.Top, t.Tip, own)
	if err == nil {
		defer func() { fault = errors.Join(fault, rest()) }()
	}
	if no := <-looked; no != nil {
		return t, no
	}
	if err != nil {
		return t, refusal(err)
	}
	t.Law = Changed(was.Law, t.Outside)
	linked := make(chan error, 1)
	var changes []git.Change
	go func() {
		var err error
		changes, err = f.allowed(ctx, o.Found, files)
		linked <- err
	}()
	message := uncommitted + o.Step + "\n"
	t.Commit, err = f.commit(ctx, files, t.Tip, message)
	if no := <-linked; no != nil {
		return t, no
	}
	if err == nil {
		t.Commit, err = f.joined(ctx, t.Commit, o.Joined, message)
	}
	if err != nil || t.Commit == "" { // no commit yet, and no file
		return t, err
	}
	if was.Found != o.Found {
		changes = nil
	} else if changes == nil {
		changes = []git.Change{}
	}
	if err := f.hidden(ctx, was, changes, &t); err != nil {
		return t, err
	}
	return t, f.Repo.Keep(ctx, git.Own("taken", o.name()), t.Commit)
}

// onto returns the commit that the work is built on: the tip, if it descends from the base.
func (f Folder) onto(ctx context.Context, base, tip string) (string, error) {
	if tip == "" || base == "" || tip == base {
		return cmp.Or(tip, base), nil
	}
	ok, err := f.Repo.Descends(ctx, tip, base)
	if err != nil || !ok {
		return base, err
	}
	return tip, nil
}

// joined returns a commit whose history includes the merged commits. If an agent commits in the
// repo itself, its commits are built on the branch, which lacks them.
func (f Folder) joined(ctx context.Context, commit string, join []string, message string) (string, error) {
	parents := []string{commit}
	for _, c := range join {
		has, err := f.Repo.Descends(ctx, commit, c)
		if err != nil {
			return "", err
		}
		if !has {
			parents = append(parents, c)
		}
	}
	if len(parents) == 1 {
		return commit, nil
	}
	files, err := f.Repo.TreeOf(ctx, commit)
	if err != nil {
		return "", err
	}
	return f.Repo.CommitTree(ctx, files, message, parents...)
}

// uncommitted begins the subject of a commit of a step's uncommitted work. The step's id follows.
const uncommitted = "Uncommitted work of step "

// leftBy returns the step whose uncommitted work has a commit with this subject, or with an older release's.
func leftBy(subject string) (step string, ok bool) {
	if step, ok = strings.CutPrefix(subject, uncommitted); ok {
		return step, true
	}
	step, before := strings.CutPrefix(subject, "The work of ")
	step, after := strings.CutSuffix(step, " that it did not commit")
	return step, before && after
}

// commit returns a commit with a tree: the parent if it has that tree, "" if there is neither.
func (f Folder) commit(ctx context.Context, files, parent, message string) (string, error) {
	had, err := f.Repo.TreeOf(ctx, parent)
	if err != nil || had == files {
		return parent, err
	}
	if parent == "" {
		return f.Repo.CommitTree(ctx, files, message)
	}
	return f.Repo.CommitTree(ctx, files, message, parent)
}

// judged refuses what git would skip silently or cannot store, unless it was there before the run.
// It returns the deciding files in no tree.
func (f Folder) judged(ctx context.Context, was Before) ([]Beside, error) {
	l, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	odd := slices.DeleteFunc(slices.Clone(l.Odd), func(o Odd) bool { return slices.Contains(was.Odd, o) })
	var special []string
	for _, o := range odd {
		if o.What == oddSpecial {
			special = append(special, o.Path)
		}
	}
	ignored, err := f.Repo.Ignored(ctx, f.Top, special)
	if err != nil {
		return nil, err
	}
	odd = slices.DeleteFunc(odd, func(o Odd) bool { return o.What == oddSpecial && ignored[o.Path] })
	switch {
	case len(odd) > 0:
		return nil, &Refused{"the work cannot be taken: " + listed(odd) + ": remove it"}
	case l.More:
		return nil, fmt.Errorf("the folder has more than %d things that git cannot store, or more than %d files that "+
			"decide: remove some", maxOdd, maxLaw)
	}
	return f.outside(ctx, l)
}

// Changed returns the files that differ between two lists. A removed file has no digest.
func Changed(was, now []Beside) []Beside {
	var out []Beside
	for _, b := range now {
		if !slices.Contains(was, b) {
			out = append(out, b)
		}
	}
	for _, b := range was {
		if !slices.ContainsFunc(now, func(n Beside) bool { return n.Path == b.Path }) {
			out = append(out, Beside{Path: b.Path})
		}
	}
	return out
}

// gitsOwn reports whether only git reads a file. In a completely ignored folder, git does not read
// it either, and package managers leave hundreds of such files.
func gitsOwn(file string) bool {
	return slices.Contains([]string{git.IgnoreName, ".gitattributes"}, path.Base(file))
}

// outside returns the deciding files that git ignores, and those in repositories inside the folder, with
// their digests.
func (f Folder) outside(ctx context.Context, l Looked) ([]Beside, error) {
	ignored, err := f.Repo.Ignored(ctx, f.Top, l.Law)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, file := range l.Law {
		if ignored[file] && gitsOwn(file) && path.Dir(file) != "." {
			folders = append(folders, path.Dir(file))
		}
	}
	inert, err := f.Repo.Ignored(ctx, f.Top, folders)
	if err != nil {
		return nil, err
	}
	var out []Beside
	repos := Repos(l.Odd)
	for _, file := range l.Law {
		apart := git.Within(repos, file)
		if !ignored[file] && !apart || gitsOwn(file) && (apart || inert[path.Dir(file)]) {
			continue
		}
		d, err := git.Digest(ctx, f.Top, []string{file})
		if err != nil {
			return nil, err
		}
		out = append(out, Beside{Path: file, Digest: d})
	}
	return out, nil
}

func (f Folder) look(ctx context.Context) (Looked, error) {
	linked, err := f.Repo.Linked()
	if err != nil {
		return Looked{}, err
	}
	pass := func(dir string) bool {
		return slices.Contains(linked, filepath.Join(f.Top, filepath.FromSlash(dir))) || slices.Contains(f.Own, dir)
	}
	l, err := Walk(ctx, f.Top, pass, f.Law)
	if _, no := os.Lstat(filepath.Join(f.Top, ".git")); no == nil && f.Repo.Plain() {
		l.Odd = append(l.Odd, Odd{Path: ".git", What: oddRepo}) // a store has no git folder in its checkout
	}
	return l, err
}

// apart returns folders that are not part of the work: sluice's own, and worktrees and repositories
// inside the folder.
func (f Folder) apart(odd []Odd) ([]string, error) {
	linked, err := f.Repo.Linked()
	if err != nil {
		return nil, err
	}
	own := slices.Clone(f.Own)
	for _, dir := range linked {
		if rel, inside := layout.Rel(f.Top, dir); inside && rel != "." {
			own = append(own, rel)
		}
	}
	return append(own, Repos(odd)...), nil
}

// Repos returns the repositories inside the folder among its odd things, submodules too, from its top.
func Repos(odd []Odd) (dirs []string) {
	for _, o := range odd {
		if o.What == oddRepo && path.Dir(o.Path) != "." {
			dirs = append(dirs, path.Dir(o.Path))
		}
	}
	return dirs
}

// ReposNow is Repos of the folder as it is.
func (f Folder) ReposNow(ctx context.Context) ([]string, error) {
	l, err := f.look(ctx)
	return Repos(l.Odd), err
}

// shownOdd is how many odd things a reason names.
const shownOdd = 5

func listed(odd []Odd) string {
	var words []string
	for _, o := range odd[:min(len(odd), shownOdd)] {
		o.Path = text.Clip(o.Path, ShownPath)
		words = append(words, o.String())
	}
	if n := len(odd) - len(words); n > 0 {
		words = append(words, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(words, "; ")
}

// ShownPath limits a path in a reason, in bytes: one can be 8 kB long.
const ShownPath = 200

// allowed returns what the work changes. It refuses a submodule that is new or moved to another commit,
// as its content is in no tree, and files in the inboxes of other roots.
func (f Folder) allowed(ctx context.Context, found, files string) ([]git.Change, error) {
	changes, err := f.Repo.ChangesBetween(ctx, found, files)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		file := text.Clip(c.Path, ShownPath)
		switch {
		case c.New == git.ModeSubmodule:
			return nil, &Refused{fmt.Sprintf("the work cannot be taken: %q is a submodule that the step added or moved: "+
				"leave submodules as they are", file)}
		case !c.Deleted() && layout.IsUncommitted(c.Path):
			return nil, refusedPlanted("it has", file)
		}
	}
	return changes, nil
}
