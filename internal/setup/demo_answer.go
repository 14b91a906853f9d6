package setup

import (
	"context"
	"time"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/layout"
	"sluice/internal/show"
	"sluice/internal/workspace"
)

// demoPace is how often one looks whether the gate asks.
const demoPace = 250 * time.Millisecond

// AnswerDemo waits for the last gate, shows what one would look at, and passes it.
func AnswerDemo(ctx context.Context, con *console.Console, p *workspace.Workspace, by string) error {
	tick := time.NewTicker(demoPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s, err := p.Serving(ctx)
		if err != nil || s == nil {
			continue // it comes up, or goes
		}
		shown, err := demoShow(ctx, con, p, s)
		s.Close()
		if err != nil {
			return err
		}
		if !shown {
			continue
		}
		file, err := p.PutSignal("", demoGate+"-pass.md", []byte("looks good\n"))
		if err == nil {
			con.Print("\n%s a person would decide now; %s writes %s\n", con.Paint(console.Yellow, "?"), by,
				layout.ShortPath(file))
		}
		return err
	}
}

// demoShow shows the last gate if it asks.
func demoShow(ctx context.Context, con *console.Console, p *workspace.Workspace, s workspace.Service) (bool, error) {
	st, err := s.Status(ctx, "")
	if err != nil {
		return false, err
	}
	for _, r := range st.Runs {
		for _, g := range r.Gates() {
			if g.ID != demoGate || g.State != engine.OnHuman {
				continue
			}
			full, err := s.Run(ctx, r.ID)
			if err != nil {
				return false, err
			}
			sh, err := show.Gather(ctx, p, s, full, demoGate)
			if err != nil {
				return false, err
			}
			con.Print("")
			show.Print(con, sh)
			return true, nil
		}
	}
	return false, nil
}
