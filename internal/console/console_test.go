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
		{"abc", 0, "abc"}, {"abc", 3, "abc"}, {"abcd", 3, "abc\x1b[0m"}, {"日本語", 4, "日本\x1b[0m"}, {"日本語", 5, "日本\x1b[0m"},
		{"\x1b[31mabcd\x1b[0m", 2, "\x1b[31mab\x1b[0m"}, {"\x1b[31mab\x1b[0m", 2, "\x1b[31mab\x1b[0m"}, {"a\x1b[31", 5, "a"},
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

// TestTableColumns: columns are as wide as they need, a wide character counts twice, and the last cell has no spaces after it.
func TestTableColumns(t *testing.T) {
	var out bytes.Buffer
	c := New(nil, nil, &out, nil)
	var rows Table
	rows.Row(Styled("日本", Bold), Styled("x", Plain))
	rows.Row(Styled("a", Plain), Styled("long", Dim))
	c.PrintTable(&rows)
	if got := out.String(); got != "日本  x\na     long\n" {
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
