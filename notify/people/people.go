// Package people tells the people of one repo what they are asked, reminds them, and takes the
// buttons that they press. people.go has the rounds that are open and the buttons; tell.go the
// words of each notice.
package people

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/notify"
)

// The buttons of a notice.
const (
	pressApprove = "approve"
	pressReject  = "reject"
	pressVeto    = "veto"
	pressShow    = "show"
)

const (
	viaDesktop   = "desktop"
	pressesMost  = 32               // pressed and not taken in
	recallsMost  = 100              // gates whose notices are put back on the screen at a start
	answerMost   = 30 * time.Second // until a pressed button is in the journal
	terminalMost = 10 * time.Second // until a terminal is there
	vetoWords    = "vetoed from the desktop, no words given"
)

// askedAt is a round at which a person may decide, and what its notice is of.
type askedAt struct {
	run, gate, state string
	n                int
	signed, asks     bool
}

// Options are what People are made of.
type Options struct {
	Root     string                  // of the repo
	Page     func() string           // the address of the repo's pages; "" = there are none
	Notifier func() *notify.Notifier // called for each notice; nil = none is sent
	// Terminal opens a terminal in dir with a command of sluice's, or says why it cannot.
	Terminal      func(ctx context.Context, dir string, args []string) error
	EscalateAfter func() int                                            // reminders of a gate; 0 = it never does
	Level         func(run string) (level, why string)                  // see daemon.World
	Files         func(run, step string, n int) (changed, declared int) // of an attempt
	Notes         *health.Notes
	Now           func() time.Time
}

// People are those who are asked, reminded and told of one repo's runs, and who answer by buttons.
// Safe for concurrent use.
type People struct {
	opt     Options
	presses errands[notify.Press]
	recalls errands[job.Job] // reminders of rounds that were told of before this process began

	mu    sync.Mutex
	asked map[string]askedAt // rounds at which a person may decide, by slot
}

// New returns the people of a repo; nobody is asked yet.
func New(o Options) *People {
	return &People{opt: o, asked: map[string]askedAt{}}
}

// slot names the place on the desktop that a round's notices take, one after the other.
func slot(run, gate string, n int) string { return run + "/" + gate + "#" + strconv.Itoa(n) }

// Asked takes the rounds of a run at which a person may decide now. The notices of those that are decided go off the
// screen; those that a process before this one had told of are put back on it. It does not block.
func (p *People) Asked(run string, rounds []job.AskedRound) {
	now := map[string]askedAt{}
	for _, q := range rounds {
		now[slot(run, q.Gate, q.N)] = askedAt{run: run, gate: q.Gate, state: q.State, n: q.N, signed: q.Signed, asks: q.Asks}
	}
	var over []string
	p.mu.Lock()
	for name, q := range p.asked {
		if _, still := now[name]; q.run == run && !still {
			delete(p.asked, name)
			over = append(over, name)
		}
	}
	var again []job.Job
	for _, q := range rounds {
		name := slot(run, q.Gate, q.N)
		if _, known := p.asked[name]; !known && !q.Owed { // told before this process began
			again = append(again, q.Job)
		}
		p.asked[name] = now[name]
	}
	p.mu.Unlock()
	for _, job := range again {
		p.recalls.add(job, recallsMost) // nobody looks through more on the screen; `sluice inbox` has all
	}
	if n := p.opt.Notifier(); n != nil {
		for _, name := range over {
			n.Dismiss(name)
		}
	}
}

// wantsSigned reports whether a button cannot answer at the gate: it signs nothing. What signs is a
// command in a terminal.
func wantsSigned(job job.Job) bool {
	return job.Config.Trust == engine.TrustSigned || job.Round != nil && job.Round.Trust == engine.TrustSigned
}

// at returns the round of a slot, if it is still open.
func (p *People) at(slot string) (q askedAt, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, open = p.asked[slot]
	return q, open
}

// buttons gives the notice of an open round its slot and its buttons.
func (p *People) buttons(out *notify.Notice, job job.Job) {
	n := job.Notice
	if n.Kind != engine.NoticeGate && n.Kind != engine.NoticeHuman && n.Kind != engine.NoticeReminder || n.Gate == "" {
		return
	}
	name := slot(n.Run, n.Gate, n.N)
	q, open := p.at(name)
	if !open {
		return
	}
	out.Slot, out.Over = name, func() bool { _, open := p.at(name); return !open }
	switch {
	case q.state != engine.OnHuman && q.signed:
		out.Actions = []notify.Action{{Key: pressVeto, Label: "Veto…"}}
	case q.state != engine.OnHuman:
		out.Actions = []notify.Action{{Key: pressVeto, Label: "Veto"}}
	case q.signed:
		out.Actions = []notify.Action{{Key: pressReject, Label: "Reject…"}}
	case q.asks:
		out.Actions = []notify.Action{{Key: pressApprove, Label: "Approve…"}, {Key: pressReject, Label: "Reject…"}}
	default:
		out.Actions = []notify.Action{{Key: pressApprove, Label: "Approve"}, {Key: pressReject, Label: "Reject…"}}
	}
	out.Actions = append(out.Actions, notify.Action{Key: pressShow, Label: "Show"})
}

