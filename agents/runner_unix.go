//go:build linux || darwin

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Ensure makes the launch be: one that never started it starts, a live one it
// adopts, of an ended one it gives the record (by Wait). However often and by
// however many it is called for one pid file, there is at most one start.
//
// After an error the launch may or may not be: call Ensure again. What keeps
// the command itself from starting (no such binary, no such folder) is no
// error but the launch's Exit.
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
		if err := r.launch(ctx, spec); err != nil {
			return nil, fmt.Errorf("agents: launch %.80q: %w", spec.Key, err)
		}
		p, err = r.Adopt(spec.PidFile, spec.Dir)
	}
	if err != nil {
		return nil, err
	}
	if p.id.Key != spec.Key || p.id.Token != tokenDigest(spec.Token) {
		return nil, fmt.Errorf("agents: launch %.80q: pid file %s is of launch %.80q or another token: give each launch a pid file and a token of its own",
			spec.Key, spec.PidFile, p.id.Key)
	}
	return p, nil
}

// Adopt gives the launch of a pid file, live or ended, without starting
// anything; fs.ErrNotExist means that there never was one. dir "" is the
// folder it was launched with.
func (r *Runner) Adopt(pidFile, dir string) (*Proc, error) {
	id, err := readIdentity(pidFile)
	if err != nil {
		return nil, fmt.Errorf("agents: adopt: %w", err)
	}
	if dir == "" {
		dir = id.Dir
	}
	return &Proc{r: r, id: id, dir: dir}, nil
}

// recorded is the launch of a spec whose pid file was removed but which has
// ended: its exit.json names it, token and all.
func (r *Runner) recorded(spec Spec) *Proc {
	rec, err := readExit(spec.Dir)
	if err != nil || rec.Key != spec.Key || rec.Token != tokenDigest(spec.Token) {
		return nil
	}
	id := identity{Version: recordVersion, Key: rec.Key, Pid: rec.Pid, Start: rec.Start, Boot: rec.Boot, Token: rec.Token,
		Dir: spec.Dir, KillAfter: spec.KillAfter, MaxOutput: spec.MaxOutput, Launched: rec.Started}
	if !rec.of(id) {
		return nil
	}
	return &Proc{r: r, id: id, dir: spec.Dir}
}

