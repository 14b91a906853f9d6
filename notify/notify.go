package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice/internal/text"
)

// Limits of sending. Send itself ends after sendLimit; a channel that is still
// at work then has until channelLimit, and its late result goes to the log.
const (
	sendLimit    = 5500 * time.Millisecond
	cancelGrace  = 500 * time.Millisecond // after the caller's context ended
	channelLimit = 11 * time.Second       // above each channel's own limit
	closeLimit   = 2 * time.Second
	maxInFlight  = 8 // notices one channel works at at the same time
)

// Kinds of notice.
const (
	KindGate     = "gate"     // a veto window opens
	KindHuman    = "human"    // a person is asked for a decision
	KindReminder = "reminder" // a person was asked and has not answered
	KindRejected = "rejected" // a signal could not be taken in
	KindEnded    = "ended"    // a run came to an end
	KindPaused   = "paused"   // a run waits for a person to mend something
	KindInfo     = "info"     // anything else, as `sluice notify TEXT`
)

// Urgencies of a notice; anything else reads as normal.
const (
	UrgencyNormal   = "normal"
	UrgencyCritical = "critical" // stays on the screen until it is closed, where the desktop can
)

// Bounds of a notice's parts, in characters. What is longer is cut and ends in
// an ellipsis.
const (
	maxTitle = 120
	maxBody  = 1000
	maxField = 128
	maxWhy   = 300
)

// Notice is what a person is told.
type Notice struct {
	ID      string `json:"id,omitempty"`      // names this notice in the record
	Kind    string `json:"kind"`              // one of the Kind constants
	Title   string `json:"title"`             // one line
	Body    string `json:"body,omitempty"`    // some lines
	Run     string `json:"run,omitempty"`     // the run it is about, if any
	Gate    string `json:"gate,omitempty"`    // the gate it is about, if any
	Urgency string `json:"urgency,omitempty"` // one of the Urgency constants
	Repo    string `json:"repo,omitempty"`    // the name of the repo it is about, if any

	Escalated bool `json:"escalated,omitempty"` // it was not answered for long: see [Reserve]

	// For a desktop with buttons. Of the notices with one slot only the newest
	// stands on the screen, until [Notifier.Dismiss]; "" = it goes by itself.
	Slot    string      `json:"-"`
	Actions []Action    `json:"-"` // need a slot
	Brief   string      `json:"-"` // the body where the buttons can be had; "" = Body
	Again   bool        `json:"-"` // it was told before and is only to stand on the screen again
	Over    func() bool `json:"-"` // says that there is nothing to decide any more; nil = there is
}

// Action is a button of a notice.
type Action struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

// Result says what became of a notice on one channel.
type Result struct {
	Channel string        // the channel's name
	OK      bool          // it was delivered as far as the channel can know
	Why     string        // why not, one line, safe to show; empty if OK
	Hung    bool          // it did not answer in its time
	Missing bool          // no fault: nobody is logged in at a desktop, or what was asked is decided
	Took    time.Duration // until delivered, refused or given up
}

// Channel is one way to reach a person. Send delivers the notice or says why it
// could not; it should end soon after its context does, but nothing breaks if
// it does not. The notice it gets has been cleaned.
type Channel interface {
	Name() string
	Send(ctx context.Context, n Notice) error
}

// lane is a channel with its places: a channel that is stuck gets no more than
// maxInFlight notices to be stuck with.
type lane struct {
	channel Channel
	places  chan struct{}
}

// Notifier sends notices to all its channels. It is safe for use by several
// goroutines.
type Notifier struct {
	lanes []lane
	log   func(n Notice, what string)
	late  func(n Notice, r Result)
	kept  []string // names of channels for escalated notices only

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // guards closed, and flying against Close
	closed bool
	flying sync.WaitGroup
}

// Option sets up a Notifier.
type Option func(*Notifier)

// Desktop shows notices on the desktop of the user this process runs as, for who
// sends a few and ends: who sends many shares a [Desk]. helperArgv is the
// command line that runs [HelperMain]: this binary and its notify-helper
// command. Empty means no desktop.
func Desktop(helperArgv []string) Option {
	return func(n *Notifier) {
		if len(helperArgv) > 0 {
			c := NewDesk(helperArgv, nil).Channel(nil).(*desktop)
			c.own = true
			n.add(c)
		}
	}
}

