package git

import (
	"context"
	"fmt"
	"strings"
)

// Tip is where a ref is.
type Tip struct {
	SHA      string // "" = the ref does not exist
	Symbolic string // the ref that it stands for; "" = it is a ref of its own
}

// TipOf returns where a ref is, by its full name.
func (r *Repo) TipOf(ctx context.Context, ref string) (Tip, error) {
	if err := checkRef(ref); err != nil {
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

// Detached is the ref of a checkout that is on no branch.
const Detached = "HEAD"

// TipIn is TipOf; of Detached it is that of the checkout at top, which stands for a branch where it is on one.
func (r *Repo) TipIn(ctx context.Context, top, ref string) (Tip, error) {
	if ref != Detached {
		return r.TipOf(ctx, ref)
	}
	n, err := r.NamedBy(ctx, top)
	return Tip{SHA: n.Head, Symbolic: n.Branch}, err
}

// MoveRef has a ref name the commit to where it names from. "" stands for no ref: from makes it, to removes it. No hook runs. The note is for the
// reflog, whose entry is made in the checkout at top.
func (r *Repo) MoveRef(ctx context.Context, top, ref, from, to, note string) error {
	if err := checkRef(ref); err != nil && ref != Detached {
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
