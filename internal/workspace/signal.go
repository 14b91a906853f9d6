package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/journal"
)

// Awaits returns a fault if a person's signal would be rejected: no live run has the step, or a process serves the repo
// and the step is not at work. A signal in a repo whose state cannot be read here is for the daemon to judge.
func (p *Workspace) Awaits(ctx context.Context, step, run string) error {
	v, served, err := p.View(ctx)
	if err != nil {
		return nil //nolint:nilerr // the daemon looks at the file
	}
	defer v.Close()
	st, err := v.Status(ctx, "")
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	var known []string
	advice, there := "`sluice status` shows what is", false
	for _, r := range st.Runs {
		if !r.Live() {
			continue
		}
		for _, s := range r.Steps {
			switch {
			case !strings.EqualFold(s.ID, step):
				known = append(known, s.ID)
				continue
			case !served || s.State == engine.Running && (run == "" || run == r.ID):
				return nil
			case s.Held != nil:
				advice = "`sluice handback " + daemon.Named(s.ID, r.ID, true) + " --done` says that the step you took over is done"
			}
			there = true
		}
	}
	if there {
		return fault.Failed(advice, "no attempt of %s is at work now", text.Line(step))
	}
	advice = text.MeantOr("`sluice status` names the steps", "", step, known)
	return fault.Failed(advice, "no step %q in a live run", text.Line(step))
}

// PutSignal writes a whole file into the inbox, and never over a waiting one.
func (p *Workspace) PutSignal(run, name string, data []byte) (string, error) {
	dir := filepath.Join(p.Root, filepath.FromSlash(layout.SignalsDir))
	if run != "" && ids.ValidRun(run) {
		dir = filepath.Join(dir, run)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	err := atomicfile.WriteNew(file, data, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", fault.Failed("sluice has not read it yet; remove it if you have changed your mind",
			"%s exists already", layout.ShortPath(file))
	}
	return file, err
}

// SignedAs returns what a signed answer names this repo by: the journal's id, which is the same on
// each machine; of a journal without one, the repo's id on this machine.
func (p *Workspace) SignedAs() string { return cmp.Or(journal.IDIn(p.State), p.ID) }
