package people

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/text"
	"sluice/notify"
)

// tellMost is how long a notice may take; the notifier itself ends a little sooner.
const tellMost = 6 * time.Second

// Tell tells a person. A channel that hangs or fails is told in status too: who relies on being
// told has to know. That there is no desktop at all is no fault: `sluice doctor` tells that.
func (p *People) Tell(ctx context.Context, job job.Job) engine.Event {
	ev := engine.Noticed{Run: job.Notice.Run, ID: job.Notice.ID}
	results, some := p.send(ctx, p.Notice(job))
	if !some {
		ev.Results = []string{"nobody was notified: no channel is set up"}
		return ev
	}
	if ctx.Err() != nil {
		return nil
	}
	for _, r := range results {
		line := r.Channel + ": shown"
		if !r.OK {
			line = r.Channel + ": " + r.Why
		}
		p.Reached(r)
		ev.Results = append(ev.Results, line)
	}
	return ev
}

// Reached takes what came of a notice on a channel.
func (p *People) Reached(r notify.Result) {
	why := r.Why
	if r.OK || r.Missing {
		why = ""
	}
	p.opt.Notes.Note("notices by "+r.Channel, why)
}

// send sends a notice through the notifier of now. One that was closed meanwhile, as the settings were read again, has
// attempted nothing: its successor does. some says that there is a notifier at all.
func (p *People) send(ctx context.Context, notice notify.Notice) (results []notify.Result, some bool) {
	for {
		n := p.opt.Notifier()
		if n == nil {
			return nil, false
		}
		bounded, cancel := context.WithTimeout(ctx, tellMost)
		results = n.Send(bounded, notice)
		cancel()
		if notice.Over != nil && notice.Over() { // it was decided while the notice was on its way
			n.Dismiss(notice.Slot)
		}
		if results != nil || !health.Wait(ctx, health.AgainFirst) {
			return results, true
		}
	}
}

// whyLevel is the engine's word for a gate that asks a person because its spec says so: nothing to tell of.
const whyLevel = "level"

// wordsMost is how many characters a notice has at most of the words of others in one place, and wordsLeast how many at
// least.
const (
	wordsMost  = 400
	wordsLeast = 50
)

// Notice returns the text for a person, and the command that answers it. The words of others are shortened until there
// is room for the rest: what protects an answer, and the commands.
func (p *People) Notice(job job.Job) notify.Notice {
	out := p.noticeWith(job, wordsMost)
	for most := wordsMost / 2; most >= wordsLeast && utf8.RuneCountInString(out.Body) > notify.MaxBody; most /= 2 {
		out = p.noticeWith(job, most)
	}
	return out
}

// quoted returns the words of others with a mark on each line but the first, so that none looks like ours.
func quoted(s string, most int) string {
	lines := strings.FieldsFunc(text.CleanLines(s, len(s)), func(r rune) bool { return r == '\n' })
	return text.Ends(strings.Join(lines, "\n> "), most)
}

