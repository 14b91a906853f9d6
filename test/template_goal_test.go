package test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/gates"
	"sluice/specs"
	"sluice/tools/conform"
)

// TestGoalGoesWell: without a play, the plan is approved, each task is coded, tested and verified, and the goal is reached.
func TestGoalGoesWell(t *testing.T) {
	g := aGoal(t, nil, nil).rest()
	g.wants(engine.RunCompleted, "plan-review pass", "T1/coded pass", "T1/test pass", "T1/verify pass", "T2/verify pass", "T3/verify pass", "all-done pass", "goal-reached pass")
}

// TestGoalOrder: a task comes after those that it depends on, whatever their ids say.
func TestGoalOrder(t *testing.T) {
	conform.Rule(t, "000 execution", "T4 and T3 before T1, which waits for them; T5 after T1")
	plan := planJSON(taskJSON("T1", "T3", "T4"), taskJSON("T2", "T5"), taskJSON("T3", "T4"), taskJSON("T4"), taskJSON("T5", "T1"))
	g := aGoal(t, nil, map[string]func(int) string{"plan": always(plan)}).rest()
	g.wants(engine.RunCompleted, "T4/verify pass", "T3/coded pass", "T3/verify pass", "T1/coded pass", "T1/verify pass", "T5/coded pass", "T5/verify pass", "T2/coded pass", "T2/verify pass")
}

// TestGoalPlan: what a plan and its tasks have to be.
func TestGoalPlan(t *testing.T) {
	conform.Rule(t, "000 plan", "3 and 8 are taken, 2 and 9 are not")
	conform.Rule(t, "000 plan.task", "without any of them the plan is refused")
	g := aGoal(t, nil, nil)
	schema := g.spec.Step("plan").Answer
	plan := func(n int) string {
		var tasks []string
		for i := range n {
			tasks = append(tasks, taskJSON(fmt.Sprint("T", i+1)))
		}
		return planJSON(tasks...)
	}
	for n, good := range map[int]bool{0: false, 2: false, 3: true, 8: true, 9: false} {
		if _, err := gates.ReadAnswer([]byte(plan(n)), schema); (err == nil) != good {
			t.Errorf("a plan of %d tasks: %v", n, err)
		}
	}
	for _, wrong := range [][2]string{{`"description":"d",`, ""}, {`"complexity":"simple",`, ""}, {`"simple"`, `"huge"`}, {`"depends_on":[],`, ""}, {`,"verification":["v"]`, ""}, {`["v"]`, "[]"}} {
		bad := strings.Replace(plan(3), wrong[0], wrong[1], 1)
		if _, err := gates.ReadAnswer([]byte(bad), schema); err == nil {
			t.Errorf("taken: %s", bad)
		}
	}
	for _, word := range []string{"simple", "medium", "complex"} {
		if _, err := gates.ReadAnswer([]byte(strings.Replace(plan(3), "simple", word, 1)), schema); err != nil {
			t.Errorf("complexity %s: %v", word, err)
		}
	}
	g.plays = map[string]func(int) string{"plan": first(plan(2), "")}
	g.rest().wants(engine.RunCompleted, "plan-review fail plan", "plan-review pass")
}

