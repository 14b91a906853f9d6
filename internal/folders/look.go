package folders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/ids"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

const lookEvery = time.Second

// Look waits for what a step needs of other workflows.
func (x *Folders) Look(ctx context.Context, j job.Job) engine.Event {
	for {
		missing := ""
		for _, pin := range j.Pins {
			if missing = x.unmet(pin); missing != "" {
				break
			}
		}
		x.Note(j.Key, missing)
		if missing == "" {
			return engine.Looked{Run: j.Run, Step: j.Step, Pins: j.Pins}
		}
		if !health.Wait(ctx, lookEvery) {
			x.Note(j.Key, "")
			return nil
		}
	}
}

// unmet names the first missing output of "run/step#n".
func (x *Folders) unmet(pin string) string {
	run, rest, ok := strings.Cut(pin, "/")
	step, number, also := strings.Cut(rest, "#")
	n, err := strconv.Atoi(number)
	if !ok || !also || err != nil || !ids.ValidRun(run) || !ids.Valid(step) {
		return fmt.Sprintf("%.80q names no attempt", pin)
	}
	var c tree.Covered
	err = layout.Load(x.AttemptFile(run, step, n, layout.CheckedFile), &c)
	if errors.Is(err, fs.ErrNotExist) {
		return "" // it was not checked: it declares no outputs
	}
	if err != nil {
		return fmt.Sprintf("what %s made cannot be read: %v", pin, err)
	}
	for base, files := range map[string][]string{x.Root: c.Root, c.Dir: c.Made} {
		for _, f := range files {
			if _, err := os.Stat(filepath.Join(base, filepath.FromSlash(f))); err != nil {
				return fmt.Sprintf("%s, which %s made, is not there: %s", f, pin, fault.WithoutPath(err))
			}
		}
	}
	return ""
}
