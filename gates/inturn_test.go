package gates

import (
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

// TestInTurnHasBounds: what is not followed to its end asks a person.
func TestInTurnHasBounds(t *testing.T) {
	spec := &engine.Spec{Gates: []*engine.Gate{
		{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "ci/gate"}}}}}
	for want, script := range map[string]func(f string) string{
		"ci/gate: a text of more than 65536 bytes": func(string) string { return strings.Repeat("x;", shells.MaxText) },
		"gate G starts too many files in turn":     func(f string) string { return "./" + path.Base(f) + "x" },
	} {
		l := LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"})
		_, err := l.InTurn(func(f string) (string, bool, error) { return "#!/bin/sh\n" + script(f), true, nil })
		if got := l.Guarded([]string{"src/x"}, nil); err != nil || len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	}
}
