package git

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
)

// FollowIndex moves the entries of an index file from the commit from to the commit to. Entries
// that differ from from, which a person staged or added, stay. gitDir has the shared part of a
// split index; "" means an empty commit.
func (r *Repo) FollowIndex(ctx context.Context, gitDir, index, from, to string) error {
	from, to = cmp.Or(from, r.emptyTree()), cmp.Or(to, r.emptyTree())
	if err := checkSHA(from, to); err != nil || from == to {
		return err
	}
	if err := r.keepShadow(ctx); err != nil {
		return err
	}
	env := []string{"GIT_DIR=" + r.shadowDir(), "GIT_INDEX_FILE=" + index}
	shared, err := sharedIndexes(gitDir)
	if err != nil {
		return err
	}
	if len(shared) > 0 {
		env[0] = "GIT_DIR=" + gitDir
	}
	in := func(args []string, stdin io.Reader) ([]byte, error) {
		return r.shadow(ctx, call{args: args, env: env, stdin: stdin, limit: wholeIndex, timeout: treeTime})
	}
	changed, err := r.ChangesBetween(ctx, from, to)
	if err != nil {
		return err
	}
	out, err := in(append([]string{"diff-index", "--cached"}, asChanges(from)...), nil)
	if err != nil {
		return err
	}
	staged, err := changesIn(out)
	other := map[string]bool{}
	for _, c := range staged {
		other[c.Path] = true
	}
	lines := indexLines(slices.DeleteFunc(changed, func(c Change) bool { return other[c.Path] }))
	if err != nil || lines == "" {
		return err
	}
	_, err = in([]string{"update-index", "-z", "--index-info"}, strings.NewReader(lines))
	return err
}

// indexLines returns the lines for update-index of the new side of changes. Deletions come first, because a folder may
// replace a file, or a file a folder.
func indexLines(changes []Change) string {
	var gone, there strings.Builder
	for _, c := range changes {
		to := &there
		if c.Deleted() {
			to = &gone
		}
		to.WriteString(indexLine(c.New, c.NewID, c.Path))
	}
	return gone.String() + there.String()
}

// copyFile replaces a copy of a regular file and keeps its time, which tells git which index
// entries may be stale. It skips a missing file.
func copyFile(from, to string) error {
	if err := ignoreGone(os.Remove(to)); err != nil {
		return err
	}
	in, was, err := atomicfile.Open(filepath.Dir(from), filepath.Base(from))
	if err != nil {
		return ignoreGone(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateOwn)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chtimes(to, was.ModTime, was.ModTime))
}
