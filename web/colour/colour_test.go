package colour

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"sluice/internal/text/hostile"
	"sluice/tools/conform"
	"sluice/web/visible"
)

// painted returns a text with its coloured parts marked, as in <k:if>.
func painted(t *testing.T, path, text string) string {
	t.Helper()
	source := func(context.Context) ([]byte, error) { return []byte(text), nil }
	lines, err := New().Lines(t.Context(), Key{"1", path}, source)
	if err != nil {
		t.Fatal(err)
	}
	return paint(t, lines, text)
}

func paint(t *testing.T, lines Lines, text string) string {
	t.Helper()
	var out []string
	for i, line := range strings.Split(text, "\n") {
		var b strings.Builder
		at := 0
		for _, s := range lines.At(i + 1) {
			if s.From < at || s.To <= s.From || s.To > len(line) {
				t.Fatalf("line %d: %v of %d bytes after %d", i+1, s, len(line), at)
			}
			b.WriteString(line[at:s.From] + "<" + s.Class + ":" + line[s.From:s.To] + ">")
			at = s.To
		}
		out = append(out, b.String()+line[at:])
	}
	return strings.Join(out, "\n")
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"x.go", "package x\n\n/* a\r\nb */\nfunc f(s string) int { return g(1, \"é\", `r\r\nx`) // end",
			"<k:package> x\n\n<c:/* a\r>\n<c:b */>\n<k:func> <f:f>(s string) int { <k:return> <f:g>(<m:1>, <s:\"é\">, " +
				"<s:`r\r>\n<s:x`>) <c:// end>"},
		{"x.go", "if x { \"open", "<k:if> x { <s:\"open>"},
		{"x.go", "x := `open\n", "x := <s:`open>\n"},
		{"a/b.py", "def f(x):\n\treturn 'a' # c\n", "<k:def> <f:f>(x):\n\t<k:return> <s:'a'> <c:# c>\n"},
		{"x.json", "{\"a\": [1, true]}", "{<n:\"a\">: [<m:1>, <k:true>]}"},
		{"x.sh", "if true; then\n  echo \"$x\"\nfi", "<k:if> true; <k:then>\n  <n:echo> <s:\">$x<s:\">\n<k:fi>"},
		{"x.html", "<b class=\"x\">a</b>", "<<n:b> <n:class>=<s:\"x\">>a</<n:b>>"},
		{"Makefile", "a: b\n\techo $(X)\n", ""},
		{"x.yml", "a: 1\n", ""}, {"x.ts", "const a = 1\n", ""}, {"x.rs", "fn f() {}\n", ""}, {"x.tf", "a = 1\n", ""},
		{"x.toml", "a = 1\n", ""}, {"Dockerfile", "FROM x\nRUN a b\n", ""}, {"x.css", "a { b: 1px }\n", ""},
		{"x.tsx", "const a = <b>c</b>\n", ""}, {"x.c", "int f(void) { return 1; }\n", ""}, {"x.sql", "select 1;\n", ""},
		{"x.txt", "if true\n", "if true\n"},
		{"x.go", "return \xff", "return \xff"},
	} {
		got := painted(t, c.path, c.text)
		switch {
		case c.want == "" && got == c.text:
			t.Errorf("%s has no colour", c.path)
		case c.want != "" && got != c.want:
			t.Errorf("%s:\n%s, want\n%s", c.path, got, c.want)
		}
	}
}

// TestEveryLanguage: each one compiles, and none panics on texts that attack.
func TestEveryLanguage(t *testing.T) {
	l := load()
	if n := len(l.known.Lexers); n < 35 {
		t.Fatalf("%d languages", n)
	}
	for _, lexer := range l.known.Lexers {
		if _, err := lexer.Tokenise(nil, "x"); err != nil {
			t.Errorf("%s: %v", lexer.Config().Name, err)
		}
		for _, s := range []string{"if (x) { return 'a'; } // b\n", strings.Join(hostile.Texts(), "\n")[:1500]} {
			paint(t, chromaLines(t.Context(), lexer, s), s)
		}
	}
}

