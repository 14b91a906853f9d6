//go:build linux || darwin

package agents

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice/internal/fault"
)

// host is a shim that this Runner started: it has one launch, or waits for one.
type host struct {
	process *os.Process
	to      *os.File // specs
	from    *os.File // what it says
	lines   *bufio.Reader
	rested  time.Time // when its last launch was over
}

// ongoing is a launch that a host of this Runner has.
type ongoing struct {
	host *host
	done chan struct{} // closed when it has ended, or its shim has gone
	exit *Exit         // how, from then on; nil: the record tells
	told bool          // its shim has said so, and may have another launch at any time; under Runner.mu
}

// take gives a host without a launch.
func (r *Runner) take() (h *host, fresh bool, err error) {
	r.mu.Lock()
	if n := len(r.idle); n > 0 {
		h, r.idle = r.idle[n-1], r.idle[:n-1]
	}
	r.mu.Unlock()
	if h != nil {
		return h, false, nil
	}
	h, err = r.startHost()
	return h, true, err
}

// startHost starts a shim in a session of its own, with a pipe to give it
// specs and one to hear from it as its only descriptors.
func (r *Runner) startHost() (*host, error) {
	if len(r.shim) == 0 {
		return nil, fault.New("set Options.Shim", "no shim command")
	}
	specR, specW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer specR.Close()
	answerR, answerW, err := os.Pipe()
	if err != nil {
		specW.Close()
		return nil, err
	}
	defer answerW.Close()
	p, err := os.StartProcess(r.shim[0], r.shim, &os.ProcAttr{
		Env:   []string{markVar + "=" + rand.Text()},
		Files: []*os.File{specR, answerW, answerW},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		specW.Close()
		answerR.Close()
		return nil, fault.New("set Options.Shim to an absolute path that can be run", "shim: %w", err)
	}
	return &host{process: p, to: specW, from: answerR, lines: bufio.NewReaderSize(answerR, maxRecordBytes)}, nil
}

// give hands a spec over and returns what the shim says to it.
func (h *host) give(ctx context.Context, data []byte) (string, error) {
	limit := time.Now().Add(claimLimit)
	for _, f := range []*os.File{h.to, h.from} {
		if err := f.SetDeadline(limit); err != nil {
			return "", err
		}
	}
	stop := context.AfterFunc(ctx, func() {
		_ = h.to.SetDeadline(time.Unix(1, 0))
		_ = h.from.SetDeadline(time.Unix(1, 0))
	})
	defer stop()
	if _, err := h.to.Write(data); err != nil {
		said, _ := h.line() // it may have said why it went
		return said, err
	}
	said, err := h.line()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return said, err
}

func (h *host) line() (string, error) {
	line, err := h.lines.ReadSlice('\n')
	return strings.TrimSpace(string(line)), err
}

// framed is a spec as it travels: its length, then JSON.
func framed(spec Spec) ([]byte, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if len(data) > maxSpecBytes {
		return nil, fault.New("pass large texts in files", "spec of %d bytes: the limit is %d", len(data), maxSpecBytes)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...), nil
}

// launch has a shim take the launch, and returns when the pid file is there:
// this shim's, or that of another that was first.
func (r *Runner) launch(ctx context.Context, spec Spec) error {
	data, err := framed(spec)
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(spec.PidFile), 0o700), makeDir(spec.Below, spec.Dir)); err != nil {
		return err
	}
	for {
		h, fresh, err := r.take()
		if err != nil {
			return err
		}
		said, err := h.give(ctx, data)
		word, why, _ := strings.Cut(said, " ")
		switch {
		case err == nil && word == saysClaimed:
			r.follow(h, spec.PidFile)
			return nil
		case err == nil && word == saysTaken:
			r.rest(h)
			return nil
		case err == nil && word == saysRefused:
			r.rest(h)
			return errors.New(why)
		}
		// One that claims this very moment is ended with it: that launch then
		// counts as lost.
		h.end()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !fresh: // it died while it waited: what it was given is given to another, unless it took it
			if _, err := readIdentity(spec.PidFile); err == nil {
				return nil
			}
			continue
		}
		return fault.New("see that it can be run", "shim %q: no answer: %s", r.shim[0], firstOf(said, err))
	}
}

func firstOf(answer string, err error) string {
	if answer != "" {
		return answer
	}
	if err != nil {
		return err.Error()
	}
	return "it ended without a word"
}