// noticeWith is the notice with at most so many characters of the words of others in one place.
func (p *People) noticeWith(job job.Job, most int) notify.Notice {
	n := job.Notice
	out := notify.Notice{ID: n.ID, Kind: n.Kind, Run: n.Run, Gate: n.Gate, Repo: filepath.Base(p.opt.Root),
		Urgency: notify.UrgencyNormal}
	what := n.Run
	var body []string
	if n.Text != whyLevel {
		words := quoted(n.Text, most)
		if n.Kind == engine.NoticeGate && words != "" { // all of it is the reviewer's
			words = "The review says: " + words
		}
		body = append(body, words)
	}
	if c := job.RunInfo.Child; c != nil {
		what = c.Title()
		body = append(body, childWords(n.Run, c, most))
	}
	if n.Step != "" {
		what = strings.TrimSpace(n.Step + " of " + what)
	}
	var answer []string // by commands: where there are buttons they say it
	asks := n.Kind == engine.NoticeHuman || n.Kind == engine.NoticeReminder
	switch {
	case n.Gate != "" && (n.Kind == engine.NoticeGate || asks && job.Round != nil && job.Round.State == engine.OnWindow):
		out.Title = fmt.Sprintf("%s: the review passed %s", n.Gate, what)
		body = append(append(body, p.reviewed(job, most)...), window(job)...)
		answer = []string{"To stop it: " + answerWith("veto", n) + ` -m "why"`}
		body = append(body, p.unheld(n.Run))
	case asks:
		var asked []string
		asked, answer = p.askedFor(&out, job, what, most)
		body = append(body, asked...)
	default:
		body = p.others(&out, job, what, body)
	}
	if after := p.opt.EscalateAfter(); after > 0 && n.Kind == engine.NoticeReminder && job.Round != nil &&
		job.Round.Reminders >= after {
		out.Escalated = true
		out.Title = "Unanswered: " + out.Title
		body = append(body, fmt.Sprintf("You were reminded %d times; it waits since %s.", job.Round.Reminders,
			job.Round.Asked.Local().Format("Mon 2 Jan 15:04")))
	}
	if len(job.RunInfo.Stubs) > 0 {
		out.Title = "[stub] " + out.Title
		body = append(body, "Stubs play this run's agents (--stub): nothing in it is real work.")
	}
	out.Brief = joined(body)
	if out.URL = p.pageOf(n); out.URL != "" && n.Gate != "" {
		answer = append(answer, "In a browser: "+out.URL)
	}
	out.Body = joined(append(body, answer...))
	p.buttons(&out, job)
	return out
}

// pageOf returns the page of the gate or the run that a notice is about; "" if there is none.
func (p *People) pageOf(n *engine.Notice) string {
	if n.Run == "" {
		return ""
	}
	base := p.opt.Page()
	switch {
	case base == "":
		return ""
	case n.Gate == "":
		return base + "/" + n.Run
	}
	return base + "/" + n.Run + "/g/" + n.Gate
}

// askedFor fills in a notice that asks for a decision. It returns its lines, and how to answer by commands.
func (p *People) askedFor(out *notify.Notice, job job.Job, what string, most int) (body, answer []string) {
	n := job.Notice
	out.Urgency = notify.UrgencyCritical
	out.Title = fmt.Sprintf("%s: your decision on %s is needed", n.Gate, what)
	if n.Kind == engine.NoticeReminder {
		out.Title = fmt.Sprintf("%s: %s still waits for your decision", n.Gate, what)
	}
	if n.Gate == "" {
		out.Title = what + " waits"
		return nil, nil
	}
	body = p.reviewed(job, most)
	if a := job.Attempt; a != nil && daemon.Untaken(job.RunInfo.Workspace, a) {
		body = append(body, "What it changed is in no commit: a pass goes on without it.")
	}
	if left := p.left(job); left != "" {
		body = append(body, left)
	}
	pass := answerWith("pass", n)
	if job.Round != nil {
		pass = daemon.AtRound(pass, job.Round.N)
	}
	answer = []string{"To look: " + answerWith("show", n),
		"To answer: " + pass + ", or " + answerWith("fail", n) + ` -m "why"`}
	if job.Spec != nil && job.Spec.Gate(n.Gate) != nil && job.Spec.Gate(n.Gate).AsksAnswer() {
		body = append(body, "A pass needs an answer and asks you for it: "+pass)
	}
	switch level, why := p.opt.Level(n.Run); {
	case wantsSigned(job):
		body = append(body, "It needs a signed answer: "+pass)
	case job.Round != nil && level == engine.TrustFile:
		body = append(body, text.Unheld+": an agent with the rights of your user could answer too ("+why+").")
	case job.Round != nil:
		body = append(body, "Trust level "+level+".")
	}
	return body, answer
}

func joined(lines []string) string {
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(slices.Clone(lines),
		func(s string) bool { return s == "" }), "\n"))
}

// childWords returns which run it is that is done for another, and for which task.
func childWords(run string, c *engine.ChildOf, most int) string {
	var task struct{ Title string }
	if c.Task == "" || json.Unmarshal(c.Body, &task) != nil || task.Title == "" {
		return "It is the run " + run + "."
	}
	return fmt.Sprintf("It is the run %s, for the task: %s", run, text.Clean(task.Title, most))
}

