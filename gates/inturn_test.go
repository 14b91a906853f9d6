package gates

import (
	"slices"
	"strings"
	"testing"

	"sluice/engine"
)

// TestInTurn: what shell scripts of judges start in turn is named once, unless it is law.
func TestInTurn(t *testing.T) {
	spec := &engine.Spec{Protect: []string{"ci/known.sh"}, Gates: []*engine.Gate{
		{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "./ci/gate.sh"}}},
		{ID: "H", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: "sh ci/other.sh; python3 tools/own.py"}}},
	}}
	scripts := map[string]string{
		"ci/gate.sh":  `cd "$(dirname "$0")/.." && . ci/lib.sh; "$(dirname "$0")"/beside && python3 tools/check.py && $X && tools/gone`,
		"ci/lib.sh":   "deep/a; ci/known.sh; tools/own.py",
		"ci/other.sh": "tools/check.py; node ci/last.js",
		"deep/a":      "deep/b",
		"deep/b":      "deep/too-deep",
		"ci/beside":   "", "tools/check.py": "", "ci/known.sh": "", "tools/own.py": "", "ci/last.js": "", "deep/too-deep": "",
	}
	l := LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/r", Dir: "/r"})
	var got []string
	for _, u := range l.InTurn(spec, func(f string, words []string) (string, bool) {
		if f == "ci/gate.sh" && !slices.Contains(words, "./ci/gate.sh") {
			t.Errorf("words: %q", words)
		}
		text, is := scripts[f]
		return text, is
	}) {
		got = append(got, u.Where+": "+strings.Join(u.Files, " "))
	}
	if want := "gate G: ci/beside ci/lib.sh tools/check.py deep/a|gate H: ci/last.js"; strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
}
