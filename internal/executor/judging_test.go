package executor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/conform"
	"sluice/internal/git"
	"sluice/internal/settings"
)

func TestGuarded(t *testing.T) {
	conform.Rule(t, "1-language protect", "what judges the work is protected without being named")
	argv := func(words ...string) *engine.Command {
		c := &engine.Command{}
		for _, w := range words {
			c.Argv = append(c.Argv, engine.Text{Source: w})
		}
		return c
	}
	spec := &engine.Spec{Protect: []string{"*.key"},
		Gates: []*engine.Gate{{Reviewer: engine.Reviewer{Run: argv("./ci/gate.sh", "src/a.go")}}, {Reviewer: engine.Reviewer{Run: argv("bash", "-e", "ci/second.sh")}}, {}},
		Steps: []*engine.Step{
			{Criteria: []engine.Criterion{{Command: &engine.Command{Shell: "CI=1 python3 -u tools/check.py out.txt && \"./tests/run\" -v; test -s out.txt"}}, {File: "out.txt"}}},
			{Criteria: []engine.Criterion{{Command: &engine.Command{Shell: "../common/x.sh; go run ./tools/gen; \"$D\"/ci/where.sh"}}}},
			{Criteria: []engine.Criterion{{Command: &engine.Command{Shell: "if timeout 5 tools/slow; then echo src/b.go; fi"}}}, Run: argv("./build.sh")},
		},
		AfterStep: &engine.Command{Shell: "sh hooks/after.sh"}, AfterRun: &engine.Command{Shell: "make -C x"},
	}
	for _, c := range []struct {
		files, outs, want string
		at                judging
	}{
		{files: "ci/gate.sh src/a.go ci/second.sh", want: "ci/gate.sh ci/second.sh"},
		{files: "tools/check.py out.txt tests/run tools/slow src/b.go", want: "tools/check.py tests/run tools/slow"},
		{files: "hooks/after.sh build.sh x/Makefile x/lib.mk y/Makefile", want: "hooks/after.sh x/Makefile"}, // what a Makefile starts has to be named in protect
		{files: ".workflow/specs/w.yaml .workflow/prompts/reviewer.md .workflow/config.yaml .workflow/backlog/x.json .workflow/schemas/a.json",
			want: ".workflow/specs/w.yaml .workflow/prompts/reviewer.md .workflow/config.yaml .workflow/schemas/a.json"},
		{files: "sub/CLAUDE.md .gitattributes a/.gitignore .gitmodules AGENTS.md bin/agent bin/other", want: "sub/CLAUDE.md .gitattributes a/.gitignore .gitmodules AGENTS.md bin/agent"},
		{files: "my.key src/x.key", want: "my.key"},
		{files: "ci/gate.sh tests/run", outs: "./ci/gate.sh", want: "tests/run"}, // it was to write it
		// In a worktree whose commands run in a folder of it, and where the root's own is named.
		{files: "sub/ci/gate.sh ci/gate.sh", at: judging{root: "/r", top: "/w", dir: "/w/sub"}, want: "sub/ci/gate.sh ci/gate.sh"},
		{files: "ci/gate.sh", outs: "../ci/gate.sh", at: judging{root: "/r", top: "/w", dir: "/w/sub"}, want: "ci/gate.sh"},
		{files: "common/x.sh sub/common/x.sh", at: judging{root: "/r", top: "/w", dir: "/w/sub"}, want: "common/x.sh"},
		{files: "tools/gen/a.go tools/b.go", want: "tools/gen/a.go"},
		{files: "deep/ci/where.sh deep/where.sh", want: "deep/ci/where.sh"},
		{files: "sub/.workflow/specs/w.yaml", at: judging{root: "/w/sub", top: "/w", dir: "/w/sub"}, want: "sub/.workflow/specs/w.yaml"},
	} {
		if c.at == (judging{}) {
			c.at = judging{root: "/r", top: "/r", dir: "/r"}
		}
		for _, protect := range [][]string{spec.Protect, nil} { // nothing is protected: most files are passed over at once
			some := *spec
			some.Protect = protect
			got := lawOf(&some, []agentOf{{name: "a", command: []string{"./bin/agent"}}, {name: "b", command: []string{"sh", "-c", "$X"}}}, nil, nil, c.at).guarded(strings.Fields(c.files), strings.Fields(c.outs))
			want := slices.DeleteFunc(strings.Fields(c.want), func(f string) bool { return protect == nil && f == "my.key" })
			if !slices.Equal(got, want) {
				t.Errorf("of %s: %v, want %s", c.files, got, want)
			}
		}
	}
}

