package launch

import (
	"os"
	"path/filepath"

	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// Box returns the sandbox of launches; nil if they are not held. The error says why a required one
// is missing.
func (x *Cage) Box() (*sandbox.Box, error) {
	s := x.opt.Settings()
	if s.Sandbox.Mode == settings.SandboxOff || x.opt.Sandbox == nil {
		return nil, nil
	}
	b, err := x.opt.Sandbox()
	if err != nil && s.Sandbox.Mode != settings.SandboxOn && s.Trust != engine.TrustSandbox &&
		s.Trust != engine.TrustSigned {
		return nil, nil
	}
	return b, err
}

// Wanted is Box, but its error asks a person to fix the sandbox.
func (x *Cage) Wanted() (*sandbox.Box, error) {
	box, err := x.Box()
	if err != nil {
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
	if key != "" {
		x.opt.Unheld.add(x.PIDFile(key), key+": "+why)
		if err := layout.KeepBriefly(x.PIDFile(key)+layout.OpenMark, opened{key, why}); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(x.ExposedFile(run)); known && err == nil {
		return nil
	}
	// Also if it is known but could not be written.
	return layout.KeepBriefly(x.ExposedFile(run), why)
}

type opened struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// recallOpen reads what was not held when this repo was last served.
func (x *Cage) recallOpen() error {
	marks, err := filepath.Glob(filepath.Join(layout.GlobSafe(x.State), layout.LaunchesDir, "*", "*"+layout.OpenMark))
	if err != nil {
		return err
	}
	for _, m := range marks {
		var o opened
		if layout.Load(m, &o) == nil {
			x.opt.Unheld.add(x.PIDFile(o.Key), o.Key+": "+o.Why)
		}
	}
	files, err := filepath.Glob(filepath.Join(layout.GlobSafe(x.State), layout.AttemptsDir, "*", layout.ExposedName))
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
