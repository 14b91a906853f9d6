package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
	"sluice/tools/printed"
)

// tables returns the four objects' moves, in printing order.
func tables() []struct {
	object string
	row    func(int) move
} {
	return []struct {
		object string
		row    func(int) move
	}{{"run", runMove}, {"attempt", attemptMove}, {"round", roundMove}, {"task", taskMove}}
}

// moveRow is one move: a row of the table, with one of its From.
type moveRow struct{ object, fact, from, to string }

// moveRows returns all moves of the table.
func moveRows() (out []moveRow) {
	for _, o := range tables() {
		for i := 0; o.row(i).Fact != ""; i++ {
			m := o.row(i)
			for from := range strings.FieldsSeq(m.From) {
				out = append(out, moveRow{o.object, m.Fact, from, m.To})
			}
		}
	}
	return out
}

// movesMade counts the moves that facts made.
type movesMade map[moveRow]int

// fold applies the fact, and counts what it did to the states of its run and of the run's parent.
func (m movesMade) fold(s *State, at time.Time, f Fact) {
	parent := ""
	if r := s.Runs[f.RunID()]; r != nil && r.Child != nil {
		parent = r.Child.Parent
	} else if x, ok := f.(RunStarted); ok && x.Child != nil {
		parent = x.Child.Parent
	}
	before := map[string]string{}
	statesOf(before, s.Runs[f.RunID()])
	statesOf(before, s.Runs[parent])
	s.Apply(at, f)
	after := map[string]string{}
	statesOf(after, s.Runs[f.RunID()])
	statesOf(after, s.Runs[parent])
	if _, gone := f.(RunForgotten); gone { // with everything in it
		m[moveRow{"run", f.FactKind(), before["run "+f.RunID()], absent}]++
		return
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for key := range all {
		object, _, _ := strings.Cut(key, " ")
		from, to := before[key], after[key]
		if from == "" {
			from = absent
		}
		if to == "" {
			to = absent
		}
		if from != to {
			m[moveRow{object, f.FactKind(), from, to}]++
		}
	}
	for _, key := range about(f) {
		object, _, _ := strings.Cut(key, " ")
		if before[key] == after[key] && before[key] != "" {
			m[moveRow{object, f.FactKind(), before[key], stays}]++
			m[moveRow{object, f.FactKind(), before[key], before[key]}]++
		}
	}
}

// watchMoves counts the moves of all test worlds while TestMovesAreAllMade runs.
var watchMoves movesMade

// replay counts the moves of a script's world.
func (m movesMade) replay(w *world) {
	st := NewState()
	for i, f := range w.log {
		m.fold(st, w.stamp[i], f)
	}
}

// about names the objects that the fact names itself.
func about(f Fact) []string {
	v := reflect.ValueOf(f)
	text := func(name string) string {
		if x := v.FieldByName(name); x.IsValid() && x.Kind() == reflect.String {
			return x.String()
		}
		return ""
	}
	number := func(name string) string {
		if x := v.FieldByName(name); x.IsValid() && x.Kind() == reflect.Int {
			return strconv.Itoa(int(x.Int()))
		}
		return ""
	}
	run, step, gate, n := f.RunID(), text("Step"), text("Gate"), number("N")
	out := []string{"run " + run}
	switch {
	case gate != "":
		out = append(out, "round "+run+" "+gate+" "+n, "attempt "+run+" "+step+" "+number("Attempt"))
	case step != "":
		out = append(out, "attempt "+run+" "+step+" "+n)
	}
	return append(out, "task "+run+" "+text("Task"))
}

// statesOf collects the states of a run and its contents.
func statesOf(out map[string]string, r *Run) {
	if r == nil {
		return
	}
	out["run "+r.ID] = r.Phase
	for step, as := range r.Attempts {
		for _, a := range as {
			out["attempt "+r.ID+" "+step+" "+strconv.Itoa(a.N)] = a.State
		}
	}
	for gate, qs := range r.Rounds {
		for _, q := range qs {
			out["round "+r.ID+" "+gate+" "+strconv.Itoa(q.N)] = q.State
		}
	}
	if r.List != nil {
		for _, t := range r.List.Tasks {
			out["task "+r.ID+" "+t.ID] = t.State
		}
	}
}

// TestMovesAreAllMade plays histories and scripts until every move of the table was made: a row
// without a move is either untested or unnecessary.
func TestMovesAreAllMade(t *testing.T) {
	made := movesMade{}
	watchMoves = made
	defer func() { watchMoves = nil }()
	t.Setenv(conform.Env, "") // the rules' own tests record them
	for name, script := range map[string]func(*testing.T){
		"open rounds": openRounds, "other rounds": otherRounds, "runs": runsMove, "attempts": attemptsMove, "edits of a task file": taskEdits, "another list": otherLists,
	} {
		t.Run(name, script)
	}
	for name, rule := range map[string]func(*testing.T){ // they make the remaining moves
		"RouteExhausted": TestRuleRouteExhausted, "LateVetoBeforeTheBranchMoved": TestLateVetoBeforeTheBranchMoved, "ListAdded": TestListAdded,
		"ListSentBack": TestListSentBack, "21HumanRoute": TestRule21HumanRoute, "ListAfterReview": TestListAfterReview, "ListHooks": TestListHooks, "ListStandIns": TestListStandIns, "15aSides": TestRule15aSides,
		"15UndoFollowsWhatWasLaunched": TestRule15UndoFollowsWhatWasLaunched, "21LateVetoOfARoutedStep": TestRule21LateVetoOfARoutedStep,
		"24Offers": TestRule24Offers, "34StepAnswer": TestRule34StepAnswer, "GateOutputsFirst": TestRuleGateOutputsFirst, "PersonAnswer": TestRulePersonAnswer,
	} {
		t.Run(name, rule)
	}
	for seed := uint64(1); seed <= 20; seed++ {
		if seed%3 == 0 {
			continue // an adversary's history is long
		}
		_, w := history(seed, false)
		st := NewState()
		for _, l := range w.journal {
			for _, f := range l.facts {
				made.fold(st, l.at, f)
			}
		}
	}
	listed := map[moveRow]bool{}
	for _, m := range moveRows() {
		listed[m] = true
		if made[m] == 0 {
			t.Errorf("%s: no test makes the move of %s from %s to %s", m.fact, m.object, m.from, m.to)
		}
	}
	for m := range made {
		if !listed[m] && m.from != m.to && m.to != stays {
			t.Errorf("%s moved %s from %s to %s, which is not in the table", m.fact, m.object, m.from, m.to)
		}
	}
}

// openRounds makes everything happen to a round in each open state: at a step's second gate, after
// a late veto of the first.
func openRounds(t *testing.T) {
	for _, state := range []string{OnReview, OnNotice, OnWindow, OnHuman} {
		for _, what := range []string{"elsewhere", "back", "veto", "abort", "unreadable", "late"} {
			first, second := aGate("a", nil, onFail("d"), most(9)), aGate("a", to(EndDone), most(9))
			first.NextGate, second.ID = "ga2", "ga2"
			switch state {
			case OnNotice, OnWindow:
				second.Reviewer.Level = LevelNotify
			case OnHuman:
				second.Reviewer.Level, second.Timeout, second.OnTimeout = LevelHuman, Duration(time.Hour), "remind"
			}
			if what == "back" {
				first.OnFail = "a"
			}
			parts := []any{aStep("a", func(s *Step) { s.Gates = []string{"ga", "ga2"} }), first, second}
			if what != "back" {
				parts = append(parts, aStep("d"), aGate("d", to(EndDone)))
			}
			s := begin(t, "", "", flow("x", parts...))
			s.done("a")
			s.judged("ga", OutcomePass)
			if state == OnNotice || state == OnWindow {
				s.judged("ga2", OutcomePass)
			}
			if state == OnWindow {
				s.tell()
			}
			s.want(s.gate("ga2"), "1 "+state)
			after := "-"
			switch what {
			case "elsewhere":
				s.want(s.says("ga", OutcomeVeto), "", s.step("a"), "1 routed")
			case "back":
				s.want(s.says("ga", OutcomeVeto), "")
			case "veto":
				s.want(s.says("ga2", OutcomeVeto), "", s.r().Rounds["ga2"][0].State, Undone)
			case "abort":
				s.do(AbortRequested{Run: s.run, By: Actor{Who: "ann"}})
			case "unreadable":
				s.answers("ga2-veto.json", nil, func(f *FileSeen) { f.HumanBad = "it is none" })
				if after = "1 human"; state == OnReview {
					after = "1 reviewing"
				}
			case "late":
				s.restart(3 * time.Hour)
				after = s.gate("ga2")
			}
			s.want(s.gate("ga2"), after)
			s.replayed()
		}
	}
}

// otherRounds repeats a check after a change, and asks a person again.
func otherRounds(t *testing.T) {
	first, second := aGate("a", nil), aGate("a", to(EndDone), level(LevelHuman))
	first.NextGate, second.ID = "ga2", "ga2"
	s := begin(t, "", "", flow("x", aStep("a", func(s *Step) { s.Gates = []string{"ga", "ga2"} }), first, second))
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.says("ga2", OutcomePass, func(a *Answered) { a.DigestNow = "other" }), "")
	s.want(s.r().Rounds["ga"][0].State, Undone, s.r().Rounds["ga2"][0].State, Undone, s.step("a"), "1 signalled")

	s = begin(t, "", "", one(level(LevelHuman), most(1), func(g *Gate) { g.Timeout, g.OnTimeout = Duration(time.Hour), OutcomeFail }))
	s.done("a")
	s.later(90 * time.Minute)
	s.want(s.gate("ga"), "1 human", strconv.Itoa(count[HumanAsked](s.log)), "2")
}

