package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"sluice/engine"
	"sluice/internal/findings"
	"sluice/internal/job"
	"sluice/internal/strictjson"
)

// intake turns what people, agents and other machines submit into events of the engine: it checks each and
// adds what this machine knows of it. Any goroutine may call.
type intake struct {
	opt   *RepoOptions
	queue *queue
}

// event builds the engine's event. The server sets who and when.
func (n *intake) event(ctx context.Context, d Do, by engine.Actor) (engine.Event, error) {
	if len(d.Event) == 0 {
		d.Event = json.RawMessage("{}")
	}
	err := strictjson.Object(d.Event, requestMost) // what it nests deeper, no reader of the journal could read
	if err != nil {
		return nil, badEvent(d.Kind, err)
	}
	switch d.Kind {
	case engine.RunRequested{}.EventKind():
		return n.runRequested(ctx, d.Event, by)
	case engine.ArmRequested{}.EventKind():
		return n.armRequested(ctx, d.Event, by)
	case engine.Answered{}.EventKind():
		var ev engine.Answered
		if err = json.Unmarshal(d.Event, &ev); err == nil {
			if ev.Findings, err = findings.Clean(ev.Findings); err != nil {
				return nil, asked("the comments: %w", err)
			}
			ev.Written, ev.DigestNow = n.opt.Now(), ""
			n.signed(&ev, by)
			return n.answered(ctx, ev)
		}
	case engine.FileSeen{}.EventKind():
		var ev engine.FileSeen
		if len(d.Event) > signalMost {
			return nil, asked("a signal of more than %d KiB", signalMost>>10)
		}
		if err = json.Unmarshal(d.Event, &ev); err == nil && ev.Sentinel == nil {
			return nil, asked("%s: want a sentinel", d.Kind)
		}
		ev.By, ev.Written, ev.ID, ev.Human, ev.TokenOf = by, n.opt.Now(), "", nil, ""
		return ev, badEvent(d.Kind, err)
	default:
		return requested(d.Kind, d.Event, by)
	}
	return nil, badEvent(d.Kind, err)
}

// actor returns who submits an event to this machine.
func (n *intake) actor(d Do) engine.Actor {
	by := engine.Actor{Who: username(), Via: cmp.Or(d.Via, "command")}
	by.Trust, _ = n.opt.World.Level(runOf(d.Event))
	return by
}

// requested builds an event that has nothing of the server but who asks.
func requested(kind string, raw json.RawMessage, by engine.Actor) (engine.Event, error) {
	switch kind {
	case engine.Claimed{}.EventKind():
		return submitted(raw, func(ev *engine.Claimed) { ev.By = by })
	case engine.PauseRequested{}.EventKind():
		return submitted(raw, func(ev *engine.PauseRequested) { ev.By = by })
	case engine.ResumeRequested{}.EventKind():
		return submitted(raw, func(ev *engine.ResumeRequested) { ev.By = by })
	case engine.AbortRequested{}.EventKind():
		return submitted(raw, func(ev *engine.AbortRequested) { ev.By = by })
	case engine.RetryRequested{}.EventKind():
		return submitted(raw, func(ev *engine.RetryRequested) { ev.By = by })
	case engine.NoteGiven{}.EventKind():
		return submitted(raw, func(ev *engine.NoteGiven) { ev.By = by })
	case engine.TakeoverRequested{}.EventKind():
		return submitted(raw, func(ev *engine.TakeoverRequested) { ev.By = by })
	case engine.HandbackRequested{}.EventKind():
		return submitted(raw, func(ev *engine.HandbackRequested) { ev.By = by })
	case engine.DisarmRequested{}.EventKind():
		return submitted(raw, func(ev *engine.DisarmRequested) { ev.By = by })
	case engine.Fired{}.EventKind():
		return submitted(raw, func(ev *engine.Fired) { ev.By, ev.Trusted, ev.Armed = by, false, 0 })
	default:
		return nil, asked("event %q cannot be asked for", kind)
	}
}

// submitted returns an event as it was submitted, except what set sets.
func submitted[E engine.Event](raw json.RawMessage, set func(*E)) (engine.Event, error) {
	var ev E
	err := json.Unmarshal(raw, &ev)
	set(&ev)
	return ev, badEvent(ev.EventKind(), err)
}

