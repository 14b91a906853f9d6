package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"sluice/daemon"
	"sluice/engine"
)

// What show fills in of a task is what the run itself had.
func TestShowKnowsTheTask(t *testing.T) {
	t.Parallel()
	r := daemon.RunStatus{Child: &engine.ChildOf{Parent: "w-1", Task: "T1", Try: 2, Depth: 1, Body: json.RawMessage(`{"title": "the parser"}`)}}
	want := map[string]any{"id": "T1", "attempt": 2.0, "depth": 1.0, "title": "the parser"}
	if got := knownOf(r, daemon.StepStatus{}).Task; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r.Child.Task = "" // a child of a step that is no list
	if got := knownOf(r, daemon.StepStatus{}).Task; got != nil {
		t.Errorf("got %v, want none", got)
	}
	r.Child = nil
	if got := knownOf(r, daemon.StepStatus{}).Task; got != nil {
		t.Errorf("got %v, want none", got)
	}
}
