package show

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/agents"
	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// NewestOutput returns the folder of the launch that wrote last. runs are folders below
// .workflow/runs/; id names a step or a gate, "" any.
func NewestOutput(root string, runs []string, id string) (string, error) {
	var best string
	var at time.Time
	pattern := "*"
	if id != "" {
		if !ids.Valid(id) {
			return "", fault.Misused("`sluice status` names the steps", "%q is not the id of a step or gate", text.Line(id))
		}
		pattern = id + ".*"
	}
	var dirs []string
	for _, run := range runs {
		folder := layout.GlobSafe(filepath.Join(root, filepath.FromSlash(layout.RunsDir), filepath.FromSlash(run)))
		for _, glob := range []string{pattern, filepath.Join(pattern, "launch-*")} {
			found, err := filepath.Glob(filepath.Join(folder, glob))
			if err != nil {
				return "", err
			}
			dirs = append(dirs, found...)
		}
	}
	for _, d := range dirs {
		if id == "" && strings.HasPrefix(filepath.Base(d), "after_run.") {
			continue // the run's hook: nobody's words
		}
		if st, err := os.Stat(filepath.Join(d, "stdout")); err == nil && (best == "" || st.ModTime().After(at)) {
			best, at = d, st.ModTime()
		}
	}
	if best == "" {
		return "", fault.Failed("`sluice status` shows what runs", "no output yet of %s", strings.TrimSpace(text.Line(runs[0]+" "+id)))
	}
	return best, nil
}

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
	sign, style := "", console.Plain
	switch e.Kind {
	case program.Began:
		sign, style = "— begins", console.Dim
	case program.Tool:
		sign, style = "▸", console.Blue
	case program.File:
		sign, style = "✎", console.Green
	case program.Failed:
		sign, style = "✗", console.Red
	case program.Denied:
		sign, style = "⊘ not allowed:", console.Yellow
	case program.Retry:
		sign, style = "↻", console.Dim
	case program.Limit:
		sign, style = "⏳ usage limit:", console.Yellow
	case program.Ended:
		sign, style = "— ended:", console.Dim
	}
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

// Tail prints the end of a file and, with follow, what is added to it. say turns one of its lines
// into lines for a person.
func Tail(ctx context.Context, con *console.Console, file string, lines int, follow bool, say func(string) []string) error {
	f, err := openOutput(NewestPart(file))
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	buf, at, err := lastBytes(f)
	if err != nil {
		return err
	}
	rest := ""
	if i := strings.LastIndexByte(string(buf), '\n'); follow && i+1 < len(buf) { // its end follows
		rest, buf = string(buf[i+1:]), buf[:i+1]
	}
	var all []string
	for _, l := range strings.Split(strings.TrimRight(string(buf), "\n"), "\n") {
		all = append(all, say(l)...)
	}
	for _, l := range all[max(len(all)-max(min(lines, tailLines), 0), 0):] {
		con.Print("%s", l)
	}
	tick := time.NewTicker(tailPace)
	defer tick.Stop()
	for follow {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// Before the read: what is written after it is in the next file.
		next, from := nextPart(f, file)
		buf, err := io.ReadAll(io.NewSectionReader(f, at, tailBytes))
		at += int64(len(buf))
		switch {
		case next != nil && err == nil && len(buf) == 0:
			f.Close()
			f, at = next, from
			continue
		case next != nil:
			next.Close() // it is found again
		}
		if err != nil {
			return err
		}
		parts := strings.Split(rest+string(buf), "\n")
		rest = parts[len(parts)-1]
		if len(rest) > tailBytes {
			parts, rest = append(parts, ""), ""
		}
		for _, l := range parts[:len(parts)-1] {
			for _, l := range say(l) {
				con.Print("%s", l)
			}
		}
	}
	return nil
}

// Sayer returns the function that turns a launch's output into lines for a person.
func Sayer(con *console.Console, dir string) func(string) []string {
	if prog, ok := launch.ReadProgram(dir); ok && program.Known(prog.Format) {
		return eventsOf(con, prog.Format)
	}
	return PlainLine
}

// Folders returns the folder of the run and, with all, those of its child runs, whose agent may be
// at work. They are below .workflow/runs/, the run's own first.
func Folders(ctx context.Context, p *workspace.Workspace, run string, all bool) ([]string, error) {
	st, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	id, err := workspace.PickRun(st.Runs, run)
	if err != nil {
		return nil, err
	}
	runs := slices.DeleteFunc(slices.Clone(st.Runs), func(r daemon.RunStatus) bool { return r.ID != id })
	if all {
		runs = append(runs, daemon.Below(st.Runs, id)...)
	}
	var out []string
	for _, r := range runs {
		out = append(out, cmp.Or(r.Dir, r.ID))
	}
	return out, nil
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