// Pressed takes a pressed button. It does not block: Hear sees to it.
func (p *People) Pressed(press notify.Press) {
	if !p.presses.add(press, pressesMost) {
		p.opt.Notes.Logf("a pressed button of %s was dropped: %d wait", press.Slot, pressesMost)
	}
}

// Hear has pressed buttons taken in by do, and beside them the notices of earlier rounds put back on the screen. The
// returned function ends that and waits for what is under way.
func (p *People) Hear(ctx context.Context, do func(context.Context, daemon.Do) (daemon.Done, error)) (end func()) {
	p.presses.begin(func(press notify.Press) { p.pressed(ctx, press, do) })
	p.recalls.begin(func(job job.Job) { p.recall(ctx, job) })
	return func() {
		p.presses.end()
		p.recalls.end()
	}
}

// recall puts a notice back on the screen.
func (p *People) recall(ctx context.Context, job job.Job) {
	notice := p.Notice(job)
	notice.ID, notice.Again = "", true
	if notice.Slot == "" { // decided meanwhile
		return
	}
	results, _ := p.send(ctx, notice)
	for _, r := range results {
		p.Reached(r)
	}
}

// pressed carries a pressed button out.
func (p *People) pressed(ctx context.Context, press notify.Press,
	do func(context.Context, daemon.Do) (daemon.Done, error)) {
	q, open := p.at(press.Slot)
	if !open {
		p.followUp(ctx, q, "Your answer did not count", press.Slot+" was decided already. To see how: sluice log")
		return
	}
	words := func(title, outcome string) {
		p.inTerminal(ctx, q, title, outcome, q.gate, "--run", q.run, "--round", strconv.Itoa(q.n))
	}
	switch {
	case press.Key == pressApprove && q.asks:
		words("Your answer is needed", engine.OutcomePass)
	case press.Key == pressApprove:
		p.answered(ctx, q, engine.OutcomePass, "", do)
	case press.Key == pressVeto && q.signed:
		words("Your reason is needed", engine.OutcomeVeto)
	case press.Key == pressVeto:
		p.answered(ctx, q, engine.OutcomeVeto, vetoWords, do)
	case press.Key == pressReject:
		words("Your reason is needed", engine.OutcomeFail)
	case press.Key == pressShow:
		p.inTerminal(ctx, q, "To look", "show", q.gate, "--run", q.run)
	}
}

// answered hands a person's answer over. If it did not count, whoever pressed gets a notice.
func (p *People) answered(ctx context.Context, q askedAt, outcome, text string,
	do func(context.Context, daemon.Do) (daemon.Done, error)) {
	raw, err := json.Marshal(engine.Answered{Gate: q.gate, Run: q.run, Round: q.n, Outcome: outcome, Text: text})
	var done daemon.Done
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, answerMost)
		done, err = do(bounded, daemon.Do{Kind: engine.Answered{}.EventKind(), Event: raw, Via: viaDesktop})
		cancel()
	}
	switch {
	case err != nil && ctx.Err() == nil:
		p.opt.Notes.Logf("%s at %s of %s, pressed on the desktop: %v", outcome, q.gate, q.run, err)
		p.followUp(ctx, q, "Your answer could not be delivered", err.Error())
	case done.Ignored != "":
		p.followUp(ctx, q, "Your answer did not count", done.Ignored)
	}
}

// followUp tells who pressed a button what came of it.
func (p *People) followUp(ctx context.Context, q askedAt, title, text string) {
	if q.gate != "" {
		title = fmt.Sprintf("%s of %s: %s", q.gate, q.run, title)
	}
	p.send(ctx, notify.Notice{Kind: notify.KindInfo, Run: q.run, Gate: q.gate, Title: title, Body: text})
}

// inTerminal opens a terminal with a command of sluice's; without one, a notice has the command.
func (p *People) inTerminal(ctx context.Context, q askedAt, title string, args ...string) {
	bounded, cancel := context.WithTimeout(ctx, terminalMost)
	err := p.opt.Terminal(bounded, p.opt.Root, args)
	cancel()
	if err == nil || ctx.Err() != nil {
		return
	}
	p.opt.Notes.Logf("no terminal for `sluice %s`: %s", strings.Join(args, " "), err)
	p.followUp(ctx, q, title, "In "+p.opt.Root+":\nsluice "+strings.Join(args, " "))
}
