package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/personal"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// Limits of a patch, in bytes.
const (
	maxDiff = 64 << 10 // within a screen
	// MaxPatch is the most that is printed or reviewed.
	MaxPatch = 4 << 20
)

// Diff is which changes are shown, and how.
type Diff struct {
	Since bool     // those since the attempt before
	Paths []string // of these files and folders alone; none = all
	Words bool     // words marked within lines
	Most  int64    // bytes; 0 = as much as fits a screen
	Stay  bool     // in a pager that stays until the person leaves it
}

// Patch returns the changes that the gate's round judges, or those of an attempt that is still at
// work; none before its first attempt. cut reports that there is more.
func Patch(ctx context.Context, repo *git.Repo, sh *Shown, how Diff) (patch []byte, cut bool, err error) {
	if sh.Attempt == nil && !how.Since {
		return nil, false, nil
	}
	var look git.Look
	for _, p := range how.Paths {
		if p = path.Clean(p); p != "." {
			look.Paths = append(look.Paths, p)
		}
	}
	most := cmp.Or(how.Most, maxDiff)
	from, to, err := sh.Ends(ctx, repo, how.Since)
	switch {
	case err != nil:
	case to != "":
		patch, cut, err = repo.Between(ctx, from, to, most, look)
	default:
		if patch, cut, err = repo.Diff(ctx, sh.tree, from, most, look); errors.Is(err, fs.ErrNotExist) {
			err = fault.Failed("look on the machine where it was done: `sluice status` names the one that leads",
				"the work of %s is not on this machine", sh.Step)
		}
	}
	if cut { // a part of a line says something else than the whole
		patch = patch[:strings.LastIndexByte(string(patch), '\n')+1]
	}
	return patch, cut, err
}

// Ends returns the commits between which the changes are, or with since those of the last two
// attempts; no `to` while the attempt is at work.
func (sh *Shown) Ends(ctx context.Context, repo *git.Repo, since bool) (from, to string, err error) {
	if since {
		shas, err := lastTwo(ctx, repo, sh)
		return shas[0], shas[1], err
	}
	return sh.base, cmp.Or(sh.Taken, sh.left), nil
}

// lastTwo returns the commits that the attempt and the one before ended with.
func lastTwo(ctx context.Context, repo *git.Repo, sh *Shown) (shas [2]string, err error) {
	if sh.Attempt == nil || sh.Attempt.N < 2 {
		return shas, fault.Failed("--diff shows all that it changed",
			"there is no attempt of %s before this one", sh.Step)
	}
	for i := range shas {
		name := fmt.Sprintf("%s/%s.%d", sh.Run, sh.Step, sh.Attempt.N-1+i)
		if shas[i], _, err = repo.Kept(ctx, name); err != nil {
			return shas, NotKept(name, err)
		}
	}
	return shas, nil
}

// PrintDiff prints changes as a patch, in a terminal through the person's pager.
func PrintDiff(ctx context.Context, con *console.Console, from *workspace.Workspace, sh *Shown, how Diff) error {
	repo, err := from.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	patch, cut, err := Patch(ctx, repo, sh, how)
	if err != nil {
		return err
	}
	if len(patch) == 0 && len(how.Paths) > 0 && sh.Attempt != nil {
		advice := "name a file or a folder as `sluice show` lists it, from the top of the repo"
		return fault.Failed(advice, "nothing has changed in %s", text.Line(strings.Join(how.Paths, ", ")))
	}
	page := personal.Stay
	if !how.Stay {
		con.Print("")
		page = personal.Page
	}
	return page(ctx, con, func(con *console.Console) {
		switch {
		case sh.Attempt == nil:
			con.Print("%s", con.Paint(console.Dim, "step "+text.Line(sh.Step)+" has not begun"))
		case len(patch) == 0 && how.Since:
			con.Print("%s", con.Paint(console.Dim, "nothing changed since attempt "+fmt.Sprint(sh.Attempt.N-1)))
		case len(patch) == 0:
			con.Print("%s", con.Paint(console.Dim, "nothing changed"))
		default:
			PrintPatch(con, patch, how.Words)
		}
		if cut {
			con.Note("%s", sh.more(how.Since))
		}
	})
}

// more tells how to see changes that were cut.
func (sh *Shown) more(since bool) string {
	verb := "diff"
	if since {
		verb = "checkout"
	}
	return fmt.Sprintf("there is more: sluice attempt %s %s %s.%d", verb, sh.Run, sh.Step, sh.Attempt.N)
}

// NotKept explains why there is nothing of an attempt to look at.
func NotKept(name string, err error) error {
	if errors.Is(err, git.ErrNotKept) {
		return fault.Failed("sluice keeps only files that an agent left in a git checkout, until sluice clean",
			"nothing is kept of %s", name)
	}
	return err
}
