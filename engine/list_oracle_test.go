package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// The lists' oracle implements docs/tasks.md again, one task after the other, without facts, files
// or time, and without any code of the engine. The engine must do the same in the same order, with
// the same result for each task.

// oracleTask is a task as in the documents.
type oracleTask struct {
	id       string
	priority int
	needs    []string
	status   string // of the file, or "failed"
	tries    int
	runs     int // in which the tries may be used again
	depth    int
	standIns []*oracleTask
}

// listOracle is a list and the results of its tasks.
type listOracle struct {
	tasks    []*oracleTask
	attempts int
	depth    int
	replans  bool
	gate     int                                 // how often the list's gate may fail
	ratio    float64                             // max_failed_ratio; 0 = none
	judges   func(round int) bool                // a reviewer of the list; nil: it passes if all is done
	plays    func(task string, run int) string   // the result of the run-th run of a task
	adds     func(task string, run int) []string // the ids of its new tasks
	replan   func(task string, run int) []string // likewise for the step that the list visits
	most     int                                 // tries in all; 0: any number
	// the planner's n-th answer, from which the list is written; nil: a person writes it
	plans   func(n int) []*oracleTask
	answers func(task string, run int) string // the answer of a task's run to its parent, or why there is none
	said    map[string]string                 // what the tasks have answered
	had     map[string]int                    // runs of tasks of earlier lists
	hooks   bool                              // a hook follows each run of a task
	order   []string
	tries   int
}

func (o *listOracle) usedUp() bool { return o.most > 0 && o.tries >= o.most }