// TestGoalPlanReview: the scores of a plan, and what comes when it was revised often enough.
func TestGoalPlanReview(t *testing.T) {
	for _, r := range [][2]string{{"approve", "70 is on, 69 is not"}, {"revise", "50 and 69 go back"}, {"reject", "49 and 0 go back, under the name reject"}, {"plan-review.revisions", "3, or as many as were chosen"},
		{"maxPlanRevisions", "3, and 1"}, {"approval threshold", "70, and 80"}, {"revision threshold", "50, and 60"}, {"skip_and_continue", "the default, at 49 and at 69"}, {"lower_threshold", "50 is enough, 49 is not"}, {"abort.plan", "at 69"}, {"reviews", "left out"}} {
		conform.Rule(t, "000 "+r[0], r[1])
	}
	for _, c := range []struct {
		vars  map[string]string
		plan  func(int) string
		want  string
		plans int
		phase string
	}{
		{nil, always(scored(100, 0)), "pass", 1, engine.RunCompleted},
		{nil, always(scored(70, 0)), "pass", 1, engine.RunCompleted},
		{nil, first(scored(69, 0), ""), "revise plan", 2, engine.RunCompleted},
		{nil, first(scored(50, 0), ""), "revise plan", 2, engine.RunCompleted},
		{nil, first(scored(49, 0), ""), "reject plan", 2, engine.RunCompleted},
		{nil, first(scored(0, 0), ""), "reject plan", 2, engine.RunCompleted},
		{map[string]string{"approve": "80"}, first(scored(79, 0), scored(80, 0)), "revise plan", 2, engine.RunCompleted},
		{map[string]string{"revise": "60"}, first(scored(59, 0), ""), "reject plan", 2, engine.RunCompleted},
		{nil, first(scored(49, 0), scored(69, 0), scored(0, 0), scored(70, 0)), "reject plan", 4, engine.RunCompleted},
		{nil, always(scored(69, 0)), "skip_and_continue execute", 4, engine.RunCompleted},
		{nil, always(scored(49, 0)), "skip_and_continue execute", 4, engine.RunCompleted},
		{map[string]string{"max_plan_revisions": "1"}, always(scored(49, 0)), "skip_and_continue execute", 2, engine.RunCompleted},
		{map[string]string{"on_plan_rejected": "lower_threshold"}, always(scored(50, 0)), "lower_threshold execute", 4, engine.RunCompleted},
		{map[string]string{"on_plan_rejected": "lower_threshold"}, always(scored(49, 0)), "abort ABORTED", 4, engine.RunAborted},
		{map[string]string{"on_plan_rejected": "abort"}, always(scored(69, 0)), "abort ABORTED", 4, engine.RunAborted},
		{map[string]string{"review_plan": "false"}, always(scored(0, 0)), "pass", 1, engine.RunCompleted},
	} {
		g := aGoal(t, c.vars, map[string]func(int) string{"plan-review": c.plan}).rest()
		g.wants(c.phase, "plan-review "+c.want)
		if g.asked["plan"] != c.plans {
			t.Errorf("%v %s: %d plans, want %d", c.vars, c.want, g.asked["plan"], c.plans)
		}
	}
}

// TestGoalFixLoop: what the tester fails is fixed three times; what the coder or the tester cannot do ends the try.
func TestGoalFixLoop(t *testing.T) {
	for _, r := range [][2]string{{"fix-loop.max", "three fixes in each of three tries"}, {"maxFixCycles", "3, and 1"}, {"coder.blocked", "the tester is not asked"}, {"coder.needs_clarification", "the tester is not asked"},
		{"tester", "passed, failed, blocked; nothing else"}, {"retry", "done in the second try"}, {"replan", "after the third try"}, {"attemptsBeforeReplan", "3, and 2"}} {
		conform.Rule(t, "000 "+r[0], r[1])
	}
	failed, blocked := always(`{"status":"failed","failures":["x"]}`), `{"status":"blocked","summary":"no such library"}`
	for _, c := range []struct {
		vars        map[string]string
		part        string
		says        func(int) string
		want        string
		code, tests int // how often T1 was coded and tested
	}{
		{nil, "T1/test", failed, "T1/test failed FAILED", 12, 12},
		{map[string]string{"max_fix_cycles": "1", "attempts_before_replan": "2"}, "T1/test", failed, "T1/test failed FAILED", 4, 4},
		{nil, "T1/test", always(blocked), "T1/test blocked FAILED", 3, 3},
		{nil, "T1/code", always(blocked), "T1/coded blocked FAILED", 3, 0},
		{nil, "T1/code", always(`{"status":"needs_clarification","summary":"which format?"}`), "T1/coded needs_clarification FAILED", 3, 0},
	} {
		g := aGoal(t, c.vars, map[string]func(int) string{c.part: c.says}).rest()
		g.wants(engine.RunCompleted, c.want, "replan T1", "T1.1/verify pass", "goal-reached pass")
		if g.asked["T1/code"] != c.code || g.asked["T1/test"] != c.tests {
			t.Errorf("%v %s: coded %d times, tested %d times", c.vars, c.want, g.asked["T1/code"], g.asked["T1/test"])
		}
	}
	g := aGoal(t, nil, map[string]func(int) string{"T1/code": first(`{"status":"blocked","summary":"no such library"}`, "")}).rest()
	g.wants(engine.RunCompleted, "T1/coded blocked FAILED", "T1/verify pass")
	if why := g.st.Runs[g.run+".T1.1"].EndWhy; !strings.Contains(why, "blocked") {
		t.Errorf("the try ended: %q", why)
	}
	child := g.spec.Step("execute").Child
	for word, good := range map[string]bool{"passed": true, "failed": true, "blocked": true, "well": false} {
		if _, err := gates.ReadVerdict(gates.VerdictInput{Structured: []byte(`{"status":"` + word + `"}`), Schema: child.Gate("test").Answer, Computed: true}); (err == nil) != good {
			t.Errorf("the tester says %s: %v", word, err)
		}
	}
}

