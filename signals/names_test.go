package signals

import (
	"strings"
	"testing"

	"sluice/internal/conform"
)

func TestValidID(t *testing.T) {
	conform.Rule(t, "1-language ids", "what is an id and what is none")
	t.Parallel()
	for _, ok := range []string{"X-1", "phase-4-search-index", "a", "0", "v1.2_b", "CON", "x.", "a-", strings.Repeat("x", 64)} {
		if !ValidID(ok) {
			t.Errorf("%q refused", ok)
		}
	}
	for _, bad := range []string{
		"", ".", "..", ".x", "-x", "_x", "a..b", "a/b", `a\b`, "a b", "x\x00y", "x\n", "é", "x\xff", "~", "a:b", "*", "$x", "$(id)", "`id`", ";", "a'b",
		"%2e", strings.Repeat("x", 65), "ｘ", "a\u202e",
	} {
		if ValidID(bad) {
			t.Errorf("%q taken", bad)
		}
	}
}

func TestStepOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"X-1-done.json": "X-1", "a-done-done.json": "a-done", "v1.2-done.json": "v1.2",
		"x-1-DONE.json": "", "-done.json": "", "X-1-done": "", "X-1-done.JSON": "", "X-1-done.json.md": "", "../x-done.json": "", ".x-done.json": "", "": "",
		strings.Repeat("x", 65) + "-done.json": "", "n\nl-done.json": "",
	} {
		if got, ok := StepOf(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, ok, want)
		}
	}
}
