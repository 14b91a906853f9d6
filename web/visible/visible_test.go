package visible

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"sluice/internal/text/hostile"
	"sluice/tools/conform"
)

func TestText(t *testing.T) {
	conform.Rule(t, "11-page markup", "markup in everything an agent wrote (names, diff, transcript, …")
	for _, c := range []struct{ in, want string }{
		{`a<b>&"'`, "a&lt;b&gt;&amp;&#34;&#39;"},
		{"a\r", `a<i class="v">&lt;CR&gt;</i>`},
		{"\t\tx\ty", `<i class="t">` + "\t\t</i>x<i class=\"t\">\t</i>y"},
		{"\x00\x08\x1b\x1f\x7f", `<i class="v">&lt;NUL&gt;&lt;BS&gt;&lt;ESC&gt;&lt;US&gt;&lt;DEL&gt;</i>`},
		{"a\xff\xfeb", `a<i class="v">\xff\xfe</i>b`},
		{"\u202e\u200b", `<i class="v">&lt;U+202E&gt;&lt;U+200B&gt;</i>`},
		{"a\u200db\u00a0c", `a<i class="v">&lt;U+200D&gt;</i>b<i class="v">&lt;U+00A0&gt;</i>c`},
		{"\u0085\u2028", `<i class="v">&lt;U+0085&gt;&lt;U+2028&gt;</i>`},
		{"e\u0301\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301\u0301" + `<i class="v">&lt;U+0301&gt;</i>`},
		{"a\nb", `a<i class="v">&lt;LF&gt;</i>b`},
		{"né \u65e5\u672c 👩 �", "né \u65e5\u672c 👩 �"},
	} {
		if got := string(Text(nil, []byte(c.in))); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
	if got, want := String("a\t<\u202e\r"), "a&lt;HT&gt;&lt;&lt;U+202E&gt;&lt;CR&gt;"; got != want {
		t.Errorf("String: %s, want %s", got, want)
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		words, colours []Span
		want           string
	}{
		{nil, nil, "if a\u00e9 &lt;&lt; b"},
		{[]Span{{3, 6, ""}}, nil, "if <b>a\u00e9</b> &lt;&lt; b"},
		{nil, []Span{{0, 2, "k"}, {7, 9, "o"}}, `<i class="k">if</i> a` + "\u00e9" + ` <i class="o">&lt;&lt;</i> b`},
		{[]Span{{1, 8, ""}}, []Span{{0, 2, "k"}, {7, 9, "o"}},
			`<i class="k">i</i><b><i class="k">f</i> a` + "\u00e9" + ` <i class="o">&lt;</i></b><i class="o">&lt;</i> b`},
		{[]Span{{9, 99, ""}}, []Span{{100, 200, "k"}}, "if a\u00e9 &lt;&lt;<b> b</b>"},
	} {
		if got := string(Line(nil, []byte("if a\u00e9 << b"), c.words, c.colours)); got != c.want {
			t.Errorf("%v %v:\n%s, want\n%s", c.words, c.colours, got, c.want)
		}
	}
}

// balanced reports whether HTML of <b>, <i> and text is well nested.
func balanced(s string) bool {
	var open []string
	for {
		_, rest, ok := strings.Cut(s, "<")
		if !ok {
			return len(open) == 0
		}
		tag, after, ok := strings.Cut(rest, ">")
		if !ok {
			return false
		}
		s = after
		if name, end := strings.CutPrefix(tag, "/"); end {
			if len(open) == 0 || open[len(open)-1] != name {
				return false
			}
			open = open[:len(open)-1]
			continue
		}
		name, class, _ := strings.Cut(tag, " ")
		switch class {
		case "", `class="v"`, `class="t"`, `class="k"`:
		default:
			return false
		}
		open = append(open, name)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range hostile.Texts() {
		f.Add([]byte(s), 0, 3, 2, 9)
	}
	f.Fuzz(func(t *testing.T, line []byte, a, b, c, d int) {
		got := string(Line(nil, line, []Span{{a, b, ""}}, []Span{{c, d, "k"}}))
		if !utf8.ValidString(got) || !balanced(got) {
			t.Errorf("%q: %s", line, got)
		}
		for _, r := range got {
			if r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%q: has %U: %s", line, r, got)
			}
		}
		if flat := String(string(line)); strings.ContainsAny(flat, "<>\"'\n\r\t") {
			t.Errorf("%q: an element or a quote: %s", line, flat)
		}
	})
}