func (o *listOracle) task(id string) *oracleTask {
	for _, t := range o.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

// isDone reports whether the task itself, or all its stand-ins, are done.
func (o *listOracle) isDone(t *oracleTask) bool {
	for _, s := range t.standIns {
		if !o.isDone(s) {
			return false
		}
	}
	return t.status == TaskDone || len(t.standIns) > 0
}

// next returns the next task: begun ones, then todo, then blocked; nil if none can be done.
func (o *listOracle) next() *oracleTask {
	for _, status := range []string{TaskDoing, TaskTodo, TaskBlocked} {
		var can []*oracleTask
		for _, t := range o.tasks {
			waits := slices.ContainsFunc(t.needs, func(id string) bool { return !o.isDone(o.task(id)) })
			if t.status == status && len(t.standIns) == 0 && !waits {
				can = append(can, t)
			}
		}
		slices.SortFunc(can, func(a, b *oracleTask) int {
			if status != TaskDoing && a.priority != b.priority {
				return a.priority - b.priority
			}
			return oracleNumber(a.id) - oracleNumber(b.id)
		})
		if len(can) > 0 {
			return can[0]
		}
	}
	return nil
}

// oracleNumber orders the drawn ids: T2 before T10, then the tasks that replace T2, in order.
func oracleNumber(id string) int {
	n, first := 0, 0
	if rest, ok := strings.CutPrefix(id, "gwork-"); ok {
		id, first = rest, 900
	}
	parts := strings.Split(strings.TrimPrefix(id, "T"), "-")
	for i := range 6 {
		n *= 1000
		if i < len(parts) {
			k, _ := strconv.Atoi(parts[i])
			n += k + 1
			if i == 0 {
				n += first
			}
		}
	}
	return n
}

func (o *listOracle) add(ids []string, depth int, of *oracleTask) {
	for i, id := range ids {
		t := &oracleTask{id: id, priority: NoPriority, status: TaskTodo, depth: depth}
		if i > 0 {
			t.needs = []string{ids[0]}
		}
		if of != nil {
			of.standIns = append(of.standIns, t)
		}
		o.tasks = append(o.tasks, t)
	}
}

// tooMany reports whether more tasks have failed than allowed.
func (o *listOracle) tooMany() bool {
	failed, all := 0, 0
	for _, t := range o.tasks {
		if len(t.standIns) > 0 {
			continue
		}
		if all++; t.status == "failed" {
			failed++
		}
	}
	return o.ratio > 0 && float64(failed) > o.ratio*float64(all)
}

// round does everything possible; false if too many have failed.
func (o *listOracle) round() bool {
	for t := o.next(); t != nil && !o.usedUp(); t = o.next() {
		o.tries++
		t.tries++
		t.runs++
		outcome := o.plays(t.id, t.runs)
		delete(o.said, t.id)
		answer := o.answers(t.id, t.runs)
		if answer == noVars { // it fails before it begins
			outcome = "failed"
		} else {
			o.order = append(o.order, fmt.Sprintf("%s.%d %s", t.id, t.tries, outcome))
		}
		if outcome == "done" && answer == noAnswer {
			outcome = "failed"
		} else if outcome == "done" {
			o.said[t.id] = answer
		}
		if more := o.adds(t.id, t.runs); t.depth < o.depth && (outcome == "done" || outcome == "blocked") {
			o.add(more, t.depth+1, nil)
		}
		switch {
		case outcome == "aborted": // by a person: not a try, and not retried automatically
			t.status, t.tries = "held", t.tries-1
		case outcome == "done":
			t.status = TaskDone
		case t.tries < o.attempts && outcome == "blocked":
			t.status = TaskBlocked
		case t.tries < o.attempts:
			t.status = TaskDoing // the next task to run
		default:
			t.status = "failed"
		}
		if o.hooks { // it sees the file with all that
			o.order = append(o.order, fmt.Sprintf("%s hook %s", t.id, o.inFile(t)))
		}
		if t.status == "failed" && o.replans && t.depth < o.depth {
			o.add(o.replan(t.id, t.runs), t.depth+1, t)
		}
		if o.tooMany() {
			return false
		}
	}
	return true
}

// run plays the whole list: the gate sends it back until it passes or its retries are used up.
func (o *listOracle) run() (phase string) {
	for failures := 0; ; {
		out := o.usedUp() && o.next() != nil // there was something to do from the start, but no tries for it
		if !o.round() {
			return RunFailed
		}
		left := slices.ContainsFunc(o.tasks, func(t *oracleTask) bool { return !o.isDone(t) })
		if passes := !left; !out && (o.judges != nil && o.judges(failures+1) || o.judges == nil && passes) {
			return RunCompleted
		}
		if failures++; failures == o.gate {
			return RunFailed
		}
		if o.plans != nil { // another list; nothing of this one applies
			for _, t := range o.tasks {
				o.had[t.id] = t.runs
			}
			o.tasks, o.said = o.plans(failures+1), map[string]string{}
			for _, t := range o.tasks {
				t.runs = o.had[t.id]
			}
			left = slices.ContainsFunc(o.tasks, func(t *oracleTask) bool { return !o.isDone(t) })
		}
		if !left { // the findings must be fixed
			o.tasks = append(o.tasks, &oracleTask{id: fmt.Sprintf("gwork-%d", failures), priority: NoPriority, status: TaskTodo})
		}
		for _, t := range o.tasks {
			if o.plans == nil && !o.isDone(t) && len(t.standIns) == 0 {
				if t.tries = 0; o.inFile(t) == TaskBlocked { // a review does not put it before todo tasks
					t.status = TaskBlocked
				} else {
					t.status = TaskTodo
				}
			}
		}
	}
}

// inFile returns the final status in the file.
func (o *listOracle) inFile(t *oracleTask) string {
	switch {
	case o.isDone(t):
		return TaskDone
	case t.status == "failed", t.status == "held":
		return TaskBlocked
	}
	return t.status
}

// Further results of a task's run.
const (
	noVars   = "no vars"
	noAnswer = "no answer"
)

// drawTasks draws the tasks of a list.
func drawTasks(g *rand.Rand) (out []*oracleTask) {
	for i := range 1 + g.IntN(12) {
		t := &oracleTask{id: fmt.Sprintf("T%d", i+1), priority: NoPriority, status: []string{TaskTodo, TaskTodo, TaskTodo, TaskTodo, TaskDoing, TaskDone, TaskBlocked}[g.IntN(7)]}
		if g.IntN(2) == 0 {
			t.priority = g.IntN(3)
		}
		for range g.IntN(3) {
			if i > 0 {
				t.needs = append(t.needs, out[g.IntN(i)].id)
			}
		}
		slices.Sort(t.needs)
		t.needs = slices.Compact(t.needs)
		out = append(out, t)
	}
	g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// drawOracle draws a list and all its results.
func drawOracle(g *rand.Rand) *listOracle {
	o := &listOracle{attempts: 1 + g.IntN(3), depth: g.IntN(4), replans: g.IntN(2) == 0, gate: 1 + g.IntN(3)}
	o.tasks = drawTasks(g)
	o.said, o.had = map[string]string{}, map[string]int{}
	// Each run's result is drawn once, whoever asks first.
	seed, bad := g.Uint64(), 4+g.IntN(4)
	lot := func(what, task string, run int) *rand.Rand {
		h := seed
		for _, c := range what + task + strconv.Itoa(run) {
			h = h*1099511628211 + uint64(c)
		}
		return rand.New(rand.NewPCG(h, h))
	}
	o.plays = func(task string, run int) string {
		switch k := lot("plays", task, run).IntN(40); {
		case k == 0:
			return "aborted"
		case k >= 4*bad+4:
			return "failed"
		case k >= 4*bad:
			return "blocked"
		}
		return "done"
	}
	if g.IntN(3) == 0 {
		o.judges = func(round int) bool { return lot("judges", "", round).IntN(3) == 0 }
	}
	o.hooks = g.IntN(2) == 0
	if g.IntN(4) == 0 {
		o.most = 1 + g.IntN(15)
	}
	if g.IntN(4) == 0 {
		o.ratio = []float64{0.25, 0.5}[g.IntN(2)]
	}
	answered := g.IntN(2) == 0
	o.answers = func(task string, run int) string {
		switch k := lot("answers", task, run).IntN(12); {
		case answered && k == 0:
			return noVars
		case answered && k == 1:
			return noAnswer
		}
		return fmt.Sprint(task, " ", run)
	}
	if g.IntN(3) == 0 {
		o.plans = func(n int) []*oracleTask { return drawTasks(lot("plans", "", n)) }
		o.tasks = o.plans(1)
	}
	some := func(task string, n int, mark string, run int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("%s-%d", task, run*4+i+map[string]int{"adds": 0, "replan": 2}[mark]))
		}
		return ids
	}
	o.adds = func(task string, run int) []string {
		g := lot("adds", task, run)
		if g.IntN(8) > 0 {
			return nil
		}
		return some(task, 1+g.IntN(2), "adds", run)
	}
	o.replan = func(task string, run int) []string {
		g := lot("replan", task, run)
		return some(task, g.IntN(3), "replan", run)
	}
	return o
}

