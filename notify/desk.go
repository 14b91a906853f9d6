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
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/text"
)

// Limits of keeping the helper.
const (
	helperQueue = 64                      // requests it has not read yet
	deskEnd     = 1500 * time.Millisecond // for the helper to end by itself when it is told to
	maxOpen     = 1000                    // notices that are kept to be shown again
	againFirst  = time.Second             // until what was lost is shown again; it doubles
	againMost   = time.Minute
)

// errNoDesktop is in the error of a desktop that is not there at all: no session bus is known.
var errNoDesktop = errors.New("no desktop")

// errMoot is the error of a notice that came too late to be of use.
var errMoot = errors.New("not shown: it was decided meanwhile")

// Press is a button of a notice that a person pressed.
type Press struct {
	Slot string    // of the notice
	Key  string    // of the action
	At   time.Time // when it was heard of
}

// Desk is the desktop of the user this process runs as. It keeps one helper
// process, which alone talks to the desktop: started when the first notice is
// to be shown, killed and replaced when it does not answer in five seconds,
// ended by Close. Notices with a slot that the desktop or the helper lost are
// shown again. It is safe for use by several goroutines.
type Desk struct {
	helper []string
	limit  time.Duration
	goos   string
	runDir string   // the folder of the users' run-time folders
	env    []string // the helper's; nil = this process's

	mu       sync.Mutex // guards what follows
	proc     *helperProc
	seq      int64
	channels int
	open     map[string]*bubble // notices that stand on the screen, or should
	again    *time.Timer        // until what was lost is shown again
	pause    time.Duration
	closed   bool
	work     sync.WaitGroup
}

// bubble is a notice that stays until somebody closes it.
type bubble struct {
	request request
	owner   *desktop
	shown   bool
}

// NewDesk makes a Desk. helperArgv is the command line that runs [HelperMain], env
// its environment; nil is this process's. Nothing is started before it is
// needed.
func NewDesk(helperArgv, env []string) *Desk {
	return &Desk{helper: helperArgv, env: env, limit: desktopLimit, goos: runtime.GOOS, runDir: userRunDir, open: map[string]*bubble{}}
}

// Channel makes a channel of the desktop whose slots are its own. pressed, which
// may be nil, is told of buttons; it must not block. What it shows outlives the
// notifiers it is given to: see Forget.
func (d *Desk) Channel(pressed func(Press)) Channel {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.channels++
	return &desktop{desk: d, prefix: strconv.Itoa(d.channels) + " ", pressed: pressed}
}

// Forget takes all notices of a channel that stay off the screen.
func (d *Desk) Forget(c Channel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, b := range d.open {
		if Channel(b.owner) == c {
			delete(d.open, id)
			d.tell(request{Op: opClose, ID: id})
		}
	}
}

// Start has the helper start a program of the person's own, such as a terminal,
// in dir. It does not wait for its end: the error says that it could not be
// started, or failed at once.
func (d *Desk) Start(ctx context.Context, argv []string, dir string) error {
	r, err := d.ask(ctx, request{Op: opRun, Argv: argv, Dir: dir})
	if err == nil && r.Event == eventFailed {
		err = errors.New(r.Why)
	}
	return err
}

// Server gives the name of what shows notices, and whether it has buttons.
func (d *Desk) Server(ctx context.Context) (name string, buttons bool, err error) {
	r, err := d.ask(ctx, request{Op: opServer})
	if err == nil {
		err = r.failure()
	}
	return r.Server, r.Buttons, err
}

// Close ends the helper, which takes its notices with buttons off the screen:
// nobody would hear of them.
func (d *Desk) Close() error {
	d.mu.Lock()
	d.closed = true
	if d.again != nil && d.again.Stop() {
		d.work.Done()
	}
	h := d.proc
	d.mu.Unlock()
	if h != nil {
		h.end()
		select {
		case <-h.gone:
		case <-time.After(deskEnd):
			h.kill(nil)
		}
	}
	d.work.Wait()
	return nil
}

// helperProc is the helper that runs.
type helperProc struct {
	out   chan request
	over  chan struct{} // closed: its standard input is to be closed
	stop  chan struct{} // closed: it is to be killed
	gone  chan struct{} // closed when it has ended and all it said was taken in
	onceE sync.Once
	onceK sync.Once
	waits map[int64]chan report // guarded by the desk's mu
	said  *tail                 // of its standard error; to be read when it has gone
	why   error                 // how it ended; so
	mute  atomic.Pointer[error] // why it was killed for its silence
}

func (h *helperProc) end() { h.onceE.Do(func() { close(h.over) }) }

// kill ends the helper; mute is nil where it has done nothing wrong.
func (h *helperProc) kill(mute error) {
	h.onceK.Do(func() {
		if mute != nil {
			h.mute.Store(&mute)
		}
		close(h.stop)
	})
}

// up gives the helper that runs; it starts one where none does. Call it with mu held.
func (d *Desk) up() (*helperProc, error) {
	if d.closed {
		return nil, errors.New("the desktop is not told any more: sluice is stopping")
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
	h := &helperProc{out: make(chan request, helperQueue), over: make(chan struct{}), stop: make(chan struct{}), gone: make(chan struct{}),
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
		_ = in.Close() // where it was never started nobody else does
		<-heard
		close(h.gone)
	})
	return h, nil
}

