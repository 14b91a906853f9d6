package folders

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/git"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// foundKey is the key in Record.Found for the state before the step's work.
func foundKey(j job.Job, step string) string {
	if j.RunInfo.Workspace != "" {
		return ""
	}
	return step
}

// heldAt reports whether the attempt runs in a sandbox with its own git folder, whose HEAD sluice
// sets.
func (x *finds) heldAt(j job.Job, st *engine.Step) bool {
	// Child runs launch for themselves.
	return x.opt.Held() && !j.Offers(st) && st.ForEach == nil && st.Child == nil
}

// findFolder keeps the folder's state before an attempt, and sets what the attempt begins from.
func (x *finds) findFolder(ctx context.Context, j job.Job, st *engine.Step, n int, b *tree.Begin) error {
	r, err := x.holdFolder(ctx, j, b.Top)
	if err != nil {
		return err
	}
	defer r.unlock()
	o := tree.Order{Run: j.Run, Step: st.ID, N: n, Base: b.Head, Branch: b.On}
	x.writing.RLock()
	defer x.writing.RUnlock()
	if job.InOwn(j) {
		if err = x.findOwn(ctx, j, st, o, &r.Record, b); err == nil && st.ForEach != nil {
			b.Found = r.foundByList(j.Run+"/"+st.ID, b.Found)
		}
	} else {
		err = x.findOther(ctx, j, st, o, &r.Record, b)
	}
	if err == nil && b.Found != "" {
		err = x.opt.Git.Keep(ctx, git.Own("found", layout.AttemptName(o.Run, o.Step, o.N)), b.Found)
	}
	if err != nil {
		return err
	}
	r.Work = ofJob(j, st.ID)
	return r.keep()
}

// before keeps the folder's current state as what the order's attempt found.
func (x *finds) before(ctx context.Context, j job.Job, b tree.Begin, o tree.Order) (tree.Before, error) {
	f, err := x.folder(ctx, j, b)
	if err != nil {
		return tree.Before{}, err
	}
	return f.Find(ctx, o)
}

// findOther is findFolder for a folder in which people work too: it changes no file.
func (x *finds) findOther(ctx context.Context, j job.Job, st *engine.Step, o tree.Order, r *Record,
	b *tree.Begin) error {
	if j.RunInfo.Workspace != "" && x.heldAt(j, st) && r.Taken != "" && (b.Head == r.At || b.Head == r.Taken) {
		b.Head = r.Taken // it has not passed and is on no branch
	}
	o.Base = b.Head
	if x.opt.Git.Plain() {
		o.Base = r.Taken
	}
	was, err := x.before(ctx, j, *b, o)
	if err != nil {
		return err
	}
	if r.First == nil {
		r.First = &was
	}
	if err := x.leaveOthers(ctx, j, *b, r, was.Found); err != nil {
		return err
	}
	key := foundKey(j, st.ID)
	if r.Found[key] == "" || key != "" && o.N == 1 {
		r.Found[key] = was.Found
	}
	b.Found = r.Found[key]
	return nil
}

// leaveOthers counts what somebody else changed in a person's checkout since the last taking as
// found, not as a step's work. If a step without taken work ran there, all of it counts as the
// steps'.
func (x *finds) leaveOthers(ctx context.Context, j job.Job, b tree.Begin, r *Record, now string) error {
	if j.RunInfo.Workspace != "" || r.Taken == "" || r.Work != (attemptOf{}) ||
		layout.IsFile(x.recordFile(j, uncheckedMark, b.Top)) {
		return nil
	}
	f, err := x.folder(ctx, j, b)
	if err != nil {
		return err
	}
	for key, found := range r.Found {
		commit, both, err := f.Others(ctx, found, r.Taken, now)
		if err != nil {
			return err
		}
		if r.Found[key] = commit; len(both) > 0 {
			x.Logf("%s: %s: changed by %s and by somebody else, in the same places: all of it counts as the step's",
				j.Run, strings.Join(both, ", "), key)
		}
	}
	return nil
}

// foundByList returns what the list's first attempt found: its gate judges what tasks of earlier
// attempts made, too.
func (r *Record) foundByList(list, now string) string {
	if r.Found[list] == "" {
		r.Found[list] = now
	}
	return r.Found[list]
}