// Command runs argv for each notice: no shell, the notice in its environment
// (SLUICE_NOTICE_ID, _KIND, _TITLE, _BODY, _REPO, _RUN, _GATE, _URGENCY, and
// _ESCALATED, 1 or empty) and as JSON
// on its standard input. It has ten seconds; then, and when it has ended, its
// process group is killed. Exit code 0 means delivered. Empty means no command.
func Command(argv []string) Option {
	return func(n *Notifier) {
		if len(argv) > 0 {
			n.add(&command{argv: argv, limit: commandLimit})
		}
	}
}

// With adds a channel of the caller's own.
func With(c Channel) Option { return func(n *Notifier) { n.add(c) } }

// Log sets what gets the log lines: once for each notice, with what "notified",
// and once more for each channel whose result comes after Send gave up on it,
// with what telling that. It may be called from several goroutines at once.
func Log(line func(n Notice, what string)) Option {
	return func(n *Notifier) { n.log = line }
}

// Late sets what gets the results that come after Send gave up waiting for them.
// It may be called from several goroutines at once.
func Late(took func(n Notice, r Result)) Option {
	return func(n *Notifier) { n.late = took }
}

// Reserve keeps the channels of these names for notices that have escalated.
func Reserve(names ...string) Option {
	return func(n *Notifier) { n.kept = append(n.kept, names...) }
}

// New makes a Notifier. Close it to end what it has under way.
func New(opts ...Option) *Notifier {
	n := &Notifier{}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for _, opt := range opts {
		opt(n)
	}
	if n.log != nil { // first, so that results begin with what nobody can switch off
		n.lanes = append([]lane{newLane(logChannel{n.log})}, n.lanes...)
	}
	return n
}

func (n *Notifier) add(c Channel) { n.lanes = append(n.lanes, newLane(c)) }

func newLane(c Channel) lane {
	return lane{channel: c, places: make(chan struct{}, maxInFlight)}
}

// logChannel is the log line as a channel: it may block as any other may.
type logChannel struct {
	line func(n Notice, what string)
}

func (logChannel) Name() string { return "log" }

func (l logChannel) Send(_ context.Context, n Notice) error {
	l.line(n, "notified")
	return nil
}

// indexed is a result and whose it is.
type indexed struct {
	lane   int
	result Result
}

// Send tells the notice on every channel at the same time and returns one
// result for each, in a fixed order (the log first). It comes back after
// 5.5 seconds at the latest, and half a second after ctx ended; a channel that
// is not done by then is reported as such, goes on to its own limit, and the
// log gets a line on how it ended. It never panics.
//
// It gives nil where the notifier was closed before: nothing was attempted.
func (n *Notifier) Send(ctx context.Context, notice Notice) []Result {
	notice = cleaned(notice)
	began := time.Now()
	lanes := n.meant(notice)
	results := make([]Result, len(lanes))
	for i, l := range lanes {
		results[i] = Result{Channel: l.channel.Name()}
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.flying.Add(len(lanes))
	n.mu.Unlock()

	came := make(chan indexed, len(lanes))
	gaveUp := make(chan struct{}) // closed when this Send no longer listens
	defer close(gaveUp)
	for i, l := range lanes {
		go func() {
			defer n.flying.Done()
			n.sendOn(ctx, i, l, notice, came, gaveUp)
		}()
	}
	return n.gather(ctx, began, results, came)
}

// meant are the lanes that a notice goes to.
func (n *Notifier) meant(notice Notice) []lane {
	return slices.DeleteFunc(slices.Clone(n.lanes), func(l lane) bool {
		_, stands := l.channel.(dismisser)
		return notice.Again && !stands || !notice.Escalated && slices.Contains(n.kept, l.channel.Name())
	})
}

// gather waits for the results until the limit, and fills in those that did
// not come.
func (n *Notifier) gather(ctx context.Context, began time.Time, results []Result, came <-chan indexed) []Result {
	limit := time.NewTimer(sendLimit)
	defer limit.Stop()
	cancelled := ctx.Done()
	for missing := len(results); missing > 0; missing-- {
		select {
		case r := <-came:
			results[r.lane] = r.result
			continue
		case <-cancelled:
			cancelled = nil
			limit.Reset(cancelGrace)
			missing++ // this turn took no result
			continue
		case <-limit.C:
		}
		break
	}
	for i, r := range results {
		if !r.OK && r.Why == "" {
			took := time.Since(began)
			results[i].Took, results[i].Hung = took, ctx.Err() == nil
			results[i].Why = fmt.Sprintf("not done after %s: no longer waited for", took.Round(100*time.Millisecond))
		}
	}
	return results
}

// sendOn sends on one lane and hands its result to the Send that waits, or to
// the log if that has given up.
func (n *Notifier) sendOn(ctx context.Context, i int, l lane, notice Notice, came chan<- indexed, gaveUp <-chan struct{}) {
	began := time.Now()
	err := n.guarded(ctx, l, notice)
	r := Result{Channel: l.channel.Name(), OK: err == nil, Took: time.Since(began), Hung: errors.Is(err, errHung), Missing: errors.Is(err, errNoDesktop) || errors.Is(err, errMoot)}
	if err != nil {
		r.Why = text.Clean(err.Error(), maxWhy)
		if r.Why == "" {
			r.Why = "failed without a word"
		}
	}
	select {
	case <-gaveUp:
		n.tellLate(notice, r)
	default:
		came <- indexed{i, r} // has room for every lane
	}
}

// guarded sends on a lane within the limits, and turns a panic into an error.
func (n *Notifier) guarded(ctx context.Context, l lane, notice Notice) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the channel panicked: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, channelLimit)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()

	turn := time.NewTimer(sendLimit)
	defer turn.Stop()
	select {
	case l.places <- struct{}{}:
		defer func() { <-l.places }()
	case <-turn.C:
		return fmt.Errorf("%d earlier notices are still being sent: this one was dropped%w", maxInFlight, errHung)
	case <-ctx.Done():
		return errors.New("cancelled before its turn")
	}
	return l.channel.Send(ctx, notice)
}