// TestGoalLevels: the supervisor's levels by score and by the number of issues, at their edges.
func TestGoalLevels(t *testing.T) {
	for _, r := range []string{"none", "remind", "correct", "refocus", "critical", "abort"} {
		conform.Rule(t, "000 level."+r, "at its edges")
	}
	conform.Rule(t, "000 verification", "a level below remind ends the try")
	conform.Rule(t, "13-law 000 remind", `"50-69 | Minor issue, gentle reminder": the coder is reminded within the try, which does not fail; 70 is "Minimum score to approve"`)
	conform.Rule(t, "000 level.told", "the level's name, and what the supervisor said")
	conform.Rule(t, "000 abort", "six issues of a task, six of the goal; five are a person's, or no matter")
	for _, c := range []struct {
		score  float64
		issues int
		want   string
		phase  string
	}{
		{100, 0, "pass", engine.RunCompleted}, {70, 0, "pass", engine.RunCompleted},
		{69, 0, "remind code", engine.RunCompleted}, {50, 0, "remind code", engine.RunCompleted},
		{49, 0, "correct FAILED", engine.RunCompleted}, {30, 0, "correct FAILED", engine.RunCompleted},
		{29, 0, "refocus FAILED", engine.RunCompleted}, {0, 0, "refocus FAILED", engine.RunCompleted},
		{90, 4, "pass", engine.RunCompleted}, {69, 4, "remind code", engine.RunCompleted},
		{90, 5, "asks", engine.RunRunning}, {90, 6, "abort ABORTED", engine.RunAborted}, {10, 6, "abort ABORTED", engine.RunAborted},
	} {
		g := aGoal(t, nil, map[string]func(int) string{"T1/verify": first(scored(c.score, c.issues), "")}).rest()
		g.wants(c.phase, "T1/verify "+c.want)
		if level, _, _ := strings.Cut(c.want, " "); strings.HasSuffix(c.want, "FAILED") {
			if said := strings.Join(g.st.Runs[g.run].List.Task("T1").Tried, "\n"); !strings.Contains(said, level) || !strings.Contains(said, "words") {
				t.Errorf("%s: the next try is told %q", c.want, said)
			}
		}
		again := strings.HasSuffix(c.want, "FAILED") || strings.HasSuffix(c.want, "code")
		if coded := g.asked["T1/code"]; again != (coded == 2) {
			t.Errorf("%s: coded %d times", c.want, coded)
		}
		if tries := len(g.st.Runs[g.run].List.Task("T1").Tried); strings.HasSuffix(c.want, "FAILED") != (tries == 1) {
			t.Errorf("%s: %d tries have failed", c.want, tries)
		}
	}
	for outcome, want := range map[string]string{engine.OutcomePass: "T1/verify pass", engine.OutcomeFail: "T1/verify fail code", "abort": "T1/verify abort ABORTED"} {
		g := aGoal(t, nil, map[string]func(int) string{"T1/verify": first(scored(90, 5), "")}).rest()
		child := g.st.Runs[g.run+".T1.1"]
		g.now = g.now.Add(time.Second)
		g.do(engine.Answered{Gate: "verify", Run: child.ID, Outcome: outcome, Text: "looked", Written: g.now, DigestNow: child.CurrentRound("verify").Digest, By: engine.Actor{Who: "ann", Via: "command", Trust: engine.TrustFile}})
		g.rest().wants(map[bool]string{true: engine.RunAborted, false: engine.RunCompleted}[outcome == "abort"], "T1/verify asks", want)
	}
	g := aGoal(t, nil, map[string]func(int) string{"T1/verify": func(n int) string { return map[bool]string{true: scored(60, 0), false: ""}[n < 4] }}).rest()
	g.wants(engine.RunCompleted, "T1/verify remind code", "T1/verify remind FAILED", "T1/verify pass") // reminded thrice
	if coded := g.asked["T1/code"]; coded != 5 {
		t.Errorf("reminded: coded %d times, want 4 and once in the next try", coded)
	}
	g = aGoal(t, nil, map[string]func(int) string{"goal-reached": always(scored(90, 5))}).rest()
	g.wants(engine.RunCompleted, "goal-reached pass")
	g = aGoal(t, nil, map[string]func(int) string{"goal-reached": always(scored(90, 6))}).rest()
	g.wants(engine.RunAborted, "goal-reached abort ABORTED")
}

