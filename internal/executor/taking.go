package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/tree"
)

// Records of a folder that a run works in.
const (
	firstRecord = "first" // how it was before anything of the run worked there
	openRecord  = "open"  // how it was before the work there that has not passed yet
	lastRecord  = "last"  // what was taken there last

	carriedRecord  = "carried"  // outputs that were carried there
	settingsRecord = "settings" // the files that git's settings named when the run began to work there
)

// folderRecord is the file of such a record. A task's run is part of the run it belongs to.
func (e *Executor) folderRecord(job daemon.Job, what, top string) string {
	run := job.Run
	if c := job.RunInfo.Child; c != nil {
		run, _, _ = strings.Cut(c.Dir, "/")
	}
	return filepath.Join(e.opt.State, attemptsDir, plain(run), what+"-"+hexSum([]byte(top))[:16])
}

// ownPaths are sluice's own files and folders in a checkout, from its top.
func (e *Executor) ownPaths(b begin) []string {
	own := slices.Clone(b.Lists)
	for _, base := range []string{e.root, b.Top} {
		rel, err := filepath.Rel(b.Top, base)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		for _, name := range ownFolders() {
			own = append(own, path.Join(filepath.ToSlash(rel), ".workflow", name))
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// folder is where an attempt works, as package tree takes it.
func (e *Executor) folder(ctx context.Context, job daemon.Job, b begin) (tree.Folder, error) {
	l, err := e.law(ctx, job, b)
	law := func(file string) bool { is, _ := l.has(file); return is }
	return tree.Folder{Repo: e.opt.Git, Top: b.Top, Own: e.ownPaths(b), Law: law}, err
}

// law is what decides over the work in a folder.
func (e *Executor) law(ctx context.Context, job daemon.Job, b begin) (law, error) {
	named, err := e.gitFiles(ctx, job, b)
	return lawOf(job.Spec, agentsOf(e.opt.Settings(), job.Spec), named, varsOf(job), judging{root: e.root, top: b.Top, dir: b.Dir}), err
}

// last is what was taken of a folder last, and where its branch was then.
type last struct {
	At    string `json:"at"`
	Taken string `json:"taken"`
}

// base is the commit that an attempt's work is built on. A held launch in a run's own worktree goes on from what was taken
// there last, although that has not passed and is on no branch; all others from HEAD.
func (e *Executor) base(job daemon.Job, st *engine.Step, b begin) (string, error) {
	if box, _ := e.box(); box == nil || job.Offers(st) || job.RunInfo.Workspace == "" {
		return b.Head, nil
	}
	var l last
	err := kept(e.folderRecord(job, lastRecord, b.Top), &l)
	if errors.Is(err, fs.ErrNotExist) {
		return b.Head, nil
	}
	if err == nil && l.Taken != "" && (b.Head == l.At || b.Head == l.Taken) {
		return l.Taken, nil
	}
	return b.Head, err
}

// tip is the last commit of an attempt's agent: what was received of a held launch, else HEAD.
func (e *Executor) tip(o tree.Order, head string) (string, error) {
	var r tree.Received
	switch err := kept(e.attemptFile(o.Run, o.Step, o.N, receivedFile), &r); {
	case errors.Is(err, fs.ErrNotExist):
		return head, nil
	case err != nil:
		return "", err
	case r.Refused != "":
		return "", &tree.Refused{Why: "the step's commits cannot be taken: " + r.Refused + ": commit the work anew"}
	}
	return r.Tip, nil
}

// foundTree takes the folder as it is before an attempt.
func (e *Executor) foundTree(ctx context.Context, job daemon.Job, b begin, o tree.Order) (string, error) {
	var was tree.Before
	f, err := e.folder(ctx, job, b)
	if err == nil {
		was, err = f.Find(ctx, o)
	}
	if err != nil {
		if ctx.Err() != nil || passing(err) {
			return "", err
		}
		return "", noGit(e.shown(b.Top), err)
	}
	if err := keepFirst(e.folderRecord(job, firstRecord, b.Top), was); err != nil {
		return "", err
	}
	open, err := e.openFile(job, b, o)
	if err == nil {
		err = keepFirst(open, was)
	}
	if err != nil {
		return "", err
	}
	err = kept(open, &was)
	return was.Found, err // of attempts that failed, the work is shown whole
}

// openFile is where it is recorded how a folder was before the work there that has not passed yet. In a run's own worktree
// the record goes when the branch has the work. Elsewhere it is the step's, from its first attempt on.
func (e *Executor) openFile(job daemon.Job, b begin, o tree.Order) (string, error) {
	if job.RunInfo.Workspace != "" {
		return e.folderRecord(job, openRecord, b.Top), nil
	}
	file := e.folderRecord(job, openRecord+"-"+plain(o.Step), b.Top)
	if o.N > 1 {
		return file, nil
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return file, nil
}

// keepFirst records a value where there is no record yet.
func keepFirst(file string, v any) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return keep(file, v)
}

// taken takes the work of an attempt, once for each check of it, and names what it changed of the law.
func (e *Executor) taken(ctx context.Context, job daemon.Job, st *engine.Step, b begin, outs []string) (covered, []string, error) {
	c := coveredOf(b, outs)
	if b.Top == "" {
		return c, nil, nil
	}
	var was tree.Before
	if err := kept(e.folderRecord(job, firstRecord, b.Top), &was); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, nil, err
	}
	file := e.attemptFile(job.Run, st.ID, job.Attempt.N, "files")
	var had covered
	if kept(file, &had) == nil && had.Key == job.Key && had.Taken.Commit != "" {
		c = had // of before a crash: what the check's commands wrote since is no work
	} else if err := e.take(ctx, job, st, b, was, &c); err != nil {
		return c, nil, err
	} else if err := keep(file, c); err != nil {
		return c, nil, err
	}
	protected, err := e.changedLaw(ctx, job, b, was, c, outs)
	return c, protected, err
}

// take fills in what was taken.
func (e *Executor) take(ctx context.Context, job daemon.Job, st *engine.Step, b begin, was tree.Before, c *covered) error {
	c.Key = job.Key
	o := tree.Order{Run: job.Run, Step: st.ID, N: job.Attempt.N, Base: b.Head, Found: b.Found}
	return e.persist(ctx, job.Key, func() (err error) {
		head, err := e.opt.Git.Head(ctx, b.Top)
		if err != nil {
			return err
		}
		tip, err := e.tip(o, head)
		if err != nil {
			return err
		}
		f, err := e.folder(ctx, job, b)
		if err != nil {
			return err
		}
		if c.Taken, err = f.Take(ctx, o, tip, was); err != nil {
			return err
		}
		if err := e.changes(ctx, job, b, c); err != nil {
			return err
		}
		return keep(e.folderRecord(job, lastRecord, b.Top), last{At: head, Taken: c.Taken.Commit})
	})
}

// coveredOf sorts what a step declares as its outputs.
func coveredOf(b begin, outs []string) covered {
	c := covered{Dir: b.Dir, Top: b.Top, Found: b.Found}
	for _, p := range outs {
		p = path.Clean(filepath.ToSlash(p))
		switch {
		case !filepath.IsLocal(filepath.FromSlash(p)): // does not hold anyway
		case isState(p):
			c.Root = append(c.Root, p)
		default:
			c.Made = append(c.Made, p)
		}
	}
	return c
}

// changes fills in which files the work changed, and what does not ship.
func (e *Executor) changes(ctx context.Context, job daemon.Job, b begin, c *covered) error {
	list, err := e.opt.Git.ChangesBetween(ctx, b.Found, c.Taken.Commit)
	if err != nil {
		return err
	}
	for _, ch := range list {
		c.Files = append(c.Files, ch.Path)
	}
	if len(c.Files) > git.MaxDigested/2 {
		c.Files = c.Files[:git.MaxDigested/2] // only whether the folder changed afterwards is looked at by these
	}
	if c.Tree, err = e.opt.Git.TreeOf(ctx, c.Taken.Commit); err != nil {
		return err
	}
	l, err := e.law(ctx, job, b)
	if err != nil {
		return err
	}
	c.Taken.Beside, err = e.beside(ctx, b, c)
	for _, f := range c.Taken.Outside {
		if l.protects(f.Path) && !slices.ContainsFunc(c.Taken.Beside, func(o tree.Beside) bool { return o.Path == f.Path }) {
			c.Taken.Beside = append(c.Taken.Beside, f)
		}
	}
	return err
}

// beside are the declared outputs that are in no tree: those of .workflow/, and ignored ones.
func (e *Executor) beside(ctx context.Context, b begin, c *covered) ([]tree.Beside, error) {
	var fromTop []string
	for _, m := range c.Made {
		if rel, err := filepath.Rel(b.Top, filepath.Join(b.Dir, filepath.FromSlash(m))); err == nil && filepath.IsLocal(rel) {
			fromTop = append(fromTop, filepath.ToSlash(rel))
		}
	}
	ignored, err := e.opt.Git.Ignored(ctx, b.Top, fromTop)
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
		if err := add(e.root, f); err != nil {
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

// hides says which files are in no commit because of ignore rules of the run's own.
func hides(t tree.Taken) []string {
	var names []string
	for i, f := range t.Hidden {
		if names = append(names, strconv.Quote(f.Path)); i == shownHidden-1 {
			break
		}
	}
	if len(names) == 0 {
		return nil
	}
	words := "ignore rules, which hide " + strings.Join(names, ", ")
	if n := len(t.Hidden) + t.More - len(names); n > 0 {
		words += fmt.Sprintf(" and %d more", n)
	}
	return []string{words}
}

// shownHidden is how many hidden files the question to a person names.
const shownHidden = 3

// changedLaw names what of the law differs from how it was before the run.
func (e *Executor) changedLaw(ctx context.Context, job daemon.Job, b begin, was tree.Before, c covered, outs []string) ([]string, error) {
	list, err := e.opt.Git.ChangesBetween(ctx, was.Found, c.Taken.Commit)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, ch := range list {
		files = append(files, ch.Path)
	}
	for _, f := range c.Taken.Law {
		files = append(files, f.Path)
	}
	l, err := e.law(ctx, job, b)
	return append(l.guarded(files, outs), hides(c.Taken)...), err
}
