//go:build linux

package world

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/folders"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// busy is a context that has somebody else change the record of a folder whenever the context is looked at, which all do that
// start a git.
type busy struct {
	context.Context
	b    *bench
	what string
	note func(name string) error

	mu     sync.Mutex
	over   bool
	noted  []string
	others sync.WaitGroup
}

func (c *busy) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return c.Context.Done()
	}
	name, done := fmt.Sprintf("%s-%d", c.what, len(c.noted)), make(chan struct{})
	c.noted = append(c.noted, name)
	c.others.Go(func() {
		defer close(done)
		if err := c.note(name); err != nil {
			c.b.t.Error(err)
		}
	})
	select {
	case <-done: // it has changed the record
	case <-time.After(30 * time.Millisecond): // it waits for its turn
	}
	return c.Context.Done()
}

// TestRecordIsChangedByOneAtATime: what another step or child run notes of a folder while an attempt begins there, or while its
// branch moves, is not lost.
func TestRecordIsChangedByOneAtATime(t *testing.T) {
	b := advancing(t, true, "workspace: run", "true", "")
	top := filepath.Join(b.root, space1)
	write := func(kind string) error {
		j := inSpace(b.job(engine.Effect{Kind: engine.DoWrite, Key: "w-1/A#1." + kind, Run: run1, Step: "A", N: 1,
			Write: &engine.Write{ID: "w-1/A#1." + kind, Kind: kind, Step: "A", N: 1, Files: kind == engine.WriteRewind}}), space1)
		return b.whileBusy(top, kind, func(ctx context.Context) error {
			do := b.e.Advance
			if kind == engine.WriteRewind {
				do = b.e.Rewind
			}
			if why := do(ctx, j); why != "" {
				return fmt.Errorf("%s", why)
			}
			return nil
		})
	}
	passed := b.sh("git rev-parse sluice/w-1")
	for _, kind := range []string{engine.WriteRewind, engine.WriteAdvance} {
		if err := write(kind); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if now := b.sh("git rev-parse sluice/w-1"); now != passed {
		t.Errorf("the branch is at %s, not %s", now, passed)
	}
	for _, space := range []string{space1, ""} {
		top, n := b.root, 2+len(space)
		j := b.stepJob("B", n, 1)
		if space != "" {
			j, top = inSpace(j, space), filepath.Join(b.root, space)
		}
		err := b.whileBusy(top, "begin in "+top, func(ctx context.Context) error {
			_, err := b.e.Begun(ctx, j, b.spec.Step("B"), n)
			return err
		})
		if err != nil {
			t.Errorf("begin in %q: %v", space, err)
		}
	}
}

func (b *bench) record(j job.Job, top string) (r folders.Record, err error) {
	return r, layout.Load(b.recordFile(j, "folder", top), &r)
}

// whileBusy does something while somebody else changes the record of the folder, and says what of that was lost.
func (b *bench) whileBusy(top, what string, do func(context.Context) error) error {
	j := b.stepJob("B", 1, 1)
	base := b.sh("git rev-parse refs/sluice/base/w-1")
	c := &busy{Context: b.ctx(), b: b, what: what}
	c.note = func(name string) error {
		return b.e.NoteFolder(context.Background(), j, top, func(r *folders.Record) {
			r.Written = append(r.Written, name)
			r.Moves = append(r.Moves, folders.Move{Of: "w-1/A.1/" + name, From: base, To: base})
		})
	}
	err := do(c)
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.others.Wait()
	if err != nil {
		return err
	}
	r, err := b.record(j, top)
	if err == nil && len(c.noted) < 2 {
		err = fmt.Errorf("only %d changes", len(c.noted))
	}
	var lost []string
	back := slices.DeleteFunc(slices.Clone(r.Back), func(to string) bool { return to != base })
	for _, name := range c.noted {
		move := slices.ContainsFunc(r.Moves, func(m folders.Move) bool { return m.Of == "w-1/A.1/"+name })
		if !move && len(back) > 0 {
			back, move = back[1:], true
		}
		if !move || !slices.Contains(r.Written, name) {
			lost = append(lost, name)
		}
	}
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("of %d changes are lost: %q", len(c.noted), lost)
	}
	return err
}

const carryTwoSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, worktree: wt-a}, outputs: [dist/one.txt, dist/two.txt], signal: {type: sentinel_file}, next_step: [B, C]}
  - {id: B, agent: {type: writer, worktree: wt-b}, inputs: [dist/one.txt], signal: {type: sentinel_file}, next_step: DONE}
  - {id: C, agent: {type: writer, worktree: wt-b}, inputs: [dist/two.txt], signal: {type: sentinel_file}, next_step: DONE}
`

// TestTwoCarryIntoOneFolder: of two steps that work in one folder each knows what the other has had carried there.
func TestTwoCarryIntoOneFolder(t *testing.T) {
	b := newBench(t, carryTwoSpec)
	b.put(".gitignore", "dist/\nwt-a/\nwt-b/\n")
	b.sh("git add -A; git commit -q -m before")
	b.begin(b.checkJob("A", 1))
	b.put("wt-a/dist/one.txt", "one")
	b.put("wt-a/dist/two.txt", "two")
	if c := b.carry(b.checkJob("A", 1)).Check; !c.OK {
		t.Fatalf("%+v", c)
	}
	need := func(ctx context.Context, step string) error {
		j := b.stepJob(step, 1, 1)
		j.Env.Steps["A"] = engine.StepEnv{Attempt: 1, Status: engine.Passed}
		at, err := b.e.Begun(b.ctx(), j, b.spec.Step(step), 1)
		if err == nil {
			_, err = b.e.Needed(ctx, j, b.spec.Step(step), at)
		}
		return err
	}
	record := b.recordFile(b.stepJob("B", 1, 1), "carried", b.path("wt-b"))
	c := &busy{Context: b.ctx(), b: b, note: func(string) error { return need(b.ctx(), "C") }}
	if err := need(c, "B"); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.others.Wait()
	var carried map[string]string
	if err := layout.Load(record, &carried); err != nil || carried["dist/one.txt"] == "" || carried["dist/two.txt"] == "" {
		t.Errorf("of two files it knows %v %v", carried, err)
	}
}
