package notify

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"sluice/internal/text"
)

// Limits of sending. Send ends after sendLimit. A channel that is still busy has until
// channelLimit, and its late result goes to the log.
const (
	sendLimit    = 5500 * time.Millisecond
	cancelGrace  = 500 * time.Millisecond // after the caller's context ended
	channelLimit = 11 * time.Second       // above each channel's own limit
	closeLimit   = 2 * time.Second
	maxInFlight  = 8 // concurrent notices per channel
)

// KindInfo is a notice about no run, such as `sluice notify TEXT`. The other kinds are the engine's: gate, human, …
const KindInfo = "info"

// Urgencies of a notice; anything else means normal.
const (
	UrgencyNormal   = "normal"
	UrgencyCritical = "critical" // stays on the screen until it is closed, if the desktop can
)

// Limits of a notice's parts, in characters. Longer texts are cut and end in an ellipsis.
const (
	maxTitle = 120
	MaxBody  = 1000
	maxField = 128
	maxURL   = 1024
	maxWhy   = 300
)

// Notice is a message to a person.
type Notice struct {
	ID      string `json:"id,omitempty"`      // its name in the record
	Kind    string `json:"kind"`              // KindInfo, or one of the engine's
	Title   string `json:"title"`             // one line
	Body    string `json:"body,omitempty"`    // some lines
	Run     string `json:"run,omitempty"`     // the run concerned, if any
	Gate    string `json:"gate,omitempty"`    // the gate concerned, if any
	Urgency string `json:"urgency,omitempty"` // one of the Urgency constants
	Repo    string `json:"repo,omitempty"`    // the name of the repo concerned, if any
	URL     string `json:"url,omitempty"`     // the page of the gate or the run, if there is one

	Escalated bool `json:"escalated,omitempty"` // unanswered for long: see Options.Reserved

	// For a desktop with buttons. Of the notices in one slot, only the newest is shown, until
	// [Notifier.Dismiss]; "" = it disappears by itself.
	Slot    string      `json:"-"`
	Actions []Action    `json:"-"` // need a slot
	Brief   string      `json:"-"` // the body if buttons are available; "" = Body
	Again   bool        `json:"-"` // it was sent before and only needs to be shown again
	Over    func() bool `json:"-"` // reports that nothing is left to decide; nil = something is
}

// Action is a button of a notice.
type Action struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

// Result is what became of a notice on one channel.
type Result struct {
	Channel string        // the channel's name
	OK      bool          // it was delivered as far as the channel can know
	Why     string        // why not, one line, safe to show; empty if OK
	Hung    bool          // it did not answer in time
	Missing bool          // no fault: nobody is logged in at a desktop, or the question is decided
	Took    time.Duration // until delivered, refused or given up
}

// Channel is one way to reach a person. Send delivers the notice or returns why it could not. It
// should end soon after its context; if not, nothing breaks. Its notice has been cleaned.
type Channel interface {
	Name() string
	Send(ctx context.Context, n Notice) error
}

// lane is a channel with its places: a stuck channel blocks at most maxInFlight notices.
type lane struct {
	channel Channel
	places  chan struct{}
}

// Notifier sends notices to all its channels. It is safe for concurrent use.
type Notifier struct {
	opt   Options
	lanes []lane

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // guards closed, and flying against Close
	closed bool
	flying sync.WaitGroup
}

// Options are the channels of a Notifier, in the order of its results, and who hears what became of notices. Each may
// be left out.
type Options struct {
	// Log receives lines. Each notice gets one with what "notified", and another one for each channel that
	// finishes after Send gave up on it, with what describing that. It may be called concurrently.
	Log func(n Notice, what string)
	// Command is run for each notice, in /, without a shell. The notice is in its environment (SLUICE_NOTICE_ID,
	// _KIND, _TITLE, _BODY, _REPO, _RUN, _GATE, _URGENCY, and _ESCALATED, 1 or empty) and, as JSON, on its
	// standard input. Its process group is killed when it ends, or after ten seconds. Exit code 0 means
	// delivered.
	Command []string
	Webhook Hook // one without a URL is none
	// Desktop is the command line that runs [HelperMain], this binary and its notify-helper command, for
	// callers that send a few notices and end; others share a [Desk].
	Desktop  []string
	Channels []Channel // the caller's own

	Reserved []string // names of channels for escalated notices only
	// Late receives results that come after Send gave up on them. It may be called concurrently.
	Late func(n Notice, r Result)
}

// New returns a Notifier. Close it to end its running work.
func New(o Options) *Notifier {
	n := &Notifier{opt: o}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if o.Log != nil { // results begin with the channel that cannot be switched off
		n.add(logChannel{o.Log})
	}
	if len(o.Command) > 0 {
		n.add(&command{argv: o.Command, limit: commandLimit})
	}
	if o.Webhook.URL != "" {
		n.add(newWebhook(o.Webhook, n.tellLate))
	}
	if len(o.Desktop) > 0 {
		c := NewDesk(o.Desktop, nil).Channel(nil).(*desktop)
		c.own = true
		n.add(c)
	}
	for _, c := range o.Channels {
		n.add(c)
	}
	return n
}

func (n *Notifier) add(c Channel) {
	n.lanes = append(n.lanes, lane{channel: c, places: make(chan struct{}, maxInFlight)})
}

// logChannel is the log line as a channel: it may block like any other.
type logChannel struct {
	line func(n Notice, what string)
}

func (logChannel) Name() string { return "log" }

func (l logChannel) Send(_ context.Context, n Notice) error {
	l.line(n, "notified")
	return nil
}

// ender is a channel that must be ended.
type ender interface{ End() }

// dismisser is a channel whose notices stay until they are dismissed.
type dismisser interface{ Dismiss(slot string) }

// Dismiss removes the notice of a slot from the screen, on channels that can. It does not block.
func (n *Notifier) Dismiss(slot string) {
	for _, l := range n.lanes {
		if c, ok := l.channel.(dismisser); ok {
			c.Dismiss(slot)
		}
	}
}

func (n *Notifier) end() {
	for _, l := range n.lanes {
		if c, ok := l.channel.(ender); ok {
			c.End()
		}
	}
}

// Finish refuses later notices and waits for running ones, each within its channel's own limit. A
// concurrent Close ends them sooner.
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

// Close ends running work and waits for it, two seconds at most; the error reports that a channel
// did not end. Later notices are refused.
func (n *Notifier) Close() error {
	n.refuse()
	n.cancel()
	done := make(chan struct{})
	go func() {
		n.flying.Wait()
		n.end()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(closeLimit):
		return fmt.Errorf("notify: a channel did not end within %s of being cancelled: nothing to do, it ends with "+
			"this process", closeLimit)
	}
}

// cleaned returns the notice with only what a terminal, a desktop or an environment takes for text.
func cleaned(n Notice) Notice {
	n.ID = text.Clean(n.ID, maxField)
	n.Kind = text.Clean(n.Kind, maxField)
	n.Title = text.Clean(n.Title, maxTitle)
	n.Body = text.CleanLines(n.Body, MaxBody)
	n.Run = text.Clean(n.Run, maxField)
	n.Gate = text.Clean(n.Gate, maxField)
	n.Repo = text.Clean(n.Repo, maxField)
	n.URL = text.Clean(n.URL, maxURL)
	n.Brief = text.CleanLines(n.Brief, MaxBody)
	if n.Urgency != UrgencyCritical {
		n.Urgency = UrgencyNormal
	}
	n.Kind = cmp.Or(n.Kind, KindInfo)
	n.Title = cmp.Or(n.Title, "sluice: "+n.Kind)
	return n
}
