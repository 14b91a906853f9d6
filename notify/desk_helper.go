package notify

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/text"
)

type helperProc struct {
	out   chan request
	over  chan struct{} // closed to close its standard input
	stop  chan struct{} // closed to kill it
	gone  chan struct{} // closed when it has ended and all its output was handled
	onceE sync.Once
	onceK sync.Once
	waits map[int64]chan report // guarded by the desk's mu
	said  *tail                 // end of its standard error; read it after gone
	why   error                 // how it ended; read it after gone
	mute  atomic.Pointer[error] // why it was killed for not answering
}

func (h *helperProc) end() { h.onceE.Do(func() { close(h.over) }) }

// kill kills the helper; mute is nil unless it did not answer.
func (h *helperProc) kill(mute error) {
	h.onceK.Do(func() {
		if mute != nil {
			h.mute.Store(&mute)
		}
		close(h.stop)
	})
}

// up returns the running helper, and starts one if there is none. The caller holds mu.
func (d *Desk) up() (*helperProc, error) {
	if d.closed {
		return nil, errors.New("no more notices for the desktop: sluice is stopping")
	}
	if d.proc != nil {
		return d.proc, nil
	}
	env := d.env
	if env == nil {
		env = os.Environ()
	}
	if usesDBus(d.goos) {
		bus, err := sessionBus(lookup(env, busVariable), d.runDir)
		if err != nil {
			return nil, err
		}
		env = append(slices.Clip(env), busVariable+"="+bus)
	}
	cmd := exec.Command(d.helper[0], d.helper[1:]...)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	h := &helperProc{out: make(chan request, helperQueue), over: make(chan struct{}), stop: make(chan struct{}),
		gone:  make(chan struct{}),
		waits: map[int64]chan report{}, said: &tail{max: maxOutput}}
	from, to := io.Pipe()
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = to, h.said, pipeGrace
	d.proc = h
	d.work.Go(func() { h.write(in) })
	heard := make(chan struct{})
	d.work.Go(func() { d.read(h, from, heard) })
	d.work.Go(func() {
		h.why = runGroup(cmd, h.stop)
		_ = to.Close()
		_ = in.Close() // nobody else closes it if the process was never started
		<-heard
		close(h.gone)
	})
	return h, nil
}

// write sends requests to the helper until it has gone or is asked to end.
func (h *helperProc) write(in io.WriteCloser) {
	defer in.Close()
	enc := json.NewEncoder(in)
	for {
		select {
		case r := <-h.out:
			if enc.Encode(r) != nil {
				h.kill(nil)
				<-h.gone
				return
			}
		case <-h.over:
			for len(h.out) > 0 { // requests from before
				if enc.Encode(<-h.out) != nil {
					return
				}
			}
			return
		case <-h.gone:
			return
		}
	}
}

// read handles the helper's reports and closes heard after the last one. Once the helper has ended,
// it has lost notices shown again.
func (d *Desk) read(h *helperProc, from *io.PipeReader, heard chan<- struct{}) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxHelperIn)
	for lines.Scan() {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			break
		}
		d.take(h, r)
	}
	_ = from.CloseWithError(errors.New("no line of the helper's"))
	close(heard)
	h.kill(nil)
	<-h.gone
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proc == h {
		d.proc = nil
	}
	d.lost()
}

// lost records that nothing is on the screen any more, and schedules showing it again. The caller
// holds mu.
func (d *Desk) lost() {
	for _, b := range d.open {
		b.shown = false
	}
	d.rouse()
}

// rouse schedules the next try to show what is not shown. The caller holds mu.
func (d *Desk) rouse() {
	if d.closed || d.again != nil || len(d.open) == 0 {
		return
	}
	d.pause = min(max(2*d.pause, againFirst), againMost)
	d.work.Add(1)
	d.again = time.AfterFunc(d.pause, func() {
		defer d.work.Done()
		d.reshow()
	})
}

// ask sends the helper a request and waits for the answer. The error may be the helper's. It kills a helper
// that does not answer in time.
func (d *Desk) ask(ctx context.Context, r request) (report, error) {
	d.mu.Lock()
	h, err := d.up()
	if err != nil {
		d.mu.Unlock()
		return report{}, err
	}
	d.seq++
	r.Seq = d.seq
	wait := make(chan report, 1)
	h.waits[r.Seq] = wait
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(h.waits, r.Seq)
	}()
	limit := time.NewTimer(d.limit)
	defer limit.Stop()
	select {
	case h.out <- r:
	default:
		return report{}, fmt.Errorf("the desktop did not answer: %d notices wait for it%w", helperQueue, errHung)
	}
	select {
	case got := <-wait:
		return got, got.failure()
	case <-h.gone:
		select {
		case got := <-wait: // its last answer
			return got, got.failure()
		default:
		}
		return report{}, h.ended()
	case <-ctx.Done():
		return report{}, fmt.Errorf("the desktop did not answer: cancelled: %w", ctx.Err())
	case <-limit.C:
		mute := fmt.Errorf("the desktop did not answer: %s had said nothing for %s: it was killed%w", d.helper[0],
			d.limit, errHung)
		h.kill(mute)
		d.mu.Lock()
		if d.proc == h {
			d.proc = nil
		}
		d.mu.Unlock()
		return report{}, mute
	}
}

func (h *helperProc) ended() error {
	if mute := h.mute.Load(); mute != nil {
		return *mute
	}
	if said := text.Clean(string(h.said.kept), maxWhy); said != "" {
		return errors.New(said)
	}
	if h.why != nil {
		return fmt.Errorf("the notice helper ended: %w", h.why)
	}
	return errors.New("the notice helper ended without a message")
}
