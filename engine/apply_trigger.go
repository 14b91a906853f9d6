package engine

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// armedOf returns the state of a workflow's triggers, and notes that its debts may change.
func armedOf(s *State, workflow string) *Armed {
	a := s.Armed[workflow]
	if a == nil {
		wrong("a fact about triggers of %q, which were never armed", workflow)
	}
	s.index.changeID(&s.index.changed.armed, workflow)
	return a
}

func (f TriggersArmed) apply(s *State, at time.Time) {
	if s.Armed[f.Workflow] == nil {
		set(&s.Armed, f.Workflow, &Armed{})
	}
	a := armedOf(s, f.Workflow)
	a.Digest, a.On, a.Seq, a.At, a.By = f.Digest, true, s.Clock, at, f.By
	a.Full, a.Held, a.Turns = "", "", maps.Clone(f.Next)
	if a.Known == nil {
		a.Known = Keys{}
	}
	maps.Copy(a.Known, f.Known)
	a.Tips = maps.Clone(f.Tips)
}

func (f TriggersDisarmed) apply(s *State, _ time.Time) {
	a := armedOf(s, f.Workflow)
	a.On, a.Held = false, ""
}

func (f TriggerFired) apply(s *State, at time.Time) {
	a, one := armedOf(s, f.Workflow), f.Firing
	a.keep(one.ID, one.Key, f.Turn)
	if a.Count = a.today(at) + 1; a.Count == 1 || a.Since.After(at) {
		a.Since = at
	}
	a.Firings = append(a.Firings, &one)
	set(&a.Last, one.Trigger, Outcome{Key: one.Key, At: at})
}

func (f TriggerSkipped) apply(s *State, at time.Time) {
	a := armedOf(s, f.Workflow)
	a.keep(f.ID, f.Key, f.Turn)
	a.drop(f.Trigger, f.Key)
	set(&a.Skipped, f.Trigger, Outcome{Key: f.Key, At: at, Why: f.Why})
}

func (f TriggersFull) apply(s *State, at time.Time) {
	a := armedOf(s, f.Workflow)
	if a.Full = f.Why; a.Since.After(at) { // the clock was set back: the day ends 24 h from here
		a.Since = at
	}
}

func (f TriggersOpened) apply(s *State, at time.Time) {
	a := armedOf(s, f.Workflow)
	a.Full, a.Seq, a.Count = "", s.Clock, a.today(at)
}

func (f TriggersHeld) apply(s *State, _ time.Time) { armedOf(s, f.Workflow).Held = f.Why }

// keep remembers a key: of a schedule by its turn, else by its digest.
func (a *Armed) keep(id, key string, turn *Turn) {
	if turn == nil {
		a.Known.add(id, key)
		a.tip(id, key)
		return
	}
	set(&a.Turns, id, *turn)
}

// tip notes a branch's commit, whose key is BRANCH@COMMIT.
func (a *Armed) tip(id, key string) {
	i := strings.LastIndexByte(key, '@')
	if id != OnPush || i < 0 {
		return
	}
	if _, known := a.Tips[key[:i]]; known || len(a.Tips) < MaxTips {
		set(&a.Tips, key[:i], key[i+1:])
	}
}

// drop removes a firing that waits no more.
func (a *Armed) drop(trigger, key string) {
	a.Firings = slices.DeleteFunc(a.Firings, func(f *Firing) bool { return f.Trigger == trigger && f.Key == key })
}

// began notes the run of a firing.
func (f *FiredBy) began(s *State, workflow, run string) {
	a := s.Armed[workflow]
	if f == nil || a.firing(f.Trigger, f.Key) == nil { // by hand
		return
	}
	armedOf(s, workflow).drop(f.Trigger, f.Key)
	a.Held = ""
	if o := a.Last[f.Trigger]; o.Key == f.Key {
		o.Run = run
		a.Last[f.Trigger] = o
	}
}
