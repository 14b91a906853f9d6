//go:build linux || darwin

package agents

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"sluice/internal/fault"
)

// host is a shim that this Runner started: it has one launch, or waits for one.
type host struct {
	process *os.Process
	to      *os.File // specs
	from    *os.File // its answers
	lines   *bufio.Reader
	rested  time.Time // when its last launch was over
}

// ongoing is a launch in a host of this Runner.
type ongoing struct {
	host *host
	done chan struct{} // closed when the launch has ended or its shim is gone
	exit *Exit         // the result, set before done is closed; nil: read the record
	told bool          // the shim reported the end and may have another launch at any time; under Runner.mu
}

// take returns a host without a launch.
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

// startHost starts a shim in its own session. Its only descriptors are a pipe for specs and one for
// answers.
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
		if errors.Is(err, os.ErrNotExist) { // removed or moved since this process began
			return nil, fault.New("put it back there, or start the daemon from where it is now",
				"the program that hosts launches is gone: %w", err)
		}
		return nil, fmt.Errorf("shim: %w", err)
	}
	return &host{process: p, to: specW, from: answerR, lines: bufio.NewReaderSize(answerR, maxRecordBytes)}, nil
}

// give sends a spec and returns the shim's answer.
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
		said, _ := h.line() // it may have said why it ended
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

// framed encodes a spec for the pipe: its length, then JSON.
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

// launch passes the launch to a shim. It returns when the pid file exists, from this shim or from
// another that was first.
func (r *Runner) launch(ctx context.Context, spec Spec) (identity, error) {
	data, err := framed(spec)
	if err != nil {
		return identity{}, err
	}
	if spec.Below != "" { // is it there?
		if err := makeDir(spec.Below, spec.Below); err != nil {
			return identity{}, err
		}
	}
	for {
		h, fresh, err := r.take()
		if err != nil {
			return identity{}, err
		}
		said, err := h.give(ctx, data)
		word, why, _ := strings.Cut(said, " ")
		switch {
		case err == nil && word == saysClaimed:
			r.follow(h, spec.PidFile)
			return identityIn(spec.PidFile, []byte(why))
		case err == nil && word == saysTaken:
			r.rest(h)
			return readIdentity(spec.PidFile)
		case err == nil && word == saysRefused:
			r.rest(h)
			return identity{}, errors.New(why)
		}
		// A shim that claims at this very moment is killed with it; that launch then counts as
		// lost.
		h.end()
		switch {
		case ctx.Err() != nil:
			return identity{}, ctx.Err()
		case !fresh: // it died while idle: use another, unless it took the launch
			if id, err := readIdentity(spec.PidFile); err == nil {
				return id, nil
			}
			continue
		}
		return identity{}, fault.New("check that it can be run", "shim %q: no answer: %s", r.shim[0], firstOf(said, err))
	}
}

func firstOf(answer string, err error) string {
	if answer == "" && err != nil {
		return err.Error()
	}
	return cmp.Or(answer, "it ended without an answer")
}

// end kills and reaps a shim.
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
			l.told = true // before it rests: from then on it must not be killed for this launch
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

// unheard handles a launch that has ended by its record, while its shim, perhaps stopped in
// between, does not report it. It kills the shim, unless that has reported: it may have another
// launch by then.
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
	r.logf("agents: stop %.80q: shim %d has ended it but does not report it: killed", id.Key, id.Pid)
	if err := l.host.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("agents: stop %.80q: shim %d: %w", id.Key, id.Pid, err)
	}
	return nil
}

// leave disconnects from a shim, which ends once it has no launch, and reaps it.
func (h *host) leave() {
	h.to.Close()
	_, _ = h.process.Wait()
	h.from.Close()
}

// rest keeps a shim for the next launch, or dismisses it.
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
	if !keep { // reaped before its launch is reported as ended
		h.dismiss(r.stopMargin)
	}
}

// dismiss ends an idle shim. Usually it ends by itself; if it is stopped, it is killed after most.
func (h *host) dismiss(most time.Duration) {
	late := time.AfterFunc(most, func() { _ = h.process.Kill() })
	defer late.Stop()
	h.leave()
}

// cool dismisses the shims that have rested long enough.
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

// letGo disconnects from a shim with a launch, which continues without us.
func (h *host) letGo() {
	h.to.Close()
	h.from.Close()
	_ = h.process.Release()
}

// Close ends the idle shims. Launches continue and can be adopted. The Runner must not be used
// afterwards.
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

// ongoing returns the launch of a pid file if a shim of this Runner has it, else nil.
func (r *Runner) ongoing(pidFile string) *ongoing {
	if pidFile == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[pidFile]
}
