package launch

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"sluice/agents/sandbox"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/settings"
)

// TestUntriedSandbox: without a sandbox a launch goes unheld where the settings allow it. While nobody knows whether
// there is one, nothing is launched, whatever they say.
func TestUntriedSandbox(t *testing.T) {
	missing := fmt.Errorf("%w: bwrap is not installed", sandbox.ErrUnavailable)
	untried := fmt.Errorf("%w: %w", sandbox.ErrUntried, syscall.ENOSPC)
	for _, c := range []struct {
		mode   string
		err    error
		unheld bool
		fatal  bool
	}{
		{settings.SandboxAuto, missing, true, false},
		{settings.SandboxOn, missing, false, true},
		{settings.SandboxAuto, untried, false, false},
		{settings.SandboxOn, untried, false, false},
	} {
		s := settings.Default()
		s.Sandbox.Mode = c.mode
		x := &Cage{opt: CageOptions{Settings: func() settings.Settings { return s },
			Sandbox: func() (*sandbox.Box, error) { return nil, c.err }}}
		_, err := x.Wanted()
		var no *job.Refusal
		if (err == nil) != c.unheld || errors.As(err, &no) != c.fatal {
			t.Errorf("mode %s, %v: %v", c.mode, c.err, err)
		}
		if c.err == untried && !health.Passing(err) {
			t.Errorf("mode %s: a full disk is not tried again: %v", c.mode, err)
		}
	}
}
