package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// numberOf takes a run's id apart: <workflow>-<n>.
func numberOf(run string) (workflow string, n int) {
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

// bare is an error's cause without the path, which the message names itself.
func bare(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// ownFile says that the file (below the checkout's top level) is of what sluice itself and the signals leave in
// .workflow/: it is no work.
func ownFile(root, top, file string) bool {
	abs := filepath.Join(top, filepath.FromSlash(file))
	for _, base := range []string{root, top} {
		rel, err := filepath.Rel(base, abs)
		if err != nil {
			continue
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		if len(parts) > 2 && parts[0] == ".workflow" && slices.Contains([]string{"signals", "runs", "retry-context", "audit"}, parts[1]) {
			return true
		}
	}
	return strings.HasSuffix(file, "/") // a repo of its own: a worktree of another branch
}