// runsMove makes runs wait, end in every way, and be forgotten.
func runsMove(t *testing.T) {
	ann := Actor{Who: "ann"}
	s := begin(t, "", "", flow("x", aStep("a"), aGate("a", to(EndDone), onFail(EndFailed))))
	first := s.run
	second := s.start("x")
	s.want(s.r().Phase, RunPending)
	s.do(PauseRequested{Run: second, By: ann})
	s.do(ResumeRequested{Run: second, By: ann})
	s.do(AbortRequested{Run: second, By: ann})
	s.want(s.r().Phase, RunAborted)
	s.run = first
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
	for n := range KeepEnded + 2 {
		s.start("x")
		if n == 0 {
			s.done("a")
			s.judged("ga", OutcomeFail)
			s.want(s.r().Phase, RunFailed)
			continue
		}
		s.do(AbortRequested{Run: s.run, By: ann})
		s.stopped()
	}
	s.want(strconv.Itoa(count[RunForgotten](s.log)), "3")
}

// attemptsMove takes over a step that waits for its next launch, and undoes one between its report
// and its end.
func attemptsMove(t *testing.T) {
	s := begin(t, "", "", one())
	s.exit("a", Exit{Code: 1})
	s.want(s.step("a"), "1 ready", s.takes("a"), "")
	s = begin(t, "", "", one())
	s.sentinel("a", StatusDone)
	s.want(s.step("a"), "1 signalled")
	s.do(RetryRequested{Run: s.run, Step: "a", By: Actor{Who: "ann"}})
	s.want(s.r().Attempts["a"][0].State, Superseded)
}