func TestLimits(t *testing.T) {
	conform.Rule(t, "11-page colour", "only for files that are opened, up to 2,000 lines, cached by …")
	for name, c := range map[string]struct {
		text string
		want int // lines
	}{
		"many lines":  {strings.Repeat("return 1\n", 5000), MaxLines + 1},
		"many bytes":  {strings.Repeat("return \""+strings.Repeat("x", 990)+"\"\n", 1000), MaxBytes/1000 + 1},
		"a long line": {"return 1\nreturn \"" + strings.Repeat("x", 20_000) + "\"\n", 2},
	} {
		lines, err := New().Lines(t.Context(), Key{"1", "x.go"}, func(context.Context) ([]byte, error) {
			return []byte(c.text), nil
		})
		if err != nil || len(lines) != c.want || lines.At(1) == nil || lines.At(c.want+1) != nil || lines.At(0) != nil {
			t.Errorf("%s: %d lines, want %d (%v)", name, len(lines), c.want, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if got := paint(t, chromaLines(ctx, load().known.Get("python"), "return 1\n"), "return 1\n"); got != "return 1\n" {
		t.Errorf("out of time: %s", got)
	}
}

func TestCache(t *testing.T) {
	p := New()
	asked := 0
	get := func(blob int, text string) Lines {
		l, err := p.Lines(t.Context(), Key{fmt.Sprint(blob), "x.go"}, func(context.Context) ([]byte, error) {
			asked++
			return []byte(text), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	get(1, "return")
	if get(1, "other"); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	for i := range 3 * maxFiles {
		get(i+2, "return")
		get(1, "other")
	}
	if asked != 1+3*maxFiles || len(p.kept) != maxFiles || len(p.order) != maxFiles {
		t.Errorf("asked %d times, %d kept", asked, len(p.kept))
	}
	big := strings.Repeat("f(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)\n", MaxLines)
	for i := range 10 {
		get(-i-1, big)
	}
	sum := 0
	for _, l := range p.kept {
		sum += l.size()
	}
	if sum != p.spans || sum > maxSpans {
		t.Errorf("%d spans, counted %d", sum, p.spans)
	}
	wrong := errors.New("wrong")
	_, err := p.Lines(t.Context(), Key{"x", "x.go"}, func(context.Context) ([]byte, error) { return nil, wrong })
	if err != wrong {
		t.Errorf("the source's error: %v", err)
	}
	if _, ok := p.kept[Key{"x", "x.go"}]; ok {
		t.Error("a failure is kept")
	}
}

// TestOneAtATime: who waits for another file's colours can give up, and two who want one file read it once.
func TestOneAtATime(t *testing.T) {
	conform.Rule(t, "11-page colour", "only for files that are opened, up to 2,000 lines, cached by …")
	p := New()
	started, release := make(chan bool), make(chan bool)
	var all sync.WaitGroup
	asked := 0
	for range 2 {
		all.Go(func() {
			_, _ = p.Lines(t.Context(), Key{"1", "x.go"}, func(context.Context) ([]byte, error) {
				asked++
				close(started)
				<-release
				return []byte("return"), nil
			})
		})
	}
	<-started
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := p.Lines(ctx, Key{"2", "x.go"}, func(context.Context) ([]byte, error) { return nil, errors.New("asked") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(release)
	all.Wait()
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func FuzzGo(f *testing.F) {
	for _, s := range hostile.Texts() {
		f.Add(s)
	}
	for _, name := range []string{"colour.go", "golang.go", "colour_test.go"} {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, s string) {
		paint(t, goLines(s), s)
		visible.Line(nil, []byte(s), nil, goLines(s).At(1))
	})
}

func BenchmarkFirst(b *testing.B) {
	src, err := os.ReadFile("lexers/css.xml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		l, err := New().Lines(b.Context(), Key{"1", "x.xml"}, func(context.Context) ([]byte, error) { return src, nil })
		if err != nil || len(l) < 300 {
			b.Fatal(len(l), err)
		}
	}
}
