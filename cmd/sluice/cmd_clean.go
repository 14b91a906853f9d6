package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

func cleanCommand(a *app) *cobra.Command {
	var keep int
	var older string
	var dry bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "remove the transcripts of old runs, never the journal",
		Long: `Removes .workflow/runs/<run>/ of runs that have ended: prompts, outputs, answers. What was
decided stays in the journal and the audit. Asks first.`,
		Example: "sluice clean --keep 5 --older 30d\nsluice clean --older 2w --dry-run",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			span, err := days(older)
			if err != nil {
				return err
			}
			return cleanRuns(cmd.Context(), a, keep, span, dry)
		},
	}
	cmd.Flags().IntVar(&keep, "keep", 10, "leave the newest `N` ended runs")
	cmd.Flags().StringVar(&older, "older", "7d", "only those that ended longer than this `TIME` ago: 12h, 7d, 2w")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return a.JSONFlag(cmd)
}

// days reads a span of time that may be in days or weeks.
func days(s string) (time.Duration, error) {
	for unit, span := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if num, ok := strings.CutSuffix(s, unit); ok {
			if n, err := strconv.Atoi(num); err == nil && n >= 0 && n < 10000 {
				return time.Duration(n) * span, nil
			}
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fault.Misused("as 12h, 7d or 2w", "--older %s: no span of time", clean(s))
}

// oldRun is a folder of transcripts that may go.
type oldRun struct {
	Run   string    `json:"run"`
	Ended time.Time `json:"ended,omitzero"`
	Bytes int64     `json:"bytes"`
	dir   string
}

func cleanRuns(ctx context.Context, a *app, keep int, older time.Duration, dry bool) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	old, err := oldRuns(ctx, &a.Console, p, keep, older)
	if err != nil {
		return err
	}
	if a.JSON && dry {
		return a.Document(map[string]any{"removed": false, "runs": old})
	}
	var sum int64
	for _, o := range old {
		sum += o.Bytes
		if !a.JSON {
			a.Print("%s  %s  %s", console.Pad(o.Run, 30), console.Pad(render.Size(o.Bytes), 8), a.Paint(console.Dim, "ended "+render.Ago(a.Now().Sub(o.Ended))+" ago"))
		}
	}
	if len(old) == 0 && !a.JSON {
		a.Print("Nothing to remove.")
	}
	if len(old) == 0 || dry {
		if a.JSON {
			return a.Document(map[string]any{"removed": true, "runs": []oldRun{}})
		}
		return nil
	}
	if yes, err := a.Ask(fmt.Sprintf("Remove the transcripts of %s (%s)? The journal stays.", plural(len(old), "run"), render.Size(sum))); err != nil || !yes {
		return errors.Join(err, notDone(err))
	}
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	for _, o := range old {
		if err := os.RemoveAll(o.dir); err != nil {
			return err
		}
		if err := repo.Drop(ctx, o.Run); err != nil {
			return err
		}
	}
	if err := repo.Compact(ctx); err != nil {
		return err
	}
	if a.JSON {
		return a.Document(map[string]any{"removed": true, "runs": old})
	}
	a.Print("removed")
	return nil
}

// oldRuns are ended runs beyond the newest `keep` whose end is long enough ago. A folder of no run that is known is left,
// but where its own export says that the run was forgotten: its run may be another checkout's.
func oldRuns(ctx context.Context, con *console.Console, p *workspace.Workspace, keep int, older time.Duration) ([]oldRun, error) {
	v, _, err := workspace.View(ctx, p)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	st, err := v.Status(ctx, "")
	if err != nil {
		return nil, err
	}
	over, err := forgottenRuns(p, st)
	if err != nil {
		return nil, err
	}
	for _, r := range st.Runs {
		if !r.Live() {
			over = append(over, oldRun{Run: r.ID, Ended: r.Ended})
		}
	}
	out := []oldRun{}
	for i := len(over) - 1; i >= 0; i-- {
		o := over[i]
		if keep--; keep >= 0 || con.Now().Sub(o.Ended) < older {
			continue
		}
		o.dir = filepath.Join(p.Root, filepath.FromSlash(layout.RunsDir), o.Run)
		if info, err := os.Lstat(o.dir); err != nil || !info.IsDir() {
			continue
		}
		if o.Bytes, err = sizeOf(o.dir); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// forgottenRuns are the ended runs that have left the state and have a folder still, oldest first. The record of a run
// ends with its being forgotten, which is at its end or later.
func forgottenRuns(p *workspace.Workspace, st daemon.Status) ([]oldRun, error) {
	known := map[string]bool{}
	for _, r := range st.Runs {
		known[r.ID] = true
	}
	dir := filepath.Join(p.Root, filepath.FromSlash(layout.RunsDir))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []oldRun
	for _, e := range entries {
		if !e.IsDir() || known[e.Name()] || !ids.ValidRun(e.Name()) {
			continue
		}
		if at, ok := forgottenAt(filepath.Join(dir, e.Name()), e.Name()); ok {
			out = append(out, oldRun{Run: e.Name(), Ended: at})
		}
	}
	slices.SortStableFunc(out, func(a, b oldRun) int { return a.Ended.Compare(b.Ended) })
	return out, nil
}

// forgottenAt reads in the export of a run's record when the run was forgotten.
func forgottenAt(dir, run string) (at time.Time, ok bool) {
	f, st, err := atomicfile.Open(dir, daemon.RunEvents)
	if err != nil {
		return at, false
	}
	defer f.Close()
	tail := make([]byte, min(st.Size, forgottenMost))
	n, _ := f.ReadAt(tail, st.Size-int64(len(tail))) // what was read counts
	lines := bytes.Split(bytes.TrimSuffix(tail[:n], []byte("\n")), []byte("\n"))
	var l struct {
		At   time.Time
		Fact struct{ Kind, Run string }
	}
	if json.Unmarshal(lines[len(lines)-1], &l) != nil {
		return at, false
	}
	return l.At, l.Fact.Kind == engine.RunForgotten{}.FactKind() && l.Fact.Run == run
}

// forgottenMost is more than the line has that says that a run was forgotten.
const forgottenMost = 4 << 10

func sizeOf(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
