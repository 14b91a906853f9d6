package folders

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Tip returns the last commit of an attempt's agent: what was received of a held launch, else HEAD.
func (x *takings) Tip(o tree.Order, head string) (string, error) {
	tip, err := tree.TipOf(x.Layout, o)
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil
	}
	return tip, err
}

// Taken takes the work of an attempt, once for each check, and names the changed parts of the law.
func (x *takings) Taken(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin,
	outs []string) (tree.Covered, changed, error) {
	c := coveredOf(b, outs)
	if b.Top == "" {
		return c, changed{}, nil
	}
	if b.Look != "" {
		return x.lookedAt(ctx, j, st, b, c)
	}
	r, err := x.record(j, b.Top)
	if err != nil {
		return c, changed{}, err
	}
	var was tree.Before
	if r.First != nil {
		was = *r.First
	}
	file := x.AttemptFile(j.Run, st.ID, j.Attempt.N, layout.CheckedFile)
	var had tree.Covered
	if layout.Load(file, &had) == nil && had.Key == j.Key && had.Taken.Commit != "" {
		c = had // from before a crash: what the check's commands wrote since is no work
	} else if err := x.take(ctx, j, st, b, was, &c); err != nil {
		return c, changed{}, err
	} else if err := layout.Save(file, c); err != nil {
		return c, changed{}, err
	}
	law, err := x.changedLaw(ctx, j, b, was, c, job.SpecOutputs(st.Outputs, job.WithAnswer(j)))
	return c, law, err
}

func (x *takings) take(ctx context.Context, j job.Job, st *engine.Step, b tree.Begin, was tree.Before,
	c *tree.Covered) error {
	c.Key = j.Key
	o := tree.Order{Run: j.Run, Step: st.ID, N: j.Attempt.N, Base: b.Head, Found: b.Found, Joined: b.Joined}
	if b.Head == "" && x.opt.Git.Plain() {
		o.Base = b.Found // an existing file stays part of the work, whatever ignore rules now say
	}
	return x.Persist(ctx, j.Key, func() (err error) {
		head, err := x.opt.Git.Head(ctx, b.Top)
		if err != nil {
			return err
		}
		tip, err := x.Tip(o, head)
		if err != nil {
			return err
		}
		f, err := x.folder(ctx, j, x.withTasks(j, st, b))
		if err != nil {
			return err
		}
		// Before it: what begins there meanwhile marks anew.
		if err := os.Remove(x.recordFile(j, uncheckedMark, b.Top)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		x.writing.RLock()
		c.Taken, err = f.Take(ctx, o, tip, was)
		x.writing.RUnlock()
		if err != nil {
			return err
		}
		if err := unresolved(b); err != nil {
			return err
		}
		if err := x.changes(ctx, j, b, c); err != nil {
			return err
		}
		return x.NoteFolder(ctx, j, b.Top, func(r *Record) {
			r.Of, r.Taken, r.At = ofJob(j, st.ID), c.Taken.Commit, head
			if r.Work = (attemptOf{}); slices.ContainsFunc(st.Criteria, func(c engine.Criterion) bool { return c.Folder }) {
				r.Work = r.Of // what these leave in the folder is nobody else's
			}
		})
	})
}

// withTasks makes a list's task file part of the list's own work: sluice has written how all tasks
// ended. While tasks are at work the file is sluice's, and no part of theirs.
func (x *takings) withTasks(j job.Job, st *engine.Step, b tree.Begin) tree.Begin {
	if st.ForEach == nil || len(j.RunInfo.Lists) == 0 {
		return b
	}
	j.RunInfo.Lists = j.RunInfo.Lists[1:] // those of the runs above
	b.Lists = x.listsBelow(j, b.Top)
	return b
}

// unresolved refuses work that still has conflict markers of the join.
func unresolved(b tree.Begin) error {
	var left []string
	for _, file := range b.Conflicts {
		has, err := hasMarkers(b.Top, filepath.FromSlash(file))
		if err != nil {
			return err
		}
		if has {
			left = append(left, file)
		}
	}
	if len(left) > 0 {
		return &tree.Refused{Why: "conflict markers are left in " + strings.Join(left, ", ") + ": resolve them"}
	}
	return nil
}

// hasMarkers reports whether a file has conflict markers at the start of lines. A missing file, a
// link and a folder have none.
func hasMarkers(top, file string) (bool, error) {
	f, _, err := atomicfile.Open(top, file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, atomicfile.ErrNotRegular) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	in, ours, theirs, head := bufio.NewReader(f), false, false, true
	for {
		line, err := in.ReadSlice('\n')
		ours = ours || head && bytes.HasPrefix(line, []byte("<<<<<<< "))
		theirs = theirs || head && bytes.HasPrefix(line, []byte(">>>>>>> "))
		head = !errors.Is(err, bufio.ErrBufferFull)
		if ours && theirs || errors.Is(err, io.EOF) {
			return ours && theirs, nil
		}
		if err != nil && head {
			return false, err
		}
	}
}

func coveredOf(b tree.Begin, outs []string) tree.Covered {
	c := tree.Covered{Dir: b.Dir, Top: b.Top, Found: b.Found}
	for _, p := range outs {
		p = path.Clean(filepath.ToSlash(p))
		switch {
		case !filepath.IsLocal(filepath.FromSlash(p)): // fails anyway
		case layout.IsState(p):
			c.Root = append(c.Root, p)
		default:
			c.Made = append(c.Made, p)
		}
	}
	return c
}

// changes fills in the changed files, and what does not ship.
func (x *takings) changes(ctx context.Context, j job.Job, b tree.Begin, c *tree.Covered) error {
	list, err := x.opt.Git.ChangesBetween(ctx, b.Found, c.Taken.Commit)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, ch := range list {
		c.Files = append(c.Files, ch.Path)
		taken[ch.Path] = !ch.Deleted() && !ch.Submodule()
	}
	if len(c.Files) > git.MaxDigested/2 {
		c.Files = c.Files[:git.MaxDigested/2] // they show later changes of the folder
	}
	if c.Tree, err = x.opt.Git.TreeOf(ctx, c.Taken.Commit); err != nil {
		return err
	}
	l, err := x.law(ctx, j, b)
	if err != nil {
		return err
	}
	c.Taken.Beside, err = x.beside(ctx, b, c, taken)
	for _, f := range c.Taken.Outside {
		if l.Protects(f.Path) && !slices.ContainsFunc(c.Taken.Beside, func(o tree.Beside) bool { return o.Path == f.Path }) {
			c.Taken.Beside = append(c.Taken.Beside, f)
		}
	}
	return err
}

// hides returns the reason for files that the run's own ignore rules keep out of commits.
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

// changedLaw returns the parts of the law that differ from before the run, and their new content.
func (x *takings) changedLaw(ctx context.Context, j job.Job, b tree.Begin, was tree.Before, c tree.Covered,
	outs []string) (changed, error) {
	law, err := x.lawAmong(ctx, j, b, was, c.Taken.Commit, c.Taken.Law, outs)
	if err != nil {
		return changed{}, err
	}
	for _, words := range hides(c.Taken) { // nobody has seen what else they hide
		law.names, law.as = append(law.names, words), append(law.as, "")
	}
	return law, x.addLeft(ctx, j, b, was, c.Taken.Commit, &law)
}
