package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
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

// OwnFolders are those of .workflow/ in which sluice itself and the signals leave their files: they are no work.
func OwnFolders() []string { return append(Uncommitted(), "audit") }

// Uncommitted are those of OwnFolders that no work may bring in a commit: people's answers lie there, and what sluice
// goes by. The audit is for people to commit.
func Uncommitted() []string { return []string{"signals", "runs", "retry-context"} }

// IsUncommitted reports whether a file is in one of them, or in place of one, below any root, to a file system that
// ignores case.
func IsUncommitted(file string) bool {
	parts := strings.Split(file, "/")
	for i, part := range parts[1:] {
		in := func(folder string) bool { return strings.EqualFold(part, folder) }
		if strings.EqualFold(parts[i], WorkflowDir) && slices.ContainsFunc(Uncommitted(), in) {
			return true
		}
	}
	return false
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
