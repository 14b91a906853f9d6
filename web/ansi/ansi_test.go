package ansi

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/internal/text/hostile"
)

func TestHTML(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain <b>\n", "plain &lt;b&gt;\n"},
		{"\x1b[31mred\x1b[0m no", `<i class="fg1">red</i> no` + "\n"},
		{"\x1b[1;32;44mx\x1b[22my\x1b[39;49mz", `<i class="fg2 bg4 bold">x</i><i class="fg2 bg4">y</i>z` + "\n"},
		{"\x1b[33mtwo\nlines\x1b[m.", `<i class="fg3">two</i>` + "\n" + `<i class="fg3">lines</i>.` + "\n"},
		{"\u009b91mx", `<i class="fg9">x</i>` + "\n"},
		{"\x1b[38;5;196mx\x1b[38;2;0;0;255my\x1b[38:2::0:255:0mz\x1b[48;5;244mw",
			`<i class="fg9">x</i><i class="fg12">y</i><i class="fg10">z</i><i class="fg10 bg7">w</i>` + "\n"},
		{"\x1b[3;4;9;2mx\x1b[23;24;29;22my\x1b[4:3mz\x1b[4:0m.", `<i class="dim it ul st">x</i>y<i class="ul">z</i>.` + "\n"},
		{"\x1b[7mx\x1b[31my\x1b[27mz", `<i class="fg0 bg7">x</i><i class="bg1">y</i><i class="fg1">z</i>` + "\n"},
		{"\x1b[30;40mhidden\x1b[0;8mtoo", "hiddentoo\n"},
		{"\x1b]8;;https://evil.example\x07link\x1b]8;;\x07", "link\n"},
		{"\x1b]1337;File=inline=1:aGk=\x07\x1b_Gf=100;aGk=\x1b\\\x1bPq#0~\x1b\\x", "x\n"},
		{"\x1b[2J\x1b[H\x1b[10Cx\x1b[?25l\x1b(By", "xy\n"},
		{"10%\r20%\r\ndone", "10%\n20%\ndone\n"},
		{"a\u202eb\u200b\x00\x9b\xc2",
			`a<i class="v">&lt;U+202E&gt;</i>b<i class="v">&lt;U+200B&gt;&lt;NUL&gt;\x9b\xc2</i>` + "\n"},
		{"\u00e2\u00a9é", "\u00e2\u00a9é\n"},
		{"\x1b[31;", "\n"},
		{"\x1b[999999999999999999999mx\x1b[38;5mx\x1b[38;9mx", "xxx\n"},
		{"", ""},
	} {
		if got, left := HTML([]byte(c.in), 10_000); string(got) != c.want || left != 0 {
			t.Errorf("%q (%d left):\n%s, want\n%s", c.in, left, got, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("é", 3000) + "\x1b[31m" + strings.Repeat("x", 100)
	got, left := HTML([]byte(long+"\nnext"), 100_000)
	want := strings.Repeat("é", 2000) + ` <i class="v">… 2100 bytes more</i>` + "\n" + `<i class="fg1">next</i>` + "\n"
	if string(got) != want || left != 0 {
		t.Errorf("%d left: …%s", left, got[3900:])
	}
	got, left = HTML([]byte(strings.Repeat("0123456789\n", 100)), 100)
	if len(got) != 99 || left != 1100-99 {
		t.Errorf("%d bytes, %d left", len(got), left)
	}
	if got, left = HTML([]byte(strings.Repeat("\xff", 1<<20)), 100_000); len(got) > 100_000 || left != 0 {
		t.Errorf("%d bytes, %d left: %s", len(got), left, got[len(got)-100:])
	}
}

func FuzzHTML(f *testing.F) {
	for _, s := range hostile.Texts() {
		f.Add([]byte(s))
		f.Add([]byte("\x1b[1;38;5;9m" + s + "\x1b[7;48;2;1;2;3m" + s))
	}
	class := regexp.MustCompile(`^(v|t|((fg1?\d|bg1?\d|bold|dim|it|ul|st)( |$))+)$`)
	f.Fuzz(func(t *testing.T, in []byte) {
		got, left := HTML(in, 50_000)
		if !utf8.Valid(got) || len(got) > 50_000 || left < 0 || left > len(in) {
			t.Fatalf("%d bytes, %d left of %d: %s", len(got), left, len(in), got)
		}
		d := xml.NewDecoder(strings.NewReader("<pre>" + string(got) + "</pre>"))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatalf("%v: %s", err, got)
			}
			el, ok := token.(xml.StartElement)
			if !ok || el.Name.Local == "pre" {
				continue
			}
			if el.Name.Local != "i" || len(el.Attr) != 1 || !class.MatchString(el.Attr[0].Value) {
				t.Fatalf("%v: %s", el, got)
			}
		}
	})
}