// write hands requests to the helper until it has gone or is told to end.
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
			for len(h.out) > 0 { // what was asked for before
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

// read takes what the helper reports, closes heard after the last of it, and sees to what is lost when the helper has ended.
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

// take takes one report in.
func (d *Desk) take(h *helperProc, r report) {
	d.mu.Lock()
	b := d.open[r.ID]
	switch r.Event {
	case eventAction:
	case eventClosed:
		if b != nil && b.shown {
			delete(d.open, r.ID)
		}
	case eventLost:
		d.lost()
	default:
		if w := h.waits[r.Seq]; w != nil {
			delete(h.waits, r.Seq)
			w <- r // has room
		}
	}
	d.mu.Unlock()
	if r.Event == eventAction && b != nil && b.owner.pressed != nil && slices.ContainsFunc(b.request.Actions, func(a Action) bool { return a.Key == r.Key }) {
		b.owner.pressed(Press{Slot: b.request.ID[len(b.owner.prefix):], Key: r.Key, At: time.Now()})
	}
}

// lost notes that nothing stands on the screen any more, and has it shown again after a while. Call it with mu held.
func (d *Desk) lost() {
	for _, b := range d.open {
		b.shown = false
	}
	d.rouse()
}

// rouse sets the time when what is not shown is tried again. Call it with mu held.
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

// reshow shows again what was lost.
func (d *Desk) reshow() {
	d.mu.Lock()
	var all []*bubble
	for _, b := range d.open {
		if !b.shown {
			all = append(all, b)
		}
	}
	d.mu.Unlock()
	for _, b := range all {
		d.mu.Lock()
		wanted := d.open[b.request.ID] == b && !d.closed
		d.mu.Unlock()
		if wanted && d.show(context.Background(), b) != nil {
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.again = nil
	for _, b := range d.open {
		if !b.shown { // it failed, or was lost meanwhile
			d.rouse()
			break
		}
	}
}

// show shows a notice that stays.
func (d *Desk) show(ctx context.Context, b *bubble) error {
	r, err := d.ask(ctx, b.request)
	if err == nil {
		err = r.failure()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.open[b.request.ID] != b:
		if err == nil && d.open[b.request.ID] == nil { // it was dismissed meanwhile
			d.tell(request{Op: opClose, ID: b.request.ID})
		}
	case err == nil:
		b.shown, d.pause = true, 0
	case errors.Is(err, errNoDesktop):
		delete(d.open, b.request.ID)
	default:
		d.rouse()
	}
	return err
}

// tell gives the helper a request whose answer nobody waits for. Call it with mu held.
func (d *Desk) tell(r request) {
	if d.proc == nil {
		return
	}
	select {
	case d.proc.out <- r:
	default: // it does not read: it is killed soon, and what it shows is gone
	}
}

// ask gives the helper a request and waits for the answer. One that does not answer in time is killed.
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
		return got, nil
	case <-h.gone:
		select {
		case got := <-wait: // the last it said
			return got, nil
		default:
		}
		return report{}, h.ended()
	case <-ctx.Done():
		return report{}, fmt.Errorf("the desktop did not answer: cancelled: %w", ctx.Err())
	case <-limit.C:
		mute := fmt.Errorf("the desktop did not answer: %s had said nothing for %s: it was killed%w", d.helper[0], d.limit, errHung)
		h.kill(mute)
		d.mu.Lock()
		if d.proc == h {
			d.proc = nil
		}
		d.mu.Unlock()
		return report{}, mute
	}
}

// ended says why a helper that has gone ended.
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
	return errors.New("the notice helper ended without a word")
}

// desktop is a channel of the desk.
type desktop struct {
	desk    *Desk
	prefix  string // of its slots
	pressed func(Press)
	own     bool // the desk is this channel's alone: it is closed with it
}

// DesktopChannel is the name of the desktop in a Result.
const DesktopChannel = "desktop"

func (c *desktop) Name() string { return DesktopChannel }

func (c *desktop) Send(ctx context.Context, n Notice) error {
	if n.Over != nil && n.Over() {
		return errMoot
	}
	r := showing(c.desk.goos, n)
	if n.Slot == "" {
		got, err := c.desk.ask(ctx, r)
		if err == nil {
			err = got.failure()
		}
		return err
	}
	r.ID = c.prefix + n.Slot
	b := &bubble{request: r, owner: c}
	d := c.desk
	d.mu.Lock()
	if len(d.open) < maxOpen || d.open[r.ID] != nil {
		d.open[r.ID] = b
	}
	d.mu.Unlock()
	return d.show(ctx, b)
}

// Dismiss takes the notice of a slot off the screen.
func (c *desktop) Dismiss(slot string) {
	d := c.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	id := c.prefix + slot
	if d.open[id] == nil {
		return
	}
	delete(d.open, id)
	d.tell(request{Op: opClose, ID: id})
}

// End ends the desk of a channel that has it alone.
func (c *desktop) End() {
	if c.own {
		_ = c.desk.Close() // it has no error to tell
	}
}
