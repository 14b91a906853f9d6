package workers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/internal/layout"
	"sluice/tools/natstest"
)

// TestTwins: two workers with one id, as a cloned machine has, are reported and sent nothing, for both
// would make each launch. What one of them does goes on. Once one is gone the other gets steps again.
func TestTwins(t *testing.T) {
	s := natstest.Start(t, 1)
	b := newBench(t, s, 1)
	state := t.TempDir()
	first := newMaker()
	p, _, _ := hire(t, s, state, first, 3)
	has := b.launches("far-1/A#1.1", launch.Watch{})
	until(t, "it has a launch", func() bool { return first.begun("far-1/A#1.1") == 1 })

	cloned := t.TempDir()
	if err := os.Mkdir(filepath.Join(cloned, stateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := layout.Save(filepath.Join(cloned, stateDir, journalFile), testJournal); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cloned, stateDir, idFile), []byte(p.ID()), 0o600); err != nil {
		t.Fatal(err)
	}
	second := newMaker()
	clone, _, stop := hire(t, s, cloned, second, 3)
	if clone.ID() != p.ID() {
		t.Fatalf("%s and %s", clone.ID(), p.ID())
	}
	until(t, "the desk sees both", func() bool { w := b.Workers(); return len(w) == 1 && w[0].Twin == "w" })
	said := make(chan string, 10)
	waits := b.launches("far-1/B#1.1", launch.Watch{Waits: func(why string) { said <- why }})
	select {
	case why := <-said:
		if !strings.Contains(why, "have an id that another worker has, too") {
			t.Errorf("it waits: %s", why)
		}
	case <-time.After(5 * time.Second):
		t.Error("it does not wait")
	}
	close(first.ends)
	if back := within(t, has); back.Exit.Code != 7 || back.Exit.Lost {
		t.Errorf("what was begun before: %+v", back.Exit)
	}
	if first.begun("far-1/B#1.1")+second.begun("far-1/B#1.1")+second.begun("far-1/A#1.1") != 0 {
		t.Error("a worker with the id of another was sent a launch")
	}
	stop()
	if back := within(t, waits); back.Exit.Code != 7 {
		t.Errorf("once one is gone: %+v", back.Exit)
	}
	if got := b.log.String(); strings.Count(got, "has its id") != 1 {
		t.Errorf("the log: %s", got)
	}
}
