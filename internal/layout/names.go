package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// HexSum is the SHA-256 of data, in hex.
func HexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// NumberOf takes a run's id apart: <workflow>-<n>.
func NumberOf(run string) (workflow string, n int) {
	i := strings.LastIndexByte(run, '-')
	if i < 0 {
		return run, 0
	}
	n, err := strconv.Atoi(run[i+1:])
	if err != nil {
		return run, 0
	}
	return run[:i], n
}

// maxNumber bounds what the name of a folder says: anybody can make one.
const maxNumber = 1_000_000

// Newest returns the highest number of a run of the workflow whose folder or worktree is in the repo; 0 =
// none. A new record of a moved repo does not know these runs.
func Newest(root, workflow string) (n int) {
	for _, at := range []string{RunsDir, WorkflowDir + "/worktrees"} {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(at)))
		if err != nil {
			continue // there is none
		}
		for _, e := range entries {
			if _, k := NumberOf(e.Name()); k < maxNumber && e.Name() == fmt.Sprintf("%s-%d", workflow, k) {
				n = max(n, k)
			}
		}
	}
	return n
}

// IsDir reports whether a folder, and no link to one, is at the path.
func IsDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// ShortPath returns a path relative to the current folder if that is shorter.
func ShortPath(file string) string {
	here, err := os.Getwd()
	if err != nil {
		return file
	}
	if real, err := filepath.EvalSymlinks(here); err == nil {
		here = real
	}
	rel, err := filepath.Rel(here, file)
	if err != nil || len(rel) >= len(file) || !filepath.IsAbs(file) {
		return file
	}
	return rel
}

// IsFile reports whether a regular file, or a link to one, is at the path.
func IsFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
