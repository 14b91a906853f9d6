//go:build linux || darwin

package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// TestWordBehindUnreadableInbox: a step's end is not reported while its signal may be in an
// unreadable folder.
func TestWordBehindUnreadableInbox(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: 'cd .workflow; printf "{}" > signals/A-done.json; mv signals away; ln -s away signals; exit 3', signal: {type: sentinel_file}, next_step: DONE}
`)
	// A link is not read, whoever asks.
	ended := make(chan engine.Event, 1)
	go func() { ended <- b.e.Carry(b.ctx(), b.stepJob("A", 1, 1), func(engine.Event) {}) }()
	eventually(t, "it is told that the inbox cannot be read", func() bool {
		return strings.Contains(strings.Join(b.e.Health(), "\n"), "the step has ended, and its inbox cannot be read")
	})
	select {
	case ev := <-ended:
		t.Fatalf("its end was told: %+v", ev)
	case <-time.After(100 * time.Millisecond):
	}
	b.sh("rm .workflow/signals && mv .workflow/away .workflow/signals")
	if ev := b.scanned(job.Inboxes{Runs: []string{run1}}, 1)[0]; ev.Name != "A-done.json" {
		t.Errorf("%+v", ev)
	}
	b.sh("rm .workflow/signals/A-done.json") // as if taken in
	select {
	case ev := <-ended:
		if ev.(engine.ProcessEnded).Exit.Code != 3 {
			t.Errorf("%+v", ev)
		}
	case <-time.After(waitFor):
		t.Fatal("its end is not told though the inbox can be read")
	}
	if h := strings.Join(b.e.Health(), "\n"); strings.Contains(h, "the step has ended") {
		t.Error(h)
	}
}

// TestDigestOfWhatWasCutShort: an interrupted reader records nothing of what it had not read.
func TestDigestOfWhatWasCutShort(t *testing.T) {
	b := newBench(t, gateSpec)
	j := b.checkJob("A", 1)
	ctx, cancel := context.WithCancel(b.ctx())
	at, err := b.e.Begun(ctx, j, b.spec.Step("A"), 1)
	if err != nil || at.Top == "" {
		t.Fatalf("%+v %v", at, err)
	}
	b.put("made.txt", "x")
	cancel()
	if _, _, err := b.e.Taken(ctx, j, b.spec.Step("A"), at, nil); err == nil {
		t.Error("what was cut short was taken")
	}
	file := b.e.AttemptFile(run1, "A", 1, "files")
	if _, err := os.Lstat(file); err == nil {
		t.Error("what was cut short was recorded")
	}
	c, _, err := b.e.Taken(b.ctx(), j, b.spec.Step("A"), at, nil)
	b.e.Digested(b.ctx(), j, b.spec.Step("A"), c, engine.CheckResult{})
	var was tree.Covered
	if err := errors.Join(err, layout.Load(file, &was)); err != nil || len(was.Files) != 1 || was.Was == "" {
		t.Errorf("%+v %v", was, err)
	}
}

// TestStoppedIsNoTrouble: what is broken off because it is owed no more is no fault to log.
func TestStoppedIsNoTrouble(t *testing.T) {
	b := newBench(t, gateSpec)
	var mu sync.Mutex
	var said []string
	x := b.executor(func(o *Options) {
		o.Logf = func(f string, a ...any) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, fmt.Sprintf(f, a...))
		}
	})
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	offer, check, review := b.stepJob("A", 1, 1), b.checkJob("A", 1), b.reviewJob("G", 1)
	offer.Kind = engine.DoOffer
	for _, j := range []job.Job{offer, check, review, b.stepJob("A", 1, 1)} {
		if ev := x.Carry(ctx, j, func(engine.Event) {}); ev != nil {
			t.Errorf("%s: %+v", j.Kind, ev)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) > 0 || len(x.Health()) > 0 {
		t.Errorf("logged: %q; trouble: %q", said, x.Health())
	}
}
