package doctor

import (
	"context"
	"fmt"
	"slices"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/text"
)

// Check is what doctor says of one thing.
type Check struct {
	What   string `json:"what"`
	State  string `json:"state"` // ok, warn, fail
	Says   string `json:"says"`
	Advice string `json:"fix,omitempty"`

	fix *fix // what can be done about it here
}

// Fine is a check of what is as it should be.
func Fine(what, format string, args ...any) Check {
	return Check{What: what, State: "ok", Says: fmt.Sprintf(format, args...)}
}

// Warned is a check of what works, but less well than it could.
func Warned(what, advice, format string, args ...any) Check {
	return Check{What: what, State: "warn", Says: fmt.Sprintf(format, args...), Advice: advice}
}

// Broken is a check of what does not work.
func Broken(what, advice, format string, args ...any) Check {
	return Check{What: what, State: "fail", Says: fmt.Sprintf(format, args...), Advice: advice}
}

// Print writes the checks, as JSON where that is asked for. Its error is the exit code alone.
func Print(con *console.Console, checks []Check) error {
	failures := 0
	for _, c := range checks {
		if c.State == "fail" {
			failures++
		}
	}
	if con.JSON {
		if err := con.Document(map[string]any{"ok": failures == 0, "checks": checks}); err != nil {
			return err
		}
	} else {
		for _, c := range checks {
			style := map[string]string{"ok": console.Green, "warn": console.Yellow, "fail": console.Red}[c.State]
			t := &console.Table{Columns: []console.Column{{Least: stateWidth}, {Least: whatWidth}, {Fit: console.Wrapped}}}
			t.Row(console.Styled(c.State, style), console.Styled(c.What, console.Plain),
				console.Styled(text.Message(c.Says), console.Plain))
			con.PrintTable(t)
			if c.Advice != "" {
				con.PrintWrapped(stateWidth+whatWidth+4, console.Styled("→ "+text.Message(c.Advice), console.Dim))
			}
		}
	}
	if failures > 0 {
		return fault.Exit(fault.ExitFailed)
	}
	return nil
}

// Widths of the columns of states and of what was checked.
const (
	stateWidth = 4
	whatWidth  = 10
)

// fix is what doctor can do about a fault, once somebody has said yes.
type fix struct {
	question string
	do       func(ctx context.Context) error
}

// WithFix returns the check with what fixes it, and the question that comes before.
func (c Check) WithFix(question string, do func(ctx context.Context) error) Check {
	c.fix = &fix{question, do}
	return c
}

// Fix fixes what a person says yes to, each fault by itself, and reports whether anything was
// fixed. Without a terminal and without --yes it fixes nothing and says how to.
func Fix(ctx context.Context, con *console.Console, checks []Check) (done bool, err error) {
	can := slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.fix == nil || c.State == "ok" })
	if len(can) == 0 {
		return false, nil
	}
	if !con.Yes && !con.Interactive() {
		con.Note("%s can be fixed here: run `sluice doctor --yes`, or run it in a terminal to be asked",
			text.Plural(len(can), "fault"))
		return false, nil
	}
	con.Print("")
	for _, c := range can {
		yes, err := con.Ask(c.fix.question)
		if err != nil {
			return done, err
		}
		if !yes {
			continue
		}
		if err := c.fix.do(ctx); err != nil {
			con.Print("%s  %s", con.Paint(console.Red, "not fixed"), text.Message(err.Error()))
			continue
		}
		done = true
		con.Print("%s  %s", con.Paint(console.Green, "fixed"), c.What)
	}
	return done, nil
}
