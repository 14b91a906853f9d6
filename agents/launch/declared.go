package launch

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/job"
	"sluice/internal/layout"
)

// StateWrites returns the folders below .workflow/ of a step's declared outputs: the step may write
// there. Folders that others rely on cannot be declared.
func StateWrites(outs []string) ([]string, error) {
	var dirs []string
	for _, out := range outs {
		if !layout.IsState(out) {
			continue
		}
		dir := path.Dir(path.Clean(filepath.ToSlash(out)))
		parts := strings.Split(dir, "/")
		if len(parts) < 2 || layout.Reserved(filepath.ToSlash(out)) != "" ||
			strings.EqualFold(parts[1], "runs") && !ownFiles(parts) {
			return nil, job.Refused("output %s: a step in a sandbox cannot write there: name a file below "+
				".workflow/runs/${{run}}/files/ or a folder of its own, such as .workflow/backlog/", out)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

func ownFiles(parts []string) bool {
	return len(parts) >= 4 && parts[1] == "runs" && parts[3] == layout.FilesDir
}

// writable returns the folder directly below .workflow/ that contains an output. Only that is
// mounted: a deeper one could be replaced by a link, which mounting follows.
func writable(dir string) string {
	parts := strings.Split(dir, "/")
	if ownFiles(parts) {
		return strings.Join(parts[:4], "/")
	}
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// MakeOwn creates the folders of a held step's outputs and returns those to show.
func (x *Cage) MakeOwn(dirs []string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		top := writable(dir)
		if err := x.MakeBelow(top, 0o700); err != nil {
			return nil, job.Unready("%v", err)
		}
		at := x.Path(top)
		if root, err := os.OpenRoot(at); err == nil {
			_ = root.MkdirAll(strings.TrimPrefix(strings.TrimPrefix(dir, top), "/"), 0o700)
			_ = root.Close()
		}
		if !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out, nil
}
