package daemon

import (
	"maps"
	"slices"
	"time"

	"sluice/engine"
)

// Triggers is how the triggers of a workflow stand.
type Triggers struct {
	Workflow string       `json:"workflow"`
	Armed    bool         `json:"armed"`
	By       engine.Actor `json:"by"` // who armed them last
	At       time.Time    `json:"at"`
	Digest   string       `json:"digest"`         // of the spec that they are of
	Held     string       `json:"held,omitempty"` // why firings start no run
	Full     string       `json:"full,omitempty"` // why nothing is taken in: engine.FullDay, …
	Today    int          `json:"today"`          // runs started within the 24 hours from Since
	Since    time.Time    `json:"since,omitzero"`
	Most     int          `json:"max_per_day,omitempty"`
	Waiting  int          `json:"waiting,omitempty"` // firings whose run has not started
	Each     []Trigger    `json:"each,omitempty"`
}

// Trigger is how one trigger stands.
type Trigger struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	Next    time.Time      `json:"next,omitzero"` // of a schedule
	Last    engine.Outcome `json:"last,omitzero"`
	Skipped engine.Outcome `json:"skipped,omitzero"` // the last that started no run
}

func triggersOf(c *core) (out []Triggers) {
	for _, id := range slices.Sorted(maps.Keys(c.state.Armed)) {
		a := c.state.Armed[id]
		t := Triggers{Workflow: id, Armed: a.On, By: a.By, At: a.At, Digest: a.Digest, Held: a.Held, Full: a.Full,
			Today: a.Count, Since: a.Since, Waiting: len(a.Firings)}
		if spec := c.spec(a.Digest); spec != nil && spec.On != nil {
			t.Most = spec.On.MaxPerDay
			for _, o := range spec.On.Triggers {
				one := Trigger{Name: o.Name, Kind: o.Kind, Last: a.Last[o.Name], Skipped: a.Skipped[o.Name]}
				if a.On {
					one.Next = a.Turns[o.ID].Next
				}
				t.Each = append(t.Each, one)
			}
		}
		out = append(out, t)
	}
	return out
}
