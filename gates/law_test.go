package gates

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	hold "sluice/tools/conform"
)

func TestGuarded(t *testing.T) {
	hold.Rule(t, "1-language protect", "what judges the work is protected without being named")
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
		at                Bases
	}{
		{files: "ci/gate.sh src/a.go ci/second.sh", want: "ci/gate.sh ci/second.sh"},
		{files: "tools/check.py out.txt tests/run tools/slow src/b.go", want: "tools/check.py tests/run tools/slow"},
		{files: "hooks/after.sh build.sh x/Makefile x/lib.mk y/Makefile", want: "hooks/after.sh x/Makefile"}, // what a Makefile starts must be named in protect
		{files: ".workflow/specs/w.yaml .workflow/prompts/reviewer.md .workflow/config.yaml .workflow/backlog/x.json .workflow/schemas/a.json",
			want: ".workflow/specs/w.yaml .workflow/prompts/reviewer.md .workflow/config.yaml .workflow/schemas/a.json"},
		{files: "sub/CLAUDE.md .gitattributes a/.gitignore .gitmodules .lfsconfig AGENTS.md bin/agent bin/other", want: "sub/CLAUDE.md .gitattributes a/.gitignore .gitmodules .lfsconfig AGENTS.md bin/agent"},
		{files: ".claude/settings.json sub/.claude/agents/a.md .claude a/CLAUDE.local.md .mcp.json AGENTS.override.md .codex/config.toml .agents/skills/x/SKILL.md opencode.json x/opencode.jsonc .opencode/a.ts GEMINI.md sub/.gemini/settings.json QWEN.md .qwen/settings.json claude/a.md docs/claude.md docs/gemini.md",
			want: ".claude/settings.json sub/.claude/agents/a.md .claude a/CLAUDE.local.md .mcp.json AGENTS.override.md .codex/config.toml .agents/skills/x/SKILL.md opencode.json x/opencode.jsonc .opencode/a.ts GEMINI.md sub/.gemini/settings.json QWEN.md .qwen/settings.json"},
		{files: ".ignore a/.rgignore .geminiignore .qwenignore a.ignore ignore", want: ".ignore a/.rgignore .geminiignore .qwenignore"},
		{files: "my.key src/x.key", want: "my.key"},
		{files: "ci/gate.sh tests/run", outs: "./ci/gate.sh", want: "tests/run"}, // the step was to write it
		// In a worktree whose commands run in one of its folders, with the root's own file named.
		{files: "sub/ci/gate.sh ci/gate.sh", at: Bases{Root: "/r", Top: "/w", Dir: "/w/sub"}, want: "sub/ci/gate.sh ci/gate.sh"},
		{files: "ci/gate.sh", outs: "../ci/gate.sh", at: Bases{Root: "/r", Top: "/w", Dir: "/w/sub"}, want: "ci/gate.sh"},
		{files: "common/x.sh sub/common/x.sh", at: Bases{Root: "/r", Top: "/w", Dir: "/w/sub"}, want: "common/x.sh"},
		{files: "tools/gen/a.go tools/b.go", want: "tools/gen/a.go"},
		{files: "deep/ci/where.sh deep/where.sh", want: "deep/ci/where.sh"},
		{files: "sub/.workflow/specs/w.yaml", at: Bases{Root: "/w/sub", Top: "/w", Dir: "/w/sub"}, want: "sub/.workflow/specs/w.yaml"},
	} {
		if c.at == (Bases{}) {
			c.at = Bases{Root: "/r", Top: "/r", Dir: "/r"}
		}
		for _, protect := range [][]string{spec.Protect, nil} { // without protect, most files are skipped at once
			some := *spec
			some.Protect = protect
			got := LawOf(&some, []Agent{{Name: "a", Command: []string{"./bin/agent"}}, {Name: "b", Command: []string{"sh", "-c", "$X"}}}, nil, nil, c.at).Guarded(strings.Fields(c.files), strings.Fields(c.outs))
			want := slices.DeleteFunc(strings.Fields(c.want), func(f string) bool { return protect == nil && f == "my.key" })
			if !slices.Equal(got, want) {
				t.Errorf("of %s: %v, want %s", c.files, got, want)
			}
		}
	}
}

