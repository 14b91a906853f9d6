package executor

import (
	"os"
	"path/filepath"
	"strings"

	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// box gives the sandbox that launches are held by; nil where they are not. The error says why there is none though the
// settings want one.
func (e *Executor) box() (*sandbox.Box, error) {
	s := e.opt.Settings()
	if s.Sandbox.Mode == settings.SandboxOff || e.opt.Sandbox == nil {
		return nil, nil
	}
	b, err := e.opt.Sandbox()
	if err != nil && s.Sandbox.Mode != settings.SandboxOn && s.Trust != engine.TrustSandbox && s.Trust != engine.TrustSigned {
		return nil, nil
	}
	return b, err
}

// Level says what stands between the agents of a run and its gates, and, where that is nothing, why. The empty run is for
// what is to come.
func (e *Executor) Level(run string) (level, why string) {
	s := e.opt.Settings()
	if s.Sandbox.Mode == settings.SandboxOff || e.opt.Sandbox == nil {
		return engine.TrustFile, "the sandbox is off"
	}
	if _, err := e.opt.Sandbox(); err != nil {
		return engine.TrustFile, err.Error()
	}
	if why, ok := e.opt.Unheld.any(); ok {
		return engine.TrustFile, "an agent is at work that no sandbox holds: " + why
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if why, ok := e.exposed[run]; ok {
		return engine.TrustFile, why
	}
	return engine.TrustSandbox, ""
}

// exposedFile says of a run that some launch of it was not held: it has level file for good.
func (e *Executor) exposedFile(run string) string {
	return filepath.Join(e.State, layout.AttemptsDir, layout.PathElement(run), "exposed")
}

// expose notes that a launch, or an offered step, of a run is not held. key is of the launch, "" for none.
func (e *Executor) expose(run, key, why string) error {
	e.mu.Lock()
	_, known := e.exposed[run]
	if !known {
		e.exposed[run] = why
	}
	e.mu.Unlock()
	if key != "" {
		e.opt.Unheld.add(e.PIDFile(key), key+": "+why)
		if err := layout.KeepBriefly(e.PIDFile(key)+layout.OpenMark, opened{key, why}); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(e.exposedFile(run)); known && err == nil {
		return nil
	}
	return layout.KeepBriefly(e.exposedFile(run), why) // also where it is known, yet could not be written
}

// opened is what the mark of a launch that is not held says.
type opened struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// recallOpen finds what was not held when this repo was served last.
func (e *Executor) recallOpen() error {
	marks, err := filepath.Glob(filepath.Join(globSafe(e.State), layout.LaunchesDir, "*", "*"+layout.OpenMark))
	if err != nil {
		return err
	}
	for _, m := range marks {
		var o opened
		if layout.Load(m, &o) == nil {
			e.opt.Unheld.add(e.PIDFile(o.Key), o.Key+": "+o.Why)
		}
	}
	files, err := filepath.Glob(filepath.Join(globSafe(e.State), layout.AttemptsDir, "*", "exposed"))
	if err != nil {
		return err
	}
	for _, f := range files {
		var why string
		if err := layout.Load(f, &why); err != nil { // a power cut: that it was there says enough
			why = "a launch of it was not held by a sandbox"
		}
		e.exposed[filepath.Base(filepath.Dir(f))] = why
	}
	return nil
}

func globSafe(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
