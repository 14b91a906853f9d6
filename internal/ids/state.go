package ids

import (
	"path"
	"slices"
	"strings"
)

// Reserved returns the part of .workflow/ in which a path lies where what agents say, or are let write, may not get: it
// decides, starts or records something. "" = the path is free: elsewhere, or in a folder of its own such as
// .workflow/backlog/, or among the files of a run.
func Reserved(p string) string {
	parts := strings.Split(strings.ToLower(path.Clean(p)), "/")
	if parts[0] != ".workflow" || len(parts) < 2 {
		return ""
	}
	own := strings.Join(parts[:2], "/")
	switch parts[1] {
	case "specs", "prompts", "schemas", "stubs", "agents", "scripts", // what a run is made of
		"config.yaml", "gates.yaml", "mcp.json", "workflow.schema.json", ".gitignore", ".gitattributes",
		"signals", "audit", "retry-context", "worktrees": // what sluice keeps
		return own
	case "runs": // free are runs/RUN/files/…, and files in runs and runs/RUN, but for those that sluice puts there
		if len(parts) > 4 && parts[3] == "files" || len(parts) == 3 ||
			len(parts) == 4 && !slices.Contains([]string{"spec.yaml", "task.json", "events.jsonl"}, parts[3]) {
			return ""
		}
		return own
	}
	return ""
}