// TestGoalReached: the final verification.
func TestGoalReached(t *testing.T) {
	conform.Rule(t, "000 success", "all tasks done, and the goal verified at 70")
	conform.Rule(t, "000 not-reached", "at 69")
	aGoal(t, nil, map[string]func(int) string{"goal-reached": always(scored(70, 0))}).rest().wants(engine.RunCompleted, "T3/verify pass", "all-done pass", "goal-reached pass")
	aGoal(t, nil, map[string]func(int) string{"goal-reached": always(scored(69, 0))}).rest().wants(engine.RunFailed, "all-done pass", "goal-reached not_reached FAILED")
}

// rejects fails what a task's supervisor is asked.
func rejects(int) string { return scored(40, 0) }

// TestGoalReplan: a task that keeps failing is cut; the cut tasks stand for it, and are cut again, to a depth.
func TestGoalReplan(t *testing.T) {
	for _, r := range [][2]string{{"replan.subtasks", "2 and 3 are taken, 1 and 4 are not; with the analysis"}, {"replan.blocked", "in the file"}, {"replan.pending", "todo, and done before what the task was to come before"},
		{"verification.replan", "rejected thrice"}, {"depth", "T1.1.1.1 is not cut"}, {"maxReplanDepth", "3, and 1"}} {
		conform.Rule(t, "000 "+r[0], r[1])
	}
	conform.Rule(t, "000 task.states", "blocked, where others stand for it")
	g := aGoal(t, nil, map[string]func(int) string{"T1/verify": rejects})
	g.until(func() bool { return g.st.Runs[g.run].List.Task("T1.1") != nil && g.status("T1.1") != "" }, time.Minute)
	if g.status("T1") != engine.TaskBlocked || g.status("T1.1") != engine.TaskTodo || g.status("T1.2") != engine.TaskTodo {
		t.Errorf("T1 is %s, T1.1 %s, T1.2 %s", g.status("T1"), g.status("T1.1"), g.status("T1.2"))
	}
	g.rest().wants(engine.RunCompleted, "T1/verify correct FAILED", "T1/verify correct FAILED", "T1/verify correct FAILED", "replan T1", "T1.1/verify pass", "T1.2/verify pass", "T2/verify pass", "goal-reached pass")
	schema := g.spec.Step("replan").Answer
	for n, good := range map[int]bool{1: false, 2: true, 3: true, 4: false} {
		cut := slices.Repeat([]string{taskJSON("T1.1")}, n)
		if _, err := gates.ReadAnswer([]byte(`{"analysis":"a","new_tasks":[`+strings.Join(cut, ",")+`]}`), schema); (err == nil) != good {
			t.Errorf("%d subtasks: %v", n, err)
		}
	}
	if _, err := gates.ReadAnswer([]byte(`{"new_tasks":[`+taskJSON("T1.1")+","+taskJSON("T1.2")+`]}`), schema); err == nil {
		t.Error("taken without an analysis")
	}
	deep := map[string]func(int) string{"T1/verify": rejects, "T1.1/verify": rejects, "T1.1.1/verify": rejects, "T1.1.1.1/verify": rejects, "T1.1.1.1.1/verify": rejects}
	for depth, cuts := range map[string]int{"": 3, "1": 1} {
		vars := map[string]string{"max_goal_iterations": "0"}
		if depth != "" {
			vars["max_replan_depth"] = depth
		}
		g := aGoal(t, vars, deep).rest()
		g.wants(engine.RunFailed, "replan T1", "all-done fail FAILED")
		if n := g.asked["replan"]; n != cuts {
			t.Errorf("depth %s: cut %d times:\n%s", depth, n, strings.Join(g.log, "\n"))
		}
	}
}

