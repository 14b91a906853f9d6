package engine

import (
	"slices"
	"strconv"
	"time"
)

func (f RetryContextOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	set(&r.Files, f.Gate, f.File)
	r.round(f.Gate, f.N).may(f.Run, f.FactKind()).File = f.File
	r.Writes = append(r.Writes,
		&Write{ID: f.Run + "/" + f.Gate + "." + strconv.Itoa(f.File), Gate: f.Gate, N: f.N, File: f.File, Path: f.Path})
}

func (f OutputsOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	what := ".outputs"
	if r.round(f.Gate, f.N).may(f.Run, f.FactKind()).State == OnHuman { // the reviewer's outputs were written before
		what = ".answer"
	}
	r.Writes = append(r.Writes, &Write{ID: f.Run + "/" + f.Gate + "#" + strconv.Itoa(f.N) + what, Gate: f.Gate, N: f.N})
}

func (f WriteDone) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.Writes = slices.DeleteFunc(r.Writes, func(w *Write) bool {
		switch {
		case w.ID == f.ID && w.Kind == WriteLand:
			r.Unlanded = f.Why
		case w.ID == f.ID && w.Kind != "":
			r.Moved = append(r.Moved, w.ID)
		}
		return w.ID == f.ID
	})
}

func (f FileTaken) apply(s *State, _ time.Time) {
	m := f.Move
	s.Moves[m.ID] = &m
	s.index.changeID(&s.index.changed.moves, m.ID)
	if r := s.runOf(m.Of); r != nil && m.Run == "" {
		set(&r.Refused, m.Of, r.Refused[m.Of]+1)
	}
}

func (f FileGone) apply(s *State, _ time.Time) {
	delete(s.Moves, f.ID)
	s.index.changeID(&s.index.changed.moves, f.ID)
}

func (f AdvanceOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.now(f.Step, f.N).may(f.Run, f.FactKind())
	r.oweBranch(Write{Kind: WriteAdvance, Step: f.Step, N: f.N})
}

func (f RewindOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	if a := r.Attempt(f.Step, f.N); a == nil || r.Workspace == "" {
		wrong("%s: a rewind of %s#%d, which is on no branch", f.Run, f.Step, f.N)
	}
	r.Writes = slices.DeleteFunc(r.Writes,
		func(w *Write) bool { return w.Kind == WriteAdvance && w.Step == f.Step && w.N == f.N })
	r.oweBranch(Write{Kind: WriteRewind, Step: f.Step, N: f.N, With: f.With, Files: f.Files})
}

func (f LandingOwed) apply(s *State, _ time.Time) {
	r := s.at(f.Run)
	r.Landing, r.Unlanded = true, ""
	r.Writes = append(r.Writes, &Write{ID: f.ID, Kind: WriteLand})
}

func (r *Run) oweBranch(w Write) {
	w.ID = r.ID + "/" + w.Step + "#" + strconv.Itoa(w.N) + "." + w.Kind
	r.Writes = append(r.Writes, &w)
}

func (f NoticeOwed) apply(s *State, _ time.Time) {
	n := f.Notice
	s.Notices[n.ID] = &n
	s.index.changeID(&s.index.changed.notices, n.ID)
	if r := s.Runs[n.Run]; r != nil && n.Once {
		set(&r.Told, n.ID, true)
	}
}

func (f NoticeTried) apply(s *State, _ time.Time) {
	delete(s.Notices, f.ID)
	s.index.changeID(&s.index.changed.notices, f.ID)
	r := s.Runs[f.Run]
	if r == nil || f.Gate == "" {
		return
	}
	if q := r.CurrentRound(f.Gate); q != nil && q.N == f.N {
		q.Noticed = f.Results
	}
}
