package show

import (
	"context"
	"strings"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

// Fact prints a line of the journal; brief: only if it is important for a person.
func Fact(con *console.Console, l daemon.Line, withRun, brief bool) error {
	if con.JSON {
		return con.JSONLine(l)
	}
	s := render.Fact(l.Fact)
	if brief && !s.Key {
		return nil
	}
	con.Print("%s", render.Line(con, l, s, withRun))
	return nil
}

// Explain prints every fact of a step or a gate, and its state.
func Explain(ctx context.Context, con *console.Console, v workspace.Viewer, r daemon.RunStatus, what string) error {
	con.Title("%s of %s", what, r.ID)
	last := int64(0)
	err := v.Facts(ctx, r.ID, 0, false, func(l daemon.Line) error {
		s := render.Fact(l.Fact)
		if s.Step != what && s.Gate != what && !strings.HasPrefix(s.Subject, what+"#") && !strings.HasPrefix(s.Subject, what+".") {
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
		con.Print("%s", render.Line(con, l, s, false))
		return nil
	})
	if err != nil || con.JSON {
		return err
	}
	con.Title("Now")
	for _, s := range r.Steps {
		if s.ID == what {
			con.Print("%s", render.StepLine(con, s, render.NameWidth(r), con.Now()))
		}
		for _, g := range s.Gates {
			if g.ID == what {
				con.Print("%s", render.GateLine(con, g, render.NameWidth(r)))
			}
		}
	}
	for _, w := range r.Waits {
		if w.Step == what || w.Gate == what || w.Step == "" {
			con.Print("  waits %s", render.WaitWords(w, con.Now()))
		}
	}
	return nil
}
