package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxStream limits a patch that is read as a stream.
const maxStream = 16 << 30

// StreamPatch hands read the differences between two commits as Between has them, but as a stream, and
// with whole object names; from "" is the empty tree. What read leaves is thrown away, so that a fault
// of git's is known; if it returns an error, git is stopped, and the error wraps it.
func StreamPatch(ctx context.Context, r *Repo, from, to string, look Look, read func(io.Reader) error) error {
	c, err := r.between(from, to, look, maxStream, "--full-index")
	if err == nil {
		err = r.streamShadow(ctx, c, read)
	}
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	return nil
}

// BlobStart returns the first most bytes of a blob, by its whole object name.
func BlobStart(ctx context.Context, r *Repo, blob string, most int64) ([]byte, error) {
	if err := checkSHA(blob); err != nil {
		return nil, err
	}
	text, err := r.shadow(ctx, call{args: []string{"cat-file", "blob", blob}, limit: most})
	if errors.Is(err, ErrOutput) {
		return text[:most], nil
	}
	return text, err
}

// PackArgs returns a git that prints a pack of what its input names: commits, a line each, and with a
// ^ those whose objects the reader has.
func PackArgs() []string {
	return []string{"pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "--quiet", "--threads=1"}
}

// Pack writes a pack of a commit and its ancestors without those of the bases; base "" is none. A
// Quarantine reads it in a repo that has the bases.
func Pack(ctx context.Context, r *Repo, to io.Writer, most int64, tip string, bases ...string) error {
	in, err := span(tip, bases...)
	if err == nil {
		c := call{args: PackArgs(), stdin: strings.NewReader(in), limit: most, timeout: treeTime}
		err = r.streamShadow(ctx, c, func(out io.Reader) error { _, err := io.Copy(to, out); return err })
	}
	if err != nil {
		return fmt.Errorf("pack of %.12s: %w", tip, err)
	}
	return nil
}
