package git

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxPointer is the size that a Git LFS pointer must stay below (its specification).
	maxPointer = 1024
	// pointerSpec begins the versions of its specification.
	pointerSpec = "https://git-lfs.github.com/spec/"
)

// pointerLine returns the lines of a pointer after its version, in order; lines of extensions come
// before them.
func pointerLine() []*regexp.Regexp {
	return []*regexp.Regexp{regexp.MustCompile(`^oid sha256:[0-9a-fA-F]{64}$`), regexp.MustCompile(`^size [0-9]+$`)}
}

// isPointer reports whether git-lfs would read a file as a pointer. It reads more than it writes,
// such as Windows line endings and older version names. For an unknown version only the first line
// counts: a missed pointer would be a file that is not sent.
func isPointer(text []byte) bool {
	lines := slices.DeleteFunc(strings.Split(strings.ReplaceAll(strings.TrimSpace(string(text)), "\r\n", "\n"),
		"\n"), func(l string) bool { return l == "" })
	if len(text) >= maxPointer || len(lines) == 0 {
		return false
	}
	version, has := strings.CutPrefix(lines[0], "version ")
	if known := []string{pointerSpec + "v1", "https://hawser.github.com/spec/v1",
		"http://git-media.io/v/2"}; !has || !slices.Contains(known, version) {
		return has && strings.HasPrefix(version, pointerSpec)
	}
	lines = slices.DeleteFunc(lines[1:], func(l string) bool { return strings.HasPrefix(l, "ext-") })
	return slices.EqualFunc(lines, pointerLine(),
		func(l string, want *regexp.Regexp) bool { return want.MatchString(l) })
}

// errFound ends a search.
var errFound = errors.New("found")

// NamesLFS reports whether the commits from base to tip add a Git LFS pointer.
func (r *objects) NamesLFS(ctx context.Context, base, tip string) (bool, error) {
	for _, sha := range []string{base, tip} {
		if err := checkSHA(sha); err != nil {
			return false, err
		}
	}
	out, err := r.shadow(ctx, call{args: []string{"rev-list", "--objects", "--no-object-names", tip,
		"^" + base}, limit: wholeIndex, timeout: treeTime})
	if err != nil {
		return false, err
	}
	out, err = r.shadow(ctx, call{args: []string{"cat-file",
		"--batch-check=%(objectname) %(objecttype) %(objectsize)"}, stdin: bytes.NewReader(out), limit: wholeIndex,
		timeout: treeTime})
	if err != nil {
		return false, err
	}
	var small []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" {
			continue
		}
		if size, err := strconv.Atoi(f[2]); err == nil && size < maxPointer {
			small = append(small, f[0])
		}
	}
	err = r.eachObject(ctx, "blob", small, treeTime, func(_ int, body []byte) error {
		if isPointer(body) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}
