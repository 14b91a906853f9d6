package retention

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/workspace"
)

// Run is a run whose folder of transcripts may be removed.
type Run struct {
	Run   string    `json:"run"`
	Ended time.Time `json:"ended,omitzero"`
	Bytes int64     `json:"bytes"`
	dir   string
}

// Old returns the ended runs beyond the newest `keep` that ended at least `older` ago. The folder of an
// unknown run may belong to another checkout: it counts only if its export says the run was forgotten.
func Old(ctx context.Context, con *console.Console, p *workspace.Workspace, keep int,
	older time.Duration) ([]Run, error) {
	st, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	over, err := forgottenRuns(p, st)
	if err != nil {
		return nil, err
	}
	for _, r := range st.Runs {
		if !r.Live() {
			over = append(over, Run{Run: r.ID, Ended: r.Ended})
		}
	}
	out := []Run{}
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

// Remove removes the folders of runs and the refs of their attempts.
func Remove(ctx context.Context, p *workspace.Workspace, old []Run) error {
	repo, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	for _, o := range old {
		for _, dir := range []string{o.dir, filepath.Join(p.State, layout.ReviewsDir, o.Run)} {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		if err := repo.Drop(ctx, o.Run); err != nil {
			return err
		}
	}
	return repo.Compact(ctx)
}

// forgottenRuns returns the runs that have left the state and still have a folder, oldest first.
func forgottenRuns(p *workspace.Workspace, st daemon.Status) ([]Run, error) {
	known := map[string]bool{}
	for _, r := range st.Runs {
		known[r.ID] = true
	}
	dir := filepath.Join(p.Root, filepath.FromSlash(layout.RunsDir))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []Run
	for _, e := range entries {
		if !e.IsDir() || known[e.Name()] || !ids.ValidRun(e.Name()) {
			continue
		}
		if at, ok := forgottenAt(filepath.Join(dir, e.Name()), e.Name()); ok {
			out = append(out, Run{Run: e.Name(), Ended: at})
		}
	}
	slices.SortStableFunc(out, func(a, b Run) int { return a.Ended.Compare(b.Ended) })
	return out, nil
}

// forgottenAt reads from the export of a run when the run was forgotten: its last line.
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

// forgottenMost is more bytes than that line has.
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
