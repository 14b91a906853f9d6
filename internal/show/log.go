package show

import (
	"context"
	"strings"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

// Log prints lines of the journal.
type Log struct {
	con  *console.Console
	all  bool
	log  render.Log
	Left int // how many lines of bookkeeping were not printed
}

// NewLog returns a log that prints the journal for a person: all of it, or only what is important. JSON is complete.
func NewLog(con *console.Console, withRun, all bool) *Log {
	return &Log{con: con, all: all, log: render.Log{WithRun: withRun}}
}

// Fact prints a line of the journal.
func (g *Log) Fact(l daemon.Line) error {
	if g.con.JSON {
		return g.con.JSONLine(l)
	}
	s := render.Fact(l.Fact)
	if !g.all && s.Bookkeeping() {
		g.Left++
		return nil
	}
	g.con.PrintLines(g.log.Lines(g.con, l, s))
	return nil
}

// Explain prints every fact of a step or a gate, and its state.
func Explain(ctx context.Context, con *console.Console, v workspace.Viewer, r daemon.RunStatus, what string) error {
	con.Title("%s of %s", what, r.ID)
	last, log := int64(0), render.Log{}
	err := v.Facts(ctx, r.ID, 0, false, func(l daemon.Line) error {
		s := render.Fact(l.Fact)
		if s.Step != what && s.Gate != what && !strings.HasPrefix(s.Subject, what+"#") &&
			!strings.HasPrefix(s.Subject, what+".") {
			return nil
		}
		if con.JSON {
			return con.JSONLine(l)
		}
		lead := "  "
		if l.Seq == last {
			lead = "└ "
		}
		last = l.Seq
		s.Text = lead + s.Text
		con.PrintLines(log.Lines(con, l, s))
		return nil
	})
	if err != nil || con.JSON {
		return err
	}
	con.Title("Now")
	for _, s := range r.Steps {
		if s.ID == what {
			con.PrintLines(render.StepLines(con, s, con.Now()))
		}
		for _, g := range s.Gates {
			if g.ID == what && g.Listed() {
				con.PrintLines(render.GateLines(con, g, con.Now()))
			}
		}
	}
	for _, w := range r.Waits {
		if w.Step == what || w.Gate == what || w.Step == "" {
			con.PrintWrapped(2, console.Styled(render.WaitWords(w, con.Now()), console.Plain))
		}
	}
	return nil
}