// findOwn is findFolder in the run's own worktree. An attempt begins from passed commits, or
// continues work that was sent to it; other work there is put aside.
func (x *finds) findOwn(ctx context.Context, j job.Job, st *engine.Step, o tree.Order, r *Record,
	b *tree.Begin) error {
	if r.First == nil {
		was, err := x.before(ctx, j, *b, o)
		if err != nil {
			return err
		}
		r.First, r.Passed = &was, b.Head
	}
	head := b.Head
	from, goesOn, join := x.startOf(j, st, head, r)
	s := tree.Start{From: from, Join: x.withOthers(j, join)}
	mine := append(slices.Clone(b.Lists), r.Written...)
	s.Ours = func(file string) bool { return slices.Contains(mine, file) }
	s.Keep = r.Work.same(ofJob(j, st.ID))                         // of an attempt that was not taken
	if begun := s.Keep || goesOn && r.Taken != r.Passed; !begun { // what a step has begun, it may finish
		if err := x.finished(b); err != nil {
			return err
		}
	}
	lists := *b
	if x.heldAt(j, st) {
		lists.Lists = nil // the attempt is built on what sluice wrote into them
	}
	f, err := x.folder(ctx, j, lists)
	if err != nil {
		return err
	}
	began, err := f.Begin(ctx, o, s)
	if err != nil {
		return err
	}
	if began.Aside != "" {
		x.Logf("%s: what was in %s and has not passed is kept as %.12s (refs/sluice/salvage/%s/%s.%d.before)", j.Run,
			x.Shown(b.Top), began.Aside, o.Run, o.Step, o.N)
	}
	b.Found = began.Base
	if was := cmp.Or(r.Found[""], r.Passed); goesOn && was != "" {
		if b.Found, err = f.With(ctx, was, from, began.Base, s.Ours); err != nil {
			return err
		}
	}
	if r.Found[""] = b.Found; !goesOn && r.Taken != r.Passed && r.Taken != head &&
		!slices.Contains(began.Joined, r.Taken) {
		b.Aside = r.Taken
	}
	b.Joined, b.Conflicts = began.Joined, began.Conflicts
	if x.heldAt(j, st) {
		b.Head = began.Base
		return nil
	}
	if goesOn || b.Head == from || b.On == "" || len(began.Joined) > 0 {
		return nil
	}
	return x.setBack(ctx, b, from)
}

// setBack sets the branch back to a commit: an unheld agent has committed on it what did not pass.
func (x *finds) setBack(ctx context.Context, b *tree.Begin, to string) error {
	_, why, err := tree.Advance{Branch: b.On, From: b.Head, To: to, Top: b.Top}.Do(ctx, x.opt.Git)
	if err == nil && why != "" {
		err = job.Unready("%s", why)
	}
	if err == nil {
		b.Head = to
	}
	return err
}

// finished refuses a run's own worktree in which somebody has begun a merge or the like: its branch
// could not be moved to what the attempt makes.
func (x *finds) finished(b *tree.Begin) error {
	why, err := tree.Unfinished(x.opt.Git, b.Top, git.BranchRefs+b.Branch)
	if err == nil && why != "" {
		err = job.Fatal("%s", why)
	}
	return err
}

// withOthers adds to what an attempt joins the passed work of other folders before it.
func (x *finds) withOthers(j job.Job, join []tree.Joining) []tree.Joining {
	for _, w := range j.Works {
		if w.Passed && w.Upstream && w.Tree != j.Attempt.Tree {
			join = append(join, x.workTaken(w))
		}
	}
	return slices.DeleteFunc(join, func(in tree.Joining) bool { return in.Commit == "" })
}

func (x *finds) workTaken(w job.Work) tree.Joining {
	var c tree.Covered
	if layout.Load(x.AttemptFile(w.Run, w.Step, w.N, layout.CheckedFile), &c) != nil {
		return tree.Joining{}
	}
	return tree.Joining{Commit: c.Taken.Commit, Found: c.Found}
}

// startOf returns the commit from which an attempt in the run's own worktree begins, whether it
// continues unpassed work, and what to merge into it.
func (x *finds) startOf(j job.Job, st *engine.Step, head string,
	r *Record) (from string, goesOn bool, join []tree.Joining) {
	var w job.Work
	for _, x := range j.Works {
		if x.Run == r.Of.Run && x.Step == r.Of.Step {
			w = x
		}
	}
	switch {
	case r.Taken != "" && head != r.At && head != r.Taken && head != r.Passed: // moved by a person
		if w.Passed {
			join = []tree.Joining{{Commit: r.Taken, Found: x.workTaken(w).Found}}
		}
		r.Passed = head
		return head, false, join
	case r.Taken == "":
		return r.Passed, false, nil
	case w.Passed:
		r.Passed = r.Taken
		return r.Taken, false, nil
	case r.Of.same(ofJob(j, st.ID)), w.Live, w.Run == j.Run && slices.Contains(w.To, st.ID):
		// Its own work, work that its gate has sent here, or work that waits for its gate
		// meanwhile.
		return r.Taken, true, nil
	}
	return r.Passed, false, nil
}