// stopAt drives a list until its task T is in the state and the run is paused, with nothing at
// work.
func stopAt(l *listed, state string) *listed {
	ann := Actor{Who: "ann"}
	l.plays = func(task string, _ int) string {
		pause := task == "T" && state != TaskTodo || task == "A" && state == TaskTodo
		if pause && state != TaskDoing {
			l.do(PauseRequested{Run: "x-1", By: ann})
		}
		switch {
		case task != "T" || state == TaskDone:
			return "done"
		case state == TaskBlocked:
			return "aborted"
		}
		return "failed"
	}
	for n := 0; l.r().List.Task("T") == nil || l.r().List.Task("T").State != state || !l.r().Paused && state != TaskDoing; n++ {
		if n == 1000 {
			l.t.Fatalf("T is not %s: %+v", state, l.r().List)
		}
		l.drive(1)
	}
	if state != TaskDoing {
		l.drive(5000)
	}
	l.want(l.r().List.Task("T").State, state)
	return l
}

// taskEdits has a person change a task in the file while nothing is at work, from each state to
// each, and remove it.
func taskEdits(t *testing.T) {
	for _, state := range []string{TaskTodo, TaskDone, TaskBlocked, TaskFailed, TaskSpent} {
		for _, edit := range []string{TaskTodo, TaskDone, TaskBlocked, absent} {
			e := List{Attempts: 1}
			parts := []any{}
			if state == TaskSpent {
				e.OnExhausted, e.MaxDepth = "replan", 2
				rp, gr := side("replan")
				parts = append(parts, rp, gr)
			}
			hooked := func(st *Step) { st.Child.AfterRun = &Command{Shell: "true"} }
			l := stopAt(tasksOf(t, "", "", "A T Z", append([]any{aList(e, hooked), listGate(most(1), exhausted(EndFailed))}, parts...)...), state)
			if edit == absent {
				l.file = slices.DeleteFunc(l.file, func(x TaskSeen) bool { return x.ID == "T" })
			}
			l.edit("T", edit)
			l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
			l.all()
		}
	}
}

