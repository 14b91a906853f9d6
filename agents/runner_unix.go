//go:build linux || darwin

package agents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"sluice/internal/fault"
)

// Ensure makes sure that the launch exists: it starts a new one, adopts a live one, and returns an
// ended one with its record (by Wait). For one pid file there is at most one start, however often
// and by whomever it is called.
//
// After an error the launch may or may not exist: call Ensure again. What prevents the command
// itself from starting (no such binary, no such folder) is not an error but the launch's Exit.
func (r *Runner) Ensure(ctx context.Context, spec Spec) (*Proc, error) {
	spec, err := spec.checked()
	if err != nil {
		return nil, err
	}
	p, err := r.Adopt(spec.PidFile, spec.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if p := r.recorded(spec); p != nil {
			return p, nil
		}
		id, err := r.launch(ctx, spec)
		if err != nil {
			return nil, fmt.Errorf("agents: launch %.80q: %w", spec.Key, err)
		}
		p = &Proc{r: r, id: id, dir: spec.Dir}
	} else if err != nil {
		return nil, err
	}
	if p.id.Key != spec.Key || p.id.Token != tokenDigest(spec.Token) {
		return nil, fault.New("give each launch a pid file and a token of its own",
			"agents: launch %.80q: pid file %s is of launch %.80q or another token", spec.Key, spec.PidFile, p.id.Key)
	}
	return p, nil
}

// Adopt returns the launch of a pid file, live or ended, without starting anything; fs.ErrNotExist
// means there never was one. dir "" is the folder it was launched with.
func (r *Runner) Adopt(pidFile, dir string) (*Proc, error) {
	id, err := readIdentity(pidFile)
	if err != nil {
		return nil, fmt.Errorf("agents: adopt: %w", err)
	}
	return &Proc{r: r, id: id, dir: cmp.Or(dir, id.Dir)}, nil
}

// recorded returns the ended launch of a spec whose pid file was removed, by an exit.json with its
// key and token, or nil.
func (r *Runner) recorded(spec Spec) *Proc {
	rec, err := readExit(spec.Dir)
	if err != nil || rec.Version != exitVersion || rec.Key != spec.Key || rec.Token != tokenDigest(spec.Token) {
		return nil
	}
	id := identity{
		Version: recordVersion, Key: rec.Key, Pid: rec.Pid, Start: rec.Start, Boot: rec.Boot, Token: rec.Token,
		Dir: spec.Dir, KillAfter: spec.KillAfter, MaxOutput: spec.MaxOutput,
		Launched: rec.Started, Ended: &rec.Exit,
	}
	return &Proc{r: r, id: id, dir: spec.Dir}
}

// ended reports whether the pid file records the launch's end. An unreadable file does not.
func (id identity) ended() bool {
	if id.Ended != nil || id.file == "" {
		return id.Ended != nil
	}
	now, err := readIdentity(id.file)
	return err == nil && now.Ended != nil
}

// live reports whether the shim of this identity is running and has this launch. An error means
// that this is unknown for now (no descriptors left); never take it for "gone".
func (id identity) live() (bool, error) {
	if id.ended() {
		return false, nil
	}
	boot, err := BootID()
	if err != nil || boot != id.Boot {
		return false, err
	}
	p, err := lookProc(id.Pid)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || p.dead || p.start != id.Start {
		return false, err
	}
	env, err := environ(id.Pid)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return true, nil // pid, start time and boot match
	case err != nil:
		return false, err
	}
	return bytes.Contains(append(env, 0), []byte(markVar+"="+id.Mark+"\x00")), nil
}

// gone reports whether the shim is known to be gone. Callers ask again if that is unknown.
func (id identity) gone() bool {
	live, err := id.live()
	return err == nil && !live
}

// hold opens a handle for the live shim; ok is false if it is gone. It opens the handle before the
// check, so that it holds the process it checked.
func (id identity) hold() (h handle, ok bool, err error) {
	h, err = open(id.Pid)
	if errors.Is(err, fs.ErrNotExist) {
		return handle{}, false, nil
	}
	if err != nil {
		return handle{}, false, fmt.Errorf("agents: launch %.80q: %w", id.Key, err)
	}
	live, err := id.live()
	if err != nil || !live {
		h.close()
	}
	if err != nil {
		return handle{}, false, fmt.Errorf("agents: launch %.80q: %w", id.Key, err)
	}
	return h, live, nil
}

// Over reports whether the launch is recorded as ended: nothing of it is left.
func (p *Proc) Over() bool { return p.id.ended() }

// Wait returns how the launch ended, once its whole tree is gone. The end of ctx ends the waiting,
// not the process. It may be called repeatedly and concurrently.
func (p *Proc) Wait(ctx context.Context) (Exit, error) {
	if l := p.r.ongoing(p.id.file); l != nil {
		select {
		case <-l.done:
			if l.exit != nil {
				return *l.exit, nil
			}
		case <-ctx.Done():
			return Exit{}, ctx.Err()
		}
	}
	if err := p.waitShim(ctx); err != nil {
		return Exit{}, err
	}
	if p.id.file != "" { // an agent cannot reach this file, but can reach the folder
		if now, err := readIdentity(p.id.file); err == nil && now.Ended != nil && now.Key == p.id.Key {
			return *now.Ended, nil
		}
	}
	rec, err := readExit(p.dir)
	switch {
	case err == nil && rec.of(p.id):
		return rec.Exit, nil
	case err == nil || errors.Is(err, errMalformed):
		p.r.logf("agents: launch %.80q: %s is not its record (%v): taken as lost", p.id.Key, exitFile, err)
	case !errors.Is(err, fs.ErrNotExist):
		return Exit{}, fmt.Errorf("agents: launch %.80q: %w", p.id.Key, err)
	}
	return p.lost(ctx)
}

