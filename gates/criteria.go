package gates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/text"
)

const (
	maxWhyOutput    = 8 << 10 // bytes of a failed command's output in the feedback
	maxWhyFiles     = 100
	maxWhyFileBytes = 5 << 10
)

// CheckInput is what a step must have done.
type CheckInput struct {
	Root     string // the repo's root
	Worktree string // the step's: absolute, or below the root; "" = the root
	Shown    string // the worktree's name for people; "" = itself
	Beside   string // also searched for outputs and criteria that name one; "" = none
	Outputs  []string
	Criteria []engine.Criterion

	// Run runs the command of criterion i. A nonzero code means that the criterion does not hold
	// (below 0: ended by a signal); an error, that the command could not be run.
	Run func(ctx context.Context, i int, c engine.Command) (exit int, output string, err error)
}

// LooksAtFiles reports whether the check needs the worktree's files. What runs has its own checkout.
func (in CheckInput) LooksAtFiles() bool {
	return len(in.Outputs) > 0 || slices.ContainsFunc(in.Criteria, func(c engine.Criterion) bool { return c.File != "" })
}

// Check checks whether the outputs exist and the criteria hold. It checks all files, so that all
// missing ones are reported; it runs commands in order until something fails. Text goes to
// ToReview. Broken means that the check itself failed, which counts as nobody's failure. Digest and
// Protected are left to the caller.
//
// A path in .workflow/ is relative to the root, any other to the worktree. A path that leads out of
// the repo, also through a link, does not hold.
func Check(ctx context.Context, in CheckInput) engine.CheckResult {
	g, err := newGround(in.Root, in.Worktree)
	if err != nil {
		return engine.CheckResult{Broken: text.RevealLine(err.Error(), maxInline)}
	}
	c := check{in: in, g: g}
	if in.Shown != "" {
		c.g.shown = in.Shown
	}
	for _, out := range in.Outputs {
		c.file("output", out, false, false)
	}
	for i, criterion := range in.Criteria {
		switch {
		case criterion.Command != nil:
			c.command(ctx, i, *criterion.Command)
		case criterion.File != "":
			c.file("file", criterion.File, criterion.NonEmpty, criterion.Folder)
		default:
			c.review = append(c.review, text.Reveal(criterion.Text))
		}
	}
	if c.broken != "" {
		return engine.CheckResult{Broken: c.broken}
	}
	if why := c.why(); why != "" {
		return engine.CheckResult{Why: why}
	}
	return engine.CheckResult{OK: true, ToReview: c.review}
}

type check struct {
	in      CheckInput
	g       ground
	files   []string // lines on faulty files
	failed  string   // the first command that failed
	skipped []string // commands skipped after it
	review  []string
	broken  string
}

func (c *check) file(what, p string, nonEmpty, inFolder bool) {
	base := c.g.base(p)
	info, err := c.g.stat(base, p)
	if errors.Is(err, fs.ErrNotExist) && c.in.Beside != "" && base == c.g.worktree &&
		(inFolder || slices.Contains(c.in.Outputs, p)) {
		beside := ground{root: c.in.Beside, worktree: c.in.Beside}
		if info2, err2 := beside.stat(c.in.Beside, p); err2 == nil {
			base, info, err = c.in.Beside, info2, nil
		}
	}
	where := ""
	switch {
	case errors.Is(err, errLeaves):
		where = "leads out of the repo, where nothing is looked at"
	case errors.Is(err, fs.ErrNotExist):
		where = "is missing (looked in " + c.g.place(base) + ")"
	case err != nil:
		where = "cannot be looked at (" + text.RevealLine(fault.WithoutPath(err).Error(), maxLabel) + ")"
	case !info.Mode().IsRegular() && !info.IsDir():
		where = "exists but is not a file (" + kindOf(info.Mode()) + ", in " + c.g.place(base) + ")"
	case nonEmpty && isEmpty(filepath.Join(base, filepath.FromSlash(p)), info):
		where = "is there but empty (looked in " + c.g.place(base) + ")"
	}
	if where != "" {
		c.files = append(c.files, fmt.Sprintf("- %s %s %s", what, text.Code(p), where))
	}
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// isEmpty reports whether a file has no bytes, or a folder no entries.
func isEmpty(p string, info fs.FileInfo) bool {
	if !info.IsDir() {
		return info.Size() == 0
	}
	f, err := os.Open(p)
	if err != nil {
		return true
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func (c *check) command(ctx context.Context, i int, command engine.Command) {
	words := text.Code(CommandWords(command))
	if c.broken != "" {
		return
	}
	if c.failed != "" || len(c.files) > 0 {
		c.skipped = append(c.skipped, words)
		return
	}
	if err := ctx.Err(); err != nil {
		c.broken = "criterion " + words + ": stopped: " + err.Error()
		return
	}
	exit, output, err := c.in.Run(ctx, i, command)
	switch {
	case err != nil:
		c.broken = fmt.Sprintf("criterion %s could not be checked: %s", words, text.RevealLine(err.Error(), maxInline))
	case exit != 0:
		c.failed = fmt.Sprintf("- %s %s, run in %s.\n", words, exitWords(exit), c.g.place(c.g.worktree))
		c.failed += "\n" + text.DataEnd("The end of its output", output, maxWhyOutput)
	}
}

// CommandWords returns a command as a person would type it.
func CommandWords(c engine.Command) string {
	if c.Shell != "" {
		return c.Shell
	}
	words := make([]string, 0, len(c.Argv))
	for _, a := range c.Argv {
		if a.Source == "" || strings.ContainsAny(a.Source, " \t\n\"'\\$`;&|<>()*?") {
			words = append(words, strconv.Quote(a.Source))
			continue
		}
		words = append(words, a.Source)
	}
	return strings.Join(words, " ")
}

func exitWords(exit int) string {
	switch {
	case exit < 0:
		return "was ended by a signal"
	case exit == 126:
		return "ended with exit code 126 (it cannot be executed)"
	case exit == 127:
		return "ended with exit code 127 (no such command)"
	}
	return fmt.Sprintf("ended with exit code %d", exit)
}

// why returns the feedback: what does not hold.
func (c *check) why() string {
	if len(c.files) == 0 && c.failed == "" {
		return ""
	}
	var out strings.Builder
	if len(c.files) > 0 {
		out.WriteString("Not all files are there that the step must produce:\n\n")
		shown := c.files[:min(len(c.files), maxWhyFiles)]
		out.WriteString(text.Head(strings.Join(shown, "\n"), maxWhyFileBytes) + "\n")
		if more := len(c.files) - len(shown); more > 0 {
			fmt.Fprintf(&out, "- … and %d more\n", more)
		}
	}
	if c.failed != "" {
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		out.WriteString("The success criterion does not hold:\n\n" + c.failed)
	}
	if len(c.skipped) > 0 {
		out.WriteString("\nNot run, because of this: " + text.RevealLine(strings.Join(c.skipped, ", "), maxInline) + ".\n")
	}
	return text.Head(strings.TrimSpace(out.String()), engine.MaxFeedback)
}
