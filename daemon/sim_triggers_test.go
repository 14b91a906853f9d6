package daemon

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"sluice/engine"
)

// simFires is the workflow that has triggers, where a history has them.
const simFires = "wf0"

// simSources are its triggers that somebody else reports: a file again and again, a webhook by request.
var simSources = []string{engine.OnFiles, engine.OnWebhook}

// simOffered bounds what happens in a history for which a trigger fires.
const simOffered = 8

// simOn draws triggers. The schedule ends, as a history has to.
func simOn(g *rand.Rand) *engine.On {
	span, last := time.Duration(1+g.IntN(40))*time.Minute, time.Now().Add(4*time.Hour)
	schedule := &engine.Trigger{Name: engine.OnSchedule, Kind: engine.OnSchedule, ID: "schedule " + span.String(),
		CatchUp: pick(g, engine.CatchOne, engine.CatchAll, engine.CatchNone), Next: func(t time.Time) time.Time {
			if at := t.Truncate(span).Add(span); at.Before(last) {
				return at
			}
			return time.Time{}
		}}
	on := &engine.On{Triggers: []*engine.Trigger{schedule}, MaxPerDay: 2 + g.IntN(4),
		Overlap: pick(g, engine.OverlapQueue, engine.OverlapQueue, engine.OverlapSkip, engine.OverlapParallel, engine.OverlapReplace)}
	for _, kind := range simSources {
		on.Triggers = append(on.Triggers, &engine.Trigger{Name: kind, Kind: kind, ID: kind})
	}
	if asks := g.IntN(2) == 0; g.IntN(2) == 0 {
		on.Confirm = &asks
	}
	return on
}

// happens is what triggers fire for, and what people do about them.
func (s *sim) happens(st *engine.State) (acts []act) {
	if !s.fires {
		return nil
	}
	source := "spec of " + simFires
	arm := engine.ArmRequested{Workflow: simFires, Source: source, Digest: digestOf(source), By: engine.Actor{Who: "person"}}
	a := st.Armed[simFires]
	if a == nil || !a.On || !s.calm && s.g.IntN(30) == 0 {
		acts = append(acts, act{"its triggers are armed", 4, func() { s.ask(arm, nil) }})
	}
	if s.calm {
		return acts
	}
	if len(s.w.offered) < simOffered && s.g.IntN(4) == 0 {
		acts = append(acts, act{"something happens", 4, s.locked(func() { s.w.offered = append(s.w.offered, "k"+strconv.Itoa(len(s.w.offered))) })})
	}
	if len(s.w.offered) > 0 && s.g.IntN(3) == 0 {
		ev := engine.Fired{Workflow: simFires, Trigger: engine.OnWebhook, Key: pick(s.g, s.w.offered...), By: engine.Actor{Who: "webhook", Via: "webhook"}}
		acts = append(acts, act{"a request comes", 3, func() { s.ask(ev, nil) }}, act{"a request comes twice at once", 2, func() {
			s.ask(ev, nil)
			s.ask(ev, nil)
		}})
	}
	if a != nil && s.g.IntN(60) == 0 {
		acts = append(acts, act{"its triggers are disarmed", 2, func() { s.ask(engine.DisarmRequested{Workflow: simFires, By: engine.Actor{Who: "person"}}, nil) }})
	}
	return acts
}

// callListen reports what is there, any of it, any number of times. In the calm it reports what was missed.
func (s *sim) callListen(c *simCall, add func(*simCall, string, func())) {
	if c.job.Trigger != engine.OnFiles {
		return
	}
	for _, key := range s.w.offered {
		if !s.calm && s.g.IntN(4) > 0 || s.calm && s.led.triggers.Decided(simFires+" "+engine.OnFiles+" "+key) {
			continue
		}
		add(c, "sees "+key, func() {
			c.emit(engine.Fired{Workflow: simFires, Trigger: c.job.Trigger, Armed: int64(c.job.N), Key: key})
		})
	}
}

// callFire reads the spec for a firing, or finds it changed.
func (s *sim) callFire(c *simCall, add func(*simCall, string, func())) {
	source := "spec of " + simFires
	if !s.calm && s.g.IntN(4) == 0 {
		add(c, "held", func() { c.emit(engine.FiringHeld{Workflow: c.job.Effect.Armed, Why: "its spec has changed"}) })
		return
	}
	add(c, "read", func() {
		s.port.answer(c, engine.FiringRead{Workflow: c.job.Effect.Armed, Trigger: c.job.Trigger, Key: c.job.Firing.Key, Armed: c.job.Armed,
			Run: engine.RunRequested{Source: source, Digest: digestOf(source)}})
	})
}

// triggered holds a fact about triggers against the model: a key is decided on once.
func (s *sim) triggered(f engine.Fact) {
	why := ""
	switch f := f.(type) {
	case engine.TriggerFired:
		why = s.led.triggers.Fired(f.Workflow + " " + f.Firing.Trigger + " " + f.Firing.Key)
	case engine.TriggerSkipped:
		if f.Key != "" { // minutes that were missed
			why = s.led.triggers.Skipped(f.Workflow+" "+f.Trigger+" "+f.Key, f.Why)
		}
	case engine.RunStarted:
		if f.Fired != nil {
			s.counts.fired++
			why = s.led.triggers.Started(f.Workflow+" "+f.Fired.Trigger+" "+f.Fired.Key, f.Run)
		}
	}
	if why != "" {
		s.w.fail("%s", why)
	}
}

// unfired names a key that waits for its run, or that is there and was not decided on though its trigger takes it in.
func (s *sim) unfired(st *engine.State) string {
	if !s.fires {
		return ""
	}
	a := st.Armed[simFires]
	if a == nil || !a.On {
		return "its triggers are not armed"
	}
	if len(a.Firings) > 0 {
		return a.Firings[0].Key + " waits for its run"
	}
	i := slices.IndexFunc(s.w.offered, func(key string) bool { return !s.led.triggers.Decided(simFires + " " + engine.OnFiles + " " + key) })
	if i >= 0 && a.Full == "" {
		return fmt.Sprintf("%s was never decided on", s.w.offered[i])
	}
	return ""
}

// waiting holds that the state waits for the runs of what fired and has none, and for nothing else.
func (s *sim) waiting(st *engine.State) string {
	known := map[string]bool{}
	for id, a := range st.Armed {
		for _, f := range a.Firings {
			known[id+" "+f.Trigger+" "+f.Key] = true
		}
	}
	return s.led.triggers.Waiting(known)
}
