package test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/gates"
)

// goalRun plays document 000's workflow, as it is shipped, through the engine: the answers of its agents are read as the
// service reads them, and time is the test's. A whole run takes some milliseconds, so that each number can be tried.
type goalRun struct {
	t     *testing.T
	spec  *engine.Spec
	st    *engine.State
	now   time.Time
	file  []engine.TaskSeen
	stamp int
	run   string
	asked map[string]int // how often each part was played
	log   []string       // what came of each part, in order
	plays map[string]func(n int) string
}

// goalSpec loads the template with these values, as `sluice start` does.
func goalSpec(t *testing.T, vars map[string]string) (*engine.Spec, map[string]any) {
	t.Helper()
	if _, ok := vars["goal"]; !ok {
		vars["goal"] = "dates in the index"
	}
	return templateSpec(t, "goal-loop", vars)
}

// aGoal starts a run: plays are what the agents say, by part (plan, plan-review, T1/code, T1/test, …, or without the task)
// and by how often it was asked before. What has no play goes well: a plan of T1, T2 and T3 is approved and carried out.
func aGoal(t *testing.T, vars map[string]string, plays map[string]func(n int) string) *goalRun {
	t.Helper()
	if vars == nil {
		vars = map[string]string{}
	}
	spec, given := goalSpec(t, vars)
	g := &goalRun{t: t, spec: spec, st: engine.NewState(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), asked: map[string]int{}, plays: plays}
	g.do(engine.RunRequested{Workflow: spec.ID, Digest: "d", Vars: given, By: engine.Actor{Who: "ann"}})
	g.run = g.st.Order[0]
	return g
}

func (g *goalRun) do(ev engine.Event) {
	for _, f := range engine.Decide(g.st, func(string) *engine.Spec { return g.spec }, ev, g.now) {
		switch f := f.(type) {
		case engine.RoundFailed:
			g.log = append(g.log, g.part(f.RunID(), f.Gate)+" "+f.Outcome+" "+f.To)
		case engine.RoundRouted:
			g.log = append(g.log, g.part(f.RunID(), f.Gate)+" "+f.Outcome+" "+f.To)
		case engine.RoundPassed:
			g.log = append(g.log, g.part(f.RunID(), f.Gate)+" pass")
		case engine.HumanAsked:
			g.log = append(g.log, g.part(f.RunID(), f.Gate)+" asks")
		case engine.ListSent:
			g.log = append(g.log, "replan "+f.Task)
		case engine.RunEnded:
			if f.RunID() == g.run {
				g.log = append(g.log, f.Phase+" "+f.Why)
			}
		}
	}
}

// part names a step or a gate with its task.
func (g *goalRun) part(run, id string) string {
	if c := g.st.Runs[run].Child; c != nil {
		return c.Task + "/" + id
	}
	return id
}

func taskJSON(id string, needs ...string) string {
	b, _ := json.Marshal(append([]string{}, needs...))
	return fmt.Sprintf(`{"id":%q,"title":"do %s","description":"d","complexity":"simple","depends_on":%s,"verification":["v"]}`, id, id, b)
}

func planJSON(tasks ...string) string { return `{"tasks":[` + strings.Join(tasks, ",") + `]}` }

func scored(n float64, findings int) string {
	list := slices.Repeat([]string{`{"message":"it is wrong"}`}, findings)
	return fmt.Sprintf(`{"score":%g,"feedback":"words","findings":[%s]}`, n, strings.Join(list, ","))
}

func always(s string) func(int) string { return func(int) string { return s } }

// first returns these answers in order, the last again and again.
func first(answers ...string) func(int) string {
	return func(n int) string { return answers[min(n, len(answers)-1)] }
}

// say is what the part says now.
func (g *goalRun) say(part string) string {
	_, bare, ok := strings.Cut(part, "/")
	if !ok {
		bare = part
	}
	n := g.asked[part]
	g.asked[part]++
	for _, name := range []string{part, bare} {
		if play := g.plays[name]; play != nil {
			if s := play(n); s != "" {
				return s
			}
		}
	}
	list := g.st.Runs[g.run].List
	switch bare {
	case "plan", "mend":
		return planJSON(taskJSON("T1"), taskJSON("T2", "T1"), taskJSON("T3"))
	case "replan":
		return `{"analysis":"too large","new_tasks":[` + taskJSON(list.For+".1") + "," + taskJSON(list.For+".2", list.For+".1") + `]}`
	case "code":
		return `{"status":"done","summary":"it is written"}`
	case "test":
		return `{"status":"passed"}`
	}
	return scored(90, 0)
}

