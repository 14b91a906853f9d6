package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sluice/internal/fault"
	"sluice/internal/strictjson"

	"golang.org/x/term"
)

// app is what every command has: its streams, its environment and the flags that all commands share.
type app struct {
	env    []string
	in     io.Reader
	lines  *bufio.Reader // over in, for questions
	out    io.Writer
	err    io.Writer
	now    func() time.Time
	timing timing // of what serves repos
	colour bool   // on out
	dir    string
	yes    bool
	json   bool
	plain  bool // lines, though there is a terminal

	throwAway bool // the repo is removed when the command ends
}

func newApp(env []string, in io.Reader, out, err io.Writer) *app {
	a := &app{env: env, in: in, out: out, err: err, now: time.Now}
	a.colour = a.colourOn(out)
	return a
}

// getenv is the environment run was given, the last of doubles.
func (a *app) getenv(name string) string {
	for i := len(a.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// terminal gives the file of a stream where that is a terminal.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// interactive says that there is somebody to ask.
func (a *app) interactive() bool {
	_, in := terminal(a.in)
	_, out := terminal(a.out)
	return in && out
}

// width is how many characters fit on a line of out; 0 where that is no terminal and nothing is cut.
func (a *app) width() int {
	if f, ok := terminal(a.out); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 0
}

// ask puts a yes-or-no question. --yes answers it; without a terminal it is an error that names the question.
func (a *app) ask(question string) (bool, error) {
	if a.yes {
		return true, nil
	}
	if !a.interactive() {
		return false, fault.Misused("answer it with --yes, or run the command in a terminal", "a question without a terminal to ask it: %s", question)
	}
	fmt.Fprintf(a.out, "%s [y/N] ", question)
	line, err := a.readLine()
	if err != nil {
		return false, nil //nolint:nilerr // the terminal was closed: that is no yes
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}

func (a *app) readLine() (string, error) {
	if a.lines == nil {
		a.lines = bufio.NewReader(io.LimitReader(a.in, 1<<20))
	}
	return a.lines.ReadString('\n')
}

// print writes a line to out.
func (a *app) print(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

// note writes a line to stderr: what a person may want to know and a program need not read.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// document writes v as one JSON document.
func (a *app) document(v any) error { return a.encode(v, "  ") }

// jsonLine writes v as JSON on one line, for streams.
func (a *app) jsonLine(v any) error { return a.encode(v, "") }

// encode writes JSON that is safe to look at: what agents wrote is in it.
func (a *app) encode(v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := a.out.Write(strictjson.Plain(b.Bytes()))
	return err
}
