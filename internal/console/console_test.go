package console

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sluice/internal/fault"
)

func TestLinesAreCutAtCells(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"abc", 0, "abc"}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"日本語", 4, "日本"}, {"日本語", 5, "日本"},
		{"\x1b[31mabcd\x1b[0m", 2, "\x1b[31mab\x1b[0m"}, {"\x1b[31mab\x1b[0m", 2, "\x1b[31mab\x1b[0m"},
	} {
		if got := ClipPainted(c.s, c.width); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.s, c.width, got, c.want)
		}
	}
}

// TestMessagesAreOneCleanLine: what foreign text puts into an error does not reach the terminal as control characters.
func TestMessagesAreOneCleanLine(t *testing.T) {
	var errs bytes.Buffer
	c := New(nil, nil, &bytes.Buffer{}, &errs)
	c.Report(fault.New("mend\x1b[31m it", "bad \x1b]0;owned\x07name\nwith a second line"))
	if got := errs.String(); strings.ContainsAny(got, "\x1b\x07") || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}

// TestAskWithoutATerminal: a question that nobody can be asked is a mistake of the command line that names it; --yes answers it.
func TestAskWithoutATerminal(t *testing.T) {
	c := New(nil, strings.NewReader("y\n"), &bytes.Buffer{}, &bytes.Buffer{})
	_, err := c.Ask("Remove it?")
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.ExitUsage || !strings.Contains(f.Cause, "Remove it?") {
		t.Errorf("%v", err)
	}
	c.Yes = true
	if yes, err := c.Ask("Remove it?"); !yes || err != nil {
		t.Errorf("%v %v", yes, err)
	}
}