// tellLate tells a result that nobody waits for any more.
func (n *Notifier) tellLate(notice Notice, r Result) {
	if r.Channel == (logChannel{}).Name() {
		return
	}
	defer func() { _ = recover() }() // the log's own fault must not end the daemon
	if n.late != nil {
		n.late(notice, r)
	}
	if n.log == nil {
		return
	}
	if r.OK {
		n.log(notice, fmt.Sprintf("%s: delivered after %s", r.Channel, r.Took.Round(time.Millisecond)))
		return
	}
	n.log(notice, fmt.Sprintf("%s: not delivered: %s", r.Channel, r.Why))
}

// errHung is in the error of a channel that did not answer in its time; the
// message tells that in words of its own.
var errHung = hung{}

type hung struct{}

func (hung) Error() string { return "" }

// ender is a channel that has something of its own to end.
type ender interface{ End() }

// dismisser is a channel whose notices stand until they are dismissed.
type dismisser interface{ Dismiss(slot string) }

// Dismiss takes the notice of a slot off the screen, where a channel shows it and
// can. It does not block.
func (n *Notifier) Dismiss(slot string) {
	for _, l := range n.lanes {
		if c, ok := l.channel.(dismisser); ok {
			c.Dismiss(slot)
		}
	}
}

// end ends what the channels keep.
func (n *Notifier) end() {
	for _, l := range n.lanes {
		if c, ok := l.channel.(ender); ok {
			c.End()
		}
	}
}

// Finish refuses later notices and waits until those under way have ended, each
// within its channel's own limit. Close beside it ends them sooner.
func (n *Notifier) Finish() {
	n.refuse()
	n.flying.Wait()
	n.cancel()
	n.end()
}

func (n *Notifier) refuse() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
}

// Close ends what is under way and waits for it, two seconds at most; the error
// says that a channel did not end. Later notices are refused.
func (n *Notifier) Close() error {
	n.refuse()
	n.cancel()
	done := make(chan struct{})
	go func() {
		n.flying.Wait()
		n.end()
		close(done)
	}()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-limit.C:
		return fmt.Errorf("notify: a channel did not end within %s of being cancelled: nothing to do, it ends with this process", closeLimit)
	}
}

// cleaned is the notice with nothing left in it that a terminal, a desktop or
// an environment would take for more than text.
func cleaned(n Notice) Notice {
	n.ID = text.Clean(n.ID, maxField)
	n.Kind = text.Clean(n.Kind, maxField)
	n.Title = text.Clean(n.Title, maxTitle)
	n.Body = text.CleanLines(n.Body, maxBody)
	n.Run = text.Clean(n.Run, maxField)
	n.Gate = text.Clean(n.Gate, maxField)
	n.Repo = text.Clean(n.Repo, maxField)
	n.Brief = text.CleanLines(n.Brief, maxBody)
	if n.Urgency != UrgencyCritical {
		n.Urgency = UrgencyNormal
	}
	if n.Kind == "" {
		n.Kind = KindInfo
	}
	if n.Title == "" {
		n.Title = "sluice: " + n.Kind
	}
	return n
}