// others returns the words of a notice that asks for nothing.
func (p *People) others(out *notify.Notice, job job.Job, what string, body []string) []string {
	n := job.Notice
	switch n.Kind {
	case engine.NoticeRejected:
		out.Title = "A signal was rejected"
		body = append(body, "It is in .workflow/signals/rejected/, with the reason beside it.")
	case engine.NoticeEnded:
		out.Title = strings.TrimSpace(fmt.Sprintf("%s has ended: %s", n.Run, job.RunInfo.Phase))
		if n := job.RunInfo.Unpassed; n > 0 {
			body = append(body, text.GoneOnCount(n)+".")
		}
		if job.RunInfo.Workspace != "" && job.RunInfo.Child == nil && job.RunInfo.Phase == engine.RunCompleted {
			body = append(body, "To land its work: sluice land "+n.Run)
		}
		body = append(body, p.unheld(n.Run), "To see it: sluice status "+n.Run)
	case engine.NoticePaused:
		out.Urgency = notify.UrgencyCritical
		out.Title = cmp.Or(job.RunInfo.Child.Title(), n.Run) + " is paused"
		body = append(body, "To continue when it is fixed: sluice resume "+n.Run)
	default:
		out.Title = strings.TrimSpace("sluice: " + what)
	}
	return body
}

// unheld are the words for a run that no sandbox holds; "" of one that is held.
func (p *People) unheld(run string) string {
	level, why := p.opt.Level(run)
	if level != engine.TrustFile {
		return ""
	}
	return text.Unheld + ": " + why + "."
}

// reviewed returns what a round is over: the step's name, the files that were changed, what the
// agent said of it, the score.
func (p *People) reviewed(job job.Job, most int) []string {
	var parts, out []string
	n := job.Notice
	if job.Spec != nil {
		if st := job.Spec.Step(n.Step); st != nil && st.Name != "" && st.Name != st.ID {
			parts = append(parts, st.Name)
		}
	}
	if job.Attempt != nil {
		switch changed, declared := p.opt.Files(n.Run, n.Step, job.Attempt.N); {
		case changed == 1:
			parts = append(parts, "1 file changed")
		case changed > 1:
			parts = append(parts, fmt.Sprintf("%d files changed", changed))
		case declared > 0:
			parts = append(parts, text.Plural(declared, "declared output")+", no other file changed")
		}
	}
	if job.Round != nil && job.Round.Score != nil {
		parts = append(parts, fmt.Sprintf("score %g of 100", *job.Round.Score))
	}
	if job.Attempt != nil && job.Attempt.Unshipped > 0 {
		parts = append(parts, "judged "+text.Unshipped(job.Attempt.Unshipped))
	}
	if len(parts) > 0 {
		out = append(out, strings.Join(parts, ", ")+".")
	}
	if job.Attempt != nil && job.Attempt.Summary != "" {
		out = append(out, "Its summary: "+text.Clean(job.Attempt.Summary, most))
	}
	return out
}

// window returns when the work goes on by itself.
func window(job job.Job) []string {
	switch {
	case job.Round != nil && job.Round.State == engine.OnWindow && !job.Round.WindowEnds.IsZero():
		return []string{"It goes on by itself at " + job.Round.WindowEnds.Local().Format("15:04:05") + "."}
	case job.Round == nil || job.Round.VetoWindow <= 0:
		return []string{"It goes on by itself."}
	}
	return []string{"It goes on by itself in " + text.Span(time.Duration(job.Round.VetoWindow)) + "."}
}

// left returns how long an answer is waited for, where that has an end.
func (p *People) left(job job.Job) string {
	until := job.Notice.Until
	if until.IsZero() && job.Round != nil {
		until = job.Round.Due
	}
	if until.IsZero() {
		return ""
	}
	rest, clock := until.Sub(p.opt.Now()).Round(time.Minute), "15:04:05"
	if rest > halfDay {
		clock = "Mon 2 Jan 15:04"
	}
	words := "Until " + until.Local().Format(clock)
	if rest >= time.Minute {
		words += " (" + text.Span(rest) + " left)"
	}
	return words + "."
}

// halfDay: a time further off is shown with its day.
const halfDay = 12 * time.Hour

// answerWith is the command that shows or answers a gate.
func answerWith(word string, n *engine.Notice) string {
	cmd := "sluice " + word + " " + n.Gate
	if n.Run != "" {
		cmd += " --run " + n.Run
	}
	return cmd
}