// TestGuardedUnknown: where it cannot be told what a command runs, a person is asked about all changes but declared outputs,
// unless `protect` names something.
func TestGuardedUnknown(t *testing.T) {
	conform.Rule(t, "9-one-tree resolving", "every program that a gate, criterion, hook or **role's command** starts from the repo, found by resolving the argument list as the shell would where it is simple; where it is not, `validate` says so and a person is asked")
	spec := &engine.Spec{Gates: []*engine.Gate{{ID: "G-1", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: `sh "$SCRIPT"`}}}}}
	at := judging{root: "/r", top: "/r", dir: "/r"}
	got := strings.Join(lawOf(spec, nil, nil, nil, at).guarded([]string{"out.txt", "src/a.go", "src/b.go"}, []string{"./out.txt"}), "\n")
	if !strings.HasPrefix(got, "src/a.go and 1 more (") || !strings.Contains(got, "gate G-1: ") {
		t.Errorf("%q", got)
	}
	if got := lawOf(spec, nil, nil, nil, at).guarded([]string{"out.txt"}, []string{"out.txt"}); len(got) > 0 {
		t.Errorf("declared outputs alone: %q", got)
	}
	agent := &engine.Spec{Steps: []*engine.Step{{Agent: &engine.Agent{Type: "writer"}}}}
	set := settings.Settings{Agents: map[string]settings.Agent{"a": {Command: []string{"sh", "-c", "$X"}}, "b": {Command: []string{"./b"}}}, Roles: map[string]settings.Role{"writer": {Agent: []string{"a"}}}}
	for used, want := range map[string]int{"a": 1, "b": 0} {
		set.Roles["writer"] = settings.Role{Agent: []string{used}}
		if got := lawOf(agent, agentsOf(set, agent), nil, nil, at).guarded([]string{"src/a.go"}, nil); len(got) != want {
			t.Errorf("with the agent %s: %q", used, got)
		}
	}
	spec.Protect = []string{"ci/**"}
	if got := lawOf(spec, nil, nil, nil, at).guarded([]string{"src/a.go", "ci/x"}, nil); !slices.Equal(got, []string{"ci/x"}) {
		t.Errorf("with protect: %q", got)
	}
}

// TestGuardedAs: what a file became is told where its content alone says it. Where it leads elsewhere, or is not named, a
// person is asked each time.
func TestGuardedAs(t *testing.T) {
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
	at := judging{root: "/r", top: "/r", dir: "/r"}
	many := []string{}
	ids := map[string]string{}
	for i := range maxProtected + 2 {
		many = append(many, fmt.Sprintf("test/%03d", i))
		ids[many[i]] = "1"
	}
	names, became := lawOf(&engine.Spec{Protect: []string{"test/**"}}, nil, nil, nil, at).guardedAs(many, nil, ids)
	if len(names) != maxProtected+1 || len(became) != len(names) || names[maxProtected] != "2 more" || became[maxProtected] != "" || became[0] != "1" {
		t.Errorf("%q as %q", names, became)
	}
	unknown := lawOf(&engine.Spec{Gates: []*engine.Gate{{ID: "G-1", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: `sh "$SCRIPT"`}}}}}, nil, nil, nil, at)
	of := func(ids map[string]string) string {
		names, became := unknown.guardedAs([]string{"a", "b"}, nil, ids)
		if len(names) != 1 || len(became) != 1 {
			t.Fatalf("%q as %q", names, became)
		}
		return became[0]
	}
	was := of(map[string]string{"a": "1", "b": "1"})
	if was == "" || was != of(map[string]string{"a": "1", "b": "1"}) || was == of(map[string]string{"a": "1", "b": "2"}) || of(map[string]string{"a": "1"}) != "" {
		t.Errorf("others as %q", was)
	}
}

// TestFilesOfRoleArgs: what the arguments of a role name in the repo says what its agent may do: it is law.
func TestFilesOfRoleArgs(t *testing.T) {
	spec := &engine.Spec{Steps: []*engine.Step{{Agent: &engine.Agent{Type: "writer"}}}}
	at := judging{root: "/r", top: "/r/wt", dir: "/r/wt"}
	s := settings.Default()
	s.Roles["writer"] = settings.Role{Agent: []string{"claude"}, Args: []string{"--mcp-config", "tools/mcp.json", "--settings=./agents/settings.json", "--plugin-dir", "plugins", "--add-dir", "."}}
	s.Roles["other"] = settings.Role{Agent: []string{"claude"}, Args: []string{"--settings", "other.json"}}
	got := lawOf(spec, agentsOf(s, spec), nil, nil, at).guarded([]string{"a.go", "tools/mcp.json", "agents/settings.json", "plugins/x/hook.sh", "other.json"}, []string{"tools/mcp.json"})
	if !slices.Equal(got, []string{"tools/mcp.json", "agents/settings.json", "plugins/x/hook.sh"}) {
		t.Errorf("%q", got)
	}
}