// TestGoalIterations: what failed is tried again, at most five times.
func TestGoalIterations(t *testing.T) {
	for _, r := range [][2]string{{"goal-iterations", "tried again, done in the second"}, {"maxGoalIterations", "5, and 2"}, {"max-iterations", "then failed, with what is done kept"}} {
		conform.Rule(t, "000 "+r[0], r[1])
	}
	once := map[string]string{"attempts_before_replan": "1", "max_replan_depth": "0"}
	with := func(key, value string) map[string]string {
		out := map[string]string{key: value}
		maps.Copy(out, once)
		return out
	}
	g := aGoal(t, with("max_fix_cycles", "3"), map[string]func(int) string{"T2/verify": rejects}).rest()
	g.wants(engine.RunFailed, "all-done fail FAILED")
	if n := g.times("all-done fail execute"); n != 5 || g.asked["T2/code"] != 6 || g.asked["T1/code"] != 1 || g.asked["goal-reached"] != 0 {
		t.Errorf("%d iterations more; T2 was coded %d times, T1 %d times", n, g.asked["T2/code"], g.asked["T1/code"])
	}
	g = aGoal(t, with("max_goal_iterations", "2"), map[string]func(int) string{"T2/verify": rejects}).rest()
	if n := g.times("all-done fail execute"); n != 2 {
		t.Errorf("max_goal_iterations=2: %d iterations more", n)
	}
	aGoal(t, with("max_fix_cycles", "3"), map[string]func(int) string{"T2/verify": first(rejects(0), rejects(1), "")}).rest().
		wants(engine.RunCompleted, "all-done fail execute", "all-done fail execute", "T2/verify pass", "all-done pass", "goal-reached pass")
}

// TestGoalFailedRatio: more than half of the tasks failed ends the run, half does not.
func TestGoalFailedRatio(t *testing.T) {
	conform.Rule(t, "000 failed-ratio", "two of three; two of four are not more than half")
	vars := map[string]string{"attempts_before_replan": "1", "max_replan_depth": "0", "max_goal_iterations": "0"}
	plays := map[string]func(int) string{"T1/verify": rejects, "T3/verify": rejects}
	g := aGoal(t, vars, plays).rest()
	g.wants(engine.RunAborted)
	if why := g.st.Runs[g.run].EndWhy; !strings.Contains(why, "max_failed_ratio") {
		t.Error(why)
	}
	plays["plan"] = always(planJSON(taskJSON("T1"), taskJSON("T2"), taskJSON("T3"), taskJSON("T4")))
	aGoal(t, vars, plays).rest().wants(engine.RunFailed, "T2/verify pass", "T4/verify pass", "all-done fail FAILED")
}

