package engine

import "fmt"

// owedByArmed appends what a workflow's triggers owe: the run of the oldest firing, and ears.
func owedByArmed(s *State, out []Effect, workflow string, specs Specs) []Effect {
	a := s.Armed[workflow]
	if a == nil || !a.On {
		return out
	}
	if len(a.Firings) > 0 && s.index.ownLive() < MaxPending/2 {
		f := a.Firings[0]
		key := fmt.Sprintf("%s/%s/%s@%d", workflow, f.Trigger, f.Key, a.Seq)
		out = append(out, Effect{Kind: DoFire, Key: key, Armed: workflow, Trigger: f.Trigger, Firing: f})
	}
	w := specs(a.Digest)
	if a.Full != "" || w == nil || w.On == nil {
		return out
	}
	for _, t := range w.On.Triggers {
		if t.Kind == OnFiles || t.Kind == OnPush || t.Kind == OnIssue {
			out = append(out, Effect{Kind: DoListen, Key: fmt.Sprintf("%s/%s@%d", workflow, t.Name, a.Seq), Armed: workflow,
				Trigger: t.Name, N: int(a.Seq)})
		}
	}
	return out
}

// unconfirmed reports whether the run waits for a person before its first step. It is in no other
// run's way.
func unconfirmed(r *Run) bool { return r.Phase == RunPending && r.PausedWhy == PausedConfirm }

// turn reports whether no other run of the workflow goes before the run.
func (f *workflow) turn(r *Run) bool {
	for _, o := range f.live {
		switch {
		case o == r || unconfirmed(o):
		case o.seq < r.seq || o.Phase == RunRunning && !o.Parallel:
			return false
		}
	}
	return true
}
