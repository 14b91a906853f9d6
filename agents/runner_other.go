//go:build !linux && !darwin

package agents

import (
	"context"
	"time"
)

const openSafely = 0

// BootID is not supported here: it returns ErrUnsupported.
func BootID() (string, error) { return "", ErrUnsupported }

// Uptime is not supported here: it returns ErrUnsupported.
func Uptime() (time.Duration, error) { return 0, ErrUnsupported }

// Ensure is not supported here: it returns ErrUnsupported.
func (r *Runner) Ensure(context.Context, Spec) (*Proc, error) { return nil, ErrUnsupported }

// Adopt is not supported here: it returns ErrUnsupported.
func (r *Runner) Adopt(pidFile, dir string) (*Proc, error) { return nil, ErrUnsupported }

// Wait is not supported here: it returns ErrUnsupported.
func (p *Proc) Wait(context.Context) (Exit, error) { return Exit{}, ErrUnsupported }

// Over is not supported here: it returns false.
func (p *Proc) Over() bool { return false }

// Stop is not supported here: it returns ErrUnsupported.
func (r *Runner) Stop(context.Context, Spec) error { return ErrUnsupported }

// Forbid is not supported here: it returns ErrUnsupported.
func (r *Runner) Forbid(pidFile string) error { return ErrUnsupported }

func (r *Runner) stop(context.Context, identity, string) error { return ErrUnsupported }

// host is not to be had here.
type host struct{}

type ongoing struct{}

// Close does nothing here.
func (r *Runner) Close() error { return nil }

// Sweep finds nothing here, as nothing can have been launched.
func (r *Runner) Sweep(token string) (killed int) { return 0 }

// ShimMain is not supported here: it returns exit code 1.
func ShimMain(args []string) int { return 1 }