// ends ends a process as it is played.
func (g *goalRun) ends(e engine.Effect) {
	spec := engine.Specs(func(string) *engine.Spec { return g.spec }).Of(g.st.Runs[e.Run].Digest)
	ev := engine.ProcessEnded{Run: e.Run, Key: e.Key}
	g.now = g.now.Add(time.Second)
	switch e.Proc.Kind {
	case engine.ProcCheck:
		ev.Check = &engine.CheckResult{OK: true, Digest: "d"}
	case engine.ProcStep:
		answer, err := gates.ReadAnswer([]byte(g.say(g.part(e.Run, e.Step))), spec.Step(e.Step).Answer)
		if ev.Answer = answer; err != nil {
			ev.AnswerBad = err.Error()
		}
		if (e.Step == "plan" || e.Step == "mend") && err == nil {
			g.plan(answer)
		}
	case engine.ProcReview:
		gate := spec.Gate(e.Gate)
		in := gates.VerdictInput{Structured: []byte(g.say(g.part(e.Run, e.Gate))), Schema: gate.Answer, Computed: true}
		j, err := gates.ReadVerdict(in)
		if err != nil {
			g.t.Fatalf("%s: %v", e.Gate, err)
		}
		ev.Verdict = &j
	}
	g.do(ev)
}

// plan is what the step's output puts into the task file.
func (g *goalRun) plan(answer json.RawMessage) {
	var p struct {
		Tasks []struct {
			ID     string   `json:"id"`
			Title  string   `json:"title"`
			Status string   `json:"status"`
			Needs  []string `json:"depends_on"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal(answer, &p); err != nil {
		g.t.Fatal(err)
	}
	g.file = nil
	for _, x := range p.Tasks {
		g.file = append(g.file, engine.TaskSeen{ID: x.ID, Title: x.Title, Status: cmp.Or(x.Status, engine.TaskTodo), Priority: engine.NoPriority, DependsOn: x.Needs, Body: json.RawMessage(`{"id":"` + x.ID + `"}`)})
	}
	g.stamp++
}

func (g *goalRun) status(id string) string {
	for _, x := range g.file {
		if x.ID == id {
			return x.Status
		}
	}
	return ""
}

// save writes the list's statuses into the file.
func (g *goalRun) save(e engine.Effect) {
	for _, t := range g.st.Runs[e.Run].List.Tasks {
		if t.Writing == "" {
			continue
		}
		if g.status(t.ID) == "" {
			g.file = append(g.file, engine.TaskSeen{ID: t.ID, Title: t.Title, Priority: t.Priority, DependsOn: t.DependsOn, Body: t.Body, For: t.For})
		}
		for i := range g.file {
			if g.file[i].ID == t.ID {
				g.file[i].Status = t.Writing
			}
		}
	}
	g.stamp++
	g.do(engine.TasksSaved{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: fmt.Sprint(g.stamp)})
}

// carry carries one effect out.
func (g *goalRun) carry(e engine.Effect) {
	seen := engine.TasksSeen{Run: e.Run, Step: e.Step, N: e.N, Key: e.Key, Stamp: fmt.Sprint(g.stamp), Tasks: slices.Clone(g.file)}
	switch e.Kind {
	case engine.DoTasks:
		g.do(seen)
	case engine.DoSave:
		if g.st.Runs[e.Run].List.Seen != seen.Stamp {
			g.do(seen)
			return
		}
		g.save(e)
	case engine.DoNotify:
		g.do(engine.Noticed{Run: e.Run, ID: e.Key})
	case engine.DoWrite:
		g.do(engine.FileWritten{Run: e.Run, ID: e.Key})
	case engine.DoStop:
		g.do(engine.ProcessEnded{Run: e.Run, Key: e.Key, Exit: engine.Exit{Stopped: true, Signal: "terminated"}})
	case engine.DoRun:
		g.ends(e)
	}
}

// until carries out what is owed until the test says so, or nothing is owed within the time.
func (g *goalRun) until(enough func() bool, within time.Duration) *goalRun {
	g.t.Helper()
	specs := func(string) *engine.Spec { return g.spec }
	for range 5000 {
		if enough() {
			return g
		}
		if owed := g.st.Owed(specs); len(owed) > 0 {
			g.carry(owed[0])
			continue
		}
		at := g.st.Wake(g.now)
		if at.IsZero() || at.After(g.now.Add(within)) {
			return g
		}
		g.now = at
		g.do(engine.Ticked{})
	}
	g.t.Fatalf("it does not come to rest:\n%s", strings.Join(g.log[max(0, len(g.log)-30):], "\n"))
	return g
}

// rest plays until nothing is owed.
func (g *goalRun) rest() *goalRun {
	g.t.Helper()
	return g.until(func() bool { return false }, time.Minute)
}

// wants has the run's state, and what else came of it in this order.
func (g *goalRun) wants(phase string, said ...string) {
	g.t.Helper()
	at := 0
	for _, want := range said {
		i := slices.Index(g.log[at:], want)
		if i < 0 {
			g.t.Fatalf("%q did not come, or too early:\n%s", want, strings.Join(g.log, "\n"))
		}
		at += i + 1
	}
	if r := g.st.Runs[g.run]; r.Phase != phase {
		g.t.Fatalf("the run is %s (%s), want %s:\n%s", r.Phase, r.EndWhy, phase, strings.Join(g.log, "\n"))
	}
}

// times is how often this came.
func (g *goalRun) times(said string) (n int) {
	for _, l := range g.log {
		if strings.HasPrefix(l, said) {
			n++
		}
	}
	return n
}
