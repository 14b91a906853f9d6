package console

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"sluice/internal/text"
)

// sized is a terminal of some columns.
type sized struct {
	bytes.Buffer
	columns int
}

func (s *sized) Columns() int { return s.columns }

func printed(width int, t *Table) string {
	out := &sized{columns: width}
	New(nil, nil, out, nil).PrintTable(t)
	return out.String()
}

// TestTableColumns: columns are as wide as they need, a wide character counts twice, and the last cell has no spaces
// after it.
func TestTableColumns(t *testing.T) {
	var rows Table
	rows.Row(Styled("日本", Bold), Styled("x", Plain))
	rows.Row(Styled("a", Plain), Styled("long", Dim))
	if got := printed(0, &rows); got != "日本  x\na     long\n" {
		t.Errorf("%q", got)
	}
}

// TestWidth: text that is not looked at closely is as wide as what is.
func TestWidth(t *testing.T) {
	for _, s := range []string{"", "a", "a b~!", "é", "日本", "e\u0301", "a\tb", "\x7f", "\x1b[1mbold\x1b[0m", "👩‍👩‍👧"} {
		if got, want := Width(s), ansi.StringWidth(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	var plain []rune
	for r := range unicode.MaxRune {
		if text.IsPlain(r) {
			plain = append(plain, r)
		}
	}
	if len(plain) < 100 {
		t.Errorf("%d plain characters", len(plain))
	}
	for _, a := range plain {
		for _, b := range plain {
			if s := string([]rune{a, b}); ansi.StringWidth(s) != 2 {
				t.Errorf("%q takes %d cells", s, ansi.StringWidth(s))
			}
		}
	}
}

// TestTableFits: what each way to fit does at its edge.
func TestTableFits(t *testing.T) {
	const why = "a reason that nobody could put more shortly than this"
	for _, c := range []struct {
		name  string
		fit   Fit
		width int
		want  string
	}{
		{"no terminal", Cut, 0, "id  " + why + "\nb\n"},
		{"cut", Cut, 30, "id  a reason that nobody coul…\nb\n"},
		{"cut below", Cut, 23, "id\n  a reason that nobody…\nb\n"},
		{"wrapped", Wrapped, 30, "id  a reason that nobody could\n    put more shortly than this\nb\n"},
		{"wrapped below", Wrapped, 23, "id\n  a reason that nobody\n  could put more\n  shortly than this\nb\n"},
		{"room for it", Below, 57, "id  " + why + "\nb\n"},
		{"no room for it", Below, 56, "id\n    a reason that nobody could put more shortly than\n    this\nb\n"},
	} {
		rows := Table{Columns: []Column{{}, {Fit: c.fit}}}
		rows.Row(Styled("id", Bold), Styled(why, Plain))
		rows.Row(Styled("b", Bold), Styled("", Plain))
		if got := printed(c.width, &rows); got != c.want {
			t.Errorf("%s:\n%s", c.name, got)
		}
	}
}

// TestBesideOrBelow: what goes below one row is beside another that has room for it, in a column of its own.
func TestBesideOrBelow(t *testing.T) {
	rows := Table{Columns: []Column{{}, {Fit: Wrapped}, {Fit: Below}, {Fit: Below}}}
	rows.Row(Styled("timeout", Plain), Styled("2h", Bold), Styled("built-in", Dim), Styled("free", Dim))
	rows.Row(Styled("roles", Plain), Styled("a value of more than twenty characters", Bold), Styled("built-in", Dim), Styled("free", Dim))
	rows.Row(Styled("grace", Plain), Styled("5s", Bold), Styled(".workflow/config.yaml:120", Dim), Styled("free", Dim))
	rows.Row(Styled("trust", Plain), Styled("auto", Bold), Styled("built-in", Dim), Styled("", Dim))
	want := `timeout  2h                    built-in  free
roles    a value of more than twenty characters
    built-in  free
grace    5s
    .workflow/config.yaml:120  free
trust    auto                  built-in
`
	if got := printed(48, &rows); got != want {
		t.Errorf("\n%s", got)
	}
}

// TestTableCleansCells: no cell moves the cursor, changes colours or begins a line.
func TestTableCleansCells(t *testing.T) {
	for _, width := range []int{0, 20} {
		var rows Table
		rows.Row(Styled("a\x1b[2J\nb", Plain), Styled("  c\x1b]0;owned\x07\td\u202e", Plain))
		if got := printed(width, &rows); got != "a b    c d\n" {
			t.Errorf("%q", got)
		}
	}
}

// TestTablesAreNoWiderThanTheTerminal: whatever the columns and cells, no line is wider, and what is wrapped is whole.
func TestTablesAreNoWiderThanTheTerminal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "gate", "-", "日本語", "👩‍💻", "e\u0301", "path/to/some/file-of-a-name.go", "x-", "\x1b[31m", "", "終", "word"}
	for range 3000 {
		rows := Table{Indent: random.IntN(4)}
		columns := 1 + random.IntN(6)
		for range columns {
			rows.Columns = append(rows.Columns, Column{Fit: Fit(random.IntN(4)), Least: random.IntN(9), Most: random.IntN(2) * 20})
		}
		var all [][]string
		for range 1 + random.IntN(3) {
			var cells []Cell
			var said []string
			for range columns {
				var s []string
				for range random.IntN(14) {
					s = append(s, words[random.IntN(len(words))])
				}
				cells, said = append(cells, Styled(strings.Join(s, " "), Red)), append(said, cellText(s))
			}
			rows.Row(cells...)
			all = append(all, said)
		}
		width := 10 + random.IntN(140)
		out := &sized{columns: width}
		con := New(nil, nil, out, nil)
		con.Colour = true
		con.PrintTable(&rows)
		for l := range strings.SplitSeq(out.String(), "\n") {
			if w := ansi.StringWidth(l); w > width {
				t.Fatalf("%d cells in %d: %q of %+v", w, width, l, rows)
			}
		}
		checkWhole(t, &rows, all, width)
	}
}

