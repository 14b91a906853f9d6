package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/agents/program"
	"sluice/internal/text/hostile"
	"sluice/tools/conform"
)

func write(t testing.TB, dir, name, s string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// texts returns the lines of a piece.
func texts(p Piece) (out []string) {
	for _, l := range p.Lines {
		out = append(out, l.HTML)
	}
	return out
}

// TestWays: back from the end, and on from the beginning, the pieces have each line once.
func TestWays(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stdout", numbered(0, 50_000))
	o := Output{Dir: dir, Name: "stdout"}
	p, err := o.End()
	if err != nil {
		t.Fatal(err)
	}
	var back []string
	for n := 0; ; n++ {
		if len(p.Lines) > MaxLines || p.Gap {
			t.Fatalf("%d lines, gap %v", len(p.Lines), p.Gap)
		}
		back = append(texts(p), back...)
		if p.Earlier == nil {
			break
		}
		if p, err = o.Before(*p.Earlier); err != nil || n > 100 {
			t.Fatal(n, err)
		}
	}
	if got := strings.Join(back, "\n") + "\n"; got != numbered(0, 50_000) {
		t.Errorf("back: %d lines: %.50s…", len(back), got)
	}
	var on []string
	at, _ := ParsePos("0")
	for more := true; more; {
		if p, err = o.After(at); err != nil || len(p.Lines) == 0 || p.Later == at {
			t.Fatal(at, err)
		}
		on, at, more = append(on, texts(p)...), p.Later, p.More
	}
	if got := strings.Join(on, "\n") + "\n"; got != numbered(0, 50_000) {
		t.Errorf("on: %d lines: %.50s…", len(on), got)
	}
}

// TestGrows: lines are there when they have ended, and the next place goes on where they stop.
func TestGrows(t *testing.T) {
	dir := t.TempDir()
	o := Output{Dir: dir, Name: "stdout"}
	if _, err := o.End(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no output: %v", err)
	}
	write(t, dir, "stdout", "one\ntw")
	p, err := o.End()
	check := func(want ...string) {
		t.Helper()
		if got := texts(p); err != nil || strings.Join(got, "|") != strings.Join(want, "|") || p.Gap {
			t.Errorf("%q, want %q (%v, gap %v)", got, want, err, p.Gap)
		}
	}
	check("one")
	p, err = o.After(p.Later)
	check()
	write(t, dir, "stdout", "one\ntwo\nthr")
	p, err = o.After(p.Later)
	check("two")
	o.Ended = true
	p, err = o.After(p.Later)
	check("thr")
	p, err = o.After(p.Later)
	check()
	p, err = o.End()
	check("one", "two", "thr")
}

// TestParts: an output that has gone on in other files is one, and its places hold when they are renamed.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	o := Output{Dir: dir, Name: "stdout"}
	write(t, dir, "stdout", "a\nb\n")
	p, _ := o.End()
	write(t, dir, "stdout.tail", "c\n")
	p, err := o.After(p.Later)
	if got := texts(p); err != nil || strings.Join(got, "|") != "c" {
		t.Fatalf("%q %v", got, err)
	}
	at := p.Later
	if p, err = o.Before(*p.Earlier); err != nil || strings.Join(texts(p), "|") != "a|b" || p.Earlier != nil {
		t.Errorf("%q %v", texts(p), err)
	}
	write(t, dir, "stdout.tail", "c\nd\n")
	if err := os.Rename(filepath.Join(dir, "stdout.tail"), filepath.Join(dir, "stdout.tail.old")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "stdout.tail", "e\n")
	if p, err = o.After(at); err != nil || strings.Join(texts(p), "|") != "d" || !p.More {
		t.Errorf("%q %v", texts(p), err)
	}
	if p, err = o.After(p.Later); err != nil || strings.Join(texts(p), "|") != "e" || p.More {
		t.Errorf("%q %v", texts(p), err)
	}
	var back []string
	for {
		if p, err = o.Before(*p.Earlier); err != nil {
			t.Fatal(err)
		}
		back = append(texts(p), back...)
		if p.Earlier == nil {
			break
		}
	}
	if got := strings.Join(back, "|"); got != "a|b|output may be left out here|c|d" {
		t.Errorf("%q", got)
	}
	write(t, dir, "stdout", "a\nb\nc\nd\ne\nf\n") // all joined
	os.Remove(filepath.Join(dir, "stdout.tail"))
	os.Remove(filepath.Join(dir, "stdout.tail.old"))
	if p, err = o.After(at); err != nil || !p.Gap || strings.Join(texts(p), "|") != "a|b|c|d|e|f" {
		t.Errorf("%q %v, gap %v", texts(p), err, p.Gap)
	}
}

