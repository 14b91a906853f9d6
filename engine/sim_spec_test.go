package engine

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

// shape selects the parts of the language a history uses.
type shape struct {
	oracle    bool // only what the model knows too
	adversary bool // no person acts, no limit ends the run: it must come to rest by its counters alone
	lists     int  // nesting depth of tasks' runs and child runs
	child     bool // the workflow is that of a child run
	fires     bool // the first workflow has triggers
}

// newShape adds lists and child runs to every other history, and triggers to every third.
func newShape(seed uint64, oracle bool) shape {
	sh := shape{oracle: oracle, adversary: seed%3 == 0}
	if !oracle && seed%2 == 0 {
		sh.lists = 2
	}
	sh.fires = !oracle && seed > 10 && seed%3 == 1 // TestMovesAreAllMade plays the first ten
	return sh
}

// drawn returns the value of a `when`: by key alone, so that it is always the same.
func drawn(run, step string, n int) bool {
	h := fnv.New32a()
	fmt.Fprint(h, run, "/", step, "#", n)
	return h.Sum32()%3 != 0
}

// apart reports whether the step's work is taken completely.
func apart(step string) bool { return drawn("apart", step, 0) }

func pick[T any](g *rand.Rand, xs ...T) T { return xs[g.IntN(len(xs))] }

// genSpec draws a workflow that loads.
func genSpec(g *rand.Rand, id string, sh shape) *Spec {
	for {
		w := &Spec{ID: id, Digest: "d-" + id}
		n := 1 + g.IntN(6)
		for i := range n {
			w.Steps = append(w.Steps, &Step{ID: "s" + strconv.Itoa(i)})
		}
		for i, st := range w.Steps {
			genStep(g, w, st, i, sh)
		}
		genLimits(g, w, sh)
		if sh.lists > 0 {
			genChildren(g, w, sh)
		}
		if w.Link() == nil && sidesLeadBack(w) {
			if sh.fires && id == "wf0" {
				w.On = genOn(g)
			}
			return w
		}
	}
}

func genLimits(g *rand.Rand, w *Spec, sh shape) {
	w.Limits.MaxSameFailure = 1 << 30
	if sh.adversary {
		return
	}
	w.Limits.MaxSteps = 15 + g.IntN(40)
	w.Limits.OnHit = map[string]string{}
	if g.IntN(2) == 0 {
		w.Limits.OnHit["max_steps"] = Human
	}
	if sh.oracle {
		return
	}
	if g.IntN(3) == 0 {
		w.Limits.MaxSameFailure = 3
	}
	if g.IntN(5) == 0 {
		w.Limits.MaxDuration = Duration(time.Duration(100+g.IntN(2000)) * time.Second)
		w.Limits.OnHit["max_duration"] = pick(g, Human, EndAborted, EndFailed)
	}
	if g.IntN(8) == 0 {
		w.AfterStep = &Command{Shell: "true"}
	}
	if g.IntN(8) == 0 {
		w.AfterRun = &Command{Shell: "true"}
	}
	if g.IntN(8) == 0 {
		w.Protect = []string{"test/**"}
	}
}

func genStep(g *rand.Rand, w *Spec, st *Step, i int, sh shape) {
	st.Agent = &Agent{Type: "r", Launch: LaunchHeadless, Worktree: Text{Source: pick(g, "w0", "w0", "w1", "w2")}}
	st.Signal = Signal{Type: SignalFile, Value: ".workflow/signals/" + st.ID + "-done.json"}
	st.Agent.Reads = g.IntN(5) == 0
	restarts := g.IntN(2)
	st.Restarts = &restarts
	if g.IntN(6) == 0 {
		st.When = Cond{Source: "drawn", Eval: func(e *Env) (bool, error) { return drawn(e.Run, e.Step, e.Attempt), nil }}
	}
	if !sh.adversary && !sh.child && g.IntN(10) == 0 {
		st.ExtNeeds = []Need{{Workflow: "x" + strconv.Itoa(g.IntN(2)), Step: "e"}}
	}
	if i > 0 && g.IntN(3) == 0 {
		for range 1 + g.IntN(2) {
			st.HasNeeds, st.Needs = true, append(st.Needs, w.Steps[g.IntN(i)].ID)
		}
	} else if i > 0 && g.IntN(12) == 0 {
		st.HasNeeds = true
	}
	if !sh.oracle {
		genWays(g, st)
	}
	if g.IntN(8) == 0 { // a step without a gate
		w.Gates = append(w.Gates, &Gate{ID: st.ID, Step: st.ID, Implicit: true, Reviewer: Reviewer{Level: LevelAuto, FromStep: true},
			OnPass: genPass(g, w, i), OnFail: EndFailed, OnExhausted: EndFailed, MaxRetries: 1, RetryContext: "rc/" + st.ID + "-{n}.md"})
		st.Gates = []string{st.ID}
		return
	}
	for k := 0; k == 0 || k == 1 && g.IntN(5) == 0; k++ {
		gt := genGate(g, w, i, k, sh)
		w.Gates = append(w.Gates, gt)
		st.Gates = append(st.Gates, gt.ID)
	}
}

