package oracle

import "fmt"

// Attempt is an attempt of a step.
type Attempt struct {
	N, Launch int
	State     string   // ready, running, signalled, gating, passed, routed, skipped, superseded
	Status    string   // what the signal said: done, failed, blocked
	due       int      // when it became ready
	To        []string // where its outcome led
	Taken     bool     // its work was taken
	launched  int
}

// Round is a round of a gate.
type Round struct {
	N, Attempt, Launch int
	Level              string // auto, notify, human (after escalation)
	State              string // reviewing, notice, window, human, passed, failed, superseded
	By                 string
	opened             int
	counted            string // the count it is in
}

// Run is a run.
type Run struct {
	ID               int
	Spec             *Spec
	Phase            string // running, completed, failed, aborted
	Paused           bool
	Att              map[string][]*Attempt
	Rounds           map[string][]*Round
	Fails            map[string]int // gate, or gate and route back -> its count
	Forced, Exh      map[string]bool
	Renews           map[string]string // gate -> the step of on_exhausted, until it has passed
	Sent             map[string]string // fixing step -> the step whose gate sent the work there
	Begun, Allowance int
	EndStep, Why     string
}

// Proc is a process that may be alive.
type Proc struct {
	Key       string
	Run       int
	Step      string
	Gate      string
	N, Launch int
	WT        string
}

// State is all the model knows.
type State struct {
	Runs     []*Run
	Procs    map[string]*Proc
	Order    []string // of Procs
	Ext      map[string]bool
	Seq      int
	Withheld func(run int, step, gate string) bool // may not be launched (step "": the run may not be completed) now, for reasons the model does not know
}

// New returns the state of a repo nothing ever happened in.
func New() *State {
	return &State{Procs: map[string]*Proc{}, Ext: map[string]bool{}, Withheld: func(int, string, string) bool { return false }}
}

// Cur returns the step's newest attempt unless it was superseded.
func (r *Run) Cur(step string) *Attempt {
	as := r.Att[step]
	if len(as) == 0 || as[len(as)-1].State == "superseded" {
		return nil
	}
	return as[len(as)-1]
}

// CurRound returns the gate's newest round unless it was superseded.
func (r *Run) CurRound(gate string) *Round {
	rs := r.Rounds[gate]
	if len(rs) == 0 || rs[len(rs)-1].State == "superseded" {
		return nil
	}
	return rs[len(rs)-1]
}

func live(a *Attempt) bool {
	return a != nil && (a.State == "ready" || a.State == "running" || a.State == "signalled" || a.State == "gating")
}

func passed(a *Attempt) bool { return a != nil && (a.State == "passed" || a.State == "skipped") }

func open(q *Round) bool {
	return q != nil && (q.State == "reviewing" || q.State == "notice" || q.State == "window" || q.State == "human")
}

// StepKey and ReviewKey name a launch.
func StepKey(r int, step string, n, l int) string { return fmt.Sprintf("%d/%s#%d.%d", r, step, n, l) }

// ReviewKey names a reviewer's launch.
func ReviewKey(r int, gate string, n, l int) string { return "review " + StepKey(r, gate, n, l) }

func must(ok bool, f string, a ...any) {
	if !ok {
		panic("oracle: " + fmt.Sprintf(f, a...))
	}
}

func (s *State) startRun(w *Spec) {
	s.Seq++
	s.Runs = append(s.Runs, &Run{ID: len(s.Runs) + 1, Spec: w, Phase: "running", Att: map[string][]*Attempt{}, Rounds: map[string][]*Round{},
		Fails: map[string]int{}, Forced: map[string]bool{}, Exh: map[string]bool{}, Renews: map[string]string{}, Sent: map[string]string{}, Allowance: w.MaxSteps})
}

func (s *State) startStep(r *Run, step string) {
	must(r.Cur(step) == nil, "second current attempt of %s", step)
	s.Seq++
	r.Att[step] = append(r.Att[step], &Attempt{N: len(r.Att[step]) + 1, State: "ready", due: s.Seq})
	r.Begun++
}

func (s *State) launch(r *Run, step string) {
	a := r.Cur(step)
	must(a != nil && a.State == "ready", "launch of %s", step)
	s.Seq++
	a.State, a.launched = "running", s.Seq
	a.Launch++
	s.proc(&Proc{Key: StepKey(r.ID, step, a.N, a.Launch), Run: r.ID, Step: step, N: a.N, Launch: a.Launch, WT: r.Spec.Steps[step].works()})
}

// works is the worktree that the step's processes are in; "" where it only looks.
func (st *Step) works() string {
	if st.Reads {
		return ""
	}
	return st.WT
}

// reviewed is the worktree that the reviewers of an attempt are in.
func (st *Step) reviewed(a *Attempt) string {
	if st.Reads || st.Apart && a.Taken {
		return ""
	}
	return st.WT
}

func (s *State) review(r *Run, gate string) {
	q, st := r.CurRound(gate), r.Spec.Gates[gate].Step
	s.Seq++
	q.Launch++
	s.proc(&Proc{Key: ReviewKey(r.ID, gate, q.N, q.Launch), Run: r.ID, Gate: gate, Step: st, N: q.N, Launch: q.Launch, WT: r.Spec.Steps[st].reviewed(r.Cur(st))})
}

func (s *State) proc(p *Proc) {
	must(s.Procs[p.Key] == nil, "process %s twice", p.Key)
	s.Procs[p.Key] = p
	s.Order = append(s.Order, p.Key)
}

func (s *State) drop(key string) {
	delete(s.Procs, key)
	for i, k := range s.Order {
		if k == key {
			s.Order = append(s.Order[:i:i], s.Order[i+1:]...)
			return
		}
	}
}

func (s *State) openRound(r *Run, step, gate, level string) *Round {
	a := r.Cur(step)
	must(live(a), "round of %s over nothing", gate)
	s.Seq++
	a.State = "gating"
	q := &Round{N: len(r.Rounds[gate]) + 1, Attempt: a.N, Level: level, State: "reviewing", opened: s.Seq}
	if level == "human" {
		q.State = "human"
	}
	r.Rounds[gate] = append(r.Rounds[gate], q)
	return q
}

func (s *State) supersede(r *Run, step string) {
	a := r.Cur(step)
	must(a != nil, "superseding nothing")
	a.State = "superseded"
	for _, g := range r.Spec.Steps[step].Gates {
		if q := r.CurRound(g); q != nil {
			q.State = "superseded"
		}
	}
}

func (s *State) ask(r *Run, g *Gate, q *Round, forced bool) {
	q.State, q.Level = "human", "human"
	if forced {
		r.Forced[g.ID] = true
	}
}

func (s *State) end(r *Run, phase, step, why string) {
	if r.Phase != "running" {
		return
	}
	r.Phase, r.EndStep, r.Why, r.Paused = phase, step, why, false
	for _, id := range r.Spec.Order { // what was alive stops; a retry finds it due again
		if live(r.Cur(id)) {
			s.supersede(r, id)
		}
	}
}