// TestKinds: what programs printed is classified as their readers do.
func TestKinds(t *testing.T) {
	for name, want := range map[string]map[program.Kind]bool{
		"claude-done": {program.Began: true, program.Text: true, program.Ended: true},
		"claude-401":  {program.Began: true, program.Ended: true},
		"codex-done":  {program.Text: true, program.Ended: true},
	} {
		raw, err := os.ReadFile(filepath.Join("../../agents/program/testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var recorded struct{ Stdout []string }
		if err := json.Unmarshal(raw, &recorded); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, dir, "stdout", strings.Join(recorded.Stdout, "\n")+"\n")
		format, _, _ := strings.Cut(name, "-")
		p, err := Output{Dir: dir, Name: "stdout", Format: format, Ended: true}.End()
		got := map[program.Kind]bool{}
		for _, l := range p.Lines {
			got[l.Kind] = true
		}
		for k := range want {
			if !got[k] {
				t.Errorf("%s: no line is %s: %+v (%v)", name, k, p.Lines, err)
			}
		}
		said := map[Pos]bool{}
		for _, l := range p.Lines {
			said[l.At] = true
		}
		if p.Unsaid+len(said) != len(recorded.Stdout) {
			t.Errorf("%s: %d lines say nothing, %d something, of %d", name, p.Unsaid, len(said), len(recorded.Stdout))
		}
	}
}

func TestLongLines(t *testing.T) {
	dir := t.TempDir()
	long, longer, longest := strings.Repeat("x", 300<<10), strings.Repeat("y", 3<<20), strings.Repeat("z", 20<<20)
	write(t, dir, "stdout", "a\n"+long+"\nb\n"+longer+"\nc\n"+longest+"\nd\n")
	o := Output{Dir: dir, Name: "stdout", Ended: true}
	var back []string
	p, err := o.End()
	for n := 0; ; n++ {
		if err != nil || n > 20 {
			t.Fatal(n, err)
		}
		back = append(texts(p), back...)
		if p.Earlier == nil {
			break
		}
		p, err = o.Before(*p.Earlier)
	}
	shown := strings.Repeat("x", 4000) + fmt.Sprintf(` <i class="v">… %d bytes more</i>`, 300<<10-4000)
	want := []string{"a", shown, "b", fmt.Sprintf("a line of %d bytes is not shown", 3<<20), "c"}
	if len(back) != 9 || strings.Join(back[:5], "\n") != strings.Join(want, "\n") || back[8] != "d" ||
		!strings.Contains(back[7], "a line of 8388608 bytes") {
		for _, s := range back {
			t.Errorf("%.60s", s)
		}
	}
	var on []string
	at := Pos{}
	for n, more := 0, true; more; n++ {
		if p, err = o.After(at); err != nil || n > 20 {
			t.Fatal(n, err)
		}
		on, at, more = append(on, texts(p)...), p.Later, p.More
	}
	if len(on) != 9 || strings.Join(on[:5], "\n") != strings.Join(want, "\n") || on[8] != "d" {
		for _, s := range on {
			t.Errorf("%.60s", s)
		}
	}
}

// TestHuge: a file of 1 GB is read in little memory, wherever one looks.
func TestHuge(t *testing.T) {
	conform.Rule(t, "11-page transcript", "from the end, 256 kB at a time by offset, at most 2,000 lines on …")
	dir := t.TempDir()
	write(t, dir, "stdout", numbered(0, 100))
	const size = 1 << 30
	if err := os.Truncate(filepath.Join(dir, "stdout"), size); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "stdout"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "\n"+numbered(0, 3000))
	f.Close()
	o := Output{Dir: dir, Name: "stdout"}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := o.End()
	if err != nil || len(p.Lines) != MaxLines || p.Lines[0].HTML != "line 1000" {
		t.Fatal(len(p.Lines), err)
	}
	if p, err = o.Before(*p.Earlier); err != nil || len(p.Lines) != 1000 {
		t.Fatal(len(p.Lines), err)
	}
	if p, err = o.Before(*p.Earlier); err != nil || len(p.Lines) != 1 || p.Lines[0].Kind != Note {
		t.Fatal(p, err)
	}
	if p, err = o.After(Pos{at: size / 2}); err != nil || len(p.Lines) != 1 {
		t.Fatal(len(p.Lines), err)
	}
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 40 {
		t.Errorf("%d MB allocated for five pieces", used)
	}
}

