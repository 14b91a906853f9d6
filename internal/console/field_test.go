package console

import (
	"strings"
	"testing"
)

// TestLongTextsKeepTheirWords: at the width of a terminal, fields, texts and notes break between words.
func TestLongTextsKeepTheirWords(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("somewhat longer words ", 20))
	for what, write := range map[string]func(*Console){
		"a field": func(c *Console) { c.Field("failure", words) },
		"a text":  func(c *Console) { c.Text("failure", words+"\n"+words) },
		"a note":  func(c *Console) { c.Marked("note", words) },
	} {
		out := &sized{columns: 100}
		write(New(nil, nil, out, out))
		for l := range strings.SplitSeq(strings.TrimRight(out.String(), "\n"), "\n") {
			if last := l[strings.LastIndex(l, " ")+1:]; len(l) > 100 || !strings.Contains("somewhat longer words", last) {
				t.Errorf("%s: %q", what, l)
			}
		}
		if n := strings.Count(out.String(), "somewhat"); n%20 != 0 || n == 0 {
			t.Errorf("%s: %d of its words are there", what, n)
		}
		piped := &sized{}
		write(New(nil, nil, piped, piped))
		if !strings.Contains(piped.String(), words) {
			t.Errorf("%s, without a terminal: %q", what, piped)
		}
	}
}

// TestLongCellsPadNoOther: without a terminal, a long value does not move what follows it in other rows.
func TestLongCellsPadNoOther(t *testing.T) {
	rows := &Table{Columns: []Column{{}, {Fit: Wrapped}, {Fit: Below}}}
	for _, v := range []string{"1s", strings.Repeat("x", 300)} {
		rows.Row(Styled("key", Plain), Styled(v, Plain), Styled("built-in", Plain))
	}
	want := "key  1s" + strings.Repeat(" ", padMost) + "built-in\nkey  " + strings.Repeat("x", 300) + "  built-in\n"
	if got := printed(0, rows); got != want {
		t.Errorf("%q", got)
	}
}
