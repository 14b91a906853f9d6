package travel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// tried begins the name of the lock of a run whose work is brought.
const tried = "bring "

// again is the time between two looks for work that is not here.
const again = 10 * time.Second

// comesIn is how long a person's answer waits for the work of a run that this machine has just taken over.
const comesIn = time.Minute

// World is a daemon's World whose work travels.
type World struct {
	daemon.World
	work *Work
}

// World returns the world with its work stored before a fact names it.
func (w *Work) World(inner daemon.World) *World { return &World{inner, w} }

// Brought brings the work of a run that the journal names, before the loop acts. It returns why a
// person must see to it; then nothing of the run begins until it has come.
func (x *World) Brought(ctx context.Context, run string, work daemon.Work) (why string) {
	work.Digests = slices.DeleteFunc(slices.Clone(work.Digests), func(d string) bool { return tree.CommitIn(d) == "" })
	if len(work.Digests) == 0 {
		return ""
	}
	var lack *Lacking
	err := x.work.opt.Notes.Persist(ctx, "work of "+run, func() error { return x.work.Bring(ctx, run, work) })
	if err == nil {
		return ""
	}
	x.work.mu.Lock()
	x.work.away[run] = work
	x.work.mu.Unlock()
	if ctx.Err() != nil {
		return ""
	}
	if errors.As(err, &lack) {
		return lack.Error()
	}
	return (&Lacking{run, err}).Error()
}

// come waits for work that is not here. It reports false if ctx ended first.
func (x *World) come(ctx context.Context, run string) bool {
	for x.try(ctx, run) != nil {
		if !health.Wait(ctx, again) {
			return false
		}
	}
	return ctx.Err() == nil
}

// try brings the work of a run that is not here. It is brought once: the run goes on then, and what is
// stored may be read as it was before.
func (x *World) try(ctx context.Context, run string) error {
	defer x.work.one(tried + run)()
	x.work.mu.Lock()
	work, away := x.work.away[run]
	x.work.mu.Unlock()
	if !away {
		return nil
	}
	err := x.work.Bring(ctx, run, work)
	why := ""
	if err != nil {
		why = err.Error()
	}
	x.work.mu.Lock()
	defer x.work.mu.Unlock()
	if err == nil {
		delete(x.work.away, run)
	}
	x.work.opt.Notes.Note("work of "+run, why)
	return err
}

// Carry is the World's, with the work here before and stored after.
func (x *World) Carry(ctx context.Context, j job.Job, emit func(engine.Event)) engine.Event {
	root := rootOf(j)
	if j.Write != nil && j.Write.Sweep {
		x.work.sweep(ctx, j.Live, j.Known)
	}
	if root != "" && needs(j) && !x.come(ctx, root) {
		return nil
	}
	if left(x.work, root, j) {
		return engine.ProcessEnded{Run: j.Run, Key: j.Key, Check: &engine.CheckResult{Lost: true,
			Why: "its work is not here: the worker or the machine that had it was lost before it was stored"}}
	}
	ev := x.World.Carry(ctx, j, emit)
	end, check := ev.(engine.ProcessEnded)
	var done did
	switch check = check && end.Check != nil; {
	case ev == nil, x.work.opt.Git == nil, !check && j.Kind != engine.DoWrite:
		return ev
	case check && tree.CommitIn(end.Check.Digest) != "":
		done.results = append(done.results, result{j.Run, j.Proc.Step, j.Attempt.N, end.Check.Digest})
	case !check && (j.Write.Kind == engine.WriteAdvance || j.Write.Kind == engine.WriteRewind):
		done.moved = append(done.moved, j.Write.ID)
	}
	if !x.stored(ctx, root, done) {
		return nil // it stays owed
	}
	return ev
}

// stored stores the work of a run. It tries until ctx ends.
func (x *World) stored(ctx context.Context, root string, done did) bool {
	what := "storing the work of " + root
	for {
		err := x.work.save(ctx, root, done)
		if err == nil {
			x.work.opt.Notes.Note(what, "")
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		x.work.opt.Notes.Note(what, err.Error())
		if !health.Wait(ctx, again) {
			return false
		}
	}
}

// needs reports whether an effect needs the run's work, or makes some.
func needs(j job.Job) bool {
	return j.Kind == engine.DoRun || j.Kind == engine.DoWrite || j.Kind == engine.DoOffer || j.Kind == engine.DoLook
}

// left reports whether a check is of work that is not in the folder here: its launch was another
// machine's, or its worker was lost after the signal, and the work did not come; or another machine's
// work has replaced it.
func left(w *Work, root string, j job.Job) bool {
	check := j.Kind == engine.DoRun && j.Proc != nil && j.Proc.Kind == engine.ProcCheck
	if !check || j.Attempt == nil || j.Attempt.Reads || w.opt.Git == nil || j.Spec == nil {
		return false
	}
	st := j.Spec.Step(j.Proc.Step)
	if st == nil || st.ForEach != nil || st.Child != nil || !j.Checks(st) {
		return false
	}
	file := func(name string) string { return w.opt.AttemptFile(j.Run, j.Proc.Step, j.Attempt.N, name) }
	var had tree.Covered
	if layout.Load(file(layout.CheckedFile), &had) == nil && had.Key == j.Key {
		return false // it was taken before, and came
	}
	pid := w.opt.PIDFile(j.Attempt.Key)
	var over []string
	if err := layout.Load(w.replacedFile(root), &over); err == nil && slices.Contains(over, pid) {
		return true
	}
	here := j.Attempt.Offered || layout.IsFile(pid) || layout.IsFile(pid+layout.BackMark)
	return !here || !layout.IsFile(file(layout.BeganFile))
}

// rootOf returns the run that a run is, or is below.
func (w *Work) rootOf(run string) string {
	var dir string
	if layout.ChildRun(run) && layout.Load(w.opt.FolderFile(run), &dir) == nil {
		root, _, _ := strings.Cut(dir, "/")
		return root
	}
	return run
}

func rootOf(j job.Job) string {
	if c := j.RunInfo.Child; c != nil {
		root, _, _ := strings.Cut(c.Dir, "/")
		return root
	}
	return j.Run
}

// DigestNow is the World's, once the work is here.
func (x *World) DigestNow(ctx context.Context, q job.Reviewed) (string, error) {
	within, cancel := context.WithTimeout(ctx, comesIn)
	defer cancel()
	run := x.work.rootOf(q.Run)
	why := x.try(within, run)
	switch {
	case why == nil:
		return x.World.DigestNow(ctx, q)
	case within.Err() != nil && ctx.Err() == nil: // whatever was cut short says nothing
		why = &Lacking{run, fmt.Errorf("it did not come within %s: try again, or see `sluice status %s`", comesIn, run)}
	}
	return "", why
}
