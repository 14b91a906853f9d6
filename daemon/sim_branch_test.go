package daemon

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/job"
)

// simBranch is the branch of a worktree: where it is, and how it got there.
type simBranch struct {
	tip   string // the content of an attempt; "" = where the run began
	moves []simMove
}

type simMove struct {
	of, from, to string
	vetoed       bool
}

// simSpaces gives the runs of a spec a worktree of their own.
func simSpaces(w *engine.Spec) {
	w.Workspace = engine.WorkspaceRun
	for _, st := range w.Steps {
		if st.Agent != nil && st.Agent.Worktree.Source == "w0" {
			st.Agent.Worktree = engine.Text{}
		}
		if st.Child != nil {
			simSpaces(st.Child)
		}
	}
}

// branch moves a branch as the job says, and gives why it cannot. late: the job was given up
// meanwhile. Under mu.
func (s *sim) branch(job job.Job, late bool) (why string) {
	if job.Write.Kind == engine.WriteLand {
		s.land(job, late)
		return ""
	}
	a := job.Attempt
	b := s.w.branches[a.Tree]
	if b == nil {
		b = &simBranch{}
		s.w.branches[a.Tree] = b
	}
	run := job.Run
	if c := job.RunInfo.Child; c != nil {
		run = c.Dir
	}
	names := []string{path.Join(run, fmt.Sprintf("%s.%d", job.Step, job.N))}
	for _, w := range job.Write.With {
		names = append(names, path.Join(run, w))
	}
	if job.Write.Kind == engine.WriteRewind {
		return s.rewind(job, b, names)
	}
	if b.tip == a.Content {
		return ""
	}
	if !s.led.fit[a.Content] && !late {
		s.w.fail("I14: the branch of %s moves to %s, which no round has passed", a.Tree, a.Content)
	}
	b.moves = append(b.moves, simMove{of: names[0], from: b.tip, to: a.Content})
	b.tip = a.Content
	return ""
}

func (s *sim) rewind(job job.Job, b *simBranch, names []string) string {
	n := len(b.moves)
	for i, m := range b.moves {
		in := func(of string) bool { return m.of == of || strings.HasPrefix(m.of, of+"/") }
		b.moves[i].vetoed = m.vetoed || slices.ContainsFunc(names, in)
	}
	for n > 0 && b.moves[n-1].vetoed {
		n--
	}
	if job.Write.Files {
		for _, key := range sortedKeys(s.w.procs) {
			if p := s.w.procs[key]; p.alive && p.tree == job.Attempt.Tree {
				s.w.fail("the files of %s go back while %s is at work there", p.tree, key)
			}
		}
	}
	if n < len(b.moves) {
		b.tip, b.moves = b.moves[n].from, b.moves[:n]
		s.counts.rewinds++
		return ""
	}
	if slices.ContainsFunc(b.moves, func(m simMove) bool { return m.vetoed }) {
		return "what has passed since is built on it"
	}
	return ""
}

// stands notes what may be on a branch: what all gates of a step have passed, and a person has not
// vetoed since.
func (s *sim) stands(f engine.StepPassed) {
	r := s.repo.core.state.Runs[f.Run]
	if r == nil || r.Workspace == "" {
		return
	}
	a := r.Attempt(f.Step, f.N)
	if a.Content == "" {
		return
	}
	for _, g := range s.specOf(r).Step(f.Step).Gates {
		q := r.CurrentRound(g)
		if q == nil || q.Attempt != f.N || s.led.outcomes[round(f.Run, g, q.N)] != engine.OutcomePass || q.Digest != a.Digest {
			s.w.fail("%s/%s.%d passed, and gate %s has not passed its content", f.Run, f.Step, f.N, g)
		}
	}
	s.led.fit[a.Content] = true
}

// clean holds that no work is launched on what a person has vetoed: unless what passed beside it is
// built on it.
func (s *sim) clean(f engine.StepLaunched) {
	b := s.w.branches[f.Tree]
	if b == nil || len(b.moves) == 0 {
		return
	}
	if top := b.moves[len(b.moves)-1]; top.vetoed || !s.led.fit[b.tip] {
		s.w.fail("%s is launched, and the branch has %s, which was vetoed", f.Key, b.tip)
	}
}

// vetoed notes that what has passed is no longer to be on its branch.
func (s *sim) vetoed(f engine.RoundFailed) {
	r := s.repo.core.state.Runs[f.Run]
	if r == nil || s.led.outcomes[round(f.Run, f.Gate, f.N)] != engine.OutcomePass {
		return
	}
	q := r.Rounds[f.Gate][f.N-1]
	if a := r.Attempt(q.Step, q.Attempt); a != nil {
		delete(s.led.fit, a.Content)
	}
}

// unfit notes what goes with it.
func (s *sim) unfit(f engine.RewindOwed) {
	r := s.repo.core.state.Runs[f.Run]
	if r == nil {
		return
	}
	for _, of := range append([]string{fmt.Sprintf("%s.%d", f.Step, f.N)}, f.With...) {
		dot := strings.LastIndexByte(of, '.')
		var n int
		fmt.Sscan(of[dot+1:], &n)
		if a := r.Attempt(of[:dot], n); a != nil {
			delete(s.led.fit, a.Content)
		}
	}
}

// land holds that what is landed has passed, if nobody has vetoed it while it was under way. Under
// mu.
func (s *sim) land(job job.Job, late bool) {
	s.counts.landings++
	if b := s.w.branches[job.RunInfo.Workspace]; b != nil && b.tip != "" && !s.led.fit[b.tip] && !late && job.RunInfo.Phase == engine.RunRunning {
		s.w.fail("%s lands %s, which no round has passed", job.Run, b.tip)
	}
}

// completed holds that a run is not over before its work has landed.
func (s *sim) completed(f engine.RunEnded) {
	r := s.repo.core.state.Runs[f.Run]
	if r == nil || f.Phase != engine.RunCompleted || r.Child != nil || s.specOf(r).OnDone == (engine.OnDone{}) {
		return
	}
	for id := range s.w.written {
		if strings.HasPrefix(id, f.Run+"/land-") {
			return
		}
	}
	s.w.fail("%s is over, and its work was not landed", f.Run)
}
