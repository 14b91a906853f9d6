package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/notify"
)

// tellMost is how long a notice may take; the notifier itself ends a little sooner.
const tellMost = 6 * time.Second

// tell tells a person. A channel that hangs, or that the person set up and that fails, is told in status too: who relies on
// being told has to know. That there is no desktop is no fault: `sluice doctor` tells that.
func (e *Executor) tell(ctx context.Context, job daemon.Job) engine.Event {
	ev := engine.Noticed{Run: job.Notice.Run, ID: job.Notice.ID}
	results, some := e.send(ctx, e.words(job))
	if !some {
		ev.Results = []string{"nobody was told: no way to tell is set up"}
		return ev
	}
	if ctx.Err() != nil {
		return nil
	}
	for _, r := range results {
		line, trouble := r.Channel+": shown", ""
		if !r.OK {
			line = r.Channel + ": " + r.Why
		}
		if r.Hung || !r.OK && r.Channel != notify.DesktopChannel {
			trouble = r.Why
		}
		e.note("notices by "+r.Channel, trouble)
		ev.Results = append(ev.Results, line)
	}
	return ev
}

// send sends a notice through the notifier of now. One that was closed meanwhile, as the settings were read again, has
// attempted nothing: its successor does. some says that there is a notifier at all.
func (e *Executor) send(ctx context.Context, notice notify.Notice) (results []notify.Result, some bool) {
	for {
		var n *notify.Notifier
		if e.opt.Notifier != nil {
			n = e.opt.Notifier()
		}
		if n == nil {
			return nil, false
		}
		bounded, cancel := context.WithTimeout(ctx, tellMost)
		results = n.Send(bounded, notice)
		cancel()
		if results != nil || !wait(ctx, againFirst) {
			return results, true
		}
	}
}

// words is what a person is told, and which command answers it.
func (e *Executor) words(job daemon.Job) notify.Notice {
	n := job.Notice
	out := notify.Notice{ID: n.ID, Kind: n.Kind, Run: n.Run, Gate: n.Gate, Urgency: notify.UrgencyNormal}
	what := n.Run
	if n.Step != "" {
		what = strings.TrimSpace(n.Step + " of " + n.Run)
	}
	body := []string{n.Text}
	switch n.Kind {
	case engine.NoticeGate:
		out.Title = fmt.Sprintf("%s: the review passed %s", n.Gate, what)
		if job.Round != nil && job.Round.Score != nil {
			body = append(body, fmt.Sprintf("Score: %g of 100.", *job.Round.Score))
		}
		window := "It goes on by itself."
		if job.Round != nil && job.Round.VetoWindow > 0 {
			window = fmt.Sprintf("It goes on by itself in %s.", job.Round.VetoWindow)
		}
		body = append(body, window+" To stop it: "+answerWith("veto", n)+` -m "why"`)
	case engine.NoticeHuman, engine.NoticeReminder:
		out.Urgency = notify.UrgencyCritical
		out.Title = fmt.Sprintf("%s: your decision on %s is asked for", n.Gate, what)
		if n.Kind == engine.NoticeReminder {
			out.Title = fmt.Sprintf("%s: %s still waits for your decision", n.Gate, what)
		}
		if n.Gate == "" {
			out.Title = what + " waits"
			break
		}
		if !n.Until.IsZero() {
			body = append(body, "Until "+n.Until.Format("15:04:05")+".")
		}
		body = append(body, "To look: sluice show "+n.Gate, "To answer: "+answerWith("pass", n)+", or "+answerWith("fail", n)+` -m "why"`)
		switch level, why := e.Level(n.Run); {
		case job.Round != nil && level == engine.TrustFile:
			body = append(body, "Trust level file, unprotected: an agent with the rights of your user could answer too ("+why+").")
		case job.Round != nil:
			body = append(body, "Trust level "+level+".")
		}
	case engine.NoticeRejected:
		out.Title = "A signal was not taken in"
		body = append(body, "It lies in .workflow/signals/rejected/, with the reason beside it.")
	case engine.NoticeEnded:
		out.Title = strings.TrimSpace(fmt.Sprintf("%s has ended: %s", n.Run, job.RunInfo.Phase))
		body = append(body, "To see it: sluice status "+n.Run)
	case engine.NoticePaused:
		out.Urgency = notify.UrgencyCritical
		out.Title = n.Run + " is paused"
		body = append(body, "To go on when it is mended: sluice resume "+n.Run)
	default:
		out.Title = strings.TrimSpace("sluice: " + what)
	}
	out.Body = strings.TrimSpace(strings.Join(body, "\n"))
	return out
}

// answerWith is the command that answers a gate.
func answerWith(word string, n *engine.Notice) string {
	cmd := "sluice " + word + " " + n.Gate
	if n.Run != "" {
		cmd += " --run " + n.Run
	}
	return cmd
}
