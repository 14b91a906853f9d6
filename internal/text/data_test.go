package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/internal/text/hostile"
	hold "sluice/tools/conform"
)

// TestControls: where somebody judges a text, nothing of it goes.
func TestControls(t *testing.T) {
	for in, want := range map[string]string{
		"plain\tü\r\n":                       "plain\tü\r\n",
		": \x1b]0;'; run me; : '\x07":        ": <U+001B>]0;'; run me; : '<U+0007>",
		"\u009dhidden\u009c \x1b[31mred":     "<U+009D>hidden<U+009C> <U+001B>[31mred",
		"bell\x00 del\x7f back\x08 \x9b\xff": "bell<U+0000> del<U+007F> back<U+0008> \x9b\xff",
		"adm\u00adin \ufeff\ue000 \u0378":    "adm<U+00AD>in <U+FEFF><U+E000> <U+0378>",
		"a\u200db a\u200cb\u00a0c \u202e":    "a\u200db a\u200cb\u00a0c \u202e", // Reveal keeps these, or shows them
	} {
		if got := Controls(in); got != want || Controls(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSeen: what a person compares has no character that they do not see.
func TestSeen(t *testing.T) {
	for in, want := range map[string]string{
		"plain\tü 漢字 é\r\n":               "plain\tü 漢字 é\r\n",
		"adm\u00adin us\u200der a\u00a0b": "adm<U+00AD>in us<U+200D>er a<U+00A0>b",
		"a\u034fb a\ufe00b 👩\ufe0f":       "a<U+034F>b a<U+FE00>b 👩\ufe0f",
		"\u202e\u200b":                    "\u202e\u200b", // Reveal shows these, in one go
	} {
		if got := Seen(in); got != want || Seen(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestName: two files that look alike have names that do not.
func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"src/ü 漢字.go":            "src/ü 漢字.go",
		"README.md\u200b":        "README.md<U+200B>",
		"a\n  b\tc\u202e\x1b[2J": "a<U+000A>  b<U+0009>c<U+202E><U+001B>[2J",
	} {
		if got := Name(in); got != want || Name(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestReveal(t *testing.T) {
	hold.Rule(t, "4-trust text", "control characters and bidi marks are taken out")
	for _, c := range [][2]string{
		{"plain\ttext\n", "plain\ttext\n"},
		{"a\r\nb\rc\u2028d\u0085e", "a\nb\nc\nd\ne"},
		{"\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://a\x1b\\link", "red xlink"},
		{"\x1b]0;never closed\nnext", "0;never closed\nnext"},
		{"\u009b31mred\u009d0;t\u009cx", "redx"},
		{"\x1b(Bx\x1bcy\x1b", "xy"},
		{"bell\x07 nul\x00 del\x7f back\x08", "bell nul del back"},
		{"a\u202eb", "a<U+202E>b"},
		{"a\u2066\u2067\u2068b", "a<U+2066 and 2 more hidden characters>b"},
		{"zero\u200bwidth", "zero<U+200B>width"},
		{"tags\U000e0069\U000e0067", "tags<U+E0069 and 1 more hidden characters>"},
		{"vs\U000e0100", "vs<U+E0100>"},
		{"blank\u2800\u3164\u115f\u1160\uffa0\U0001d159", "blank<U+2800 and 5 more hidden characters>"},
		{"\ufeffbom so\u00adft", "bom soft"},
		{"👩\u200d💻 é ü 日本 العربية", "👩\u200d💻 é ü 日本 العربية"},
		{"no\u00a0break", "no break"},
		{"bad \xff\xfe utf", "bad \ufffd\ufffd utf"},
	} {
		if got := Reveal(c[0]); got != c[1] {
			t.Errorf("Reveal(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

// block is a fenced block of Markdown.
type block struct {
	info, text string
	closed     bool
}

// blocks returns the fenced blocks of Markdown; the last one may be unclosed.
func blocks(s string) []block {
	var found []block
	var fence Fence
	var body []string
	for l := range strings.SplitSeq(s, "\n") {
		next := fence.Next(l)
		switch {
		case !fence.Open():
			body = nil
		case next.Open():
			body = append(body, strings.TrimSuffix(l, "\r"))
		default:
			found = append(found, block{fence.Info, strings.Join(body, "\n"), true})
		}
		fence = next
	}
	if fence.Open() {
		found = append(found, block{fence.Info, strings.Join(body, "\n"), false})
	}
	return found
}

// blockOf finds the one data block of what Data made, by the rules of CommonMark.
func blockOf(t *testing.T, s string) string {
	t.Helper()
	all := blocks(s)
	if len(all) != 1 || !all[0].closed || all[0].info != "data" {
		t.Fatalf("not one closed data block, but %d: %q", len(all), s)
	}
	return all[0].text
}

func TestDataHoldsWhatItIsGiven(t *testing.T) {
	hold.Rule(t, "1-language values.data", "text of agents stands in a prompt as delimited data")
	for _, payload := range hostile.Texts() {
		got := Data("Label", payload, 8<<10)
		if strings.TrimSpace(Reveal(payload)) == "" {
			if got != "Label: (empty)\n" {
				t.Errorf("Data of nothing = %q", got)
			}
			continue
		}
		held := blockOf(t, got)
		if want := ShortenTicks(strings.Trim(Reveal(payload), "\n"), maxTickRun); held != want {
			t.Errorf("Data(%q) holds %q", payload, held)
		}
	}
}

func TestLabelsStayOnTheirLine(t *testing.T) {
	for _, label := range hostile.Texts() {
		got := Data(label, "x", 100)
		if held := blockOf(t, got); held != "x" {
			t.Errorf("label %q changes the block to %q", label, held)
		}
		first, _, _ := strings.Cut(got, "\n")
		if !strings.HasSuffix(first, ":") {
			t.Errorf("label %q is not one line: %q", label, got)
		}
	}
}

func TestCuts(t *testing.T) {
	long := strings.Repeat("é", 600) // 1200 bytes
	for _, limit := range []int{0, 1, 47, 48, 49, 100, 101, 1199} {
		for name, got := range map[string]string{"head": Head(long, limit), "tail": Tail(long, limit)} {
			if len(got) > max(limit, leftOutRoom) || !utf8.ValidString(got) || !strings.Contains(got, "bytes left out)") {
				t.Errorf("%s(%d): %d bytes: %q", name, limit, len(got), got)
			}
		}
	}
	if got := Head(long, 1200); got != long {
		t.Errorf("what fits is cut: %q", got)
	}
	if got := Head("begin"+strings.Repeat("x", 1<<20), 100); !strings.HasPrefix(got, "begin") || !strings.Contains(got, fmt.Sprintf("(%d bytes left out)", 1<<20+5-52)) {
		t.Errorf("a flood: %q", got)
	}
	if got := Tail(strings.Repeat("x", 1<<20)+"end", 100); !strings.HasSuffix(got, "end") || !strings.HasPrefix(got, fmt.Sprintf("… (%d bytes left out)", 1<<20+3-52)) {
		t.Errorf("a flood's end: %q", got)
	}
	if got := Prose("text\n~~~go\nx := 1\n"+strings.Repeat("y", 5000), 200); !strings.HasSuffix(got, "\n~~~") || len(blocks(got)) != 1 || !blocks(got)[0].closed {
		t.Errorf("a cut block stays open: %q", got)
	}
}

func TestFence(t *testing.T) {
	for _, c := range []struct {
		line  string
		open  Fence
		after Fence
	}{
		{"```go", Fence{}, Fence{"```", "go"}},
		{"   ~~~~ `data` ~", Fence{}, Fence{"~~~~", "`data` ~"}},
		{"``` a `b`", Fence{}, Fence{}}, // code within a line
		{"``", Fence{}, Fence{}},
		{"    ```", Fence{}, Fence{}}, // indented code
		{"\t```", Fence{}, Fence{}},
		{"x ```", Fence{}, Fence{}},
		{"```", Fence{"````", ""}, Fence{"````", ""}},
		{"~~~~", Fence{"````", ""}, Fence{"````", ""}},
		{"```` x", Fence{"````", ""}, Fence{"````", ""}},
		{"  `````  \r", Fence{"````", "data"}, Fence{}},
		{"    ````", Fence{"````", "data"}, Fence{"````", "data"}},
	} {
		if got := c.open.Next(c.line); got != c.after {
			t.Errorf("%+v, then %q: %+v, want %+v", c.open, c.line, got, c.after)
		}
	}
}

func FuzzData(f *testing.F) {
	hold.Rule(f, "1-language values.data", "no text ends its own block")
	for _, s := range hostile.Texts() {
		f.Add(s, 300)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		clean := Reveal(s)
		if again := Reveal(clean); again != clean {
			t.Errorf("Reveal(Reveal(%q)) = %q, not %q", s, again, clean)
		}
		if strings.ContainsAny(clean, "\x1b\x00\r\u202e\u2066\u009b") || !utf8.ValidString(clean) {
			t.Errorf("Reveal(%q) = %q", s, clean)
		}
		got := Data(s, s, limit&0xffff)
		if strings.HasSuffix(got, ": (empty)\n") {
			return
		}
		blockOf(t, got)
		if n := len(got); n > max(limit&0xffff, leftOutRoom)+maxLabel+2*maxTickRun+20 {
			t.Errorf("%d bytes for %d", n, limit&0xffff)
		}
	})
}
