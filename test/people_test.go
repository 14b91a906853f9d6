//go:build linux

package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
)

// peopleTimes is how often each race is run: SLUICE_PEOPLE, as `make torture` sets it, or a few.
func peopleTimes() int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_PEOPLE")); err == nil && n > 0 {
		return n
	}
	return 15
}

// crowd is a real daemon, a repo with a gate of each kind, and a client.
type crowd struct {
	*playground
	c             *daemon.Client
	counted, late atomic.Int64 // vetoes
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	w, sluice := gated(t)
	w.env = append(w.env, "SLUICE_CONFIG_RESCAN=1s", "SLUICE_CONFIG_MAX_PARALLEL=8")
	w.write(".workflow/specs/yours.yaml", `workflow: {id: yours}
steps:
  - {id: A, run: "true", gate: H}
gates:
  - {id: H, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: FAILED}}
`)
	w.write(".workflow/specs/told.yaml", `workflow: {id: told}
steps:
  - {id: A, run: "true", gate: N}
  - {id: B, run: "sleep 0.05", next_step: DONE}
gates:
  - {id: N, reviewer: {level: notify, run: "true"}, veto_window: 60ms, on_pass: {next_step: B}, on_fail: {next_step: FAILED}}
`)
	w.serve(sluice)
	c := daemon.NewClient(w.stateDir())
	t.Cleanup(c.Close)
	return &crowd{playground: w, c: c}
}

// started starts a run and returns its id.
func (c *crowd) started(ctx context.Context, workflow string) (string, error) {
	src, err := os.ReadFile(filepath.Join(c.dir, ".workflow", "specs", workflow+".yaml"))
	if err != nil {
		return "", err
	}
	done, err := c.c.Do(ctx, engine.RunRequested{Workflow: workflow, Source: string(src), Parallel: true}, "command")
	if err == nil && done.Run == "" {
		err = fmt.Errorf("no run was started: %s", done.Ignored)
	}
	return done.Run, err
}

// until asks for the run until it is as wanted.
func (c *crowd) until(ctx context.Context, run, what string, ok func(daemon.RunStatus) bool) (r daemon.RunStatus, err error) {
	for {
		if r, err = c.c.Run(ctx, run); err != nil || ok(r) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("%s: never %s: %+v", run, what, r)
		case <-time.After(time.Millisecond):
		}
	}
}

// reaches starts a run and waits until it is as wanted.
func (c *crowd) reaches(ctx context.Context, workflow, what string, ok func(daemon.RunStatus) bool) (string, daemon.RunStatus, error) {
	run, err := c.started(ctx, workflow)
	if err != nil {
		return "", daemon.RunStatus{}, err
	}
	r, err := c.until(ctx, run, what, ok)
	return run, r, err
}

// gateOf is the gate of the run's first step.
func gateOf(r daemon.RunStatus) daemon.GateStatus { return r.Steps[0].Gates[0] }

func over(r daemon.RunStatus) bool { return !r.Live() }

// answer returns an answer by the API; counted says that it was taken, and why not.
func (c *crowd) answer(ctx context.Context, run, gate, outcome string) (counted bool, why string, err error) {
	done, err := c.c.Do(ctx, engine.Answered{Gate: gate, Run: run, Outcome: outcome, Text: "by the API"}, "command")
	return done.Ignored == "", done.Ignored, err
}

// outcomes are the ends of the first round of the run's gate, by the journal.
func (c *crowd) outcomes(ctx context.Context, run string) (out []string, err error) {
	err = c.c.Facts(ctx, run, 0, false, func(l daemon.Line) error {
		f, err := engine.DecodeFact(l.Fact)
		switch f := f.(type) {
		case engine.RoundPassed:
			if f.N == 1 && f.Gate != "B" {
				out = append(out, "passed by "+f.ByKind)
			}
		case engine.RoundFailed:
			if f.N == 1 {
				out = append(out, "failed by "+f.ByKind)
			}
		}
		return err
	})
	return out, err
}

