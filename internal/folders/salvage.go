package folders

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// salvageTime is the time limit of Salvage.
const salvageTime = 2 * time.Minute

// Salvage keeps what an agent's attempt left in its checkout, committed or not, on a ref of
// sluice's, so that a person can look at it later. A failure stops nothing.
func (x *takings) Salvage(ctx context.Context, j job.Job, st *engine.Step) {
	if st.Run != nil || x.opt.Git == nil || j.Attempt.Reads {
		return
	}
	var b tree.Begin
	if layout.Load(x.AttemptFile(j.Run, st.ID, j.Attempt.N, layout.BeganFile), &b) != nil || b.Top == "" {
		return // it was never begun
	}
	ctx, cancel := context.WithTimeout(ctx, salvageTime)
	defer cancel()
	name := layout.AttemptName(j.Run, st.ID, j.Attempt.N)
	message := fmt.Sprintf("%s: what attempt %d of %s left\n", j.Run, j.Attempt.N, st.ID)
	if base := cmp.Or(b.Head, b.Found); base != "" {
		message += "\nBase: " + base + "\n"
	}
	left, err := x.opt.Git.Salvage(ctx, b.Top, name, message)
	if err == nil && j.RunInfo.Workspace == "" && layout.IsFile(x.recordFile(j, folderRecord, b.Top)) {
		err = x.NoteFolder(ctx, j, b.Top, func(r *Record) { r.Left = left })
	}
	if err != nil {
		x.Logf("%s: %v", name, err)
	}
}
