package executor

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// stateWrites are the folders right below .workflow/ in which a step's declared outputs lie: the step may write there. What
// others go by is nobody's to declare. A folder in one of them is not shown by itself: whoever may write around it could
// put a link in its place, which would be followed when it is mounted.
func stateWrites(outs []string) ([]string, error) {
	var dirs []string
	for _, out := range outs {
		if !isState(out) {
			continue
		}
		dir := path.Dir(path.Clean(filepath.ToSlash(out)))
		parts := strings.Split(dir, "/")
		if len(parts) < 2 || slices.Contains([]string{"specs", "audit", "signals", "prompts", "schemas", "retry-context", "runs"}, strings.ToLower(parts[1])) && !ownFiles(parts) {
			return nil, refused("output %s: a step that is held by a sandbox cannot write there: name a file below .workflow/runs/${{run}}/files/ or a folder of its own, such as .workflow/backlog/", out)
		}
		dir = strings.Join(parts[:2], "/")
		if ownFiles(parts) {
			dir = strings.Join(parts[:4], "/")
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// ownFiles says that a path is in runs/<run>/files.
func ownFiles(parts []string) bool {
	return len(parts) >= 4 && parts[1] == "runs" && parts[3] == "files"
}