// launch starts a shim and returns when the pid file is there: this shim's,
// or that of another that was first.
func (r *Runner) launch(ctx context.Context, spec Spec) error {
	if len(r.shim) == 0 {
		return errors.New("no shim command: set Options.Shim")
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if len(data) > maxSpecBytes {
		return fmt.Errorf("spec of %d bytes: the limit is %d: pass large texts in files", len(data), maxSpecBytes)
	}
	for _, dir := range []string{filepath.Dir(spec.PidFile), spec.Dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	shim, to, from, err := r.startShim(spec)
	if err != nil {
		return err
	}
	defer to.Close()
	defer from.Close()
	limit := time.Now().Add(claimLimit)
	for _, f := range []*os.File{to, from} {
		if err := f.SetDeadline(limit); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() {
		_ = to.SetDeadline(time.Unix(1, 0))
		_ = from.SetDeadline(time.Unix(1, 0))
	})
	defer stop()

	_, werr := to.Write(data)
	to.Close()
	said, rerr := io.ReadAll(io.LimitReader(from, maxRefusalBytes))
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	switch answer := strings.TrimSpace(string(said)); {
	case answer == saysClaimed:
		return shim.Release()
	case answer == saysTaken:
		_, err := shim.Wait()
		return err
	default:
		// One that claims this very moment is ended with it: that launch then
		// counts as lost.
		_ = shim.Kill()
		_, _ = shim.Wait()
		return fmt.Errorf("shim %q: no answer: %s: see that it can be run", r.shim[0], firstOf(answer, werr, rerr))
	}
}

func firstOf(answer string, errs ...error) string {
	if answer != "" {
		return answer
	}
	if err := errors.Join(errs...); err != nil {
		return err.Error()
	}
	return "it ended without a word"
}

// startShim starts the shim in a session of its own, with a pipe to give it
// the spec and one to hear from it as its only descriptors. Neither is kept:
// the shim replaces them once it has claimed the launch.
func (r *Runner) startShim(spec Spec) (shim *os.Process, to, from *os.File, err error) {
	specR, specW, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer specR.Close()
	answerR, answerW, err := os.Pipe()
	if err != nil {
		specW.Close()
		return nil, nil, nil, err
	}
	defer answerW.Close()
	shim, err = os.StartProcess(r.shim[0], r.shim, &os.ProcAttr{
		Env:   []string{markVar + "=" + markOf(spec.Key, tokenDigest(spec.Token))},
		Files: []*os.File{specR, answerW, answerW},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		specW.Close()
		answerR.Close()
		return nil, nil, nil, fmt.Errorf("shim: %w: set Options.Shim to an absolute path that can be run", err)
	}
	return shim, specW, answerR, nil
}

// live reports whether the shim of this identity runs. An error is that this
// cannot be told just now (no descriptors left): never taken for "gone".
func (id identity) live() (bool, error) {
	boot, err := bootID()
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
		return true, nil // pid, start time and boot agree
	case err != nil:
		return false, err
	}
	return bytes.Contains(append(env, 0), []byte(markVar+"="+id.mark()+"\x00")), nil
}

// gone is for those who ask again when it cannot be told.
func (id identity) gone() bool {
	live, err := id.live()
	return err == nil && !live
}

// hold takes hold of the live shim; ok is false if it is gone. The order
// counts: first the handle, then the check, so that what was checked is what
// is held.
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

// Wait returns how the launch ended, once its whole tree is gone. The end of
// ctx ends the waiting, not the process. It may be called any number of
// times, by several goroutines too.
func (p *Proc) Wait(ctx context.Context) (Exit, error) {
	if err := p.waitShim(ctx); err != nil {
		return Exit{}, err
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

func (p *Proc) waitShim(ctx context.Context) error {
	h, ok, err := p.id.hold()
	if err != nil {
		return err
	}
	if ok {
		defer h.close()
		if err := h.wait(ctx, p.id.gone); err != nil {
			return err
		}
		h.reap()
		return nil
	}
	// It may still be a dead child of this process.
	if h, err := open(p.id.Pid); err == nil {
		defer h.close()
		if now, err := lookProc(p.id.Pid); err == nil && now.dead && now.start == p.id.Start {
			h.reap()
		}
	}
	return nil
}

// lost ends what a shim left that could not write its record, and writes it.
func (p *Proc) lost(ctx context.Context) (Exit, error) {
	boot, err := bootID()
	if err == nil && boot == p.id.Boot {
		_, err = sweep(ctx, p.id.Key, p.id.Cgroup, p.id.Token)
	}
	if err != nil {
		return Exit{}, err
	}
	joinOutput(p.dir, p.id.MaxOutput)
	e, err := writeFirstExit(p.dir, p.id, Exit{Code: -1, Lost: true, Started: p.id.Launched, Ended: time.Now().UTC()})
	if err != nil {
		// The outcome holds without its record: the next Wait finds the same.
		p.r.logf("agents: launch %.80q: record of its loss: %v", p.id.Key, err)
	}
	return e, nil
}

// Stop ends the launch of a spec: TERM to its tree, KILL after its KillAfter,
// and returns when nothing of it is left. Of one that never started, or has
// ended, nothing is left. Only a process whose identity was verified is
// signalled. Of the spec only PidFile, Dir and Token are used.
func (r *Runner) Stop(ctx context.Context, spec Spec) error {
	p, err := r.Adopt(spec.PidFile, spec.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		if spec.Token != "" {
			_, err := sweep(ctx, spec.Key, "", tokenDigest(spec.Token))
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	return p.Stop(ctx)
}

func (r *Runner) stop(ctx context.Context, id identity, dir string) error {
	h, ok, err := id.hold()
	if err != nil {
		return err
	}
	if ok {
		defer h.close()
		// CONT after it: a process that is held acts on TERM only then.
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
			if err := h.signal(sig); err != nil {
				return fmt.Errorf("agents: stop %.80q: shim %d: %w", id.Key, id.Pid, err)
			}
		}
		limited, cancel := context.WithTimeout(ctx, id.KillAfter+r.stopMargin)
		defer cancel()
		err := h.wait(limited, id.gone)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.logf("agents: stop %.80q: shim %d did not end within %v: killed", id.Key, id.Pid, id.KillAfter+r.stopMargin)
			if err := h.signal(syscall.SIGKILL); err != nil {
				return fmt.Errorf("agents: stop %.80q: shim %d: %w", id.Key, id.Pid, err)
			}
		}
	}
	// Wait sees to what a shim without a record left.
	_, err = (&Proc{r: r, id: id, dir: dir}).Wait(ctx)
	return err
}

// Sweep kills whatever carries SLUICE_TOKEN=token in its environment, and
// what such processes started, until nothing is found any more; it returns
// how many it killed. For trees whose shim is gone: a live shim's is ended by
// Stop.
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
