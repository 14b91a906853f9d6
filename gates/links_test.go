package gates

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sluice/engine"
)

// TestFollow: what the law leads to is law; a link is, where law can lie behind it.
func TestFollow(t *testing.T) {
	run := func(text string) *engine.Gate {
		return &engine.Gate{ID: "G", Reviewer: engine.Reviewer{Run: &engine.Command{Shell: text}}}
	}
	spec := &engine.Spec{Protect: []string{"docs/*/rules.md"}, Gates: []*engine.Gate{run("./ci/gate.sh && make -C sub && python3 -c 'import json' && go run ./tools/gen && python3 py/check.py")}}
	for _, c := range []struct{ links, changed, law, free, unknown string }{
		{links: "sub/Makefile=../build/Makefile", law: "build/Makefile sub/Makefile", free: "build/x Makefile.in"},
		{links: "ci=tools/ci tools/ci/gate.sh=../../lib/./gate.sh", law: "tools/ci/gate.sh lib/gate.sh", free: "tools/ci/x lib/x"},
		{links: "ci=/r/tools/ci", law: "tools/ci/gate.sh"},
		{links: "tools/gen=../gen", law: "gen/a.go gen/b/c.go", free: "gen.go"},
		{links: "CLAUDE.md=docs/agents.md x/.claude=../conf", law: "docs/agents.md conf/settings.json", free: "docs/x.md"},
		{links: "py=lib/py", law: "lib/py/check.py lib/py/json.py", free: "lib/py/help.py lib/json.py"},
		{links: "docs/a=../texts .workflow/specs=../specs", law: "texts/rules.md specs/w.yaml", free: "texts/x.md"},
		{changed: "json", law: "json", free: "json2 evil/__init__.py"},
		{changed: "docs docs/b .workflow ci/gate.sh src", law: "docs docs/b .workflow ci/gate.sh", free: "src docs/b/x"},
		{links: "self=. src/up=.. src/away=/etc", free: "self src/a.go"},
		{links: "ci=/etc", unknown: "the link ci "},
		{links: "CLAUDE.md=../../x", unknown: "the link CLAUDE.md "},
		{links: "ci=a/b/../c", unknown: "the link ci "},
		{links: "ci=ci/deeper", unknown: "without an end"},
		{links: "ci/gate.sh=gate.sh"}, // no program can open it
	} {
		links := map[string]string{}
		for _, l := range strings.Fields(c.links) {
			link, to, _ := strings.Cut(l, "=")
			links[link] = to
		}
		for _, l := range strings.Fields(c.changed) {
			links[l] = ""
		}
		l := LawOf(spec, nil, nil, nil, Bases{Root: "/r", Top: "/w", Dir: "/w"})
		if err := l.Follow(slices.Sorted(maps.Keys(links)), func(link string) (string, error) { return links[link], nil }); err != nil {
			t.Fatal(err)
		}
		if got, want := l.Guarded(strings.Fields(c.law+" "+c.free), nil), strings.Fields(c.law); !slices.Equal(got, want) {
			t.Errorf("%s%s: law is %q, want %q", c.links, c.changed, got, want)
		}
		if got := strings.Join(l.unknown, "; "); (got == "") != (c.unknown == "") || !strings.Contains(got, c.unknown) {
			t.Errorf("%s: unknown %q, want %q", c.links, got, c.unknown)
		}
	}
}
