package gates

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/shells"
)

// TestInTurn: scripts that a judge's scripts start in turn are law, and what tools go by
// there; tests and outputs are the work, and other files are named once.
func TestInTurn(t *testing.T) {
	spec := &engine.Spec{Protect: []string{"ci/known.sh"}, Steps: []*engine.Step{{Outputs: []engine.Output{
		{Path: engine.Text{Source: "src/add.sh"}}, {Path: engine.Text{Source: "ci/other.sh"}}}}}, Gates: []*engine.Gate{
		{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "./ci/gate.sh"}}},
		{ID: "M", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "make check; true"}}},
		{ID: "H", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "sh ci/other.sh; python3 tools/own.py"}}},
	}}
	scripts := map[string]string{
		"ci/gate.sh":  `cd "$(dirname "$0")/.." && . ci/lib.sh; "$(dirname "$0")"/beside && python3 tools/check.py && $X && tools/gone`,
		"ci/lib.sh":   "deep/a; ci/known.sh; tools/own.py",
		"ci/other.sh": "tools/check.py; node ci/last.js; npx jest; python3 ci/last.py",
		"deep/a":      "#!/bin/sh\ndeep/b",
		"deep/b":      "#!/bin/sh\ndeep/last",
		"Makefile":    "check:\n\tci/made.sh\nlint:\n\tci/lint.sh; node lint.js\nship:\n\tci/ship.sh; ci/ship.js",
		"ci/made.sh":  "make lint; src/add.sh; t/test_a.sh; t/b_test.sh; t/test.sh; src/gone.sh", "t/test_a.sh": "x", "t/b_test.sh": "x", "t/test.sh": "x", "src/add.sh": "src/lib.sh", "src/lib.sh": "", "ci/lint.sh": "true", "lint.js": "", "ci/ship.sh": "", "ci/ship.js": "",
		"ci/beside": "", "tools/check.py": "", "ci/known.sh": "", "tools/own.py": "", "ci/last.js": "", "ci/last.py": "", "jest.config.js": "", "sub/package.json": "", "ci/json.py": "", "deep/last": "",
	}
	l := LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"})
	turn, err := l.InTurn(func(f string) (string, bool, error) {
		text, is := scripts[f]
		return text, is, nil
	})
	if err != nil || len(turn.unknown) > 0 {
		t.Fatal(err, turn.unknown)
	}
	var got []string
	for _, u := range turn.Others {
		got = append(got, u.Where+": "+strings.Join(u.Files, " "))
	}
	if want := "gate G: ci/beside tools/check.py deep/last|gate M: lint.js src/add.sh t/b_test.sh t/test_a.sh|gate H: ci/last.js ci/last.py"; strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
	changed := slices.Sorted(maps.Keys(scripts))
	if got := strings.Join(l.Guarded(changed, nil), " "); got !=
		"Makefile ci/gate.sh ci/json.py ci/known.sh ci/lib.sh ci/lint.sh ci/made.sh ci/other.sh deep/a deep/b jest.config.js "+
			"sub/package.json t/test.sh tools/own.py" {
		t.Errorf("law: %s", got)
	}
	again := LawOf(spec, nil, nil, nil, l.at)
	again.Add(turn)
	if want, got := l.Guarded(changed, nil), again.Guarded(changed, nil); !slices.Equal(got, want) {
		t.Errorf("added again: %s", got)
	}
}