// cellText is what is left of words without what tables may change: spaces and escape sequences.
func cellText(words []string) string { return squeeze(ansi.Strip(strings.Join(words, " "))) }

func squeeze(s string) string {
	return strings.NewReplacer(" ", "", "\n", "", "\u200d", "").Replace(s)
}

func checkWhole(t *testing.T, rows *Table, all [][]string, width int) {
	t.Helper()
	out := &sized{columns: width}
	con := New(nil, nil, out, nil)
	l := rows.layout(width)
	for r, cells := range all {
		under := squeeze(strings.Join(l.under(con, rows.rows[r]), ""))
		for i, said := range cells {
			if l.below[i] && rows.Columns[i].Fit != Cut && !strings.Contains(under, said) {
				t.Fatalf("lost at %d: %q of %q", width, under, said)
			}
		}
	}
}

// TestWrap: lines are no wider than asked for, and nothing is lost.
func TestWrap(t *testing.T) {
	for _, s := range []string{"abcd ef-", "a-b-c-d-e-", "日本語日本語-", "one two three-four", ""} {
		for width := 2; width < 12; width++ {
			lines := Wrap(s, width)
			for _, l := range lines {
				if ansi.StringWidth(l) > width {
					t.Errorf("%q at %d: %q", s, width, lines)
				}
			}
			if got := squeeze(strings.Join(lines, "")); got != squeeze(s) {
				t.Errorf("%q at %d: %q", s, width, lines)
			}
		}
	}
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"a b", 0, "a b"}, {"  one two", 5, "  one|two"}, {"one,two,three", 9, "one,two,|three"}, {"is there, and", 8, "is|there,|and"},
		{"a\nb", 9, "a|b"}, {"      wide", 5, "wide"}, {"\x1b[31mabcdef\x1b[0m", 4, "\x1b[31mabcd\x1b[0m|\x1b[31mef\x1b[0m"}, {"日本", 1, "日本|"},
	} {
		if got := strings.Join(Wrap(c.s, c.width), "|"); got != c.want {
			t.Errorf("%q at %d: %q", c.s, c.width, got)
		}
	}
}

// TestClipMiddle: what is cut is as wide as asked for, and keeps its beginning and its end.
func TestClipMiddle(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"payments-platform-12", 0, "payments-platform-12"}, {"payments-platform-12", 20, "payments-platform-12"},
		{"payments-platform-12", 11, "payme…rm-12"}, {"payments-platform-12", 2, "p…"}, {"日本語日本語", 7, "日…本語"}, {"abc日本語日本語", 7, "ab…本語"},
		{"\x1b[1mpayments-12\x1b[0m", 6, "\x1b[1mpay\x1b[0m…\x1b[1m12\x1b[0m"},
	} {
		if got := ClipMiddle(c.s, c.width); got != c.want {
			t.Errorf("%q at %d: %q", c.s, c.width, got)
		}
	}
	rows := &Table{Columns: []Column{{Most: 10}, {Fit: Cut}}}
	rows.Row(Styled("payments-platform-1", Plain), Styled(strings.Repeat("words ", 20), Plain))
	rows.Row(Styled("payments-platform-2", Plain), Styled("words", Plain))
	for i, lines := range New(nil, nil, nil, nil).TableRows(rows, 40) {
		if want := fmt.Sprintf("payme…rm-%d  words", i+1); !strings.HasPrefix(lines[0], want) {
			t.Errorf("%q", lines)
		}
	}
}
