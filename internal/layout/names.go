package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
)

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
func OwnFolders() []string { return []string{"signals", "runs", "retry-context", "audit"} }

// IsDir reports whether a folder, and no link to one, is at the path.
func IsDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