// TestInTurnByValues: what make and a shell put together from variables, patterns and folders is followed too.
func TestInTurnByValues(t *testing.T) {
	tree := map[string]string{"ci/check.sh": "x", "ci/lint.sh": "x", "ci/unit.sh": "x", "ci/sh": "#!/bin/sh\n", "ci/ship.sh": "x", "c.mk": "RUN = sh ci/check.sh\n", "m.just": "check:\n  ci/lint.sh\n", "p/a/package.json": `{"scripts": {"test": "./x.sh", "build": "sh build.sh"}}`, "p/a/x.sh": ". ./lib.sh", "p/a/lib.sh": "x", "p/a/build.sh": "x", "b/mod.just": "check:\n  ci/unit.sh\n",
		"a/Makefile": "check:\n\t./run.sh\n", "a/run.sh": "x", "t/a.sh": "x", "t/b": "x", "t/a_test.sh": "x", "t/c.py": "x", "src/a.py": "x", "src/run": "x"}
	for _, c := range []struct{ command, script, law string }{
		{"make check", "RUN = ./ci/check.sh\ncheck:\n\t$(RUN)\nship:\n\tci/ship.sh\n", "ci/check.sh"},
		{"make check", "check:\n\t${RUN:x=y}\nRUN ?= ./ci/check.sh\nRUN = $(L)\nL = ci/lint.sh # ci/ship.sh\n", "ci/check.sh ci/lint.sh"},
		{"make check", "ALL := lint\nALL += unit\ncheck: $(ALL)\nlint:\n\t./ci/lint.sh\nunit:\n\t./ci/unit.sh\nship:\n\tci/ship.sh\n", "ci/lint.sh ci/unit.sh"},
		{"make check", "ALL := lint\ncheck:\n\t$(MAKE) $(ALL)\nlint:\n\t./ci/lint.sh\n", "ci/lint.sh"},
		{"make check", "check: $(addprefix l,$X)\nlint:\n\t./ci/lint.sh\n", "ci/lint.sh"},
		{"make check", "check: test-unit\ntest-%:\n\t./ci/unit.sh $*\nship:\n\tci/ship.sh\n", "ci/unit.sh"},
		{"make check", "check: x.o\n.c.o:\n\t./ci/unit.sh\n.PHONY: ship\nship:\n\tci/ship.sh\n", "ci/unit.sh"},
		{"make check", "T = lint\ncheck: lint\n$(T):\n\t./ci/lint.sh\n", "ci/lint.sh"},
		{"make check", "check: RUN := ci/check.sh\ncheck:\n\t$(RUN)\n", "ci/check.sh"},
		{"make check", "define go\n@./ci/check.sh $1\n@ci/sh\nendef\ncheck:\n\t$(call go,x)\n", "ci/check.sh ci/sh"},
		{"make check", "V := $(shell ./ci/check.sh)\nSHELL := ci/sh\ncheck:\n\tgo test\n", "ci/check.sh ci/sh"},
		{"make check", "include c.mk\ncheck:\n\t$(RUN)\n", "c.mk ci/check.sh"},
		{"make check", "check:\n\tfor d in a b; do $(MAKE) -C $$d check; done\n", "a/Makefile a/run.sh"},
		{"make check", "T := $(wildcard t/*.sh)\ncheck: $(T:.sh=.ok)\n%.ok: %.sh\n\tsh $<\n", "t/a.sh t/b"},
		{"make check", "include $(wildcard b/*)\ncheck:\n\tgo test\n", "b/mod.just"},
		{"make check", "-include $(wildcard d/*.mk) c.mk\ncheck:\n\t$(RUN)\n", "c.mk ci/check.sh"},
		{"npm test -ws", `{"scripts": {"test": "true"}}`, "p/a/lib.sh p/a/x.sh"},
		{"npm run check", `{"scripts": {"check": "turbo run test"}}`, "p/a/lib.sh p/a/x.sh"},
		{"npm run build", `{"scripts": {"build": "npm run build -ws"}}`, "p/a/build.sh"},
		{"npx eslint .", `{"scripts": {"test": "true"}}`, ""},
		{"task check", "version: '3'\ntasks:\n  check:\n    desc: don't ask\n    cmds:\n      - {{.ROOT_DIR}}/ci/check.sh\n      - cmd: golangci-lint run -c t/c.py\n  lint: sh ci/lint.sh\n", "ci/check.sh ci/lint.sh t/c.py"},
		{"tox -e check", "[testenv]\ncommands =\n    bash {toxinidir}/ci/check.sh {posargs}\n    pytest\n", "ci/check.sh"},
		{"pre-commit run -a", "repos:\n- repo: local\n  hooks:\n  - id: x\n    entry: ci/check.sh\n    language: python\n    files: ^src/\n", "ci/check.sh"},
		{"mise run check", "[tasks.check]\nrun = [\"bash ci/check.sh\", \"cd t && ./a.sh\"]\n", "ci/check.sh t/a.sh"},
		{"composer check", "{\"scripts\": {\n\"check\": [\"ci/check.sh\", \"sh ci/lint.sh\"]}}\n", "ci/check.sh ci/lint.sh"},
		{"just check", "run := 'ci/check.sh'\ncheck:\n  {{run}} x\n", "ci/check.sh"},
		{"just check", "import? 'm.just'\n", "ci/lint.sh m.just"},
		{"just m::check", "mod m\n", "ci/lint.sh m.just"},
		{"just n::check", "mod? n 'm.just'\n", "ci/lint.sh m.just"},
		{"just b::check", "mod b\n", "b/mod.just ci/unit.sh"},
		{"ci/gate.sh", "for t in a b; do ./t/$t.sh; done", "t/a.sh t/b"},
		{"ci/gate.sh", `for f in t/*; do "$f"; done`, "t/a.sh t/b"},
		{"ci/gate.sh", "run-parts --verbose t", "t/a.sh t/b"},
		{"ci/gate.sh", "A=ci/sh B=\"sh ci/lint.sh\"\n\"$A\"; $B x; ${C}", "ci/lint.sh ci/sh"},
		{"ci/gate.sh", `find t -name '*.sh' -exec sh {} \;`, "t/a.sh t/b"},
		{"ci/gate.sh", "find t -name '*.sh' | while read f; do sh $f; done", "t/a.sh t/b"},
		{"ci/gate.sh", "ls t/*.sh | xargs -n1 sh", "t/a.sh t/b"},
		{"ci/gate.sh", "echo ci/lint.sh | xargs sh; echo src/a.py", "ci/lint.sh"},
		{"ci/gate.sh", "set -- ci/lint.sh; \"$1\"", "ci/lint.sh"},
		{"ci/gate.sh", `for f in t/*.sh src/*; do shellcheck "$f"; cat $f; [ -x "$f" ] && echo $f; done`, ""},
		{"ci/gate.sh", `for f in src/*.py; do mytool "$f"; done`, ""},
	} {
		script := map[string]string{"make": "Makefile", "just": "justfile", "npm": "package.json", "npx": "package.json",
			"task": "Taskfile.yml", "tox": "tox.ini", "pre-commit": ".pre-commit-config.yaml", "mise": "mise.toml", "composer": "composer.json"}[strings.Fields(c.command)[0]]
		files := maps.Clone(tree)
		files[cmp.Or(script, "ci/gate.sh")] = c.script
		l := LawOf(&engine.Spec{Gates: []*engine.Gate{{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: c.command}}}}},
			nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"})
		before := l.Guarded(slices.Sorted(maps.Keys(files)), nil)
		if _, err := l.InTurn(func(f string) (string, bool, error) { text, is := files[f]; return text, is, nil }, "p/a/package.json"); err != nil {
			t.Fatal(err)
		}
		added := slices.DeleteFunc(l.Guarded(slices.Sorted(maps.Keys(files)), nil), func(f string) bool { return slices.Contains(before, f) })
		if got := strings.Join(added, " "); got != c.law {
			t.Errorf("%s: %s\n%s\nwant %s", c.command, c.script, got, c.law)
		}
	}
}

// TestInTurnHasBounds: what is not followed to its end asks a person.
func TestInTurnHasBounds(t *testing.T) {
	spec := &engine.Spec{Gates: []*engine.Gate{
		{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "ci/gate"}}}}}
	for want, script := range map[string]func(f string) string{
		"ci/gate: a text of more than 65536 bytes": func(string) string { return strings.Repeat("x;", shells.MaxText) },
		"ci/gate: more than 50 values of a variable": func(string) string {
			words := ""
			for n := range 51 {
				words += fmt.Sprint(" ", n)
			}
			return "for x in" + words
		},
		"gate G starts too many files in turn": func(f string) string { return "./" + path.Base(f) + "x" },
	} {
		l := LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"})
		_, err := l.InTurn(func(f string) (string, bool, error) { return "#!/bin/sh\n" + script(f), true, nil })
		if got := l.Guarded([]string{"src/x"}, nil); err != nil || len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	}
}