// otherLists has the planning step make another list after any result of a task of the first, and
// the list sent back.
func otherLists(t *testing.T) {
	for _, state := range []string{TaskTodo, TaskDoing, TaskDone, TaskBlocked, TaskFailed, TaskSpent} {
		for _, step := range []string{"plan", "work"} {
			e := List{Attempts: 1}
			if state == TaskSpent {
				e.OnExhausted, e.MaxDepth = "replan", 2
			}
			l := madeList(t, e, listGate(most(1), exhausted(EndFailed)), "A T Z", "C")
			if state == TaskSpent {
				rp, gr := side("replan")
				w := l.specs["d-x"]
				w.Steps, w.Gates = append(w.Steps, rp), append(w.Gates, gr)
				if f := w.Link(); f != nil {
					t.Fatal(f)
				}
			}
			stopAt(l, state)
			l.do(RetryRequested{Run: "x-1", Step: step, By: Actor{Who: "ann"}})
			l.do(ResumeRequested{Run: "x-1", By: Actor{Who: "ann"}})
			l.plays = func(string, int) string { return "done" }
			l.all()
		}
	}
}

// TestUnlistedMovesPanic: a fact that finds its object in a state that the table does not list
// panics, and names the move. It tries every combination of fact, state and target.
func TestUnlistedMovesPanic(t *testing.T) {
	conform.Rule(t, "3-engine moves", "every change of a state is a row of the table of moves; another one panics")
	listed := map[moveRow]bool{}
	objects, facts := map[string][]string{}, []string{"no_such_fact"}
	for _, m := range moveRows() {
		listed[m] = true
		objects[m.object] = append(objects[m.object], m.from, m.to)
		facts = append(facts, m.fact)
	}
	slices.Sort(facts)
	for object, states := range objects {
		slices.Sort(states)
		states = slices.Compact(states)
		for _, fact := range slices.Compact(slices.Clone(facts)) {
			for _, from := range states {
				for _, target := range states {
					if want, got := !listed[moveRow{object, fact, from, target}], makes(object, fact, from, target); (got != "") != want {
						t.Errorf("%s of %s from %s to %s: panicked with %q", fact, object, from, target, got)
					} else if want && got != "engine: x-1: "+fact+": "+what(object)+" is "+from+", and the table of moves has no way from there to "+target {
						t.Errorf("it says %q", got)
					}
				}
			}
		}
	}
}

func what(object string) string {
	return map[string]string{"run": "the run", "attempt": "attempt a.1", "round": "round g#1", "task": "task T"}[object]
}

// makes applies the fact to an object of the kind, and returns the panic's text.
func makes(object, fact, from, target string) (said string) {
	defer func() {
		if r := recover(); r != nil {
			said = r.(string)
		}
	}()
	if from == absent {
		from = ""
	}
	switch object {
	case "run":
		r := &Run{ID: "x-1", Phase: from}
		if target == stays || target == absent {
			r.may(fact, target)
		} else if r.to(fact, target); r.Phase != target {
			return "it is " + r.Phase
		}
	case "attempt":
		a := &Attempt{N: 1, State: from, step: "a"}
		if target == stays {
			a.may("x-1", fact)
		} else if a.to("x-1", fact, target); a.State != target {
			return "it is " + a.State
		}
	case "round":
		q := &Round{N: 1, State: from, gate: "g"}
		if target == stays {
			q.may("x-1", fact)
		} else if q.to("x-1", fact, target); q.State != target {
			return "it is " + q.State
		}
	case "task":
		x := &Task{ID: "T", State: from}
		if target == stays || target == absent {
			x.may("x-1", fact, target)
		} else if x.to("x-1", fact, target); x.State != target {
			return "it is " + x.State
		}
	}
	return ""
}

// TestUnlistedTasks: a fact that adds tasks in a state not allowed for new ones panics.
func TestUnlistedTasks(t *testing.T) {
	l := tasksOf(t, "", "", "A", aList(List{Attempts: 1}), listGate()).all()
	for _, f := range []Fact{
		TasksAdded{of: Of("x-1"), Added: []Task{{ID: "B", State: TaskDone}}},
		TasksRead{of: Of("x-1"), File: FileOK, Set: []Task{{ID: "B", State: TaskDoing}}},
		TasksRead{of: Of("x-1"), File: FileOK, Set: []Task{{ID: "A", State: TaskFailed}}},
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, "engine: x-1: "+f.FactKind()+": task ") {
					t.Errorf("%+v: panicked with %q", f, said)
				}
			}()
			l.st.Apply(l.now, f)
		}()
	}
}

