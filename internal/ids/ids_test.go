package ids

import (
	"regexp"
	"slices"
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

// TestLabelsFault: how many labels there may be, and what each may be.
func TestLabelsFault(t *testing.T) {
	t.Parallel()
	many := strings.Split(strings.Repeat("a,", MaxLabels)+"a", ",")
	for _, c := range []struct {
		labels []string
		least  int
		want   string
	}{
		{nil, 0, ""},
		{nil, 1, "0 labels: want 1 to 16"},
		{many[1:], 1, ""},
		{many, 0, "17 labels: want 0 to 16"},
		{[]string{"linux", "a b"}, 1, `label "a b" is not an id: letters, digits and . _ - only, a letter or digit first`},
	} {
		if got := LabelsFault(c.labels, c.least); got != c.want {
			t.Errorf("%q: %q, want %q", c.labels, got, c.want)
		}
	}
}

// TestHex: so many bytes, in lower case.
func TestHex(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"00ff": true, "00FF": false, "00f": false, "00ff00": false, "": false, "00fg": false} {
		if Hex(s, 2) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func TestCompare(t *testing.T) {
	in := []string{"T10.2", "T2", "T10.10", "T02", "a", "T10", "T2.1", "1"}
	slices.SortFunc(in, Compare)
	if want := []string{"1", "T02", "T2", "T2.1", "T10", "T10.2", "T10.10", "a"}; !slices.Equal(in, want) {
		t.Errorf("%v, want %v", in, want)
	}
}
