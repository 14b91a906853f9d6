package daemon

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"sluice/engine"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func pick[T any](g *rand.Rand, xs ...T) T { return xs[g.IntN(len(xs))] }

// simSpec draws a small workflow that loads.
func simSpec(g *rand.Rand, id string) *engine.Spec {
	for {
		w := &engine.Spec{ID: id, Name: id}
		for i := range 1 + g.IntN(4) {
			w.Steps = append(w.Steps, &engine.Step{ID: "s" + strconv.Itoa(i), Name: "s"})
		}
		for i := range w.Steps {
			simStep(g, w, i)
		}
		w.Limits.MaxSteps = 12 + g.IntN(20)
		w.Limits.OnHit = map[string]string{"max_steps": pick(g, engine.Human, engine.EndAborted)}
		if g.IntN(8) == 0 {
			w.Limits.MaxDuration = engine.Duration(time.Duration(60+g.IntN(2000)) * time.Second)
		}
		if g.IntN(6) == 0 {
			w.AfterStep = &engine.Command{Shell: "true"}
		}
		if g.IntN(6) == 0 {
			w.AfterRun = &engine.Command{Shell: "true"}
		}
		if w.Link() == nil {
			return w
		}
	}
}

// simDrawn is the value of a `when`: by key alone, so that it is the same however often it is
// asked.
func simDrawn(e *engine.Env) (bool, error) {
	h := fnv.New32a()
	fmt.Fprint(h, e.Run, "/", e.Step, "/", e.Gate, "#", e.Attempt)
	return h.Sum32()%3 != 0, nil
}

func simStep(g *rand.Rand, w *engine.Spec, i int) {
	st := w.Steps[i]
	st.Agent = &engine.Agent{Type: "r", Launch: engine.LaunchHeadless, Worktree: engine.Text{Source: pick(g, "w0", "w0", "w1", "")}}
	st.Signal = engine.Signal{Type: engine.SignalFile, Value: ".workflow/signals/" + st.ID + "-done.json"}
	restarts := g.IntN(3)
	st.Restarts = &restarts
	switch g.IntN(10) {
	case 0:
		st.Agent.Launch = pick(g, engine.LaunchInteractive, engine.LaunchSubagent)
		st.Signal = pick(g, st.Signal, engine.Signal{Type: engine.SignalCommit, Value: "[" + st.ID + "]"})
	case 1:
		st.Signal = engine.Signal{Type: engine.SignalCommit, Value: "[" + st.ID + "]"}
	case 2:
		st.Signal = engine.Signal{Type: engine.SignalPull}
	case 3:
		st.Signal = engine.Signal{Type: engine.SignalExit}
	}
	if g.IntN(4) == 0 {
		st.Outputs = []engine.Output{{Path: engine.Text{Source: "out"}}}
	}
	if g.IntN(5) == 0 {
		st.Timeout = engine.Duration(time.Duration(20+g.IntN(200)) * time.Second)
	}
	if g.IntN(8) == 0 {
		st.When = engine.Cond{Source: "drawn", Eval: simDrawn}
	}
	if g.IntN(12) == 0 {
		st.ExtNeeds = []engine.Need{{Workflow: "x", Step: "e"}}
	}
	if i > 0 && g.IntN(3) == 0 {
		st.HasNeeds, st.Needs = true, []string{w.Steps[g.IntN(i)].ID}
	} else if i > 0 && g.IntN(8) == 0 {
		st.HasNeeds = true
	}
	if g.IntN(8) == 0 {
		w.Gates = append(w.Gates, implicitGate(st.ID, simPass(g, w, i)))
		st.Gates = []string{st.ID}
		return
	}
	for k := 0; k == 0 || k == 1 && g.IntN(6) == 0; k++ {
		gt := simGate(g, w, i, k)
		w.Gates = append(w.Gates, gt)
		st.Gates = append(st.Gates, gt.ID)
	}
}

func implicitGate(id string, pass []string) *engine.Gate {
	return &engine.Gate{ID: id, Step: id, Implicit: true, Reviewer: engine.Reviewer{Level: engine.LevelAuto, FromStep: true}, OnPass: pass,
		OnFail: engine.EndFailed, OnExhausted: engine.EndFailed, MaxRetries: 1, RetryContext: "rc/" + id + "-{n}.md"}
}

// simPass draws where a pass of step i leads.
func simPass(g *rand.Rand, w *engine.Spec, i int) []string {
	n := len(w.Steps)
	if i+1 == n || g.IntN(6) == 0 {
		return []string{engine.EndDone}
	}
	to := []string{w.Steps[i+1+g.IntN(n-i-1)].ID}
	if t := w.Steps[i+1+g.IntN(n-i-1)].ID; g.IntN(3) == 0 && t != to[0] {
		to = append(to, t)
	}
	return to
}

func simGate(g *rand.Rand, w *engine.Spec, i, k int) *engine.Gate {
	id := w.Steps[i].ID
	gt := &engine.Gate{ID: fmt.Sprintf("g%d.%d", i, k), Step: id, MaxRetries: 1 + g.IntN(3), OnExhausted: engine.Human, OnPass: simPass(g, w, i),
		OnFail:   pick(g, id, id, w.Steps[g.IntN(i+1)].ID, w.Steps[g.IntN(len(w.Steps))].ID),
		Reviewer: engine.Reviewer{Level: pick(g, engine.LevelAuto, engine.LevelNotify, engine.LevelNotify, engine.LevelHuman), AgentType: "rev"}}
	gt.RetryContext = "rc/" + gt.ID + "-{n}.md"
	if g.IntN(4) == 0 {
		gt.Routes = []engine.Route{{Outcome: "r", To: pick(g, w.Steps[g.IntN(len(w.Steps))].ID, engine.EndDone, engine.EndFailed)}}
	}
	if g.IntN(6) == 0 {
		gt.OnExhausted = pick(g, engine.OutcomePass, engine.EndFailed, w.Steps[g.IntN(i+1)].ID)
	}
	if gt.Reviewer.Level != engine.LevelHuman && g.IntN(8) == 0 {
		gt.When = engine.Cond{Source: "drawn", Eval: simDrawn}
	}
	if g.IntN(8) == 0 {
		gt.Timeout = engine.Duration(time.Duration(50+g.IntN(400)) * time.Second)
		gt.OnTimeout = pick(g, "remind", engine.OutcomeFail, engine.EndFailed)
	}
	window := engine.Duration(time.Duration(1+g.IntN(60)) * time.Second)
	gt.VetoWindow = &window
	return gt
}

// simExt is the workflow that steps of others may need.
func simExt() *engine.Spec {
	w := &engine.Spec{ID: "x", Name: "x", Steps: []*engine.Step{{ID: "e", Name: "e", Agent: &engine.Agent{Type: "r", Launch: engine.LaunchHeadless},
		Signal: engine.Signal{Type: engine.SignalExit}, Gates: []string{"e"}}}, Gates: []*engine.Gate{implicitGate("e", []string{engine.EndDone})}}
	w.Link()
	return w
}