// TestGoalTime: two hours of work, or as many as were chosen.
func TestGoalTime(t *testing.T) {
	conform.Rule(t, "000 time-limit", "a minute less is enough, a minute more is not")
	conform.Rule(t, "000 timeLimit", "2h, and 1h")
	for _, c := range []struct {
		limit string
		takes time.Duration
		phase string
	}{{"", 119 * time.Minute, engine.RunCompleted}, {"", 121 * time.Minute, engine.RunAborted}, {"1h", 59 * time.Minute, engine.RunCompleted}, {"1h", 61 * time.Minute, engine.RunAborted}} {
		vars := map[string]string{}
		if c.limit != "" {
			vars["time_limit"] = c.limit
		}
		g := aGoal(t, vars, nil)
		g.plays = map[string]func(int) string{"code": func(int) string { g.now = g.now.Add(c.takes / 3); g.do(engine.Ticked{}); return "" }} // a third by each task: a step has a time-out too
		g.rest().wants(c.phase)
		if r := g.st.Runs[g.run]; c.phase == engine.RunAborted && !strings.Contains(r.EndWhy, "max_duration") {
			t.Errorf("%s: %s", c.limit, r.EndWhy)
		}
	}
}

// TestGoalSteered: a person pauses, resumes, aborts, and takes up what has failed.
func TestGoalSteered(t *testing.T) {
	for _, r := range [][2]string{{"task.states", "todo, doing, done, failed"}, {"run.states", "pending, running, paused, completed, failed, aborted"}, {"abort.user", "by a person"},
		{"resume.paused", "goes on where it was"}, {"resume.failed", "by retry"}, {"resume.where", "what is done is not done again"}, {"resume.reset", "todo again, with new tries"}} {
		conform.Rule(t, "000 "+r[0], r[1])
	}
	ann := engine.Actor{Who: "ann"}
	g := aGoal(t, map[string]string{"attempts_before_replan": "1", "max_replan_depth": "0", "max_goal_iterations": "0"}, map[string]func(int) string{"T2/verify": first(rejects(0), "")})
	inT2 := func() bool { r := g.st.Runs[g.run+".T2.1"]; return r != nil && len(r.Procs) > 0 }
	g.until(inT2, time.Minute)
	list := func() *engine.TaskList { return g.st.Runs[g.run].List }
	if list().Task("T1").State != engine.TaskDone || list().Task("T2").State != engine.TaskDoing || list().Task("T3").State != engine.TaskTodo {
		t.Errorf("%+v", list().Tasks)
	}
	g.do(engine.PauseRequested{Run: g.run, By: ann})
	g.rest().wants(engine.RunRunning)
	if !g.st.Runs[g.run].Paused || g.asked["T2/code"] > 1 || g.asked["T3/code"] > 0 {
		t.Error("a pause that is none")
	}
	g.do(engine.ResumeRequested{Run: g.run, By: ann})
	g.rest().wants(engine.RunFailed, "T1/verify pass", "T2/verify correct FAILED", "all-done fail FAILED")
	if list().Task("T2").State != engine.TaskFailed || list().Task("T3").State != engine.TaskDone {
		t.Errorf("%+v", list().Tasks)
	}
	g.do(engine.RetryRequested{Run: g.run, By: ann})
	g.rest().wants(engine.RunCompleted, "failed all-done: fail", "T2/verify pass", "goal-reached pass")
	if g.asked["T1/code"] != 1 || g.asked["T3/code"] != 1 || g.asked["T2/code"] != 2 || g.asked["plan"] != 1 {
		t.Errorf("done again: %v", g.asked)
	}
	g = aGoal(t, nil, nil)
	g.until(inT2, time.Minute).do(engine.RunRequested{Workflow: g.spec.ID, Digest: "d", Vars: map[string]any{"goal": "another"}, By: ann})
	if r := g.st.Runs["goal-loop-2"]; r == nil || r.Phase != engine.RunPending {
		t.Errorf("beside a live run another is not pending: %+v", r)
	}
	g.do(engine.AbortRequested{Run: "goal-loop-2", By: ann})
	g.do(engine.AbortRequested{Run: g.run, Why: "wrong goal", By: ann})
	g.rest().wants(engine.RunAborted, "T1/verify pass")
}

