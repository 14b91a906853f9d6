package executor

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

// slot names the place on the desktop that a round's notices take, one after the other.
func slot(run, gate string, n int) string { return run + "/" + gate + "#" + strconv.Itoa(n) }

// Asked takes the rounds of a run at which a person may decide now. The notices of those that are decided go off the
// screen; those that a process before this one had told of are put back on it. It does not block.
func (e *Executor) Asked(run string, rounds []job.AskedRound) {
	now := map[string]askedAt{}
	for _, q := range rounds {
		now[slot(run, q.Gate, q.N)] = askedAt{run: run, gate: q.Gate, state: q.State, n: q.N, signed: q.Signed, asks: q.Asks}
	}
	var over []string
	e.mu.Lock()
	for name, q := range e.asked {
		if _, still := now[name]; q.run == run && !still {
			delete(e.asked, name)
			over = append(over, name)
		}
	}
	var again []job.Job
	for _, q := range rounds {
		name := slot(run, q.Gate, q.N)
		if _, known := e.asked[name]; !known && !q.Owed { // told before this process began
			again = append(again, q.Job)
		}
		e.asked[name] = now[name]
	}
	e.mu.Unlock()
	for _, job := range again {
		select {
		case e.recalls <- job:
		default: // so many that nobody looks through them; `sluice inbox` does
		}
	}
	if n := e.notifier(); n != nil {
		for _, name := range over {
			n.Dismiss(name)
		}
	}
}

// wantsSigned says that a button cannot answer at the gate: it signs nothing. What signs is a command in a terminal.
func wantsSigned(job job.Job) bool {
	return job.Config.Trust == engine.TrustSigned || job.Round != nil && job.Round.Trust == engine.TrustSigned
}

// over says that the round of a slot is decided.
func (e *Executor) over(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, open := e.asked[name]
	return !open
}

func (e *Executor) notifier() *notify.Notifier {
	if e.opt.Notifier == nil {
		return nil
	}
	return e.opt.Notifier()
}

// buttons gives the notice of an open round its slot and its buttons.
func (e *Executor) buttons(out *notify.Notice, job job.Job) {
	n := job.Notice
	if n.Kind != engine.NoticeGate && n.Kind != engine.NoticeHuman && n.Kind != engine.NoticeReminder || n.Gate == "" {
		return
	}
	name := slot(n.Run, n.Gate, n.N)
	e.mu.Lock()
	q, open := e.asked[name]
	e.mu.Unlock()
	if !open {
		return
	}
	out.Slot, out.Over = name, func() bool { return e.over(name) }
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
func (e *Executor) Pressed(p notify.Press) {
	select {
	case e.presses <- p:
	default:
		e.opt.Logf("a pressed button of %s was dropped: %d wait", p.Slot, pressesMost)
	}
}

// Hear has pressed buttons taken in by do, until ctx ends.
func (e *Executor) Hear(ctx context.Context, do func(context.Context, daemon.Do) (daemon.Done, error)) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { e.recall(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-e.presses:
			e.pressed(ctx, p, do)
		}
	}
}

// recall puts notices back on the screen, until ctx ends.
func (e *Executor) recall(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case job := <-e.recalls:
			notice := e.words(job)
			notice.ID, notice.Again = "", true
			if notice.Slot == "" { // decided meanwhile
				continue
			}
			results, _ := e.send(ctx, notice)
			for _, r := range results {
				e.Reached(r)
			}
		}
	}
}

// pressed carries a pressed button out.
func (e *Executor) pressed(ctx context.Context, p notify.Press, do func(context.Context, daemon.Do) (daemon.Done, error)) {
	e.mu.Lock()
	q, open := e.asked[p.Slot]
	e.mu.Unlock()
	if !open {
		e.followUp(ctx, q, "Your answer did not count", p.Slot+" was decided already. To see how: sluice log")
		return
	}
	words := func(outcome string) {
		e.inTerminal(ctx, q, "Your words are asked for", outcome, q.gate, "--run", q.run, "--round", strconv.Itoa(q.n))
	}
	switch {
	case p.Key == pressApprove && q.asks:
		e.inTerminal(ctx, q, "Your answer is asked for", engine.OutcomePass, q.gate, "--run", q.run, "--round", strconv.Itoa(q.n))
	case p.Key == pressApprove:
		e.answered(ctx, q, engine.OutcomePass, "", do)
	case p.Key == pressVeto && q.signed:
		words(engine.OutcomeVeto)
	case p.Key == pressVeto:
		e.answered(ctx, q, engine.OutcomeVeto, vetoWords, do)
	case p.Key == pressReject:
		words(engine.OutcomeFail)
	case p.Key == pressShow:
		e.inTerminal(ctx, q, "To look", "show", q.gate, "--run", q.run)
	}
}

// answered hands a person's answer over. Who pressed is told where it did not count.
func (e *Executor) answered(ctx context.Context, q askedAt, outcome, text string, do func(context.Context, daemon.Do) (daemon.Done, error)) {
	raw, err := json.Marshal(engine.Answered{Gate: q.gate, Run: q.run, Round: q.n, Outcome: outcome, Text: text})
	var done daemon.Done
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, answerMost)
		done, err = do(bounded, daemon.Do{Kind: engine.Answered{}.EventKind(), Event: raw, Via: viaDesktop})
		cancel()
	}
	switch {
	case err != nil && ctx.Err() == nil:
		e.opt.Logf("%s at %s of %s, pressed on the desktop: %v", outcome, q.gate, q.run, err)
		e.followUp(ctx, q, "Your answer could not be taken in", err.Error())
	case done.Ignored != "":
		e.followUp(ctx, q, "Your answer did not count", done.Ignored)
	}
}

// followUp tells who pressed a button what came of it.
func (e *Executor) followUp(ctx context.Context, q askedAt, title, text string) {
	if q.gate != "" {
		title = fmt.Sprintf("%s of %s: %s", q.gate, q.run, title)
	}
	e.send(ctx, notify.Notice{Kind: notify.KindInfo, Run: q.run, Gate: q.gate, Title: title, Body: text})
}

// inTerminal opens a terminal with a command of sluice's; where there is none the command is told.
func (e *Executor) inTerminal(ctx context.Context, q askedAt, title string, args ...string) {
	why := "no terminal is known (notify.terminal)"
	if e.opt.Terminal != nil {
		bounded, cancel := context.WithTimeout(ctx, terminalMost)
		err := e.opt.Terminal(bounded, e.Root, args)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		why = err.Error()
	}
	e.opt.Logf("no terminal for `sluice %s`: %s", strings.Join(args, " "), why)
	e.followUp(ctx, q, title, "In "+e.Root+":\nsluice "+strings.Join(args, " "))
}