func badEvent(kind string, err error) error {
	if err == nil {
		return nil
	}
	return asked("event %s: %w", kind, err)
}

func (n *intake) runRequested(ctx context.Context, raw json.RawMessage, by engine.Actor) (engine.Event, error) {
	var ev engine.RunRequested
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, badEvent(ev.EventKind(), err)
	}
	spec, err := n.opt.Compile(ev.Source)
	if err != nil {
		return nil, asked("%w", err)
	}
	if ev.Stubs != nil {
		var one bytes.Buffer // as the journal will have it
		if err := json.Compact(&one, ev.Stubs); err != nil {
			return nil, asked("event run_requested: stubs: %w", err)
		}
		ev.Stubs = one.Bytes()
	}
	ev.By, ev.Digest, ev.Workflow = by, digestOf(ev.Source), spec.ID
	ev.Trees = n.opt.World.Trees(ctx, spec)
	return ev, nil
}

// armRequested adds to a request what is there already and does not fire.
func (n *intake) armRequested(ctx context.Context, raw json.RawMessage, by engine.Actor) (engine.Event, error) {
	var ev engine.ArmRequested
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, badEvent(ev.EventKind(), err)
	}
	spec, err := n.opt.Compile(ev.Source)
	if err != nil {
		return nil, asked("%w", err)
	}
	ev.Known = nil
	if n.opt.Present != nil {
		if ev.Known, err = n.opt.Present(ctx, spec); err != nil {
			return nil, asked("%w", err)
		}
	}
	ev.By, ev.Digest, ev.Workflow = by, digestOf(ev.Source), spec.ID
	return ev, nil
}

// signed has an answer's proof checked: the signed text becomes the answer, and its signer the
// actor.
func (n *intake) signed(ev *engine.Answered, by engine.Actor) {
	var words string
	ev.Proven, words = n.opt.World.Proven(ev.Proof)
	if s := ev.Signed; s != nil {
		by.Who, by.Via, by.Trust, by.Key = s.Names[0], by.Via+" of "+by.Who, engine.TrustSigned, s.Key
		ev.Text, ev.Findings = words, s.Findings
		ev.Run = cmp.Or(ev.Run, s.Run)
	}
	ev.By = by
}

// answered completes a person's answer: its round, its trust level if it names no run, and the current digest
// unless it is a fail or a veto.
func (n *intake) answered(ctx context.Context, ev engine.Answered) (engine.Event, error) {
	var over []job.Reviewed
	var only []job.Place // nil: it may be for any run
	if ev.Run != "" {
		only = []job.Place{{Run: ev.Run}}
	}
	var runs []string
	err := n.queue.ask(ctx, func(c *core) {
		over = inboxes(c.state, only).Asked
		ev.Round, runs = roundOf(c.state, ev)
	})
	if err != nil {
		return nil, err
	}
	for _, run := range runs { // none of those it may be for may be worse
		if level, _ := n.opt.World.Level(run); level == engine.TrustFile && ev.Signed == nil {
			ev.By.Trust = level
		}
	}
	if engine.Refuses(ev.Outcome) {
		return ev, nil
	}
	for _, q := range over {
		if q.Gate != ev.Gate || ev.Run != "" && ev.Run != q.Run || q.Digest == "" {
			continue
		}
		digest, err := n.opt.World.DigestNow(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("gate %s: nothing was decided: what was reviewed cannot be read: %w", q.Gate, err)
		}
		ev.DigestNow = digest
		return ev, nil
	}
	return ev, nil
}

// roundOf returns the round an answer is about, and the runs it may be for. If it names no round, that is
// the newest round of its run, or 0 if the run is ambiguous. It uses no clock, since a clock may have been
// set back meanwhile.
func roundOf(st *engine.State, ev engine.Answered) (n int, runs []string) {
	for _, run := range st.LiveRuns() {
		q := run.CurrentRound(ev.Gate)
		if q == nil || ev.Run != "" && ev.Run != run.ID {
			continue
		}
		n, runs = q.N, append(runs, run.ID)
	}
	if len(runs) > 1 {
		n = 0
	}
	return cmp.Or(ev.Round, n), runs
}

func username() string {
	u, err := user.Current()
	if err != nil {
		return "uid " + strconv.Itoa(os.Getuid())
	}
	return u.Username
}