// TestGoalConversations: who goes on in which conversation.
func TestGoalConversations(t *testing.T) {
	conform.Rule(t, "000 conversations", "planner, coder and supervisor each keep one")
	spec, _ := goalSpec(t, map[string]string{})
	child := spec.Step("execute").Child
	got := []string{spec.Step("plan").Agent.Session.Source, spec.Step("replan").Agent.Session.Source, child.Step("code").Agent.Session.Source, spec.Gate("plan-review").Reviewer.Session.Source, child.Gate("verify").Reviewer.Session.Source, spec.Gate("goal-reached").Reviewer.Session.Source}
	if want := []string{"planner", "planner", "coder", "supervisor", "supervisor", "supervisor"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestGoalWrongLists: an impossible plan is fixed and an impossible cut repeated, after a report of
// what is wrong.
func TestGoalWrongLists(t *testing.T) {
	circle := planJSON(taskJSON("T1", "T2"), taskJSON("T2", "T1"), taskJSON("T3"))
	cut := func(a, b string) string { return `{"analysis":"a","new_tasks":[` + a + "," + b + `]}` }
	for name, c := range map[string]struct {
		plays map[string]func(int) string
		phase string
		said  []string
		asked map[string]int
	}{
		"tasks that depend on one another": {map[string]func(int) string{"plan": always(circle)}, engine.RunCompleted, []string{"plan-review pass", "mend pass", "goal-reached pass"}, map[string]int{"mend": 1, "plan": 1}},
		"a task that is not there":         {map[string]func(int) string{"plan": always(planJSON(taskJSON("T1", "T9"), taskJSON("T2"), taskJSON("T3")))}, engine.RunCompleted, []string{"mend pass", "goal-reached pass"}, map[string]int{"mend": 1}},
		"never mended":                     {map[string]func(int) string{"plan": always(circle), "mend": always(circle)}, engine.RunFailed, []string{"mend pass", "mend pass", "all-done fail FAILED"}, map[string]int{"mend": 2, "T1/code": 0}},
		"one subtask": {map[string]func(int) string{"T1/verify": rejects, "replan": first(`{"analysis":"a","new_tasks":[`+taskJSON("T1.1")+`]}`, "")}, engine.RunCompleted,
			[]string{"replanned fail replan", "replanned pass", "T1.1/verify pass"}, map[string]int{"replan": 2}},
		"a subtask that waits for what waits for it": {map[string]func(int) string{"T1/verify": rejects, "replan": first(cut(taskJSON("T1.1", "T2"), taskJSON("T1.2")), "")}, engine.RunCompleted,
			[]string{"replanned fail replan", "replanned pass"}, map[string]int{"replan": 2}},
		"another task's id, again and again": {map[string]func(int) string{"T1/verify": rejects, "replan": always(cut(taskJSON("T2"), taskJSON("T1.2")))}, engine.RunFailed, []string{"replanned fail FAILED"}, map[string]int{"replan": 3}},
	} {
		g := aGoal(t, nil, c.plays).rest()
		t.Log(name)
		g.wants(c.phase, c.said...)
		for part, n := range c.asked {
			if g.asked[part] != n {
				t.Errorf("%s: %s was asked %d times, want %d", name, part, g.asked[part], n)
			}
		}
	}
}

// TestGoalEditGoneWrong: a person's edit in mid-run that leaves an invalid task file is fixed, and
// what is done stays done.
func TestGoalEditGoneWrong(t *testing.T) {
	done := strings.Replace(taskJSON("T1"), `"complexity"`, `"status":"done","complexity"`, 1)
	g := aGoal(t, nil, map[string]func(int) string{"mend": always(planJSON(done, taskJSON("T2", "T1"), taskJSON("T3")))})
	g.until(func() bool { return g.status("T1") == engine.TaskDone }, time.Minute)
	for i := range g.file {
		if g.file[i].ID == "T3" {
			g.file[i].DependsOn = []string{"T3"}
		}
	}
	g.stamp++
	g.rest().wants(engine.RunCompleted, "T1/verify pass", "mend pass", "T3/verify pass", "goal-reached pass")
	if g.asked["mend"] != 1 || g.asked["T1/code"] != 1 || g.asked["T2/code"] != 1 || g.asked["T3/code"] != 1 {
		t.Errorf("%v", g.asked)
	}
}

// TestGoalTakenUp: however a run ended, it can be taken up again, and does only what was not done.
func TestGoalTakenUp(t *testing.T) {
	conform.Rule(t, "000 resume.failed", "after each of its ends")
	conform.Rule(t, "000 resume.where", "by how often each task was coded")
	late := func(g *goalRun) func(int) string {
		return func(n int) string {
			if n == 0 {
				g.now = g.now.Add(3 * time.Hour)
				g.do(engine.Ticked{})
			}
			return ""
		}
	}
	for name, c := range map[string]struct {
		vars  map[string]string
		plays func(g *goalRun) map[string]func(int) string
		ended string
		code  [3]int // how often T1, T2 and T3 were coded in all
	}{
		"half failed": {map[string]string{"attempts_before_replan": "1", "max_replan_depth": "0"},
			func(*goalRun) map[string]func(int) string {
				return map[string]func(int) string{"T1/verify": first(rejects(0), ""), "T3/verify": first(rejects(0), "")}
			}, "max_failed_ratio", [3]int{2, 1, 2}},
		"time up": {nil, func(g *goalRun) map[string]func(int) string { return map[string]func(int) string{"T2/code": late(g)} }, "max_duration", [3]int{1, 2, 1}},
		"a task aborts": {nil, func(*goalRun) map[string]func(int) string {
			return map[string]func(int) string{"T1/verify": first(scored(40, 6), "")}
		}, "abort", [3]int{2, 1, 1}},
		"not reached": {nil, func(*goalRun) map[string]func(int) string {
			return map[string]func(int) string{"goal-reached": first(scored(40, 0), "")}
		}, "not_reached", [3]int{1, 1, 1}},
	} {
		g := aGoal(t, c.vars, nil)
		g.plays = c.plays(g)
		g.rest()
		if why := g.st.Runs[g.run].EndWhy; !strings.Contains(why, c.ended) {
			t.Fatalf("%s: it ended: %s", name, why)
		}
		g.do(engine.RetryRequested{Run: g.run, By: engine.Actor{Who: "ann"}})
		g.rest().wants(engine.RunCompleted, "goal-reached pass")
		if got := [3]int{g.asked["T1/code"], g.asked["T2/code"], g.asked["T3/code"]}; got != c.code || g.asked["plan"] != 1 {
			t.Errorf("%s: coded %v times, want %v", name, got, c.code)
		}
	}
}

// TestGoalGuide: the guide tells also what no var says. That its table has each var with its default: see TestGuides.
func TestGoalGuide(t *testing.T) {
	conform.Rule(t, "000 defaults", "all of the document's, by name; what no var says is in the guide's table")
	spec, _ := templateSpec(t, "goal-loop", map[string]string{"goal": "g"})
	varsAre(t, spec, map[string]any{"goal": "", "review_plan": true, "verify_tasks": true, "on_plan_rejected": "skip_and_continue", "approve": 70, "revise": 50, "max_plan_revisions": 3,
		"max_fix_cycles": 3, "attempts_before_replan": 3, "max_replan_depth": 3, "max_goal_iterations": 5, "time_limit": "2h"})
	table := section(t, guide(t, "goal-loop"), "Settings")
	for _, row := range []string{"| 0.5, then the run is aborted |", "| 3-8, 2-3 |", "| 30, more than 4, more than 5 |"} {
		if !strings.Contains(table, row) {
			t.Errorf("the guide's settings have no %s", row)
		}
	}
}

// TestGoalIsGiven: without a goal there is no run.
func TestGoalIsGiven(t *testing.T) {
	conform.Rule(t, "000 goal", "refused at the start")
	spec, _ := goalSpec(t, map[string]string{})
	if _, errs := specs.Vars(spec, map[string]string{"approve": "70"}); len(errs) != 1 || !strings.Contains(errs[0].Error(), "goal") {
		t.Errorf("without a goal: %v", errs)
	}
	for part, prompt := range map[string]string{"planner": spec.Step("plan").Agent.Prompt.Source, "supervisor of the plan": spec.Gate("plan-review").Reviewer.Prompt.Source,
		"supervisor of the goal": spec.Gate("goal-reached").Reviewer.Prompt.Source, "coder": spec.Step("execute").Child.Step("code").Agent.Prompt.Source} {
		promptSays(t, part, prompt, "${{vars.goal}}")
	}
}
