package ids

import (
	"regexp"
	"strings"
	"testing"

	"sluice/tools/conform"
)

func TestValid(t *testing.T) {
	conform.Rule(t, "1-language ids", "what is an id and what is none")
	t.Parallel()
	pattern := regexp.MustCompile(Pattern)
	for _, ok := range []string{"X-1", "phase-4-search-index", "a", "0", "v1.2_b", "CON", "x.", "a-", strings.Repeat("x", Max)} {
		if !Valid(ok) || !ValidRun(ok) || !pattern.MatchString(ok) {
			t.Errorf("%q refused", ok)
		}
	}
	for _, bad := range []string{
		"", ".", "..", ".x", "-x", "_x", "a..b", "a/b", `a\b`, "a b", "x\x00y", "x\n", "é", "x\xff", "~", "a:b", "*", "$x", "$(id)", "`id`", ";", "a'b",
		"%2e", strings.Repeat("x", MaxRun+1), "ｘ", "a\u202e",
	} {
		if Valid(bad) || ValidRun(bad) || pattern.MatchString(bad) && !strings.Contains(bad, "..") {
			t.Errorf("%q taken", bad)
		}
	}
	long := strings.Repeat("x", Max+1) // a child run's
	if Valid(long) || !ValidRun(long) || pattern.MatchString(long) {
		t.Errorf("%d bytes", len(long))
	}
	for s, want := range map[string]string{"": "is empty", long: "longer than 64", "a..b": `".."`, "a/b": "letters, digits"} {
		if got := Fault(s); !strings.Contains(got, want) {
			t.Errorf("%.10q: %q, want %q", s, got, want)
		}
	}
}
