package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sluice/internal/git"
)

// Limits on looks at a folder while its launch runs.
const (
	maxPrinted = 20_000   // files of refs
	maxLog     = 64 << 20 // bytes of commits
)

// Print changes whenever a ref of the folder does. It reads no ref; too many files count as a
// change each time.
func (p Private) Print() string {
	sum, n := sha256.New(), 0
	add := func(path string) error {
		if n++; n > maxPrinted {
			return fs.SkipAll
		}
		if info, err := os.Lstat(path); err == nil {
			fmt.Fprintf(sum, "%s %d %d %v\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return nil
	}
	for _, name := range []string{"HEAD", "packed-refs", filepath.Join("logs", "HEAD")} {
		_ = add(filepath.Join(p.Dir, name))
	}
	_ = filepath.WalkDir(filepath.Join(p.Dir, "refs"), func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return add(path)
	})
	if n > maxPrinted {
		return ""
	}
	return string(sum.Sum(nil))
}

// Commits lists commits of a running launch, newest first: those on HEAD and branch or, with all,
// on any ref, but not reachable from before. cut reports that there are more than most.
func (p Private) Commits(ctx context.Context, inside Inside, branch string, all bool, before []string,
	most int) (list []git.Commit, cut bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	args := []string{"rev-list", "--header", "--topo-order", "--ignore-missing", "--max-count=" + strconv.Itoa(most+1)}
	if all {
		args = append(args, "--all")
	} else if args = append(args, "HEAD"); branch != "" {
		args = append(args, "--glob="+oneRef(branch))
	}
	var in strings.Builder
	for _, sha := range append([]string{p.Base}, before...) {
		if git.IsName(sha) {
			in.WriteString("^" + sha + "\n")
		}
	}
	out := &bounded{most: maxLog}
	err = inside(ctx, append(args, "--stdin"), strings.NewReader(in.String()), out)
	err = timely(ctx, err)
	if _, ofGit := errors.AsType[*git.CommandError](err); ofGit {
		return nil, false, nil // HEAD has no commit, or the folder is damaged: its commits count once they can be read
	}
	if err != nil {
		return nil, false, err
	}
	for record := range bytes.SplitSeq(out.kept.Bytes(), []byte{0}) {
		c, ok := git.ParseListed(string(record))
		if !ok {
			continue
		}
		if len(list) == most {
			return list, true, nil
		}
		list = append(list, c)
	}
	return list, false, nil
}

// oneRef returns a pattern that matches exactly one ref: git takes a name without special
// characters for a folder.
func oneRef(ref string) string {
	last := len(ref) - 1
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`).Replace(ref[:last]) + "[" + ref[last:] + "]"
}
