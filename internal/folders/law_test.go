package folders

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/git"
	"sluice/internal/settings"
	"sluice/tools/conform"
)

// TestGuardedUnknown: if a command's programs are unknown, a person is asked about all changes but
// declared outputs, unless `protect` names something.
func TestGuardedUnknown(t *testing.T) {
	conform.Rule(t, "9-one-tree resolving", "every program that a gate, criterion, hook or **role's command** starts from the repo, found by resolving the argument list as the shell would where it is simple; where it is not, `validate` says so and a person is asked")
	spec := &engine.Spec{Gates: []*engine.Gate{{ID: "G-1", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: `sh "$SCRIPT"`}}}}}
	at := gates.Bases{Root: "/r", Top: "/r", Dir: "/r"}
	got := strings.Join(gates.LawOf(spec, nil, nil, nil, at).Guarded([]string{"out.txt", "src/a.go", "src/b.go"}, []string{"./out.txt"}), "\n")
	if !strings.HasPrefix(got, "src/a.go and 1 more (") || !strings.Contains(got, "gate G-1: ") {
		t.Errorf("%q", got)
	}
	if got := gates.LawOf(spec, nil, nil, nil, at).Guarded([]string{"out.txt"}, []string{"out.txt"}); len(got) > 0 {
		t.Errorf("declared outputs alone: %q", got)
	}
	spec.Steps = []*engine.Step{{ID: "A", Setup: &engine.Setup{Run: engine.Command{Shell: "npm ci"}, Files: []string{"package-lock.json"}}}}
	if got := gates.LawOf(spec, nil, nil, nil, at).Guarded([]string{"judge.sh"}, nil); len(got) != 1 {
		t.Errorf("beside a setup with files: %q", got)
	}
	agent := &engine.Spec{Steps: []*engine.Step{{Agent: &engine.Agent{Type: "writer"}}}}
	set := settings.Settings{Agents: map[string]settings.Agent{"a": {Command: []string{"sh", "-c", "$X"}}, "b": {Command: []string{"./b"}}}, Roles: map[string]settings.Role{"writer": {Agent: []string{"a"}}}}
	for used, want := range map[string]int{"a": 1, "b": 0} {
		set.Roles["writer"] = settings.Role{Agent: []string{used}}
		if got := gates.LawOf(agent, agentsOf(set, agent), nil, nil, at).Guarded([]string{"src/a.go"}, nil); len(got) != want {
			t.Errorf("with the agent %s: %q", used, got)
		}
	}
	spec.Protect = []string{"ci/**"}
	if got := gates.LawOf(spec, nil, nil, nil, at).Guarded([]string{"src/a.go", "ci/x"}, nil); !slices.Equal(got, []string{"ci/x"}) {
		t.Errorf("with protect: %q", got)
	}
}

// TestContents: a file's new content is recorded if its content alone decides, not if it leads
// elsewhere.
func TestContents(t *testing.T) {
	conform.Rule(t, "1-language protect passed", "links, and what is not named, are asked about each time")
	const file, link, gone = "100644", git.ModeLink, "000000"
	as := contents([]git.Change{
		{Path: "test/a", Old: file, New: file, NewID: "1"}, {Path: "test/run", Old: file, New: "100755", NewID: "1"}, {Path: "test/gone", Old: file, New: gone, NewID: "0"},
		{Path: "test/link", Old: gone, New: link, NewID: "2"}, {Path: "test/dir", Old: gone, New: link, NewID: "3"}, {Path: "test/dir/x", Old: file, New: gone, NewID: "0"},
		{Path: "test/sub", Old: gone, New: git.ModeSubmodule, NewID: "4"},
	})
	if want := map[string]string{"test/a": "100644 1", "test/run": "100755 1", "test/gone": "000000 0"}; !maps.Equal(as, want) {
		t.Errorf("%q", as)
	}
}

