package layout

import (
	"path"
	"slices"
	"strings"
)

// Uncommitted are the folders of .workflow/ that no work may bring in a commit: people's answers lie there, and what
// sluice goes by.
func Uncommitted() []string { return []string{"signals", "runs", "retry-context"} }

// OwnFolders are those and the audit, which is for people to commit: in them sluice itself and the signals leave their
// files, which are no work.
func OwnFolders() []string { return append(Uncommitted(), "audit") }

// parts returns the names in .workflow/ that define a run.
func parts() []string {
	return []string{"specs", "prompts", "schemas", "stubs", "agents", "scripts", "config.yaml", "gates.yaml", "mcp.json",
		"workflow.schema.json", ".gitignore", ".gitattributes"}
}

// IsUncommitted reports whether a file is in a folder of Uncommitted, or in place of one, below any root, to a file
// system that ignores case.
func IsUncommitted(file string) bool {
	names := strings.Split(file, "/")
	for i, name := range names[1:] {
		in := func(folder string) bool { return strings.EqualFold(name, folder) }
		if strings.EqualFold(names[i], WorkflowDir) && slices.ContainsFunc(Uncommitted(), in) {
			return true
		}
	}
	return false
}

// Reserved returns the part of .workflow/ in which a path lies where what agents say, or are let write, may not get: it
// decides, starts or records something. "" = the path is free: elsewhere, or in a folder of its own such as
// .workflow/backlog/, or among the files of a run.
func Reserved(p string) string {
	names := strings.Split(strings.ToLower(path.Clean(p)), "/")
	if names[0] != WorkflowDir || len(names) < 2 {
		return ""
	}
	switch name := names[1]; {
	case name == "runs" && freeInRuns(names):
		return ""
	case name == "worktrees", slices.Contains(parts(), name), slices.Contains(OwnFolders(), name):
		return WorkflowDir + "/" + name
	}
	return ""
}

// freeInRuns reports whether a path is in runs/RUN/files/, or a file in runs or runs/RUN that sluice
// does not put there.
func freeInRuns(names []string) bool {
	return len(names) > 4 && names[3] == FilesDir || len(names) == 3 ||
		len(names) == 4 && !slices.Contains([]string{"spec.yaml", TaskName, "events.jsonl"}, names[3])
}