// TestFlood: what grows when it is shown is bounded, and what is left out is said.
func TestFlood(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stdout", strings.Repeat(strings.Repeat("\u202e", 1000)+"\n", 80))
	o := Output{Dir: dir, Name: "stdout"}
	p, err := o.End()
	size := 0
	for _, l := range p.Lines {
		size += len(l.HTML)
	}
	if err != nil || size > MaxHTML || len(p.Lines) == 0 || p.Earlier == nil {
		t.Errorf("%d bytes in %d lines, earlier %v (%v)", size, len(p.Lines), p.Earlier, err)
	}
	write(t, dir, "stdout", strings.Repeat("x\r", 1500)+"\n")
	p, err = o.End()
	last := p.Lines[len(p.Lines)-1]
	if err != nil || len(p.Lines) != 1001 || last.HTML != "500 more lines" || !last.Follow {
		t.Errorf("%d lines, the last %+v (%v)", len(p.Lines), last, err)
	}
	tool := `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"1\n2\n3\n4\n` +
		`5\n6\n<b>"}}]}}`
	write(t, dir, "stdout", tool+"\n")
	o.Format = "claude"
	p, err = o.End()
	if err != nil || len(p.Lines) != 6 || p.Lines[0].Name != "Bash" || p.Lines[0].Kind != program.Tool ||
		p.Lines[5].HTML != "2 more lines" || p.Lines[5].Kind != Note {
		t.Errorf("%+v (%v)", p.Lines, err)
	}
}

func TestPos(t *testing.T) {
	for _, s := range []string{"0", "1234", "77.1234"} {
		if p, ok := ParsePos(s); !ok || p.String() != s {
			t.Errorf("%s: %v %v", s, p, ok)
		}
	}
	for _, s := range []string{"", "-1", "+1", "01", "0.1", "x", "1.", ".1", "1.2.3", "1.-2", "99999999999999999999"} {
		if p, ok := ParsePos(s); ok {
			t.Errorf("%q: %v", s, p)
		}
	}
}

// TestNotAFile: what an agent put there instead of its output is not opened.
func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "stdout")); err != nil {
		t.Fatal(err)
	}
	if p, err := (Output{Dir: dir, Name: "stdout"}).End(); err == nil {
		t.Errorf("%+v", p)
	}
}

func FuzzPiece(f *testing.F) {
	for _, s := range hostile.Texts() {
		f.Add([]byte(s+"\n"+s), int64(3), true)
		said, _ := json.Marshal(s)
		line := `{"type":"assistant","message":{"content":[{"type":"text","text":` + string(said) + `}]}}` + "\n"
		f.Add([]byte(line), int64(0), false)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, in []byte, at int64, ended bool) {
		write(t, dir, "stdout", string(in))
		for _, format := range append(program.Names(), "") {
			o := Output{Dir: dir, Name: "stdout", Format: format, Ended: ended}
			for _, read := range []func() (Piece, error){
				o.End, func() (Piece, error) { return o.Before(Pos{at: max(at, 0)}) },
				func() (Piece, error) { return o.After(Pos{at: max(at, 0)}) },
			} {
				p, err := read()
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range p.Lines {
					if !utf8.ValidString(l.HTML) || strings.Contains(l.HTML, "<a") || strings.Contains(l.HTML, "\n") {
						t.Fatalf("%q", l.HTML)
					}
				}
			}
		}
	})
}
