//go:build linux

package world

import (
	"context"
	"testing"

	"sluice/agents/launch"
	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/settings"
)

// TestAStoppedUnheldLaunchIsOver: a launch that nothing holds and that is ended (an abort, a timeout) is at work no more,
// for this daemon and for the next one.
func TestAStoppedUnheldLaunchIsOver(t *testing.T) {
	box := boxed(t)
	unheld := &launch.Unheld{}
	with := func(b *bench, of *launch.Unheld) *World {
		return b.executor(func(o *Options) {
			o.Sandbox, o.Unheld = func() (*sandbox.Box, error) { return box, nil }, of
		})
	}
	outer := newBench(t, heldSpec)
	t.Run("another repo", func(t *testing.T) { stoppedBeside(t, newBench(t, heldSpec), outer, unheld, with) })
}

func stoppedBeside(t *testing.T, inner, outer *bench, unheld *launch.Unheld, with func(*bench, *launch.Unheld) *World) {
	e := with(inner, unheld)
	outer.settings.Sandbox.Mode = settings.SandboxOff
	outer.e = with(outer, unheld)
	outer.script("loose", "echo here >here\nexec sleep 600\n")
	run := outer.stepJob("A", 1, 1)
	ctx, cancel := context.WithCancel(outer.ctx())
	done := make(chan struct{})
	go func() {
		defer close(done)
		outer.e.Carry(ctx, run, func(engine.Event) {})
	}()
	eventually(t, "the other repo's agent works", func() bool { return outer.has("here") })
	if l, _ := e.Level("w-2"); l != engine.TrustFile {
		t.Fatal("it is not exposed")
	}
	cancel() // it is owed no more: its stop is
	<-done
	stop := run
	stop.Kind, stop.Why = engine.DoStop, "timeout"
	ev, ok := outer.e.Carry(outer.ctx(), stop, func(engine.Event) {}).(engine.ProcessEnded)
	if !ok || !ev.Exit.Stopped {
		t.Fatalf("%+v", ev)
	}
	if l, why := e.Level("w-2"); l != engine.TrustSandbox {
		t.Errorf("it was ended, and a run that comes later is exposed: %s", why)
	}
	next := &launch.Unheld{}
	_ = with(outer, next) // the next daemon
	if l, why := with(inner, next).Level("w-2"); l != engine.TrustSandbox {
		t.Errorf("after a restart a run that comes later is exposed: %s", why)
	}
}
