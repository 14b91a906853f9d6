package layout

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
			if of, ok := strings.CutPrefix(e.Name(), workflow+"-"); ok {
				if k, err := strconv.Atoi(of); err == nil && strconv.Itoa(k) == of && k < maxNumber {
					n = max(n, k)
				}
			}
		}
	}
	return n
}
