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

// scans has the World read the inboxes, one reading at a time, and takes in what it saw. A reading has a
// goroutine of its own, and its result comes back through the queue.
type scans struct {
	opt   *RepoOptions
	core  *core
	post  func(item)
	spawn func(func())

	reading   bool
	scanAgain bool            // read all inboxes after the current reading
	lookAgain bool            // read the hinted folders after it
	since     time.Time       // start of the first in a series of incomplete scans
	notBefore time.Time       // after a failed reading: none before this
	clean     bool            // the last full scan found nothing and left nothing to look at
	left      bool            // the last full scan left a word of a person that is not whole yet
	moved     map[string]bool // files moved out of their inbox during a reading that may have seen them
}

// scan reads all inboxes in a goroutine.
func (s *scans) scan(ctx context.Context) {
	if s.reading {
		s.scanAgain = true
		return
	}
	if s.opt.Now().Before(s.notBefore) {
		return // the rescan retries it
	}
	s.scanAgain, s.lookAgain = false, false
	s.opt.World.Hinted() // all hinted folders are read now
	s.read(ctx, inboxes(s.core.state, nil))
}

// look reads the folders that hints named. The next scan finds the rest.
func (s *scans) look(ctx context.Context) {
	if s.reading {
		s.lookAgain = true
		return
	}
	if s.opt.Now().Before(s.notBefore) {
		return
	}
	s.lookAgain = false
	places := s.opt.World.Hinted()
	places = slices.DeleteFunc(places, func(p job.Place) bool { // nothing waits there any more
		return p.Run != "" && !s.core.state.Runs[p.Run].Live()
	})
	if len(places) > 0 {
		s.read(ctx, inboxes(s.core.state, places))
	}
}

// read has the World read inboxes, one reading at a time.
func (s *scans) read(ctx context.Context, in job.Inboxes) {
	s.reading = true
	began := s.opt.Now()
	s.spawn(func() {
		seen, more, err := s.opt.World.Scan(ctx, in)
		if err != nil { // not a scan: it closes nothing
			// if the root is gone, Health reports it, and the log once
			if ctx.Err() == nil && !errors.Is(err, atomicfile.ErrGone) {
				s.opt.Log.Warn().Err(err).Str("repo", s.opt.Root).Msg("the inbox could not be read")
			}
			s.post(item{ask: func(*core) {
				s.reading, s.clean, s.notBefore = false, false, s.opt.Now().Add(again)
				clear(s.moved)
			}})
			return
		}
		s.post(item{scan: seen, began: began, part: more || in.Only != nil, more: more})
	})
}

// take takes what a scan saw, except files that were moved away since it began and those it
// could not judge.
func (s *scans) take(it item, now time.Time) {
	whole := cmp.Or(s.since, it.began)
	for _, ev := range it.scan {
		if left, ok := ev.(engine.Scanned); ok {
			if left.Began.Before(whole) {
				whole = left.Began
			}
			continue
		}
		f, file := ev.(engine.FileSeen)
		if file && s.moved[f.ID] {
			continue
		}
		if file && newer(s.core.state, f, it.began, now) {
			s.scanAgain = true
			continue
		}
		s.core.take(ev, now)
	}
	s.scanAgain = s.scanAgain || it.more
	s.clean = !it.more && len(it.scan) == 0 && (s.clean || !it.part)
	if it.more && s.since.IsZero() {
		s.since = it.began // the next resumes where this one stopped; together they cover what was there then
	}
	if !it.part { // only a full scan can tell that a file is missing
		s.left = whole.Before(cmp.Or(s.since, it.began))
		s.core.take(engine.Scanned{Began: whole}, now)
		s.since = time.Time{}
	}
	s.reading = false
	clear(s.moved)
}

// seen records what a decided event means for the readings.
func (s *scans) seen(ev engine.Event) {
	switch ev := ev.(type) {
	case engine.ProcessEnded:
		// its sentinel may be there with the hint still to come
		s.scanAgain = s.scanAgain || awaited(s.core.state, ev)
	case engine.FileMoved:
		if s.reading {
			s.moved[ev.ID] = true
		}
	}
}

// goOn starts the reading that was requested during another.
func (s *scans) goOn(ctx context.Context) {
	switch {
	case s.reading:
	case s.scanAgain:
		s.scan(ctx)
	case s.lookAgain:
		s.look(ctx)
	}
}

// newer reports whether the file may be for a launch or a round that began after the scan, so that
// the scan took the token for unknown or computed no digest. What is dated after now predates a
// clock that was set back, and was known.
func newer(st *engine.State, f engine.FileSeen, began, now time.Time) bool {
	since := func(t time.Time) bool { return t.After(began) && !t.After(now) }
	if f.TokenOf != "?" && (f.Human == nil || f.DigestNow != "") {
		return false
	}
	for _, run := range st.LiveRuns() {
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
func awaited(st *engine.State, ev engine.ProcessEnded) bool {
	run := st.Runs[ev.Run]
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
			for _, p := range run.Procs {
				in.Procs = append(in.Procs, p.Key)
			}
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
	return job.Reviewed{Run: run.ID, Gate: gate, Step: q.Step, Attempt: q.Attempt, Digest: q.Digest}
}
