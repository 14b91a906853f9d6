package world

import (
	"os"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

// TestRoom: a launch that fills its private home is ended as failed, with the reason, and one that does not goes on.
func TestRoom(t *testing.T) {
	conform.Rule(t, "9-one-tree disk", "a launch that fills the private folders of its run is ended, with the reason")
	b := held(t, "workflow: {id: w}\nsteps:\n  - {id: A, run: [sh, -c, 'head -c 8000000 /dev/zero >\"$HOME/big\"; sleep 60'], next_step: B}\n  - {id: B, run: [sleep, '2'], next_step: DONE}\n")
	b.settings.Sandbox.MaxHomeGB = 0.004
	ev := b.carry(b.stepJob("A", 1, 1))
	if !ev.Exit.Stopped || ev.Exit.Class != engine.ClassWork || !strings.Contains(ev.Exit.Why, "sandbox.max_home_gb is 0.004 GB") {
		t.Errorf("%+v", ev.Exit)
	}
	// The reason counts also where nothing can be written beside the pid file, as on a full disk.
	again := b.stepJob("A", 2, 1)
	if err := os.MkdirAll(b.e.PIDFile(again.Key)+".room", 0o700); err != nil {
		t.Fatal(err)
	}
	if ev := b.carry(again); ev.Exit.Class != engine.ClassWork || !strings.Contains(ev.Exit.Why, "max_home_gb") {
		t.Errorf("%+v", ev.Exit)
	}
	b.settings.Sandbox.MaxHomeGB = 1
	if ev := b.carry(b.stepJob("B", 1, 1)); ev.Exit.Code != 0 || ev.Exit.Class != "" {
		t.Errorf("%+v", ev.Exit)
	}
}
