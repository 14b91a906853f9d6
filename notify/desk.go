package notify

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Limits of managing the helper.
const (
	helperQueue = 64                      // requests it has not read yet
	deskEnd     = 1500 * time.Millisecond // for the helper to end by itself when told to
	maxOpen     = 1000                    // notices kept for showing again
	againFirst  = time.Second             // until lost notices are shown again; it doubles
	againMost   = time.Minute
)

// errNoDesktop reports that there is no desktop: no session bus is known.
var errNoDesktop = errors.New("no desktop")

// errMoot is the error of a notice that came too late.
var errMoot = errors.New("not shown: it was decided meanwhile")

// Press is a person's press of a notice's button.
type Press struct {
	Slot string    // of the notice
	Key  string    // of the action
	At   time.Time // when it was received
}

// Desk is the desktop of the user this process runs as. It has one helper process, which alone
// talks to the desktop. The helper starts with the first notice, is killed and replaced if it does
// not answer in five seconds, and ends with Close. Notices with a slot that the desktop or the
// helper lost are shown again. A Desk is safe for concurrent use.
type Desk struct {
	helper []string
	limit  time.Duration
	goos   string
	runDir string   // parent of the users' runtime folders
	env    []string // the helper's; nil = this process's

	mu       sync.Mutex // guards what follows
	proc     *helperProc
	seq      int64
	channels int
	open     map[string]*bubble // notices that are on the screen, or should be
	again    *time.Timer        // until lost notices are shown again
	pause    time.Duration
	closed   bool
	work     sync.WaitGroup
}

// bubble is a notice that stays until someone closes it.
type bubble struct {
	request request
	owner   *desktop
	shown   bool
}

// NewDesk returns a Desk. helperArgv is the command line that runs [HelperMain], env its
// environment; nil is this process's. The helper is only started when needed.
func NewDesk(helperArgv, env []string) *Desk {
	return &Desk{helper: helperArgv, env: env, limit: desktopLimit, goos: runtime.GOOS, runDir: userRunDir,
		open: map[string]*bubble{}}
}

// Channel returns a desktop channel with its own slots. pressed, which may be nil, receives button
// presses and must not block. Its notices outlive the notifiers that use it: see Forget.
func (d *Desk) Channel(pressed func(Press)) Channel {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.channels++
	return &desktop{desk: d, prefix: strconv.Itoa(d.channels) + " ", pressed: pressed}
}

// Forget removes a channel's persistent notices from the screen.
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

// Start has the helper start a person's own program, such as a terminal, in dir, without waiting
// for its end. The error reports that it could not be started, or failed at once.
func (d *Desk) Start(ctx context.Context, argv []string, dir string) error {
	_, err := d.ask(ctx, request{Op: opRun, Argv: argv, Dir: dir})
	return err
}

// Server returns the name of the notification service, and whether it has buttons.
func (d *Desk) Server(ctx context.Context) (name string, buttons bool, err error) {
	r, err := d.ask(ctx, request{Op: opServer})
	return r.Server, r.Buttons, err
}

// Close ends the helper, which removes notices with buttons from the screen, since nobody would
// receive their presses.
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
	if r.Event == eventAction && b != nil && b.owner.pressed != nil &&
		slices.ContainsFunc(b.request.Actions, func(a Action) bool { return a.Key == r.Key }) {
		b.owner.pressed(Press{Slot: b.request.ID[len(b.owner.prefix):], Key: r.Key, At: time.Now()})
	}
}

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

func (d *Desk) show(ctx context.Context, b *bubble) error {
	_, err := d.ask(ctx, b.request)
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

// tell sends the helper a request without waiting for an answer. The caller holds mu.
func (d *Desk) tell(r request) {
	if d.proc == nil {
		return
	}
	select {
	case d.proc.out <- r:
	default: // it does not read: it is killed soon, and its notices are gone
	}
}

type desktop struct {
	desk    *Desk
	prefix  string // of its slots
	pressed func(Press)
	own     bool // the desk belongs to this channel and is closed with it
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
		_, err := c.desk.ask(ctx, r)
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

// Dismiss removes the notice of a slot from the screen.
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

// End closes the desk if this channel owns it.
func (c *desktop) End() {
	if c.own {
		_ = c.desk.Close() // it returns no error
	}
}
