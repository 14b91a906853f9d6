package launch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/agents"
)

// StopAll ends every launch of a key: its own, and those of its criteria and corrections. main is
// how its own ended.
func (ls *Launches) StopAll(ctx context.Context, key string) (main *agents.Exit, some bool, err error) {
	own := ls.PIDFile(key)
	// Forbid before looking: a start on its way (by a daemon just killed) is either seen below, or
	// sees that it is forbidden.
	if err := ls.opt.Runner.Forbid(own); err != nil {
		return nil, false, err
	}
	dir, name := filepath.Dir(own), strings.TrimSuffix(filepath.Base(own), ".pid")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	var faults []error
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), name)
		if !ok || !strings.HasSuffix(rest, ".pid") || rest != ".pid" && rest[0] != '+' && rest[0] != '=' {
			continue
		}
		proc, err := ls.Adopt(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, agents.ErrTorn) {
			if err := ls.endTorn(ctx, key+strings.TrimSuffix(rest, ".pid")); err != nil {
				faults = append(faults, err)
			}
			continue
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		some = true
		if err := proc.Stop(ctx); err != nil {
			faults = append(faults, err)
			continue
		}
		exit, err := proc.Wait(ctx)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		ls.Cage.opt.Vacate(filepath.Join(dir, entry.Name()))
		ls.ends(key + strings.TrimSuffix(rest, ".pid")) // whoever waited for it was told to wait no more
		if rest == ".pid" {
			main = &exit
		}
	}
	if len(faults) == 0 {
		ls.ends(key) // also of one that could not be started
	}
	return main, some, errors.Join(faults...)
}