// TestMovesAreOfFacts: every row names an existing kind of fact and documented states.
func TestMovesAreOfFacts(t *testing.T) {
	kinds := map[string]bool{}
	for _, raw := range factKinds(t) {
		kinds[raw] = true
	}
	seen := map[moveRow]bool{}
	for _, m := range moveRows() {
		if !kinds[m.fact] {
			t.Errorf("%v: there is no such fact", m)
		}
		if seen[m] {
			t.Errorf("%v is there twice", m)
		}
		seen[m] = true
	}
}

// factKinds reads the kinds of facts from codec.go.
func factKinds(t *testing.T) (out []string) {
	t.Helper()
	src, err := os.ReadFile("codec.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`FactKind\(\) string +\{ return "(\w+)" \}`).FindAllSubmatch(src, -1) {
		out = append(out, string(m[1]))
	}
	if len(out) < 60 {
		t.Fatalf("found %d kinds of facts", len(out))
	}
	return out
}

// TestOnlyMovesWriteStates: only moves.go writes the state of a run, an attempt, a round or a task.
// A fact has its own State or Phase, and decide_tasks.go works on copies of tasks, which TasksRead
// contains.
func TestOnlyMovesWriteStates(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "moves.go" || name == "decide_tasks.go" {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					sel, ok := l.(*ast.SelectorExpr)
					if !ok || sel.Sel.Name != "State" && sel.Sel.Name != "Phase" {
						continue
					}
					if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "f" {
						t.Errorf("%s writes a state: use the methods of moves.go", set.Position(n.Pos()))
					}
				}
			case *ast.CompositeLit:
				made, ok := n.Type.(*ast.Ident)
				if !ok || made.Name != "Run" && made.Name != "Attempt" && made.Name != "Round" {
					return true
				}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if k := kv.Key.(*ast.Ident).Name; k == "State" || k == "Phase" {
							t.Errorf("%s makes a %s with a state: use the methods of moves.go", set.Position(n.Pos()), made.Name)
						}
					}
				}
			}
			return true
		})
	}
}

// TestMovesAreDocumented: DESIGN.md has the table, and docs/semantics.md a drawing of it.
func TestMovesAreDocumented(t *testing.T) {
	conform.Rule(t, "3-engine moves", "every change of a state is a row of the table of moves; another one panics")
	printed.Check(t, "DESIGN.md", "moves", movesTable())
	printed.Check(t, "../docs/semantics.md", "moves", movesDrawn())
}

// movesTable prints all rows.
func movesTable() string {
	out := "| fact | from | to |\n|---|---|---|\n"
	for _, o := range tables() {
		out += "| **" + o.object + "** | | |\n"
		for i := 0; o.row(i).Fact != ""; i++ {
			m := o.row(i)
			to := m.To
			if to == stays {
				to = "*stays*"
			}
			out += "| `" + m.Fact + "` | " + strings.ReplaceAll(m.From, " ", ", ") + " | " + to + " |\n"
		}
	}
	return strings.ReplaceAll(out, absent, "–")
}

// movesDrawn draws the rows that change a state, one picture per object: an arrow per pair of
// states, with its facts.
func movesDrawn() string {
	var out []string
	for _, o := range tables() {
		facts, arrows, last := map[string][]string{}, []string{}, map[string][]moveRow{}
		for _, m := range moveRows() {
			if m.object != o.object || m.to == stays || m.from == m.to {
				continue
			}
			if m.to == Superseded || m.to == absent {
				last[m.to] = append(last[m.to], m)
				continue
			}
			arrow := m.from + " --> " + m.to
			if m.from == absent {
				arrow = "[*] --> " + m.to
			}
			if facts[arrow] == nil {
				arrows = append(arrows, arrow)
			}
			facts[arrow] = append(facts[arrow], m.fact)
		}
		words, lines := "", "```mermaid\nstateDiagram-v2\n"
		for _, a := range arrows {
			lines += "    " + a + ": " + strings.Join(facts[a], ", ") + "\n"
		}
		for _, end := range []string{Superseded, absent} { // these arrows would cross all others
			var by []string
			for _, m := range last[end] {
				if i := slices.IndexFunc(by, func(s string) bool { return strings.HasPrefix(s, "`"+m.fact+"`") }); i >= 0 {
					by[i] += ", " + m.from
				} else {
					by = append(by, "`"+m.fact+"` from "+m.from)
				}
			}
			if len(by) > 0 {
				words += "\nTo " + map[string]string{Superseded: "superseded", absent: "gone"}[end] + ", by " + strings.Join(by, "; by ") + ".\n"
			}
		}
		out = append(out, "**"+strings.ToUpper(o.object[:1])+o.object[1:]+"**\n\n"+lines+"```\n"+words)
	}
	return strings.Join(out, "\n")
}