// lookAgain is the interval at which a waiter checks whether another Runner's shim has finished:
// that shim may go on to other launches.
const lookAgain = 500 * time.Millisecond

// waitShim returns when the shim is gone or has finished this launch.
func (p *Proc) waitShim(ctx context.Context) error {
	h, ok, err := p.id.hold()
	if err != nil {
		return err
	}
	if !ok {
		p.reapDead()
		return nil
	}
	defer h.close()
	for {
		limited, cancel := context.WithTimeout(ctx, lookAgain)
		err := h.wait(limited, p.id.gone)
		cancel()
		switch {
		case err == nil:
			h.reap()
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() == nil:
			return err
		case p.id.ended():
			return nil
		}
	}
}

// reapDead collects the shim if it is a dead child of this process.
func (p *Proc) reapDead() {
	h, err := open(p.id.Pid)
	if err != nil {
		return
	}
	defer h.close()
	if now, err := lookProc(p.id.Pid); err == nil && now.dead && now.start == p.id.Start {
		h.reap()
	}
}

// lost ends what a shim left that could not write its record, and writes the record.
func (p *Proc) lost(ctx context.Context) (Exit, error) {
	boot, err := BootID()
	if err == nil && boot == p.id.Boot {
		_, err = sweep(ctx, p.id.Mark, p.id.Cgroup, p.id.Token)
	}
	if err != nil {
		return Exit{}, err
	}
	joinOutput(p.dir, p.id.MaxOutput)
	e, err := writeFirstExit(p.dir, p.id, Exit{Code: -1, Lost: true, Started: p.id.Launched, Ended: time.Now().UTC()})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// The outcome stands without its record: the next Wait finds the same.
		p.r.logf("agents: launch %.80q: record of its loss: %v", p.id.Key, err)
	}
	return e, nil
}

// Forbid prevents the launch of a pid file, and all under it, from ever starting, including starts
// already under way. A launch whose pid file exists when this returns may be running: stop it.
func (r *Runner) Forbid(pidFile string) error {
	if err := askStop(pidFile); err != nil {
		return fault.New("check that the state folder can be written", "agents: forbid %s: %w", pidFile, err)
	}
	return nil
}

// Stop ends the launch of a spec: TERM to its tree, KILL after its KillAfter. It returns when
// nothing of it is left, at once if it never started or has ended. If a disk failure took the pid
// file, it kills what has its token. It signals only processes with verified identity. It uses only
// PidFile, Dir and Token of the spec.
func (r *Runner) Stop(ctx context.Context, spec Spec) error {
	if err := askStop(spec.PidFile); err != nil {
		return fmt.Errorf("agents: stop %.80q: %w", spec.Key, err)
	}
	p, err := r.Adopt(spec.PidFile, spec.Dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTorn) && spec.Token != "" {
		if spec.Token != "" {
			_, err := sweep(ctx, "", "", tokenDigest(spec.Token))
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	return p.Stop(ctx)
}

// Stop ends the launch: see Runner.Stop. The order holds: the mark is written before the shim is
// signalled, so that a shim which looks sees it.
func (p *Proc) Stop(ctx context.Context) error {
	if p.id.file != "" {
		if err := askStop(p.id.file); err != nil {
			return fmt.Errorf("agents: stop %.80q: %w", p.id.Key, err)
		}
	}
	h, ok, err := p.id.hold()
	if err != nil {
		return err
	}
	if ok {
		err := p.stopShim(ctx, h)
		h.close()
		if err != nil {
			return err
		}
	}
	if err := p.r.unheard(ctx, p.id); err != nil {
		return err
	}
	// Wait cleans up after a shim without a record.
	_, err = p.Wait(ctx)
	return err
}

// stopShim has the live shim end this launch, for which its mark was written before. A shim that
// does not end it in time is killed.
func (p *Proc) stopShim(ctx context.Context, h handle) error {
	id, most := p.id, p.id.KillAfter+p.r.stopMargin
	// The signal ends the launch with the mark, not another one that the shim may have by now. CONT
	// follows, because a suspended process acts only then.
	for _, sig := range []syscall.Signal{stopSignal, syscall.SIGCONT} {
		if err := h.signal(sig); err != nil {
			return fmt.Errorf("agents: stop %.80q: shim %d: %w", id.Key, id.Pid, err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := p.waitEnd(limited)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if live, err := id.live(); err == nil && !live {
		return nil
	}
	p.r.logf("agents: stop %.80q: shim %d did not end it within %v: killed", id.Key, id.Pid, most)
	if err := h.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("agents: stop %.80q: shim %d: %w", id.Key, id.Pid, err)
	}
	return nil
}

// waitEnd returns when the launch has ended or its shim is gone.
func (p *Proc) waitEnd(ctx context.Context) error {
	if l := p.r.ongoing(p.id.file); l != nil {
		select {
		case <-l.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.waitShim(ctx)
}

// Sweep kills processes with SLUICE_TOKEN=token in their environment, and their descendants, until
// it finds none, and returns how many it killed. It is for trees whose shim is gone; Stop ends a
// live shim's.
func (r *Runner) Sweep(token string) (killed int) {
	if token == "" {
		return 0
	}
	killed, err := sweep(context.Background(), "", "", tokenDigest(token))
	if err != nil {
		r.logf("agents: sweep: %v", err)
	}
	return killed
}
