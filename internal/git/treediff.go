package git

import (
	"context"
	"fmt"
	"strings"
)

// noMode is the mode of a side that does not have the path.
const noMode = "000000"

// gitlink is the mode of a submodule's commit.
const gitlink = "160000"

// Change is a path that two trees have differently. A mode of "000000" says that this side does not have it.
type Change struct {
	Path             string
	OldMode, NewMode string
	Old, New         string // object names
}

// Added reports whether only the new tree has the path.
func (c Change) Added() bool { return c.OldMode == noMode }

// Deleted reports whether only the old tree has the path.
func (c Change) Deleted() bool { return c.NewMode == noMode }

// Link reports whether the path is a submodule on either side: it has no file of this repo.
func (c Change) Link() bool { return c.OldMode == gitlink || c.NewMode == gitlink }

// TreeDiff returns what differs between two commits or trees, sorted by path; "" is the empty tree.
func (r *Repo) TreeDiff(ctx context.Context, from, to string) ([]Change, error) {
	for _, s := range []*string{&from, &to} {
		if *s == "" {
			*s = r.emptyTree()
		}
		if err := checkSHA(*s); err != nil {
			return nil, fmt.Errorf("compare commits: %w", err)
		}
	}
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", from, to}
	out, err := r.shadow(ctx, call{args: args, limit: listOutput, timeout: treeTime})
	if err != nil {
		return nil, fmt.Errorf("compare commits: %w", err)
	}
	return parseRaw(out)
}

// parseRaw reads what --raw -z prints: ":mode mode object object letter", NUL, a path, NUL.
func parseRaw(out []byte) ([]Change, error) {
	fields := names(out)
	var changes []Change
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("compare commits: git answered %.80q", fields[i])
		}
		changes = append(changes, Change{Path: fields[i+1], OldMode: f[0], NewMode: f[1], Old: f[2], New: f[3]})
	}
	return changes, nil
}

// IsAncestor reports whether the commit old is one that the commit tip is built on, or tip itself.
func (r *Repo) IsAncestor(ctx context.Context, old, tip string) (bool, error) {
	for _, sha := range []string{old, tip} {
		if err := checkSHA(sha); err != nil {
			return false, fmt.Errorf("compare histories: %w", err)
		}
	}
	out, err := r.shadow(ctx, call{args: []string{"rev-list", "--max-count=1", old, "^" + tip, "--"}, limit: smallOutput, timeout: callTime})
	if err != nil {
		return false, fmt.Errorf("compare histories: %w", err)
	}
	return len(out) == 0, nil
}

// Tip is where a ref is.
type Tip struct {
	SHA      string // "" = the ref does not exist
	Symbolic string // the ref that it stands for; "" = it is a ref of its own
}

// TipOf returns where a ref is, by its full name.
func (r *Repo) TipOf(ctx context.Context, ref string) (Tip, error) {
	if err := r.checkRef(ctx, ref); err != nil {
		return Tip{}, err
	}
	out, err := r.inRepo(ctx, r.common, r.top, call{
		args:  []string{"for-each-ref", "--format=%(objectname) %(refname) %(symref)", ref},
		limit: listOutput, timeout: callTime,
	})
	if err != nil {
		return Tip{}, fmt.Errorf("read %s: %w", ref, err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(f) == 3 && f[1] == ref {
			return Tip{SHA: f[0], Symbolic: f[2]}, checkSHA(f[0])
		}
	}
	return Tip{}, nil
}

// MoveRef has a ref name the commit to where it names from. "" stands for no ref: from makes it, to removes it. No hook runs. The note is for the
// reflog, whose entry is made in the checkout at top.
func (r *Repo) MoveRef(ctx context.Context, top, ref, from, to, note string) error {
	if err := r.checkRef(ctx, ref); err != nil {
		return err
	}
	for _, sha := range []string{from, to} {
		if err := checkSHA(sha); err != nil && sha != "" {
			return fmt.Errorf("move %s: %w", ref, err)
		}
	}
	args := []string{"update-ref", "--no-deref", "-m", note, ref, to, from}
	switch {
	case to == "":
		args = []string{"update-ref", "--no-deref", "-m", note, "-d", ref, from}
	case from == "":
		args[len(args)-1] = strings.Repeat("0", len(to))
	}
	gitDir, own, err := r.gitDirOf(top)
	if err != nil {
		return err
	}
	c := call{args: args, env: ourIdentity(), limit: smallOutput, timeout: callTime}
	if _, err := r.inRepo(ctx, gitDir, own, c); err != nil {
		return fmt.Errorf("move %s: %w", ref, err)
	}
	return settle(r.common)
}
