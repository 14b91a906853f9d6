package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice/agents"
	"sluice/internal/layout"
	"sluice/internal/workspace"
	"sluice/journal"
)

// CutPrefix begins the name of the folder that receives the launch records of forgotten runs.
const CutPrefix = "cut-"

// Forget moves aside the records of runs that the journal lost in a repair, and returns those runs.
// Their numbers will be used again, and a new run must not take the ends of old launches for its own.
// Processes of such runs are ended first.
//
// A launch lost from a run that is still known stays: when the run reaches its key again, the launch is
// adopted, not repeated.
func Forget(ctx context.Context, p *workspace.Workspace) ([]string, error) {
	known, err := runsIn(p.State)
	if err != nil {
		return nil, err
	}
	records := []string{filepath.Join(p.State, "launches"), filepath.Join(p.State, "attempts")}
	var gone []string
	for _, dir := range records {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if run := e.Name(); e.IsDir() && !known[run] && !slices.Contains(gone, run) {
				gone = append(gone, run)
			}
		}
	}
	slices.Sort(gone)
	stamp := fmt.Sprintf("%s%d", CutPrefix, time.Now().UnixNano())
	for _, run := range gone {
		if err := endLaunches(ctx, filepath.Join(records[0], run)); err != nil {
			return nil, err
		}
		for _, dir := range records {
			if err := putAside(filepath.Join(dir, run), filepath.Join(p.State, stamp, filepath.Base(dir), run)); err != nil {
				return nil, err
			}
		}
		runs := filepath.Join(p.Root, filepath.FromSlash(layout.RunsDir))
		if err := putAside(filepath.Join(runs, run), filepath.Join(runs, run+"."+stamp)); err != nil {
			return nil, err
		}
	}
	return gone, nil
}

// runsIn returns the runs in the journal, those forgotten by age included.
func runsIn(state string) (map[string]bool, error) {
	log, _, err := journal.Open(state, journal.Options{})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	known := map[string]bool{}
	err = log.Replay(1, func(rec journal.Record) error {
		for _, fact := range rec.Facts {
			var f struct{ Kind, Run string }
			if err := json.Unmarshal(fact, &f); err != nil {
				return fmt.Errorf("record %d: %w", rec.Seq, err)
			}
			if f.Kind == "run_started" {
				known[f.Run] = true
			}
		}
		return nil
	})
	return known, err
}

// endLaunches ends the running processes of a run.
func endLaunches(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	runner := agents.New(agents.Options{})
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".pid" {
			continue
		}
		proc, err := runner.Adopt(filepath.Join(dir, entry.Name()), "")
		if errors.Is(err, agents.ErrTorn) {
			continue // a disk that failed took what was in it: nothing can be found by it
		}
		if err == nil {
			err = proc.Stop(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putAside renames a folder if it exists.
func putAside(from, to string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(from, to)
}
