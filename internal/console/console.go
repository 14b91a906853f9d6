package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"sluice/internal/fault"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Console is what a command talks through: its streams, its environment, its clock, and the flags that say how to talk.
type Console struct {
	Env    []string
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Now    func() time.Time
	Yes    bool // --yes answers every question
	JSON   bool // print JSON, for programs
	Plain  bool // lines, though there is a terminal
	Colour bool // on out

	Done <-chan struct{} // closed by Ctrl-C, which ends a question; nil = never

	lines *bufio.Reader // over in, for questions
}

// New returns a console with the colours that out may have.
func New(env []string, in io.Reader, out, err io.Writer) *Console {
	c := &Console{Env: env, In: in, Out: out, Err: err, Now: time.Now}
	c.Colour = c.ColourOn(out)
	return c
}

// Getenv returns a variable of the environment, the last of several.
func (c *Console) Getenv(name string) string {
	for _, kv := range slices.Backward(c.Env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Terminal returns the file of a stream where that is a terminal.
func Terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// Interactive reports whether there is somebody to ask.
func (c *Console) Interactive() bool {
	_, in := Terminal(c.In)
	_, out := Terminal(c.Out)
	return in && out
}

// Asks reports whether a command may ask for what it was not given.
func (c *Console) Asks() bool { return c.Interactive() && !c.Yes && !c.JSON }

// Width is how many characters fit on a line of out; 0 where that is no terminal and nothing is cut.
func (c *Console) Width() int { return widthOf(c.Out) }

func widthOf(w io.Writer) int {
	if s, ok := w.(interface{ Columns() int }); ok { // it writes to a terminal
		return s.Columns()
	}
	if f, ok := Terminal(w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// Ask puts a yes-or-no question. --yes answers it; without a terminal it is an error that names the question.
func (c *Console) Ask(question string) (bool, error) {
	if c.Yes {
		return true, nil
	}
	if !c.Interactive() {
		return false, fault.Misused("answer it with --yes, or run the command in a terminal",
			"there is no terminal to ask: %s", question)
	}
	fmt.Fprintf(c.Out, "%s [y/N] ", question)
	line, err := c.ReadLine()
	if errors.Is(err, context.Canceled) {
		return false, err
	}
	if err != nil {
		return false, nil //nolint:nilerr // the terminal was closed: that is no yes
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}

// ReadLine reads a line of In, of at most a MiB in all. After Ctrl-C its error wraps context.Canceled, and nothing more
// can be read.
func (c *Console) ReadLine() (string, error) {
	if c.lines == nil {
		c.lines = bufio.NewReader(io.LimitReader(c.In, 1<<20))
	}
	type read struct {
		line string
		err  error
	}
	got := make(chan read, 1)
	go func() { // it ends with the line, or with the process
		line, err := c.lines.ReadString('\n')
		got <- read{line, err}
	}()
	select {
	case r := <-got:
		return r.line, r.err
	case <-c.Done:
		fmt.Fprintln(c.Out)
		return "", &fault.Error{Cause: "interrupted: the question was not answered", Code: fault.ExitInterrupted,
			Advice: "give the same command again, and it asks again", Err: context.Canceled}
	}
}

// Print writes a line to out.
func (c *Console) Print(format string, args ...any) { fmt.Fprintf(c.Out, format+"\n", args...) }

// PrintLines writes lines to Out as they are.
func (c *Console) PrintLines(lines []string) {
	for _, l := range lines {
		fmt.Fprintln(c.Out, l)
	}
}

// Note writes a line to stderr, wrapped in a terminal: what a person may want to know and a program need not read.
func (c *Console) Note(format string, args ...any) {
	for _, l := range Wrap(fmt.Sprintf(format, args...), widthOf(c.Err)) {
		fmt.Fprintln(c.Err, l)
	}
}

// Warn is Note for what is wrong, or may be.
func (c *Console) Warn(format string, args ...any) {
	c.Note("%s %s", c.PaintErr(Yellow, "note:"), fmt.Sprintf(format, args...))
}

// Document writes v as one JSON document.
func (c *Console) Document(v any) error { return c.encode(v, "  ") }

// JSONLine writes v as JSON on one line, for streams.
func (c *Console) JSONLine(v any) error { return c.encode(v, "") }

// encode writes JSON that is safe to look at: what agents wrote is in it.
func (c *Console) encode(v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := c.Out.Write(strictjson.Plain(b.Bytes()))
	return err
}

// Report writes what does not work on one line, and what to do on the next. A sentence that begins with the command
// stands for itself: "sluice pass: GATE is missing".
func (c *Console) Report(f *fault.Error) {
	who, what := "sluice:", text.Message(f.What())
	if rest, ok := strings.CutPrefix(what, "sluice "); ok {
		who, what = "sluice", rest
	} else if rest, ok := strings.CutPrefix(what, "sluice: "); ok {
		what = rest
	}
	c.Note("%s %s", c.PaintErr(Red, who), what)
	if f.Advice != "" {
		c.Note("  %s %s", c.PaintErr(Dim, "→"), text.Message(f.Advice))
	}
}
