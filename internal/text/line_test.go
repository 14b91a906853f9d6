package text

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLineKeepsBothEnds(t *testing.T) {
	for _, short := range []string{"", "one", strings.Repeat("ä", lineMost)} {
		if got := Line(short); got != short {
			t.Errorf("%q became %q", short, got)
		}
	}
	long := "`make test` ended with exit code 2:\n" + strings.Repeat("  File \"a.py\", line 1\n", 400) + "ValueError: no\x1b[0m\n"
	got := Line(long)
	if !strings.HasPrefix(got, "`make test` ended with exit code 2: File") || !strings.HasSuffix(got, "line 1 ValueError: no") {
		t.Errorf("%q", got)
	}
	if n := utf8.RuneCountInString(got); n > lineMost || strings.Count(got, "…") != 1 {
		t.Errorf("%d characters: %q", n, got)
	}
	if got := Ends(long, 100); !strings.HasSuffix(got, "line 1\nValueError: no") || utf8.RuneCountInString(got) > 100 {
		t.Errorf("%q", got)
	}
	for n := range 12 { // a space where it would be cut
		if got := Line(strings.Repeat("x", lineMost-n) + strings.Repeat(" yyy", 9) + " end"); !strings.HasSuffix(got, "yyy end") {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got := Line(strings.Repeat("\xff", 5000)); !utf8.ValidString(got) || utf8.RuneCountInString(got) > lineMost {
		t.Errorf("%q", got)
	}
}

// TestTyped: a shell reads what is written as the word itself, and runs nothing of it.
func TestTyped(t *testing.T) {
	if got := Typed("/home/ann/my-app_2.0"); got != "/home/ann/my-app_2.0" {
		t.Errorf("a plain path became %s", got)
	}
	words := []string{"", "a b", "it's", `quo"te $HOME`, "$(touch x)", "`touch x`", "~", "-dash", "ünï ☃", "new\nline's \\ \x7f$(x)", "*", "a\\b"}
	for _, word := range words {
		out, err := exec.Command("bash", "-c", "printf %s "+Typed(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q, written %s, is read as %q, %v", word, Typed(word), out, err)
		}
	}
}
