package launch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/agents"
	"sluice/engine"
	"sluice/internal/layout"
)

// StopAll ends every launch of a key: its own, and those of its criteria and corrections. main is
// how its own ended.
func (ls *Launches) StopAll(ctx context.Context, key string) (main *engine.Exit, some bool, err error) {
	// Forbid before looking: a start on its way (by a daemon just killed) is either seen below, or
	// sees that it is forbidden.
	if err := ls.opt.Runner.Forbid(ls.PIDFile(key)); err != nil {
		return nil, false, err
	}
	keys, err := keysOf(ls.Layout, key, "")
	if err != nil {
		return nil, false, err
	}
	var faults []error
	for _, of := range keys {
		exit, there, err := ls.stop(ctx, of)
		some = some || there
		faults = append(faults, err)
		if of == key && exit != nil {
			x := ls.exitOf(*exit, key)
			main = &x
		}
	}
	if err := errors.Join(faults...); err != nil {
		return main, some, err
	}
	ls.ends(key) // also of one that could not be started
	return main, some, nil
}

// stop ends one launch and returns how it ended. there: it had a process.
func (ls *Launches) stop(ctx context.Context, key string) (exit *agents.Exit, there bool, err error) {
	proc, err := ls.Adopt(ls.PIDFile(key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case errors.Is(err, agents.ErrTorn):
		return nil, false, ls.endTorn(ctx, key)
	case err != nil:
		return nil, false, err
	}
	if err := proc.Stop(ctx); err != nil {
		return nil, true, err
	}
	x, err := proc.Wait(ctx)
	if err != nil {
		return nil, true, err
	}
	ls.Cage.opt.Vacate(ls.PIDFile(key))
	ls.ends(key) // whoever waited for it was told to wait no more
	return &x, true, nil
}

// keysOf returns the key of a launch and of those that belong to it, its criteria and corrections, as
// far as each has a pid file or, with a mark, that file beside it.
func keysOf(l layout.Layout, key, mark string) (keys []string, err error) {
	own := l.PIDFile(key)
	entries, err := os.ReadDir(filepath.Dir(own))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was ever launched
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), strings.TrimSuffix(filepath.Base(own), ".pid"))
		rest, is := strings.CutSuffix(rest, ".pid"+mark)
		if ours && is && (rest == "" || rest[0] == '+' || rest[0] == '=') {
			keys = append(keys, key+strings.ReplaceAll(rest, "=", "/")) // as PIDFile has it
		}
	}
	return keys, err
}
