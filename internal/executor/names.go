package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
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

// ownFolders are those of .workflow/ in which sluice itself and the signals leave their files: they are no work.
func ownFolders() []string { return []string{"signals", "runs", "retry-context", "audit"} }
