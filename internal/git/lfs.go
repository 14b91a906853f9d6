package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
)

const (
	// maxPointer is how long a pointer of git LFS is at most (its specification: less than 1,024 bytes).
	maxPointer = 1024
	// pointerBegins is how it begins.
	pointerBegins = "version https://git-lfs.github.com/spec/"
)

// errFound ends a search.
var errFound = errors.New("found")

// NamesLFS reports whether the commits from base to tip bring a pointer of git LFS.
func (r *Repo) NamesLFS(ctx context.Context, base, tip string) (bool, error) {
	for _, sha := range []string{base, tip} {
		if err := checkSHA(sha); err != nil {
			return false, err
		}
	}
	out, err := r.shadow(ctx, call{args: []string{"rev-list", "--objects", "--no-object-names", tip, "^" + base}, limit: wholeIndex, timeout: treeTime})
	if err != nil {
		return false, err
	}
	out, err = r.shadow(ctx, call{args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"}, stdin: bytes.NewReader(out), limit: wholeIndex, timeout: treeTime})
	if err != nil {
		return false, err
	}
	var small []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" {
			continue
		}
		if size, err := strconv.Atoi(f[2]); err == nil && size > len(pointerBegins) && size < maxPointer {
			small = append(small, f[0])
		}
	}
	if len(small) == 0 {
		return false, nil
	}
	c := call{args: []string{"cat-file", "--batch"}, env: r.inShadow(), stdin: strings.NewReader(strings.Join(small, "\n") + "\n"), limit: wholeIndex, timeout: treeTime}
	err = r.stream(ctx, c, func(in io.Reader) error {
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadString('\n')
			if strings.HasPrefix(line, pointerBegins) {
				return errFound
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}