// played drives the engine with the same list.
func (o *listOracle) played(t *testing.T, parallel int) *listed {
	t.Helper()
	e := List{MaxTries: o.most, Attempts: o.attempts, MaxDepth: o.depth, MaxParallel: parallel}
	g := listGate(most(o.gate), exhausted(EndFailed))
	if o.plans != nil {
		g.OnFail = "plan"
		e.From = Value{Source: "the plan", Reads: []string{"plan", "work"}, Eval: func(env *Env) (any, error) { return seenOf(o.plans(env.Steps["plan"].Attempt)), nil }}
	}
	if o.judges != nil {
		g.Reviewer = Reviewer{Level: LevelAuto, AgentType: "reviewer"}
	}
	parts := []any{g, func(w *Spec) {
		w.ReadsTasks = true
		w.Limits = Limits{MaxSameFailure: 1 << 30, MaxFailedRatio: o.ratio, OnHit: map[string]string{maxFailedRatio: EndFailed}}
	}}
	if o.replans {
		e.OnExhausted = "replan"
		st, gt := side("replan")
		parts = append(parts, st, gt)
	}
	if o.plans != nil {
		st, gt := side("plan")
		parts = append([]any{st, gt}, parts...)
	}
	runs := map[string]int{}
	l := tasksOf(t, "", "", "", append(parts, aList(e, func(st *Step) {
		st.Child.Vars = []Var{{Name: "v", Default: ""}}
		st.ChildVars = []ChildVar{{Name: "v", Value: lets(func(env *Env) (any, error) {
			id := env.Task["id"].(string)
			if runs[id]++; o.answers(id, runs[id]) == noVars {
				return nil, errors.New(noVars)
			}
			return strconv.Itoa(runs[id]), nil
		})}}
		st.ChildAnswer = lets(func(env *Env) (any, error) {
			run, _ := strconv.Atoi(env.Vars["v"].(string))
			if s := o.answers(env.Task["id"].(string), run); s != noAnswer {
				return s, nil
			}
			return nil, errors.New(noAnswer)
		})
		if o.hooks {
			st.Child.AfterRun = &Command{Shell: "true"}
		}
	}))...)
	if o.judges != nil {
		round := 0
		l.judges = func() bool { round++; return o.judges(round) }
	}
	if l.file = nil; o.plans == nil {
		l.file = seenOf(o.tasks)
	}
	l.stamp++
	l.plays = func(task string, _ int) string {
		return o.plays(task, runs[task])
	}
	l.new = func(step, task string) string {
		ids := o.adds(task, runs[task])
		if step == "replan" {
			ids = o.replan(task, runs[task])
		}
		var list []map[string]any
		for i, id := range ids {
			x := map[string]any{"id": id, "title": "more"}
			if i > 0 {
				x["depends_on"] = ids[:1]
			}
			list = append(list, x)
		}
		if list == nil {
			return ""
		}
		b, _ := json.Marshal(list)
		return string(b)
	}
	if !l.drive(60000) {
		t.Fatal("it does not come to rest")
	}
	l.replayed()
	return l
}