// races runs one race so often as is asked for, a few at a time, and stops at the first that went wrong.
func (c *crowd) races(one func(ctx context.Context, r *rand.Rand) error) {
	c.t.Helper()
	const atOnce = 4
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	work := make(chan uint64)
	faults := make(chan error, atOnce)
	var hands sync.WaitGroup
	for range atOnce {
		hands.Go(func() {
			for seed := range work {
				within, done := context.WithTimeout(ctx, time.Minute)
				err := one(within, rand.New(rand.NewPCG(seed, 7)))
				done()
				if err != nil {
					faults <- fmt.Errorf("race %d: %w", seed, err)
					cancel()
					return
				}
			}
		})
	}
	n := peopleTimes()
feed:
	for seed := range n {
		select {
		case work <- uint64(seed):
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	hands.Wait()
	select {
	case err := <-faults:
		c.t.Fatal(err)
	default:
		c.t.Logf("%d races; of vetoes %d counted, %d came too late", n, c.counted.Load(), c.late.Load())
	}
}

// TestTwoPeopleAtOnce: of answers that come at the same moment, by the API and as files, one is recorded, and each other is
// told that it came too late.
func TestTwoPeopleAtOnce(t *testing.T) {
	conform.Rule(t, "8-semantics 22", "of answers that come at once one is recorded, and the others are told")
	c := newCrowd(t)
	c.races(func(ctx context.Context, r *rand.Rand) error {
		run, _, err := c.reaches(ctx, "yours", "asked", func(r daemon.RunStatus) bool { return gateOf(r).State == engine.OnHuman })
		if err != nil {
			return err
		}
		var people sync.WaitGroup
		said := [4]string{engine.OutcomePass, engine.OutcomeFail, engine.OutcomePass, engine.OutcomeFail}
		var counted [4]bool
		var errs [4]error
		for i, outcome := range said {
			pause := time.Duration(r.IntN(3000)) * time.Microsecond
			people.Go(func() {
				time.Sleep(pause)
				if i < 2 {
					counted[i], _, errs[i] = c.answer(ctx, run, "H", outcome)
					return
				}
				errs[i] = c.leave(run, "H-"+outcome, fmt.Sprint(i))
			})
		}
		people.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		end, err := c.until(ctx, run, "over", over)
		if err != nil {
			return err
		}
		out, err := c.outcomes(ctx, run)
		want := map[string]string{engine.RunCompleted: "passed by human", engine.RunFailed: "failed by human"}[end.Phase]
		if err != nil || len(out) != 1 || out[0] != want {
			return fmt.Errorf("%s is %s, and recorded are %q %w", run, end.Phase, out, err)
		}
		if counted[0] && counted[1] {
			return fmt.Errorf("%s: both were told that their answer counts", run)
		}
		if counted[0] && end.Phase != engine.RunCompleted || counted[1] && end.Phase != engine.RunFailed {
			return fmt.Errorf("%s is %s, and told was %v", run, end.Phase, counted)
		}
		return nil
	})
}

// leave writes a person's file into the run's inbox, whole.
func (c *crowd) leave(run, name, text string) error {
	dir := filepath.Join(c.dir, ".workflow", "signals", run)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	half := filepath.Join(dir, "."+name)
	if err := os.WriteFile(half, []byte(text), 0o644); err != nil {
		return err
	}
	err := os.Rename(half, filepath.Join(dir, name))
	if os.IsNotExist(err) { // the run was over, and its inbox was taken away
		return nil
	}
	return err
}

// vetoed races a veto against what goes on by itself: what its giver is told is what is recorded.
func (c *crowd) vetoed(ctx context.Context, run string) error {
	counted, why, err := c.answer(ctx, run, "N", engine.OutcomeVeto)
	if err != nil {
		return err
	}
	end, err := c.until(ctx, run, "over", over)
	if err != nil {
		return err
	}
	out, err := c.outcomes(ctx, run)
	if err != nil {
		return err
	}
	if counted {
		c.counted.Add(1)
	} else {
		c.late.Add(1)
	}
	n := 0
	for _, o := range out {
		if o == "failed by human" {
			n++
		}
	}
	switch {
	case counted && (end.Phase != engine.RunFailed || n != 1), !counted && (end.Phase != engine.RunCompleted || n != 0 || why == ""):
		return fmt.Errorf("%s is %s, recorded are %q; the veto was told counted=%v %s", run, end.Phase, out, counted, why)
	}
	return nil
}

// TestVetoAtTheLastMillisecond: a veto that comes as the window closes either counts, and then nothing goes on, or is told
// that it came too late; never both and never neither.
func TestVetoAtTheLastMillisecond(t *testing.T) {
	conform.Rule(t, "8-semantics 20", "a veto at the last millisecond has one outcome, and its giver is told it")
	c := newCrowd(t)
	c.races(func(ctx context.Context, r *rand.Rand) error {
		run, st, err := c.reaches(ctx, "told", "in its window", func(r daemon.RunStatus) bool {
			return gateOf(r).State == engine.OnWindow || gateOf(r).Outcome != "" && gateOf(r).State == engine.Approved
		})
		if err != nil {
			return err
		}
		time.Sleep(time.Until(gateOf(st).Until) + time.Duration(r.IntN(6000)-4000)*time.Microsecond)
		return c.vetoed(ctx, run)
	})
}

// TestLateVetoRaces: a veto while the next step is at work, or has just ended, either undoes it or is told that the run is
// over.
func TestLateVetoRaces(t *testing.T) {
	conform.Rule(t, "8-semantics 21", "a late veto that races the run's end has one outcome, and its giver is told it")
	c := newCrowd(t)
	c.races(func(ctx context.Context, r *rand.Rand) error {
		run, _, err := c.reaches(ctx, "told", "through the gate", func(r daemon.RunStatus) bool { return gateOf(r).State == engine.Approved })
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond)
		return c.vetoed(ctx, run)
	})
}
