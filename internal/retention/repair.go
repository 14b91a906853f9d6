package retention

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/journal"
)

// Repair cuts the journal of a repo that no process serves back to its line `to`, after a yes, and
// moves what the journal does not know any more aside.
func Repair(ctx context.Context, con *console.Console, p *workspace.Workspace, to int64) error {
	if is, err := journal.Exists(p.State); err != nil || !is {
		return cmp.Or(err, fault.Failed("`sluice ls` lists the runs", "%s: there is no journal", p.Root))
	}
	return p.Locked(func() error {
		rep, verr := journal.Verify(p.State, journal.Options{})
		con.Note("the journal has %s that are valid", text.Plural(int(rep.Records), "line"))
		if verr != nil {
			con.Note("%s", text.Message(verr.Error()))
		}
		yes, err := con.Ask(fmt.Sprintf("Cut the journal of %s back to line %d?", p.Root, to))
		if err != nil {
			return err
		}
		if !yes {
			return fault.Exit(fault.ExitFailed)
		}
		return cutBack(ctx, con, p, to)
	})
}

func cutBack(ctx context.Context, con *console.Console, p *workspace.Workspace, to int64) error {
	done, err := journal.Repair(p.State, to, journal.Options{})
	if err != nil {
		return err
	}
	gone, err := Forget(ctx, p)
	if err != nil {
		return fault.New("repair again",
			"the journal ends at line %d now; the files of runs it no longer knows could not be put aside: %w", done.Last, err)
	}
	if con.JSON {
		return con.Document(map[string]any{"last": done.Last, "cut_bytes": done.CutBytes, "kept_in": done.CutFile,
			"snapshots": append([]string{}, done.Snapshots...), "forgotten": append([]string{}, gone...)})
	}
	con.Print("the journal ends at line %d now; %d bytes were cut", done.Last, done.CutBytes)
	if done.CutFile != "" {
		con.Print("kept in %s", done.CutFile)
	}
	if len(gone) > 0 {
		con.Print("it no longer knows %s: their agents were ended, their files are in %s* beside the journal and in %s",
			strings.Join(gone, ", "), CutPrefix, layout.RunsDir)
	}
	return nil
}
