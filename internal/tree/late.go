package tree

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/git"
	"sluice/internal/layout"
)

// lateRefs is the kind of our refs that only people read: see Late.
const lateRefs = "late"

// maxLate limits the late results that are kept of a run, each of at most MaxPack bytes.
const maxLate = 20

// Late is what a worker returned of a launch after another one had replaced it. It counts for nothing:
// it is kept for a person to look at.
type Late struct {
	Run, Step   string
	N           int    // of the attempt
	K           string // of the launch in it
	Head, Start string // the commits that the launch began from: see Folder.Start
	Returned
}

// Ref is the ref that it is kept by: a commit with its files, built on those that the launch began
// with, and on the launch's own commits.
func (l Late) Ref() string { return git.Own(lateRefs, l.name()) }

func (l Late) name() string { return layout.AttemptName(l.Run, l.Step, l.N) + "." + l.K }

// Look says what to type to see what the launch changed.
func (l Late) Look() string { return fmt.Sprintf("git diff %s^ %[1]s", l.Ref()) }

// Keep takes the pack in as strictly as any worker's, and keeps the commit. It returns "" where the
// launch changed nothing. What is wrong with the work is a *Refused, and nothing of it stays. The same
// call may be made again.
func (l Late) Keep(ctx context.Context, repo *git.Repo, pack io.Reader) (ref string, err error) {
	ref = l.Ref()
	kept, err := repo.OwnBelow(ctx, lateRefs, l.Run)
	had := kept[l.name()]
	switch {
	case err != nil:
		return "", err
	case had != "" && had != l.Commit:
		return ref, nil
	case had == "" && len(kept) >= maxLate:
		return "", &Refused{fmt.Sprintf("%d late results of %s are kept already", len(kept), l.Run)}
	case had == "":
		if err := l.bring(ctx, repo, pack); err != nil {
			return "", err
		}
	}
	return l.onStart(ctx, repo)
}

// bring has the ref name the commit that the worker returned.
func (l Late) bring(ctx context.Context, repo *git.Repo, pack io.Reader) error {
	return takeIn(ctx, repo, pack, l.Commit, []string{l.Head}, func(ctx context.Context, q *git.Quarantine) error {
		if err := l.builtOn(ctx, q, l.Head); err != nil {
			return err
		}
		return q.Keep(ctx, l.Ref(), l.Commit)
	})
}

// onStart has the ref name a commit whose first parent has the files that the launch began with. It
// removes the ref of a launch that changed none.
func (l Late) onStart(ctx context.Context, repo *git.Repo) (ref string, err error) {
	start, ref := l.Start, l.Ref()
	if has, err := repo.HasCommit(ctx, start); err != nil {
		return "", err
	} else if !has { // another machine has sent it
		start = l.Head
	}
	files, err := repo.TreeOf(ctx, l.Commit)
	if err != nil {
		return "", err
	}
	if began, err := repo.TreeOf(ctx, start); err != nil {
		return "", err
	} else if began == files {
		return "", repo.MoveRef(ctx, repo.Top(), ref, l.Commit, "", "sluice: nothing was changed")
	}
	commit, err := repo.CommitTree(ctx, files, fmt.Sprintf("%s: what launch %s of %s.%d returned after it was "+
		"replaced\n", l.Run, l.K, l.Step, l.N), start, l.Commit)
	if err != nil {
		return "", err
	}
	return ref, repo.Keep(ctx, ref, commit)
}

// LateOf returns what is kept of a run, by name; of Returned it has only Commit, that of the ref.
func LateOf(ctx context.Context, repo *git.Repo, run string) (all []Late, err error) {
	kept, err := repo.OwnBelow(ctx, lateRefs, run)
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		parts := strings.Split(strings.TrimPrefix(name, run+"/"), ".") // a step's id can have dots
		last := len(parts) - 1
		if last < 2 {
			continue // it is not ours
		}
		l := Late{Run: run, Step: strings.Join(parts[:last-1], "."), K: parts[last], Returned: Returned{Commit: kept[name]}}
		var no error
		if l.N, no = strconv.Atoi(parts[last-1]); no == nil && !strings.ContainsFunc(name, oddIn) {
			all = append(all, l)
		}
	}
	return all, err
}

// oddIn reports what no name of ours has, and a shell may take for something else.
func oddIn(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("/._-+", r)
}
