package executor

import (
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/conform"
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
		{files: "hooks/after.sh build.sh x/Makefile", want: "hooks/after.sh"}, // what a Makefile starts has to be named in protect
		{files: ".workflow/specs/w.yaml .workflow/prompts/reviewer.md .workflow/config.yaml .workflow/backlog/x.json .workflow/schemas/a.json",
			want: ".workflow/specs/w.yaml .workflow/prompts/reviewer.md .workflow/config.yaml .workflow/schemas/a.json"},
		{files: "sub/CLAUDE.md .gitattributes a/.gitignore .gitmodules AGENTS.md bin/agent bin/other", want: "sub/CLAUDE.md .gitattributes a/.gitignore .gitmodules AGENTS.md bin/agent"},
		{files: "my.key src/x.key", want: "my.key"},
		{files: "ci/gate.sh tests/run", outs: "./ci/gate.sh", want: "tests/run"}, // it was to write it
		// In a worktree whose commands run in a folder of it, and where the root's own is named.
		{files: "sub/ci/gate.sh ci/gate.sh", at: judging{root: "/r", top: "/w", dir: "/w/sub"}, want: "sub/ci/gate.sh ci/gate.sh"},
		{files: "ci/gate.sh", outs: "../ci/gate.sh", at: judging{root: "/r", top: "/w", dir: "/w/sub"}, want: "ci/gate.sh"},
		{files: "sub/.workflow/specs/w.yaml", at: judging{root: "/w/sub", top: "/w", dir: "/w/sub"}, want: "sub/.workflow/specs/w.yaml"},
	} {
		if c.at == (judging{}) {
			c.at = judging{root: "/r", top: "/r", dir: "/r"}
		}
		for _, protect := range [][]string{spec.Protect, nil} { // nothing is protected: most files are passed over at once
			some := *spec
			some.Protect = protect
			got := lawOf(&some, [][]string{{"./bin/agent"}}, c.at).guarded(strings.Fields(c.files), strings.Fields(c.outs))
			want := slices.DeleteFunc(strings.Fields(c.want), func(f string) bool { return protect == nil && f == "my.key" })
			if !slices.Equal(got, want) {
				t.Errorf("of %s: %v, want %s", c.files, got, want)
			}
		}
	}
}
