package show

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/agents"
	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/text"
)

// tailPace is how often a followed file is read. At most tailLines lines of its last tailBytes
// bytes are printed.
const (
	tailPace  = 200 * time.Millisecond
	tailLines = 10_000
	tailBytes = 1 << 20
)

// PlainLine returns a line for a person.
func PlainLine(line string) []string { return []string{text.Clean(line, engine.MaxOutput)} }

// eventsOf returns a function that turns a line of a program's stream into lines for a person.
func eventsOf(con *console.Console, format string) func(string) []string {
	r := program.NewReader(format, time.Now)
	return func(line string) (out []string) {
		for _, e := range r.Line([]byte(line)) {
			out = append(out, eventLines(con, e)...)
		}
		return out
	}
}

// eventLines returns an event as lines. An agent wrote its texts.
func eventLines(con *console.Console, e program.Event) (out []string) {
	signs := map[program.Kind][2]string{
		program.Began:  {"— begins", console.Dim},
		program.Tool:   {"▸", console.Blue},
		program.File:   {"✎", console.Green},
		program.Failed: {"✗", console.Red},
		program.Denied: {"⊘ not allowed:", console.Yellow},
		program.Retry:  {"↻", console.Dim},
		program.Limit:  {"⏳ usage limit:", console.Yellow},
		program.Ended:  {"— ended:", console.Dim},
	}
	sign, style := signs[e.Kind][0], signs[e.Kind][1]
	first := con.Paint(style, strings.TrimSpace(sign+" "+text.Line(e.Name)))
	for i, line := range strings.Split(strings.TrimSpace(e.Text), "\n") {
		line = text.Clean(line, engine.MaxOutput)
		switch {
		case i == 0:
			line = strings.TrimSpace(first + " " + line)
		case sign != "" && i == eventLinesMost:
			return append(out, con.Paint(console.Dim, "  …"))
		case sign != "":
			line = "  " + line
		}
		out = append(out, line)
	}
	return out
}

// eventLinesMost is how many lines of a tool's text are shown; --raw has all.
const eventLinesMost = 5

// NewestPart returns the file with the newest output: what exceeds the head of a stream goes to a
// file beside it.
func NewestPart(file string) string {
	if _, err := os.Lstat(file + agents.TailSuffix); err == nil {
		return file + agents.TailSuffix
	}
	return file
}

// openOutput opens an agent's output. It refuses a pipe or a device, with which an agent could
// block the reader.
func openOutput(name string) (*os.File, error) {
	f, _, err := atomicfile.Open(filepath.Dir(name), filepath.Base(name))
	return f, err
}

// nextPart opens the file in which the output continues, and returns the offset to read from; nil
// while that is f.
func nextPart(f *os.File, file string) (next *os.File, from int64) {
	name := NewestPart(file)
	next, err := openOutput(name)
	if err != nil {
		return nil, 0
	}
	was, err1 := f.Stat()
	is, err2 := next.Stat()
	if err1 != nil || err2 != nil || os.SameFile(was, is) {
		next.Close()
		return nil, 0
	}
	if name == file { // it has ended, and its parts, read before, were joined
		from = is.Size()
	}
	return next, from
}

// Tail prints the end of a file and, with follow, what is added to it until over reports that
// nothing more will be; nil = it never does. A missing file is empty: a silent launch has none. say turns
// one of its lines into lines for a person.
func Tail(ctx context.Context, con *console.Console, file string, lines int, follow bool, say func(string) []string,
	over func() bool) error {
	t := &tailed{con: con, file: file, say: say}
	defer func() { _ = t.f.Close() }()
	var buf []byte
	err := t.open()
	if t.f != nil {
		buf, t.at, err = lastBytes(t.f)
	}
	if err != nil {
		return err
	}
	if i := strings.LastIndexByte(string(buf), '\n'); follow && i+1 < len(buf) { // its end follows
		t.rest, buf = string(buf[i+1:]), buf[:i+1]
	}
	var all []string
	if end := strings.TrimRight(string(buf), "\n"); end != "" {
		for l := range strings.SplitSeq(end, "\n") {
			all = append(all, say(l)...)
		}
	}
	con.PrintLines(all[max(len(all)-max(min(lines, tailLines), 0), 0):])
	if !follow {
		return nil
	}
	return t.follow(ctx, over)
}

// tailed is an output of which what is added is printed.
type tailed struct {
	con  *console.Console
	file string
	f    *os.File // nil while there is none
	at   int64    // where it was read to
	rest string   // of a line that has not ended
	say  func(string) []string
}

// open opens the newest part of the output if there is one.
func (t *tailed) open() (err error) {
	if t.f, err = openOutput(NewestPart(t.file)); errors.Is(err, fs.ErrNotExist) {
		t.f, err = nil, nil
	}
	return err
}

func (t *tailed) follow(ctx context.Context, over func() bool) error {
	tick := time.NewTicker(tailPace)
	defer tick.Stop()
	last := false // what is read now is the end
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch n, err := t.read(); {
		case err != nil:
			return err
		case n > 0:
		case last:
			if t.rest != "" {
				t.con.PrintLines(t.say(t.rest))
			}
			return nil
		default:
			last = over != nil && over()
		}
	}
}

// read prints what was added, and returns how many bytes that was. It goes on to the next part of the output.
func (t *tailed) read() (int, error) {
	if t.f == nil {
		if err := t.open(); t.f == nil {
			return 0, err
		}
	}
	// Before the read: what is written after it is in the next file.
	next, from := nextPart(t.f, t.file)
	buf, err := io.ReadAll(io.NewSectionReader(t.f, t.at, tailBytes))
	t.at += int64(len(buf))
	switch {
	case next != nil && err == nil && len(buf) == 0:
		t.f.Close()
		t.f, t.at = next, from
		return 1, nil // there may be more
	case next != nil:
		next.Close() // it is found again
	}
	if err != nil {
		return 0, err
	}
	parts := strings.Split(t.rest+string(buf), "\n")
	t.rest = parts[len(parts)-1]
	if len(t.rest) > tailBytes {
		parts, t.rest = append(parts, ""), ""
	}
	for _, l := range parts[:len(parts)-1] {
		t.con.PrintLines(t.say(l))
	}
	return len(buf), nil
}

// Sayer returns the function that turns a launch's output into lines for a person.
func Sayer(con *console.Console, dir string) func(string) []string {
	if prog, ok := launch.ReadProgram(dir); ok && program.Known(prog.Format) {
		return eventsOf(con, prog.Format)
	}
	return PlainLine
}

// lastBytes returns at most tailBytes of the end of an output, and where they end.
func lastBytes(f *os.File) ([]byte, int64, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	at := max(st.Size()-tailBytes, 0)
	buf, err := io.ReadAll(io.NewSectionReader(f, at, tailBytes))
	return buf, at + int64(len(buf)), err
}
