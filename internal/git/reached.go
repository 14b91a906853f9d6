package git

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
)

// errFound ends a search.
var errFound = errors.New("found")

// AnySmall reports whether the commits from base to tip add a file of less than most bytes, at most 1 MiB, for
// which is reports true.
func (r *objects) AnySmall(ctx context.Context, base, tip string, most int, is func(text []byte) bool) (bool, error) {
	out, err := r.reached(ctx, tip, []string{base}, []string{"--objects", "--no-object-names"},
		call{args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"}})
	if err != nil {
		return false, err
	}
	var small []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" {
			continue
		}
		if size, err := strconv.Atoi(f[2]); err == nil && size < most {
			small = append(small, f[0])
		}
	}
	err = r.eachObject(ctx, "blob", small, treeTime, func(_ int, body []byte) error {
		if is(body) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// Added lists the files that some commit of tip without those of the bases adds or changes, also those
// that are gone in tip, if their paths match a pattern (gitglossary(7), pathspec).
func (r *objects) Added(ctx context.Context, pattern, tip string, bases ...string) ([]string, error) {
	out, err := r.reached(ctx, tip, bases, nil, call{args: []string{"diff-tree", "--stdin", "--root", "-m", "-r", "-z",
		"--name-only", "--no-renames", "--diff-filter=d", "--no-commit-id", "--", pattern},
		env: []string{"GIT_LITERAL_PATHSPECS=0"}})
	return names(out), err
}

// reached has another git read what rev-list prints of tip without what the bases reach.
func (r *objects) reached(ctx context.Context, tip string, bases, switches []string, c call) ([]byte, error) {
	in, err := span(tip, bases...)
	if err != nil {
		return nil, err
	}
	list, err := r.shadow(ctx, call{args: append([]string{"rev-list", "--stdin"}, switches...),
		stdin: strings.NewReader(in), limit: wholeIndex, timeout: treeTime})
	if err != nil {
		return nil, err
	}
	c.stdin, c.limit, c.timeout = bytes.NewReader(list), wholeIndex, treeTime
	return r.shadow(ctx, c)
}
