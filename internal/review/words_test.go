package review

import (
	"slices"
	"strings"
	"testing"
)

func TestDiffer(t *testing.T) {
	for _, c := range []struct{ old, now, wantOld, wantNow string }{
		{"return words", "return said", "return [words]", "return [said]"},
		{"a := f(x)", "a := f(x, y)", "a := f(x)", "a := f(x[, y])"},
		{"if a == b {", "if a != b && c {", "if a [=]= b {", "if a [!]= b[ && c] {"},
		{"x", "x\r", "x", "x[\r]"},
		{"\tx", "    x", "[\t]x", "[    ]x"},
		{"one two three", "four five six", "one two three", "four five six"},
		{"naïve café", "naïve thé", "naïve [café]", "naïve [thé]"},
		{"", "x", "", "x"},
		{"same", "same", "same", "same"},
		{strings.Repeat("a ", 300), strings.Repeat("a ", 299) + "b ", strings.Repeat("a ", 300),
			strings.Repeat("a ", 299) + "b "}, // too many words
	} {
		olds, news := Differ([]byte(c.old), []byte(c.now))
		if got := marked(c.old, olds); got != c.wantOld {
			t.Errorf("%q: old %q, want %q", c.old, got, c.wantOld)
		}
		if got := marked(c.now, news); got != c.wantNow {
			t.Errorf("%q: now %q, want %q", c.now, got, c.wantNow)
		}
	}
}

func marked(s string, spans []Span) string {
	var b strings.Builder
	at := 0
	for _, m := range spans {
		b.WriteString(s[at:m.From] + "[" + s[m.From:m.To] + "]")
		at = m.To
	}
	return b.String() + s[at:]
}

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		old, now string
		want     []int
	}{
		{"a = 1|b = 2", "x = 1|y = 2", []int{0, 1}},
		{"return words(t)", "if x {|}|return said(t)", []int{2}},
		{"func a()|func b()", "func b() int", []int{-1, 0}},
		{"a|b|c", "", []int{-1, -1, -1}},
	} {
		cut := func(s string) (out [][]byte) {
			for part := range strings.SplitSeq(s, "|") {
				if s != "" {
					out = append(out, []byte(part))
				}
			}
			return out
		}
		if got := Pairs(cut(c.old), cut(c.now)); !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: %v, want %v", c.old, c.now, got, c.want)
		}
	}
}