// end ends a shim of which nothing is expected any more, and collects it.
func (h *host) end() {
	h.to.Close()
	h.from.Close()
	_ = h.process.Kill()
	_, _ = h.process.Wait()
}

// follow waits for the end of the launch that the host has taken.
func (r *Runner) follow(h *host, pidFile string) {
	l := &ongoing{host: h, done: make(chan struct{})}
	r.mu.Lock()
	r.busy[pidFile] = l
	if !r.closed {
		_ = h.from.SetDeadline(time.Time{})
		_ = h.to.SetDeadline(time.Time{})
	}
	r.mu.Unlock()
	r.shims.Go(func() {
		said, err := h.line()
		var exit Exit
		how, ended := strings.CutPrefix(said, saysEnded+" ")
		if err == nil && ended && json.Unmarshal([]byte(how), &exit) == nil {
			r.mu.Lock()
			l.told = true // before it rests: from then on it is not killed for this launch
			r.mu.Unlock()
			l.exit = &exit
			r.rest(h)
		} else if errors.Is(err, os.ErrDeadlineExceeded) { // the Runner is closed
			h.letGo()
		} else {
			h.leave()
		}
		r.mu.Lock()
		delete(r.busy, pidFile)
		r.mu.Unlock()
		close(l.done)
	})
}

// unheard sees to a launch that has ended by its record, and of which its shim does not tell: stopped between the two, it
// would never. The shim is killed, but not once it has told: it may have another launch by then.
func (r *Runner) unheard(ctx context.Context, id identity) error {
	l := r.ongoing(id.file)
	if l == nil || !id.ended() {
		return nil
	}
	limit := time.NewTimer(r.stopMargin)
	defer limit.Stop()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.told {
		return nil
	}
	r.logf("agents: stop %.80q: shim %d has ended it and does not say so: killed", id.Key, id.Pid)
	if err := l.host.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("agents: stop %.80q: shim %d: %w", id.Key, id.Pid, err)
	}
	return nil
}

// leave lets go of a shim: it ends by itself when it has no launch, and is
// collected then.
func (h *host) leave() {
	h.to.Close()
	_, _ = h.process.Wait()
	h.from.Close()
}

// rest keeps a shim for the next launch, or lets it go.
func (r *Runner) rest(h *host) {
	r.mu.Lock()
	keep := !r.closed && len(r.idle) < r.warm
	if keep {
		h.rested = time.Now()
		r.idle = append(r.idle, h)
		if r.cooling == nil {
			r.cooling = time.AfterFunc(r.warmFor, r.cool)
		}
	}
	r.mu.Unlock()
	if !keep { // it is collected before its launch is said to have ended
		h.dismiss(r.stopMargin)
	}
}

// dismiss has a shim end that has no launch. It goes by itself, but where it is stopped: then it is killed after a while.
func (h *host) dismiss(most time.Duration) {
	late := time.AfterFunc(most, func() { _ = h.process.Kill() })
	defer late.Stop()
	h.leave()
}

// cool lets go of the shims that have rested long enough.
func (r *Runner) cool() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cooling = nil
	if r.closed {
		return
	}
	for len(r.idle) > 0 {
		h := r.idle[0]
		if left := r.warmFor - time.Since(h.rested); left > 0 {
			r.cooling = time.AfterFunc(left, r.cool)
			return
		}
		r.idle = r.idle[1:]
		r.shims.Go(func() { h.dismiss(r.stopMargin) })
	}
}

// letGo lets go of a shim that has a launch: it goes on without us.
func (h *host) letGo() {
	h.to.Close()
	h.from.Close()
	_ = h.process.Release()
}

// Close ends the shims that have no launch. Launches go on, and are there to be
// adopted. The Runner must not be used afterwards.
func (r *Runner) Close() error {
	r.mu.Lock()
	idle := r.idle
	r.idle, r.closed = nil, true
	if r.cooling != nil {
		r.cooling.Stop()
	}
	for _, l := range r.busy {
		_ = l.host.from.SetDeadline(time.Unix(1, 0))
	}
	r.mu.Unlock()
	for _, h := range idle {
		r.shims.Go(func() { h.dismiss(r.stopMargin) })
	}
	r.shims.Wait()
	return nil
}

// ongoing returns the launch of a pid file, where a shim of this Runner has it.
func (r *Runner) ongoing(pidFile string) *ongoing {
	if pidFile == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[pidFile]
}
