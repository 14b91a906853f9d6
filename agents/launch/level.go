package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// Box returns the sandbox of launches; nil if they are not held. The error says why a required one
// is missing, or why nobody knows yet whether there is one.
func (x *Cage) Box() (*sandbox.Box, error) {
	s := x.opt.Settings()
	if s.Sandbox.Mode == settings.SandboxOff || x.opt.Sandbox == nil {
		return nil, nil
	}
	b, err := x.opt.Sandbox()
	if errors.Is(err, sandbox.ErrUnavailable) && s.Sandbox.Mode != settings.SandboxOn && s.Trust != engine.TrustSandbox &&
		s.Trust != engine.TrustSigned {
		return nil, nil
	}
	return b, err
}

// Wanted is Box, but the error of a missing one asks a person to fix it.
func (x *Cage) Wanted() (*sandbox.Box, error) {
	box, err := x.Box()
	if errors.Is(err, sandbox.ErrUnavailable) {
		err = job.Fatal("%v: the settings require one: see sluice doctor", err)
	}
	return box, err
}

// Level returns what separates the agents of a run from its gates and, for level file, why. The
// empty run stands for runs to come.
func (x *Cage) Level(run string) (level, why string) {
	s := x.opt.Settings()
	if s.Sandbox.Mode == settings.SandboxOff || x.opt.Sandbox == nil {
		return engine.TrustFile, "the sandbox is off"
	}
	if _, err := x.opt.Sandbox(); err != nil {
		return engine.TrustFile, err.Error()
	}
	if why, ok := x.opt.Unheld.any(); ok {
		return engine.TrustFile, "an agent is at work that no sandbox holds: " + why
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if why, ok := x.exposed[run]; ok {
		return engine.TrustFile, why
	}
	return engine.TrustSandbox, ""
}

// Expose records that a launch, or an offered step, of a run is not held. key is the launch's; "" =
// none.
func (x *Cage) Expose(run, key, why string) error {
	x.mu.Lock()
	_, known := x.exposed[run]
	if !known {
		x.exposed[run] = why
	}
	x.mu.Unlock()
	file := x.ExposedFile(run)
	if _, err := os.Lstat(file); !known || err != nil { // also if it is known but could not be written
		if err := layout.KeepBriefly(file, why); err != nil {
			return err
		}
	}
	if key == "" {
		return nil
	}
	pid := x.PIDFile(key)
	x.opt.Unheld.add(pid, key+": "+why)
	return markOpen(file, pid+layout.OpenMark, why)
}

// markOpen marks a launch by another name for the run's mark, which frees nothing when it is removed:
// for each new file ext4 looks through all that were freed nearby in the last minute (recently_deleted
// in Linux, fs/ext4/ialloc.c).
func markOpen(file, mark, why string) error {
	err := os.Link(file, mark)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(mark), 0o700); err == nil {
			err = os.Link(file, mark)
		}
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return layout.KeepBriefly(mark, why) // the file system has no such names
}

// recallOpen reads what was not held when this repo was last served.
func (x *Cage) recallOpen() error {
	launches := filepath.Join(x.State, layout.LaunchesDir)
	marks, err := atomicfile.Glob(launches, "*/*"+layout.OpenMark)
	if err != nil {
		return err
	}
	for _, m := range marks {
		pid := strings.TrimSuffix(m, layout.OpenMark)
		key, err := filepath.Rel(launches, strings.TrimSuffix(pid, filepath.Ext(pid)))
		if err != nil {
			return err
		}
		x.opt.Unheld.add(pid, filepath.ToSlash(key)+": "+layout.WhyExposed(m, "it runs outside the sandbox"))
	}
	files, err := atomicfile.Glob(filepath.Join(x.State, layout.AttemptsDir), "*/"+layout.ExposedName)
	if err != nil {
		return err
	}
	for _, f := range files {
		run := filepath.Base(filepath.Dir(f))
		if why, exposed := x.Exposed(run); exposed {
			x.exposed[run] = why
		}
	}
	return nil
}