// seenOf returns the tasks as a file has them.
func seenOf(ts []*oracleTask) (out []TaskSeen) {
	for _, x := range ts {
		out = append(out, TaskSeen{ID: x.id, Title: "do " + x.id, Status: x.status, Priority: x.priority, DependsOn: x.needs, Body: json.RawMessage(`{"id":"` + x.id + `"}`)})
	}
	return out
}

// TestListOracle plays drawn lists beside the oracle: one task at a time in the same order, several
// at a time with the same result.
func TestListOracle(t *testing.T) {
	conform.Rule(t, "001 selection", "drawn lists go as the oracle's")
	n := 150
	if raceOn {
		n = 50
	}
	if s := os.Getenv("SEEDS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	seen := map[string]int{}
	for seed := range n {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			for _, parallel := range []int{1, 2 + seed%3} {
				o := drawOracle(rand.New(rand.NewPCG(uint64(seed), 11)))
				if parallel > 1 {
					o.ratio, o.most = 0, 0 // what ran when it was hit is chance
				}
				l := o.played(t, parallel)
				phase := o.run()
				o.compare(t, l, phase, parallel == 1)
				if o.plans != nil && len(o.had) > 0 {
					seen["made anew"]++
				}
				seen["answers"] += len(o.said)
				if seen[phase]++; o.tooMany() {
					seen["too many"]++
				}
				for _, x := range o.tasks {
					seen["ends as "+o.inFile(x)]++
					if seen[fmt.Sprintf("depth %d", x.depth)]++; len(x.standIns) > 0 {
						seen["stood for"]++
					}
					if strings.HasPrefix(x.id, "gwork") {
						seen["feedback"]++
					}
					if x.status == "held" {
						seen["held"]++
					}
				}
			}
		})
	}
	t.Logf("%v", seen)
	for _, what := range []string{RunCompleted, RunFailed, "ends as done", "ends as blocked", "ends as todo", "stood for", "depth 3", "too many", "feedback", "held", "made anew", "answers"} {
		if n >= 150 && seen[what] == 0 {
			t.Errorf("none was drawn: %s", what)
		}
	}
}

// compare compares the engine's list with the oracle's.
func (o *listOracle) compare(t *testing.T, l *listed, phase string, ordered bool) {
	t.Helper()
	if got := l.r().Phase; got != phase {
		t.Errorf("the run is %s, want %s", got, phase)
	}
	got, want := slices.Clone(l.order), slices.Clone(o.order)
	if !ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("it did\n  %s\nwant\n  %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	if len(l.r().List.Tasks) != len(o.tasks) {
		t.Errorf("%d tasks, want %d", len(l.r().List.Tasks), len(o.tasks))
	}
	said := map[string]string{}
	for id, answer := range o.said {
		said[id] = strconv.Quote(answer)
	}
	if got := l.answers(); !maps.Equal(got, said) {
		t.Errorf("the tasks have answered %v, want %v", got, said)
	}
	for _, x := range o.tasks {
		if got, want := l.status(x.id), o.inFile(x); got != want {
			t.Errorf("%s is %s, want %s", x.id, got, want)
		}
		if y := l.r().List.Task(x.id); y != nil && y.Depth != x.depth {
			t.Errorf("%s is %d deep, want %d", x.id, y.Depth, x.depth)
		}
	}
	if t.Failed() {
		for _, x := range o.tasks {
			t.Logf("%+v", *x)
		}
		t.Logf("attempts %d, depth %d, replans %v, gate %d", o.attempts, o.depth, o.replans, o.gate)
	}
}
