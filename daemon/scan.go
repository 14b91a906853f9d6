package daemon

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
)

// scan reads all inboxes in a goroutine; the result comes back through the queue.
func (r *Repo) scan(ctx context.Context) {
	if r.scanning {
		r.scanAgain = true
		return
	}
	if r.opt.Now().Before(r.scanAfter) {
		return // the rescan retries it
	}
	r.scanAgain, r.lookAgain = false, false
	r.opt.World.Hinted() // all hinted folders are read now
	r.read(ctx, inboxes(r.core.state, nil))
}

// look reads the folders that hints named. The next scan finds the rest.
func (r *Repo) look(ctx context.Context) {
	if r.scanning {
		r.lookAgain = true
		return
	}
	if r.opt.Now().Before(r.scanAfter) {
		return
	}
	r.lookAgain = false
	places := r.opt.World.Hinted()
	places = slices.DeleteFunc(places, func(p job.Place) bool { // nothing waits there any more
		return p.Run != "" && !r.core.state.Runs[p.Run].Live()
	})
	if len(places) > 0 {
		r.read(ctx, inboxes(r.core.state, places))
	}
}

// read has the World read inboxes, one reading at a time.
func (r *Repo) read(ctx context.Context, in job.Inboxes) {
	r.scanning = true
	began := r.opt.Now()
	r.spawn(func() {
		seen, more, err := r.opt.World.Scan(ctx, in)
		if err != nil { // not a scan: it closes nothing
			// if the root is gone, Health reports it, and the log once
			if ctx.Err() == nil && !errors.Is(err, atomicfile.ErrGone) {
				r.opt.Log.Warn().Err(err).Str("repo", r.opt.Root).Msg("the inbox could not be read")
			}
			r.post(item{ask: func(*core) {
				r.scanning, r.clean, r.scanAfter = false, false, r.opt.Now().Add(again)
				clear(r.moved)
			}})
			return
		}
		r.post(item{scan: seen, began: began, part: more || in.Only != nil, more: more})
	})
}

// takeScan takes what a scan saw, except files that were moved away since it began and those it
// could not judge.
func (r *Repo) takeScan(it item, now time.Time) {
	for _, ev := range it.scan {
		f, file := ev.(engine.FileSeen)
		if file && r.moved[f.ID] {
			continue
		}
		if file && r.newer(f, it.began, now) {
			r.scanAgain = true
			continue
		}
		r.core.take(ev, now)
	}
	r.scanAgain = r.scanAgain || it.more
	r.clean = !it.more && len(it.scan) == 0 && (r.clean || !it.part)
	if it.more && r.since.IsZero() {
		r.since = it.began // the next resumes where this one stopped; together they cover what was there then
	}
	if !it.part { // only a full scan can tell that a file is missing
		r.core.take(engine.Scanned{Began: cmp.Or(r.since, it.began)}, now)
		r.since = time.Time{}
	}
	r.scanning = false
	clear(r.moved)
}

// newer reports whether the file may be for a launch or a round that began after the scan, so that
// the scan took the token for unknown or computed no digest. What is dated after now predates a
// clock that was set back, and was known.
func (r *Repo) newer(f engine.FileSeen, began, now time.Time) bool {
	since := func(t time.Time) bool { return t.After(began) && !t.After(now) }
	if f.TokenOf != "?" && (f.Human == nil || f.DigestNow != "") {
		return false
	}
	for _, run := range r.core.state.LiveRuns() {
		for step := range run.Attempts {
			if a := run.Current(step); f.TokenOf == "?" && a != nil && a.State == engine.Running && since(a.Launched) {
				return true
			}
		}
		for gate := range run.Rounds {
			q := run.CurrentRound(gate)
			if q != nil && q.State == engine.OnHuman && since(q.Asked) &&
				strings.HasPrefix(f.Name, gate+"-"+engine.OutcomePass) {
				return true
			}
		}
	}
	return false
}

// awaited reports whether a process has ended whose sentinel is still to be seen.
func (r *Repo) awaited(ev engine.ProcessEnded) bool {
	run := r.core.state.Runs[ev.Run]
	if !run.Live() {
		return false
	}
	for step := range run.Attempts {
		if a := run.Current(step); a != nil && a.Key == ev.Key && a.State == engine.Running && !a.GraceUntil.IsZero() {
			return true
		}
	}
	return false
}

// inboxes returns where a scan must look now, and what it must know of the runs concerned; only nil
// = everywhere.
func inboxes(st *engine.State, only []job.Place) job.Inboxes {
	in := job.Inboxes{Only: only, Tokens: map[string]string{}, Refused: map[string]int{}, Words: map[string]string{}}
	trees := map[string]bool{}
	for _, id := range concerned(st, only) {
		run := st.Runs[id]
		if run != nil {
			maps.Copy(in.Refused, run.Refused)
		}
		if !run.Live() {
			continue
		}
		in.Runs = append(in.Runs, id)
		for _, p := range run.Procs {
			in.Tokens[p.Key] = ""
		}
		for step := range run.Attempts {
			a := run.Current(step)
			if a == nil || a.State != engine.Running {
				continue
			}
			in.Tokens[a.Key] = ""
			if a.SignalType == engine.SignalFile {
				in.Words[a.Key] = path.Base(a.SignalValue)
			}
			// a plain folder of the root has an inbox too
			if a.SignalType == engine.SignalFile && (a.Tree != "." || a.Worktree != "") && !trees[a.Tree] {
				trees[a.Tree] = true
				in.Trees = append(in.Trees, a.Tree)
			}
		}
		for gate := range run.Rounds {
			if q := run.CurrentRound(gate); q.Open() && q.State == engine.OnHuman {
				in.Asked = append(in.Asked, reviewed(run, gate, q))
			}
		}
	}
	return in
}

// concerned returns the runs whose files may be in the places.
func concerned(st *engine.State, only []job.Place) []string {
	if only == nil {
		return st.Order
	}
	var runs []string
	for _, p := range only {
		if p.Run == "" {
			return st.Order
		}
		if !slices.Contains(runs, p.Run) {
			runs = append(runs, p.Run)
		}
	}
	return runs
}

func reviewed(run *engine.Run, gate string, q *engine.Round) job.Reviewed {
	out := job.Reviewed{Run: run.ID, Gate: gate, Step: q.Step, Attempt: q.Attempt, Digest: q.Digest}
	if a := run.Attempt(q.Step, q.Attempt); a != nil {
		out.Tree, out.Worktree = a.Tree, a.Worktree
	}
	return out
}
