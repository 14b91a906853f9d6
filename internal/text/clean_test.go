package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Gate XG-1 needs you", "Gate XG-1 needs you"},
		{"letters of the world", "Prüfung 検査 🎉 é", "Prüfung 検査 🎉 é"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"colour, one character", "\u009b31mred", "red"},
		{"title", "a\x1b]0;evil\x07b", "ab"},
		{"link", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"string never ended", "\x1b]0;all of this stays", "0;all of this stays"},
		{"string ended by another escape", "\x1b]0;kept\x1b[2Jkept", "0;keptkept"},
		{"string ended by another escape, not by what comes later", "\x1b]0;kept\x1b[2Jkept\x07end", "0;keptkeptend"},
		{"device string", "a\x1bPq#0\x1b\\b", "ab"},
		{"device string, one character", "a\u0090q\u009cb", "ab"},
		{"character set", "a\x1b(0b", "ab"},
		{"reset", "a\x1bcb", "ab"},
		{"escape at the end", "a\x1b", "a"},
		{"sequence cut", "a\x1b[31", "a"},
		{"sequence broken by a control", "a\x1b[3\nb", "a b"},
		{"controls", "a\x00b\x08c\x7fd\u0085e", "abcd e"},
		{"direction", "\u202Etxt.exe\u202C \u2066x\u2069\u200F\u061C", "txt.exe x"},
		{"invisible", "p\u200Ba\u200Ds\uFEFFs\u00AD", "pass"},
		{"tags", "ok\U000E0041\U000E0042", "ok"},
		{"private", "a\uE000b", "ab"},
		{"spaces", "  a \t\u00A0\r\n b\u2028c ", "a b c"},
		{"blanks that are no spaces", "ok.\u2800\u2800 \u2800verdict\u3164\u3164\u115f\u1160\uffa0\U0001d159pass", "ok. verdict pass"},
		{"no utf-8", "a\xff\x9bb", "a\uFFFD\uFFFDb"},
		{"tower of marks", "a" + strings.Repeat("\u0301", 50) + "b", "a" + strings.Repeat("\u0301", maxMarksInRow) + "b"},
		{"nothing left", "\x1b[2J\x00\u202e", ""},
		{"cut", strings.Repeat("ab ", 40), strings.Repeat("ab ", 16) + "a…"},
	} {
		if got := Clean(c.in, 50); got != c.want {
			t.Errorf("%s: Clean(%q) = %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestCleanLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\n\na \r\nb\n\n\n\n c\n": "a\nb\n\nc",
		"a\u2028b":                "a\nb",
		"a\rb":                    "a b",
		"x\x1b[2J\ny\u202e":       "x\ny",
		strings.Repeat("ab\n", 9): "ab\nab\nab\na…",
	} {
		if got := CleanLines(in, 11); got != want {
			t.Errorf("CleanLines(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanIsBounded(t *testing.T) {
	t.Parallel()
	flood := strings.Repeat("\x1b]", 5_000_000) // each could look for its end through all the rest
	if got := Clean(flood, 100); utf8.RuneCountInString(got) > 100 {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
	if got := Clean(strings.Repeat("é", 100_000), 10); got != "ééééééééé…" {
		t.Errorf("%q", got)
	}
	if Clean("abc", 0) != "" || Clean("abc", -1) != "" {
		t.Error("no room, yet text")
	}
}

// TestCleanOfCleanText: what is returned as it is, unread, is what reading it gives.
func TestCleanOfCleanText(t *testing.T) {
	t.Parallel()
	const letters = "a~· \t\n\x1b\x7f\u00a0"
	plain := 0
	var try func(s string, more int)
	try = func(s string, more int) {
		if isClean(s) {
			plain++
			for _, lines := range []bool{false, true} {
				if read := clean(s+"\x00", 100, lines); read != s {
					t.Errorf("%q: %q", s, read)
				}
			}
		}
		for _, r := range letters {
			if more > 0 {
				try(s+string(r), more-1)
			}
		}
	}
	if try("", 5); plain < 20 || isClean("é") || isClean("a  b") || isClean(" a") || isClean("a ") {
		t.Errorf("%d are clean", plain)
	}
	for r := range unicode.MaxRune {
		if s := "a" + string(r) + "a"; IsPlain(r) && clean(s+"\x00", 9, false) != s {
			t.Errorf("%q is changed", r)
		}
	}
	if got := Clean("abcdef", 4); got != "abc…" {
		t.Errorf("cut: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\x1b]0;x\x07", "\u009b1m", "\xff\n\u202e", "e\u0301", "\x1b\x1b[", "\x1bP\x1b\\"} {
		f.Add(s, 20, true)
	}
	f.Fuzz(func(t *testing.T, s string, max int, lines bool) {
		max %= 2000
		got := clean(s, max, lines)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > atLeastZero(max) {
			t.Fatalf("clean(%q, %d) = %q", s, max, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) && !(lines && r == '\n') {
				t.Fatalf("clean(%q) left %U", s, r)
			}
		}
		if again := clean(got, max, lines); again != got {
			t.Fatalf("clean(%q) = %q, again %q", s, got, again)
		}
	})
}

func atLeastZero(n int) int { return max(n, 0) }