// TestFilesOfRoleArgs: what the arguments of a role name in the repo says what its agent may do: it is law.
func TestFilesOfRoleArgs(t *testing.T) {
	spec := &engine.Spec{Steps: []*engine.Step{{Agent: &engine.Agent{Type: "writer"}}}}
	at := gates.Bases{Root: "/r", Top: "/r/wt", Dir: "/r/wt"}
	s := settings.Default()
	s.Roles["writer"] = settings.Role{Agent: []string{"claude"}, Args: []string{"--mcp-config", "tools/mcp.json", "--settings=./agents/settings.json", "--plugin-dir", "plugins", "--add-dir", "."}}
	s.Roles["other"] = settings.Role{Agent: []string{"claude"}, Args: []string{"--settings", "other.json"}}
	got := gates.LawOf(spec, agentsOf(s, spec), nil, nil, at).Guarded([]string{"a.go", "tools/mcp.json", "agents/settings.json", "plugins/x/hook.sh", "other.json"}, []string{"tools/mcp.json"})
	if !slices.Equal(got, []string{"tools/mcp.json", "agents/settings.json", "plugins/x/hook.sh"}) {
		t.Errorf("%q", got)
	}
}

// TestPromptFilesAreLaw: the file that the settings name as a role's prompt is law, wherever it is.
func TestPromptFilesAreLaw(t *testing.T) {
	spec := &engine.Spec{Steps: []*engine.Step{{Agent: &engine.Agent{Type: "writer"}}}, Gates: []*engine.Gate{{Reviewer: engine.Reviewer{AgentType: "reviewer"}}}}
	s := settings.Default()
	s.Roles["reviewer"] = settings.Role{Agent: []string{"claude"}, PromptFile: "docs/reviewer.md"}
	s.Roles["other"] = settings.Role{Agent: []string{"claude"}, PromptFile: "docs/other.md"}
	l := gates.LawOf(spec, agentsOf(s, spec), nil, nil, gates.Bases{Root: "/r", Top: "/r/wt", Dir: "/r/wt"})
	got := l.Guarded(strings.Fields("docs/a.md docs/reviewer.md .workflow/docs/reviewer.md docs/other.md"), []string{"docs/reviewer.md"})
	if want := strings.Fields("docs/reviewer.md .workflow/docs/reviewer.md"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFilesOfPrograms: what one program alone reads by itself is law for the runs in which it works or judges, and so is
// what its command names.
func TestFilesOfPrograms(t *testing.T) {
	spec := &engine.Spec{Steps: []*engine.Step{{Agent: &engine.Agent{Type: "writer"}}}, Gates: []*engine.Gate{{Reviewer: engine.Reviewer{AgentType: "reviewer"}}}}
	s := settings.Default()
	s.Agents["google"] = settings.Agent{Command: []string{"/usr/bin/gemini", "-m", "gemini-2.5-flash", "--yolo"}}
	s.Agents["strict"] = settings.Agent{Command: []string{"claude", "exec", "--settings", "ci/strict.json", "--mcp-config=./mcp.json", "--add-dir", "./src"}}
	files := strings.Fields("CONTEXT.md src/CONTEXT.md src/MY-CONTEXT.md .env src/.env src/x.env ci/strict.json mcp.json exec/a.go")
	for reviewer, want := range map[string]string{"claude": "", "opencode": "CONTEXT.md src/CONTEXT.md", "google": ".env src/.env", "strict": "ci/strict.json mcp.json"} {
		s.Roles["writer"], s.Roles["reviewer"] = settings.Role{Agent: []string{"claude"}}, settings.Role{Agent: []string{reviewer}}
		l := gates.LawOf(spec, agentsOf(s, spec), nil, nil, gates.Bases{Root: "/r", Top: "/r/wt", Dir: "/r/wt"})
		if got := strings.Join(l.Guarded(files, nil), " "); got != want {
			t.Errorf("%s: %q, want %q", reviewer, got, want)
		}
	}
}