// genWays draws how the step is launched and how it signals.
func genWays(g *rand.Rand, st *Step) {
	switch g.IntN(9) {
	case 0:
		st.Agent.Launch = pick(g, LaunchInteractive, LaunchSubagent)
	case 1, 2:
		st.Signal = Signal{Type: SignalCommit, Value: "[GATE:" + st.ID + "]"}
	case 3:
		st.Signal = Signal{Type: SignalPull}
	case 4:
		st.Signal = Signal{Type: SignalExit}
	}
	if g.IntN(4) == 0 {
		st.Outputs = []Output{{Path: Text{Source: "out"}}}
	}
	if st.Offered() || st.Signal.Type == SignalCommit || st.Signal.Type == SignalPull {
		st.Agent.Reads = false
	}
	if g.IntN(5) == 0 {
		st.Timeout = Duration(time.Duration(20+g.IntN(200)) * time.Second)
	}
}

// genPass draws the targets of a pass of step i.
func genPass(g *rand.Rand, w *Spec, i int) []string {
	n := len(w.Steps)
	if i+1 < n && g.IntN(5) > 0 {
		to := []string{w.Steps[i+1+g.IntN(n-i-1)].ID}
		if t := w.Steps[i+1+g.IntN(n-i-1)].ID; g.IntN(3) == 0 && t != to[0] {
			to = append(to, t)
		}
		return to
	}
	if g.IntN(12) == 0 {
		return []string{pick(g, EndFailed, EndAborted)}
	}
	return []string{EndDone}
}

func genGate(g *rand.Rand, w *Spec, i, k int, sh shape) *Gate {
	n, id := len(w.Steps), w.Steps[i].ID
	gt := &Gate{ID: fmt.Sprintf("g%d.%d", i, k), Step: id, MaxRetries: 1 + g.IntN(3), OnExhausted: Human, OnPass: genPass(g, w, i),
		Reviewer: Reviewer{Level: pick(g, LevelAuto, LevelAuto, LevelNotify, LevelHuman), AgentType: "rev"}}
	gt.RetryContext = "rc/" + gt.ID + "-{n}.md"
	if gt.Reviewer.Level != LevelHuman && g.IntN(8) == 0 {
		gt.Reviewer.AgentType, gt.Reviewer.FromStep = "", true
	}
	gt.OnFail = w.Steps[g.IntN(i+1)].ID
	if g.IntN(4) == 0 {
		gt.OnFail = w.Steps[g.IntN(n)].ID // a fixing step, or a later one
	}
	if g.IntN(3) == 0 {
		gt.OnFail = id
	}
	if g.IntN(4) == 0 {
		to := w.Steps[g.IntN(n)].ID
		if g.IntN(4) == 0 {
			to = pick(g, EndDone, EndDone, EndFailed)
		}
		gt.Routes = append(gt.Routes, Route{Outcome: "r", To: to})
	}
	switch g.IntN(6) {
	case 0:
		gt.OnExhausted = pick(g, OutcomePass, EndFailed, EndAborted)
	case 1:
		gt.OnExhausted = w.Steps[g.IntN(i+1)].ID
	}
	if !sh.oracle {
		genGateMore(g, gt, sh)
	}
	return gt
}

// genGateMore draws what the model does not know.
func genGateMore(g *rand.Rand, gt *Gate, sh shape) {
	if g.IntN(10) == 0 {
		gt.OnExhausted = EndDone
	}
	if gt.Reviewer.Level != LevelHuman && g.IntN(8) == 0 {
		gt.When = Cond{Source: "drawn", Eval: func(e *Env) (bool, error) { return drawn(e.Run, e.Gate, e.Attempt), nil }}
	}
	if !sh.adversary && g.IntN(6) == 0 {
		gt.Timeout = Duration(time.Duration(50+g.IntN(400)) * time.Second)
		gt.OnTimeout = pick(g, "", "remind", OutcomeFail, EndFailed, EndAborted)
	}
	if g.IntN(6) == 0 {
		gt.Reviewer.Trust = TrustSandbox
	}
	if g.IntN(6) == 0 {
		d := Duration(time.Duration(g.IntN(60)) * time.Second)
		gt.VetoWindow = &d
	}
	if !sh.adversary && g.IntN(8) == 0 {
		gt.Routes = append(gt.Routes, Route{Outcome: OutcomeBlocked, To: pick(g, gt.OnFail, Human, EndDone)})
	}
}

// extSpec is another workflow that steps may need.
func extSpec(id string) *Spec {
	w := &Spec{ID: id, Digest: "d-" + id, Steps: []*Step{{ID: "e", Agent: &Agent{Type: "r", Launch: LaunchHeadless, Worktree: Text{Source: id}},
		Signal: Signal{Type: SignalExit}, Gates: []string{"e"}}},
		Gates: []*Gate{{ID: "e", Step: "e", Implicit: true, Reviewer: Reviewer{Level: LevelAuto, FromStep: true}, OnPass: []string{EndDone},
			OnFail: EndFailed, OnExhausted: EndFailed, MaxRetries: 1, RetryContext: "rc/e-{n}.md"}}}
	if f := w.Link(); f != nil {
		panic(f)
	}
	return w
}
