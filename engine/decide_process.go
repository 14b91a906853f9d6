package engine

import (
	"fmt"
	"strings"
	"time"

	"sluice/internal/text"
)

// Backoff before a launch is retried: doubled each time, up to the maximum.
const (
	backoffFirst = 2 * time.Second
	backoffMost  = 5 * time.Minute
	limitFirst   = 5 * time.Minute // for a usage limit without a reset time
	limitMost    = time.Hour
)

func backoff(n int, first, most time.Duration) time.Duration {
	d := first
	for range n {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}

// relaunchAt returns when to launch again after n infrastructure failures; false: restarts are used up.
func (d *draft) relaunchAt(n int, own *int, role string) (at time.Time, ok bool) {
	return d.at.Add(backoff(n, backoffFirst, backoffMost)), n < d.s.Config.restarts(own, role)
}

// ended handles a process tree that is gone.
func (d *running) ended(ev ProcessEnded) {
	r := d.s.Runs[ev.Run]
	if r == nil || r.Procs.Of(ev.Key) == nil {
		return // reported before, or of a forgotten run
	}
	p := *r.Procs.Of(ev.Key)
	d.slotTaken(SlotTaken{Run: ev.Run, Key: ev.Key}) // it had its slot, so nothing after it waits without a deadline
	d.put(ProcessGone{of: Of(r.ID), Key: ev.Key, Exit: ev.Exit, Day: ev.Day, Output: clip(ev.Output, MaxOutput),
		Answer: ev.Answer})
	r, w := d.live(ev.Run)
	if r == nil {
		return
	}
	switch p.Kind {
	case ProcStep:
		if a := r.Current(p.Step); a != nil && a.N == p.N && a.K == p.K && a.State == Running {
			d.stepEnded(r, w.Step(p.Step), a, p, ev)
		}
	case ProcCheck:
		if a := r.Current(p.Step); a != nil && a.N == p.N && a.State == Signalled && !a.Checked {
			d.checkEnded(r, w.Step(p.Step), a, p, ev)
		}
	case ProcReview:
		if q := r.CurrentRound(p.Gate); q != nil && q.N == p.N && q.K == p.K && q.State == OnReview {
			d.reviewEnded(r, w.Gate(p.Gate), q, p, ev)
		}
	}
}

// slotTaken handles the start of a launch that had to wait for another agent's end. Its time-out
// begins now.
func (d *running) slotTaken(ev SlotTaken) {
	r, w := d.live(ev.Run)
	if r == nil {
		return
	}
	at, p := r.clock(ev.Key), r.Procs.Of(ev.Key)
	if at == nil || !at.IsZero() || p.Forge {
		return
	}
	t := Duration(0)
	if p.Kind == ProcStep {
		st := w.Step(p.Step)
		t = d.s.Config.timeout(st.Timeout, st.Role())
	} else {
		t = d.s.Config.timeout(0, w.Gate(p.Gate).Reviewer.AgentType)
	}
	d.put(ClockBegun{of: Of(ev.Run), Key: ev.Key, Deadline: d.at.Add(time.Duration(t))})
}

// class returns the kind and reason of a failure, or "" (8-semantics 14).
func class(p Proc, exit Exit, signal string) (string, string) {
	switch {
	case endedForBudget(p, exit):
		return ClassLimit, strings.TrimPrefix(p.Stop, stopBudget)
	case exit.Refused != "":
		return ClassWork, exit.Refused
	case exit.Class != "":
		return exit.Class, exit.Why
	case exit.NotStarted != "":
		return ClassInfrastructure, exit.NotStarted
	case p.Stop != "" && !endedFirst(p, exit):
		return ClassInfrastructure, strings.Replace("it was ended: "+p.Stop, "it was ended: timeout", "it timed out", 1)
	case exit.Idle:
		return ClassInfrastructure, "it printed nothing for its idle_timeout and was stopped"
	case exit.Lost:
		return ClassInfrastructure, "it vanished without an exit code: the machine restarted, or its host process was killed"
	case exit.Stopped:
		return ClassInfrastructure, "it was ended"
	case exit.Signal != "":
		return ClassInfrastructure, "it was ended by signal " + exit.Signal
	case exit.Code != 0 && signal != SignalExit:
		return ClassInfrastructure, fmt.Sprintf("it ended with exit code %d and without its signal", exit.Code)
	case exit.Code != 0:
		return ClassWork, fmt.Sprintf("it ended with exit code %d", exit.Code)
	}
	return "", ""
}

// stepEnded handles a process that ended before the step reported.
func (d *running) stepEnded(r *Run, st *Step, a *Attempt, p Proc, ev ProcessEnded) {
	kind, why := class(p, ev.Exit, a.SignalType)
	word := StepSignalled{of: Of(r.ID), Step: st.ID, N: a.N, K: a.K, Via: "exit"}
	if over := d.spentUp(st.Role(), a.Usage); over != "" && kind != "" && kind != ClassFatal {
		kind, why = ClassWork, over // another launch would only spend more
	}
	if a.Held != nil && (kind != "" || ev.Exit.Stopped || a.SignalType != SignalExit) {
		d.letGo(r, a)
		return
	}
	switch kind {
	case ClassWork:
		word.Status, word.Failure = StatusFailed, feedback(why, ev)
		d.signalled(word)
	case ClassFatal:
		d.put(StepRelaunched{of: Of(r.ID), Step: st.ID, N: a.N, Class: kind, Why: why})
		d.stopFor(r, "fatal", fmt.Sprintf("%s.%d: %s", st.ID, a.N, why))
	case ClassLimit:
		until := d.goesOn(p, ev.Exit, a.Waits)
		d.put(StepRelaunched{of: Of(r.ID), Step: st.ID, N: a.N, Class: kind, Why: why, NotBefore: until, Limit: true,
			Budget: ev.Exit.Budget})
	case ClassInfrastructure:
		if at, ok := d.relaunchAt(a.Restarts, st.Restarts, st.Role()); ok {
			d.put(StepRelaunched{of: Of(r.ID), Step: st.ID, N: a.N, Class: kind, Why: why, NotBefore: at})
			return
		}
		word.Status, word.Broken = StatusFailed, feedback(why, ev)
		d.put(word)
	default:
		d.exitedWell(r, st, a, word, ev)
	}
}

// goesOn returns when to launch again after a limit: at the time it names; at once after the run's
// budget, which a person must raise; else, and where that time is over, after growing waits.
func (d *running) goesOn(p Proc, exit Exit, waits int) time.Time {
	switch {
	case endedForBudget(p, exit):
		return d.at
	case exit.ResumeAt.IsZero():
		return d.at.Add(backoff(waits, limitFirst, limitMost))
	}
	return later(exit.ResumeAt, d.at.Add(backoff(waits, backoffFirst, backoffMost)))
}

// exitedWell handles exit code 0.
func (d *running) exitedWell(r *Run, st *Step, a *Attempt, word StepSignalled, ev ProcessEnded) {
	c := d.s.Config
	switch {
	case a.SignalType != SignalExit:
		grace := c.Grace
		if a.SignalType == SignalPull {
			grace = max(c.Grace, c.PRPoll)
		}
		d.put(GraceBegan{of: Of(r.ID), Step: st.ID, N: a.N, Until: d.at.Add(time.Duration(grace))})
		return
	case ev.AnswerBad != "":
		word.Status, word.Failure = StatusFailed, ev.AnswerBad
	default:
		word.Status, word.Answer = StatusDone, ev.Answer
		said := answerWord(ev.Answer)
		if said.Status == "skipped" && d.spec(r).Inline {
			said.Status = StatusBlocked
		}
		if said.Status == StatusFailed || said.Status == StatusBlocked {
			word.Status, word.Question, word.Options = said.Status, clip(said.Question, MaxFeedback), said.Options
		}
		word.Summary = clip(said.Summary, MaxFeedback)
	}
	d.signalled(word)
}

func feedback(why string, ev ProcessEnded) string {
	if ev.Output == "" {
		return clip(why, MaxFeedback)
	}
	return clip(why+": “"+text.Cause(ev.Output, 300)+"”\n\n"+ev.Output, MaxFeedback)
}

// graceOver handles exit code 0 without the signal in time.
func (d *running) graceOver(r *Run, step string, a *Attempt) {
	// no file can report it
	if said := answerWord(a.Answer); a.inGit() && (said.Status == StatusFailed || said.Status == StatusBlocked) {
		d.signalled(StepSignalled{of: Of(r.ID), Step: step, N: a.N, K: a.K, Status: said.Status, Via: "exit",
			Summary:  clip(said.Summary, MaxFeedback),
			Question: clip(said.Question, MaxFeedback), Options: said.Options})
		return
	}
	why := "it ended with exit code 0 and without its signal (" + a.SignalType
	if a.SignalValue != "" {
		why += " " + a.SignalValue
	}
	d.signalled(StepSignalled{of: Of(r.ID), Step: step, N: a.N, K: a.K, Status: StatusFailed, Via: "exit",
		Failure: feedback(why+")", ProcessEnded{Output: a.Output})})
}

func (d *running) checkEnded(r *Run, st *Step, a *Attempt, p Proc, ev ProcessEnded) {
	f := Checked{of: Of(r.ID), Step: p.Step, N: p.N}
	if c := ev.Check; c != nil && c.Lost {
		f.Broken = clip(c.Why, MaxFeedback)
		if at, ok := d.relaunchAt(a.Restarts, st.Restarts, st.Role()); ok && a.K > 0 && d.spentUp(st.Role(), a.Usage) == "" {
			d.put(WorkLost{of: Of(r.ID), Step: p.Step, N: p.N, Why: f.Broken, NotBefore: at})
			return
		}
	} else if c != nil && p.Stop == "" {
		f.OK, f.Why, f.Broken = c.OK, clip(c.Why, MaxFeedback), clip(c.Broken, MaxFeedback)
		f.Digest, f.Content, f.Protected, f.ToReview = c.Digest, c.Content, c.Protected, c.ToReview
		f.ProtectedAs, f.ProtectedBy = c.ProtectedAs, c.ProtectedBy
		f.Unshipped, f.Apart = max(c.Unshipped, 0), c.Apart
	} else if p.Stop != "" {
		f.Why = "the success_criterion did not end in time: " + p.Stop
	} else {
		_, f.Broken = class(p, ev.Exit, SignalExit)
	}
	d.put(f)
}

func (d *running) reviewEnded(r *Run, g *Gate, q *Round, p Proc, ev ProcessEnded) {
	kind, why := class(p, ev.Exit, SignalExit)
	over := d.spentUp(g.Reviewer.AgentType, q.Usage)
	switch {
	case over != "" && kind != ClassFatal && (kind != "" || ev.Verdict == nil || ev.Verdict.Inconclusive != ""):
		d.ask(r, g, q, "its reviewer gave no verdict: "+over) // another launch would only spend more
	case kind == ClassLimit:
		until := d.goesOn(p, ev.Exit, q.Waits)
		d.put(Inconclusive{of: Of(r.ID), Gate: g.ID, N: q.N, Why: why, NotBefore: until, Limit: true, Budget: ev.Exit.Budget})
	case kind == ClassFatal:
		d.put(Inconclusive{of: Of(r.ID), Gate: g.ID, N: q.N, Why: why, Limit: true, NotBefore: d.at})
		d.stopFor(r, "fatal", fmt.Sprintf("reviewer of %s: %s", g.ID, why))
	case ev.Verdict == nil || kind == ClassInfrastructure:
		d.inconclusive(r, g, q, why)
	default:
		d.judge(r, g, q, *ev.Verdict, g.judgeKind())
	}
}

// endedUnread handles a step's process that ended while the run's spec could not be read
// (8-semantics 37).
func (d *running) endedUnread(r *Run, w *Spec) bool {
	for _, a := range w.inOrder(r.alive) {
		if a.State != Running || a.Offered || a.Exit == nil || !a.GraceUntil.IsZero() || r.Procs.Of(a.Key) != nil {
			continue
		}
		st := w.Step(a.step)
		if a.Deadline.IsZero() { // it had waited for its turn, and its start was not handled either
			d.put(DeadlineMoved{of: Of(r.ID), Step: st.ID, N: a.N,
				To: d.at.Add(time.Duration(d.s.Config.timeout(st.Timeout,
					st.Role()))), Why: "it had waited for its turn"})
		}
		d.stepEnded(r, st, a, Proc{Key: a.Key, Kind: ProcStep, Step: st.ID, N: a.N, K: a.K},
			ProcessEnded{Run: r.ID, Key: a.Key, Exit: *a.Exit, Output: a.Output, Answer: a.Answer})
		return true
	}
	return false
}