// TestLawNamesAreSeen: a person who is asked about a file sees all of its name.
func TestLawNamesAreSeen(t *testing.T) {
	l := LawOf(&engine.Spec{Protect: []string{"ci/**"}}, nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"})
	if got := l.Guarded([]string{"ci/a\u200b\x1b[2J.sh"}, nil); !slices.Equal(got, []string{"ci/a<U+200B><U+001B>[2J.sh"}) {
		t.Errorf("%q", got)
	}
}

// TestProgramsOfPath: a program of the checkout that PATH finds is law, also where another starts it.
func TestProgramsOfPath(t *testing.T) {
	spec := &engine.Spec{Gates: []*engine.Gate{{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "timeout 9 lintx src | make"}}}},
		Steps: []*engine.Step{{ID: "A", Env: []engine.EnvVar{{Name: "PATH", Value: engine.Text{Source: "tools:/usr/bin"}}}}}}
	l := LawOf(spec, []Agent{{Name: "a", Command: []string{"model"}}}, nil, nil, Bases{Root: "/r", Top: "/w", Dir: "/w", Path: "/r/bin:/usr/bin:/other"})
	got := l.Guarded(strings.Fields("bin/lintx bin/timeout bin/make bin/model tools/lintx bin/src lintx other/lintx usr/bin/lintx"), nil)
	if want := strings.Fields("bin/lintx bin/timeout bin/make bin/model tools/lintx"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGuardedSettings: the files that well-known tools read by themselves are law.
func TestGuardedSettings(t *testing.T) {
	files := strings.Fields("a.go rustfmt.toml vendor/x/assert/a.go web/vendor/x.js .env tsconfig.json magefiles/a.go sub/.rubocop_todo.yml eslint-suppressions.json " +
		"phpstan-baseline.neon gradle/test.gradle lib/.formatter.exs .editorconfig cmake/x.cmake policy/x.rego docs/Taskfile.yml gulpfile.js")
	for command, want := range map[string]string{
		"cargo fmt --check": "rustfmt.toml", "go test ./...": "vendor/x/assert/a.go", "docker compose run t": ".env", "ts-node ci/check.ts": "tsconfig.json",
		"mage check": "magefiles/a.go", "rubocop": "sub/.rubocop_todo.yml", "npx eslint .": "eslint-suppressions.json", "phpstan": "phpstan-baseline.neon",
		"./gradlew test": "gradle/test.gradle", "mix format --check-formatted": "lib/.formatter.exs", "dotnet build": ".editorconfig", "cmake --build .": "cmake/x.cmake",
		"conftest test x.yaml": "policy/x.rego", "task check": "docs/Taskfile.yml", "gulp test": "gulpfile.js",
	} {
		spec := &engine.Spec{Gates: []*engine.Gate{{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: command}}}}}
		if got := strings.Join(LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"}).Guarded(files, nil), " "); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

// TestGuardedByEnvironment: what the variables of a step have its judges start is law, as in their commands.
func TestGuardedByEnvironment(t *testing.T) {
	spec := &engine.Spec{Steps: []*engine.Step{{ID: "A", Criteria: []engine.Criterion{{Command: &engine.Command{Shell: "bash /ci/x"}}}}}}
	for name, value := range map[string]string{"BASH_ENV": "ci/env.sh", "CC": "ci/cc", "PYTHONPATH": "src", "MODE": "full"} {
		spec.Steps[0].Env = append(spec.Steps[0].Env, engine.EnvVar{Name: name, Value: engine.Text{Source: value}})
	}
	got := LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"}).Guarded(strings.Fields("ci/cc ci/env.sh src/a.py full"), nil)
	if want := strings.Fields("ci/cc ci/env.sh"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGuardedBelow: a file that a tool finds by itself is law in any folder of the work, but not where git ignores it:
// an empty go.mod takes its folder out of `go test ./...`.
func TestGuardedBelow(t *testing.T) {
	of := func(command string) Law {
		return LawOf(&engine.Spec{Steps: []*engine.Step{{Criteria: []engine.Criterion{{Command: &engine.Command{Shell: command}}}}}}, nil, nil, nil, Bases{Root: "/r", Top: "/w", Dir: "/w"})
	}
	files := strings.Fields("search/go.mod search/a.go go.work web/package.json tests/conftest.py tests/test_a.py app/pom.xml app/.mvn/jvm.config ci/node_modules/yaml/index.js src/App/App.csproj Directory.Build.props a/.cargo/config.toml sub/Makefile")
	for command, want := range map[string]string{
		"go test ./...": "search/go.mod go.work", "npm test": "web/package.json ci/node_modules/yaml/index.js",
		"node ci/check.js": "ci/node_modules/yaml/index.js", "pytest tests": "tests/conftest.py", "mvn verify": "app/pom.xml app/.mvn/jvm.config",
		"dotnet test": "src/App/App.csproj Directory.Build.props", "cargo test": "a/.cargo/config.toml", "make": "",
	} {
		if got := strings.Join(of(command).Guarded(files, nil), " "); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	if got := of("go test ./...").Guarded(files, []string{"search/go.mod"}); !slices.Equal(got, []string{"go.work"}) {
		t.Errorf("declared as an output: %q", got)
	}
	l := of("npm test")
	if is, _ := l.HasBeside("node_modules/x/package.json"); is {
		t.Error("dependencies are law")
	}
	if is, _ := l.HasBeside("package.json"); !is {
		t.Error("an ignored package.json at the top is not law")
	}
}

// TestGuardedModules: what Python imports from the folder of a script, in place of its own library or a test tool, is law,
// whatever the file is made of; a module of another name is not, nor one in another folder.
func TestGuardedModules(t *testing.T) {
	files := strings.Fields("json.py json/__init__.py json/a.py ssl.cpython-313-x86_64-linux-gnu.so _socket.abi3.so app.py " +
		"tools/json.py tools/re.pyc tools/enum/__init__.py tools/help.py tools/__init__.py app/types.py json.txt pluggy.py yaml/__init__.py tools/yaml.py")
	for command, want := range map[string]string{
		"python3 tools/check.py out.txt":   "tools/json.py tools/re.pyc tools/enum/__init__.py tools/yaml.py",
		"cd app && python ../tools/a.py":   "tools/json.py tools/re.pyc tools/enum/__init__.py tools/yaml.py",
		"./tools/check.py":                 "tools/json.py tools/re.pyc tools/enum/__init__.py tools/yaml.py",
		"uv run python -m checks":          "json.py json/__init__.py ssl.cpython-313-x86_64-linux-gnu.so _socket.abi3.so pluggy.py yaml/__init__.py",
		"python3 -c 'open(1)'":             "json.py json/__init__.py ssl.cpython-313-x86_64-linux-gnu.so _socket.abi3.so pluggy.py yaml/__init__.py",
		"python3 -I tools/check.py":        "",
		"python3 -BP -m checks":            "",
		"python3 -c 'import app'":          "json.py json/__init__.py ssl.cpython-313-x86_64-linux-gnu.so _socket.abi3.so app.py pluggy.py yaml/__init__.py",
		"sh tools/check.sh && go test ./a": "",
	} {
		spec := &engine.Spec{Gates: []*engine.Gate{{Reviewer: engine.Reviewer{Run: &engine.Command{Shell: command}}}}}
		l := LawOf(spec, nil, nil, nil, Bases{Root: "/w", Top: "/w", Dir: "/w"})
		if got := strings.Join(l.Guarded(files, nil), " "); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
		if got := l.Above("json"); got != strings.Contains(want, " json/") {
			t.Errorf("%s: a link json in the place of the module: %v", command, got)
		}
	}
}

// TestLawAllocatesLittle: the usual file of a checkout costs no allocation, in a worktree and with `protect` too. The
// race detector makes one.
func TestLawAllocatesLittle(t *testing.T) {
	spec := &engine.Spec{Protect: []string{"test/**", "docs/*.md"}, Gates: []*engine.Gate{{Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "make && python3 ci/a.py"}}}}}
	l := LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/r/.workflow/worktrees/w-1", Dir: "/r/.workflow/worktrees/w-1/sub"})
	n := testing.AllocsPerRun(100, func() {
		if is, _ := l.HasBeside("src/deep/below/file.go"); is || l.Above("src/deep/below/file.go") {
			t.Fatal("it is law")
		}
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestGuardedAtForge: what a push starts at the forge is law where the forge judges, or the work is pushed at the end.
func TestGuardedAtForge(t *testing.T) {
	files := strings.Fields(".github/workflows/ci.yml .github/ISSUE.md .circleci/config.yml a/.travis.yml Jenkinsfile .tekton/push.yaml .woodpecker.yaml cloudbuild.yaml a/cloudbuild.yaml")
	judged := &engine.Spec{Gates: []*engine.Gate{{Reviewer: engine.Reviewer{Forge: []string{engine.ForgeChecks}}}}}
	for _, c := range []struct {
		spec       *engine.Spec
		outs, want string
	}{
		{judged, "", ".github/workflows/ci.yml .circleci/config.yml Jenkinsfile .tekton/push.yaml .woodpecker.yaml cloudbuild.yaml"},
		{judged, "Jenkinsfile", ".github/workflows/ci.yml .circleci/config.yml .tekton/push.yaml .woodpecker.yaml cloudbuild.yaml"},
		{&engine.Spec{OnDone: engine.OnDone{Land: engine.LandPR}}, "", ".github/workflows/ci.yml .circleci/config.yml Jenkinsfile .tekton/push.yaml .woodpecker.yaml cloudbuild.yaml"},
		{&engine.Spec{}, "", ""},
	} {
		got := LawOf(c.spec, nil, nil, nil, Bases{Root: "/r", Top: "/w", Dir: "/w"}).Guarded(files, strings.Fields(c.outs))
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q, want %s", got, c.want)
		}
	}
}

// TestGuardedAs: an unnamed file is asked about each time.
func TestGuardedAs(t *testing.T) {
	hold.Rule(t, "1-language protect passed", "links, and what is not named, are asked about each time")
	at := Bases{Root: "/r", Top: "/r", Dir: "/r"}
	many := []string{}
	ids := map[string]string{}
	for i := range maxProtected + 2 {
		many = append(many, fmt.Sprintf("test/%03d", i))
		ids[many[i]] = "1"
	}
	names, became := LawOf(&engine.Spec{Protect: []string{"test/**"}}, nil, nil, nil, at).GuardedAs(many, nil, ids)
	if len(names) != maxProtected+1 || len(became) != len(names) || names[maxProtected] != "2 more" || became[maxProtected] != "" || became[0] != "1" {
		t.Errorf("%q as %q", names, became)
	}
	unknown := LawOf(&engine.Spec{Gates: []*engine.Gate{{ID: "G-1", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: `sh "$SCRIPT"`}}}}}, nil, nil, nil, at)
	of := func(ids map[string]string) string {
		names, became := unknown.GuardedAs([]string{"a", "b"}, nil, ids)
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

func TestMatches(t *testing.T) {
	for _, x := range []struct {
		glob, name string
		want       bool
	}{
		{"test/**", "test/a", true}, {"test/**", "test/a/b", true}, {"test/**", "test", false}, {"test/**", "tests/a", false},
		{".github/**", ".github/workflows/x.yml", true}, {"**/*.lock", "a/b/c.lock", true}, {"**/*.lock", "c.lock", true},
		{"*.md", "a.md", true}, {"*.md", "d/a.md", false}, {"test", "test/a/b", true}, {"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c", false}, {"**", "a", true}, {"**/z/**", "z", false}, {"**/z/**", "a/z/b", true}, {"a/**", "a/b", true}, {"*/b", "a/b/c", true}, {"**/**/**/x", "a/x", true}, {"[", "[", false},
	} {
		if got := Matches(x.glob, x.name); got != x.want {
			t.Errorf("matches(%q, %q) = %v", x.glob, x.name, got)
		}
	}
}

// TestManyStarsAreQuick: a glob with many ** takes no longer than another.
func TestManyStarsAreQuick(t *testing.T) {
	glob, name := strings.Repeat("**/a/", 100)+"z", strings.TrimSuffix(strings.Repeat("a/", 200), "/")
	if Matches(glob, name) {
		t.Error("it matches")
	}
}
