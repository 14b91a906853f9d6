package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// The rules of gates: 8-semantics 12 to 16. In every workflow here the gate of step x is gx, and what
// a step is at reads "2 running": attempt 2, running. Words of scripts are in rule_script_test.go.

// one is a workflow of one step and its gate.
func one(more ...func(*Gate)) *Spec { return flow("x", aStep("a"), aGate("a", to(EndDone), more...)) }

// two is a -> b, each with a gate.
func two(first, second []func(*Gate)) *Spec {
	return flow("x", aStep("a"), aGate("a", to("b"), first...), aStep("b"), aGate("b", to(EndDone), second...))
}

func gates(gs ...func(*Gate)) []func(*Gate) { return gs }

func TestRule12RowOpensAnew(t *testing.T) {
	conform.Rule(t, "field asks 10", "after rework the reviews run again")
	a := aStep("a")
	a.Gates = []string{"ga", "gh"}
	gh := aGate("a", to(EndDone), level(LevelHuman), onFail("a"))
	gh.ID = "gh"
	s := begin(t, "8-semantics 12",
		"a pass never carries over: a new attempt opens new rounds at every gate of its row, also the human ones",
		flow("x", a, aGate("a", nil), gh))
	s.done("a")
	s.want(s.gate("gh"), "-")
	s.judged("ga", OutcomePass)
	s.want(s.gate("ga"), "1 passed", s.gate("gh"), "1 human")

	// The person's failure undoes ga's pass with the attempt.
	s.says("gh", OutcomeFail)
	s.want(s.gate("ga"), "-", s.r().Rounds["ga"][0].State, Undone)
	s.done("a")
	s.want(s.gate("ga"), "2 reviewing", s.gate("gh"), "-")
	s.judged("ga", OutcomePass)
	s.want(s.gate("gh"), "2 human")
	s.says("gh", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
}

func TestRule13NoReviewerIsPaid(t *testing.T) {
	conform.Rule(t, "1-language rule 4", "no reviewer is paid to read a broken build")
	conform.Rule(t, "1-language rule 3 status", "failed: the gate fails unreviewed")
	for name, fails := range map[string]func(*script){
		"says failed": func(s *script) { s.sentinel("a", StatusFailed); s.exit("a", Exit{}); s.checked() },
		"exit without signal": func(s *script) {
			s.exit("a", Exit{})
			s.now = s.now.Add(time.Minute)
			s.scan()
			s.checked()
		},
		"criterion not held": func(s *script) {
			s.sentinel("a", StatusDone)
			s.exit("a", Exit{})
			s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Check: &CheckResult{Why: "go test exits 1"}})
		},
		"input missing": func(s *script) { s.exit("a", Exit{Refused: "input docs/plan.md is missing"}); s.checked() },
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, "8-semantics 13",
				"signal failed, exit without signal, or a criterion not held is a failure whatever the level, and no reviewer is paid",
				one(level(LevelHuman)))
			fails(s)
			s.want(s.gate("ga"), "-", s.step("a"), "2 ready", s.failures("ga"), "1")
			s.want(fmt.Sprint(count[ReviewStarted](s.log)), "0")
		})
	}
}

func TestRule13Blocked(t *testing.T) {
	conform.Rule(t, "1-language rule 3 status", "blocked: its route, else a person sees the question")
	ask := func(ev *FileSeen) { ev.Sentinel.Question, ev.Sentinel.Options = "which port?", []string{"80", "8080"} }
	s := begin(t, "8-semantics 13",
		"blocked without a route is a person's round, who sees the question; the answer goes back", one())
	s.sentinel("a", StatusBlocked, ask)
	s.exit("a", Exit{})
	s.checked()
	s.want(s.gate("ga"), "1 human")
	s.has(s.r().CurrentRound("ga").Why, "blocked", "which port?")
	s.says("ga", OutcomeFail)
	s.want(s.step("a"), "2 ready", s.r().Rounds["ga"][0].Feedback, "because")

	w := one(route(OutcomeBlocked, EndFailed))
	s = begin(t, "8-semantics 13", "blocked goes by its route where there is one", w)
	s.sentinel("a", StatusBlocked)
	s.exit("a", Exit{})
	s.checked()
	s.want(s.r().Phase, RunFailed)
}

func TestRule13Protect(t *testing.T) {
	conform.Rule(t, "1-language protect", "a person is asked, whatever the level")
	w := one()
	w.Protect = []string{"test/**"}
	s := begin(t, "8-semantics 13",
		"a step that changed what protect names sends its gate to a person, whatever its level", w)
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	s.changed("t", "test/a_test.go=1")
	s.want(s.gate("ga"), "1 human")
	s.has(s.r().CurrentRound("ga").Why, "protect", "test/a_test.go")
}

// TestRule13ProtectOfMany: a question that does not name all changed files says how many more there are.
func TestRule13ProtectOfMany(t *testing.T) {
	s := begin(t, "8-semantics 13", "a question says how many more protected files there are than it names", one())
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	var files []string
	for n := range 12 {
		files = append(files, fmt.Sprintf("test/%02d=1", n))
	}
	s.changed("t", files...)
	why := s.r().CurrentRound("ga").Why
	s.has(why, "test/09 (and 2 files more)")
}

// TestRule13ProtectOfABlocked: a question does not hide what the step has changed, and the pass of a person who
// was told of it counts.
func TestRule13ProtectOfABlocked(t *testing.T) {
	conform.Rule(t, "1-language protect", "if the step asks something, the reason names the files first")
	w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone), onFail("a")))
	s := begin(t, "8-semantics 13", "a blocked step that changed what protect names sends its gate to a person with both", w)
	s.sentinel("a", StatusBlocked, func(ev *FileSeen) { ev.Sentinel.Question = "May I go on?" })
	s.exit("a", Exit{})
	s.changed("t", "test/x=1")
	q := s.r().CurrentRound("ga")
	s.want(s.gate("ga"), "1 human", q.Why, "protect: the step changed test/x; blocked: May I go on?")

	s.says("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.writes()
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	s.changed("t", "test/x=1")
	s.want(s.gate("ga"), "2 reviewing")
}

// changed ends the check that is owed: with protected files that the step changed, as file=content.
// Without a content it is unknown.
func (s *script) changed(digest string, files ...string) {
	s.t.Helper()
	c := &CheckResult{OK: true, Digest: digest}
	for _, f := range files {
		file, as, _ := strings.Cut(f, "=")
		c.Protected, c.ProtectedAs = append(c.Protected, file), append(c.ProtectedAs, as)
	}
	s.do(ProcessEnded{Run: s.run, Key: s.owed(DoRun)[0].Key, Check: c})
}

const passedProtected = "a protected file that a person has passed asks again only when it has changed once more"

// TestRule13ProtectOfAnotherCheck: at the first gate a person passes the file as it was checked. It
// changes while the second gate waits, so the first one asks again.
func TestRule13ProtectOfAnotherCheck(t *testing.T) {
	conform.Rule(t, "1-language protect passed", "content that came after the pass is asked about")
	w := one()
	second := aGate("a", to(EndDone), level(LevelHuman))
	second.ID, w.Gates[0].OnPass = "ga2", nil
	w.Gates, w.Steps[0].Gates = append(w.Gates, second), []string{"ga", "ga2"}
	s := begin(t, "8-semantics 13", passedProtected, w)
	s.sentinel("a", StatusDone)
	s.exit("a", Exit{})
	s.changed("t1", "test/x=1")
	s.says("ga", OutcomePass)
	s.want(s.gate("ga2"), "1 human")

	s.says("ga2", OutcomePass, func(a *Answered) { a.DigestNow = "t2" })
	s.changed("t2", "test/x=2")
	s.want(s.gate("ga"), "2 human")
}

// TestRule13ProtectIsPassedOnce: what a person has passed is not asked about again while it stays
// the same.
func TestRule13ProtectIsPassedOnce(t *testing.T) {
	conform.Rule(t, "1-language protect passed", passedProtected)
	const x1, x2, y, unknown = "test/x=1", "test/x=2", "test/y=1", "test/x="
	failed := func(s *script) { s.says("ga", OutcomeFail) }
	vetoed := func(s *script) { s.says("ga", OutcomePass); s.says("ga", OutcomeVeto) }
	for name, c := range map[string]struct {
		first []string        // what the first attempt changed
		how   func(s *script) // what a person says of it; nil: passes it, and step b's failure goes back to a
		then  []string        // what the second attempt changed
		asks  string          // the files about which its gate asks a person; "" = it asks the reviewer
	}{
		"as it was":                   {[]string{x1}, nil, []string{x1}, ""},
		"one of two is left":          {[]string{x1, y}, nil, []string{y}, ""},
		"changed once more":           {[]string{x1}, nil, []string{x2}, "test/x"},
		"another beside it":           {[]string{x1}, nil, []string{x1, y}, "test/y"},
		"another of the same content": {[]string{x1}, nil, []string{y}, "test/y"},
		"nobody knows of then":        {[]string{unknown}, nil, []string{x1}, "test/x"},
		"nobody knows of now":         {[]string{x1}, nil, []string{unknown}, "test/x"},
		"nobody knows of both":        {[]string{unknown}, nil, []string{unknown}, "test/x"},
		"it was failed":               {[]string{x1}, failed, []string{x1}, "test/x"},
		"its pass was vetoed":         {[]string{x1}, vetoed, []string{x1}, "test/x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := flow("x", aStep("a"), aGate("a", to("b")), aStep("b"), aGate("b", to(EndDone), onFail("a")))
			s := begin(t, "8-semantics 13", passedProtected, w)
			changed := func(files []string) {
				t.Helper()
				s.writes()
				s.sentinel("a", StatusDone)
				s.exit("a", Exit{})
				s.changed("t", files...)
			}
			changed(c.first)
			s.want(s.gate("ga"), "1 human")
			if c.how == nil {
				s.says("ga", OutcomePass)
				s.done("b")
				s.judged("gb", OutcomeFail)
			} else {
				c.how(s)
				s.stopped()
			}
			changed(c.then)
			if c.asks == "" {
				s.want(s.gate("ga"), "2 reviewing")
				return
			}
			s.want(s.gate("ga"), "2 human", s.r().CurrentRound("ga").Why, whyProtect+c.asks)
		})
	}
}

func TestRule13VerdictHuman(t *testing.T) {
	conform.Rule(t, "1-language routes", "the outcome human makes the round a person's")
	w := one()
	low := func(e *Env) (bool, error) { return e.Score.(float64) < 50, nil }
	w.Gates[0].Verdict = Verdict{Rules: []Rule{{Outcome: Human, When: Cond{Eval: low}}, {Outcome: OutcomePass}}}
	s := begin(t, "8-semantics 13", "outcome human makes this round a person's, and it takes no other verdict", w)
	s.done("a")
	score := 10.0
	s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("ga").Key,
		Verdict: &Judgement{Outcome: OutcomePass, Score: &score}})
	s.want(s.gate("ga"), "1 human")

	// The same reviewer's end once more, now without a score.
	s.do(ProcessEnded{Run: s.run, Key: "x-1/ga#1.1", Verdict: &Judgement{Outcome: OutcomePass}})
	s.want(s.gate("ga"), "1 human")
}

func TestRule13VerdictThatCannotBeComputed(t *testing.T) {
	w := one()
	broken := func(*Env) (bool, error) { return false, errors.New("score is not there") }
	w.Gates[0].Verdict = Verdict{Rules: []Rule{{Outcome: OutcomePass, When: Cond{Eval: broken}}}}
	s := begin(t, "8-semantics 13", "a condition that cannot be computed is inconclusive", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.gate("ga"), "1 reviewing", s.failures("ga"), "0")
	s.has(s.r().CurrentRound("ga").MissWhy, "score is not there")
}

func TestRule14CountsAreApart(t *testing.T) {
	conform.Rule(t, "1-language rule 9", "only work that was sent back counts")
	conform.Rule(t, "1-language rule 6", "a name no route names goes to on_fail and is kept")
	s := begin(t, "8-semantics 14",
		"inconclusive, infrastructure, limit waits and routes elsewhere are not counted; failures are, and apart from them each route back",
		flow("x", aStep("a"), aGate("a", to("b")),
			aStep("b"), aGate("b", to(EndDone), onFail("b"), route("replan", "a"), route("away", "c")),
			aStep("c"), aGate("c", to(EndDone))))
	routes := func() string { return fmt.Sprint(s.r().Routes["gb"]) }
	s.done("a")
	s.judged("ga", OutcomePass)

	// Infrastructure, a limit wait, inconclusive.
	s.exit("b", Exit{Code: 3})
	s.later(backoffFirst)
	s.want(s.failures("gb"), "0")
	s.exit("b", Exit{Class: ClassLimit})
	s.later(limitFirst)
	s.want(s.failures("gb"), "0")
	s.done("b")
	s.do(ProcessEnded{Run: s.run, Key: s.r().CurrentRound("gb").Key, Verdict: &Judgement{Inconclusive: "no JSON"}})
	s.later(backoffFirst)
	s.want(s.failures("gb"), "0")

	// A failure: no route has the outcome's name, so it goes to on_fail. Its name is kept.
	s.judged("gb", "revise")
	s.want(s.failures("gb"), "1", s.r().Rounds["gb"][0].Outcome, "revise")

	// A route back, then one elsewhere.
	s.done("b")
	s.judged("gb", "replan")
	s.want(s.failures("gb"), "1", routes(), "map[replan:1]")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", "away")
	s.want(s.failures("gb"), "1", routes(), "map[replan:1]")
	s.want(s.step("b"), "3 routed", s.step("c"), "1 running")
}

func TestRule14WhatIsInfrastructure(t *testing.T) {
	for name, x := range map[string]struct {
		signal string
		exit   Exit
		kind   string
	}{
		"signal not ours":      {SignalFile, Exit{Signal: "killed"}, ClassInfrastructure},
		"could not start":      {SignalFile, Exit{NotStarted: "no such file"}, ClassInfrastructure},
		"lost":                 {SignalFile, Exit{Lost: true}, ClassInfrastructure},
		"code without signal":  {SignalFile, Exit{Code: 1}, ClassInfrastructure},
		"code on stdout_exit":  {SignalExit, Exit{Code: 1}, ClassWork},
		"killed, stdout_exit":  {SignalExit, Exit{Signal: "killed"}, ClassInfrastructure},
		"adapter: work":        {SignalFile, Exit{Class: ClassWork, Why: "refused"}, ClassWork},
		"adapter: limit":       {SignalFile, Exit{Class: ClassLimit}, ClassLimit},
		"an input was missing": {SignalFile, Exit{Refused: "docs/x.md"}, ClassWork},
		"zero":                 {SignalExit, Exit{}, ""},
	} {
		conform.Rule(t, "8-semantics 14", "class of an end: "+name)
		if got, _ := class(Proc{}, x.exit, x.signal); got != x.kind {
			t.Errorf("%s: got %q, want %q", name, got, x.kind)
		}
	}
	if got, why := class(Proc{Stop: "timeout"}, Exit{Code: 0}, SignalFile); got != ClassInfrastructure || why != "it timed out" {
		t.Errorf("timed out: got %q, %q", got, why)
	}
}

func TestRule14NoResultAsksAPerson(t *testing.T) {
	s := begin(t, "8-semantics 13", "no result after restarts launches: the round is a person's", one())
	s.exit("a", Exit{Signal: "killed"})
	s.later(backoffFirst)
	s.exit("a", Exit{Signal: "killed"})
	s.want(s.step("a"), "1 gating", s.gate("ga"), "1 human", s.failures("ga"), "0")
}

// TestRule14LostWork: a worker that is lost after the step's word takes the work with it.
func TestRule14LostWork(t *testing.T) {
	w := one()
	w.AfterStep = &Command{Shell: "fmt"}
	s := begin(t, "8-semantics 14",
		"inconclusive, infrastructure, limit waits and routes elsewhere are not counted; failures are, and apart from them each route back", w)
	lost := func(launch string) {
		s.t.Helper()
		s.want(s.r().Current("a").Key, "x-1/a#1."+launch)
		s.sentinel("a", StatusDone, func(f *FileSeen) { f.Sentinel.Summary = "launch " + launch })
		s.do(ProcessEnded{Run: s.run, Key: s.r().Current("a").Key, Output: "printed", Answer: []byte(`{}`)})
		s.want(s.r().Current("a").Summary, "launch "+launch)
		for _, kind := range []string{ProcHook, ProcCheck} {
			owed := s.owed(DoRun)
			if len(owed) != 1 || owed[0].Proc.Kind != kind {
				t.Fatalf("owed: %+v, want a %s", owed, kind)
			}
			ev := ProcessEnded{Run: s.run, Key: owed[0].Key}
			if kind == ProcCheck {
				ev.Check = &CheckResult{Lost: true, Why: "its worker is gone"}
			}
			s.do(ev)
		}
	}
	lost("1")
	s.want(s.step("a"), "1 ready", s.failures("ga"), "0")
	a := s.r().Current("a")
	if a.Summary != "" || a.Status != "" || a.Via != "" || a.Hooked || a.Checked || a.Failure != "" || a.Answer != nil || a.Output != "" {
		t.Errorf("what the lost launch said is kept: %+v", a)
	}
	s.later(backoffFirst)

	// Its restarts are used up: there is no result, and a person is asked.
	lost("2")
	s.want(s.step("a"), "1 gating", s.gate("ga"), "1 human", s.failures("ga"), "0")
	s.has(s.r().Current("a").Broken, "its worker is gone")
}

func TestRule14FileNumbers(t *testing.T) {
	conform.Rule(t, "1-language rule 7", "a file per failure")
	s := begin(t, "8-semantics 14",
		"{n} is the number of the retry file of this gate in this run, never reused, not the count",
		two(nil, gates(onFail("a"), most(5))))
	path := func(want string) {
		t.Helper()
		ws := s.owed(DoWrite)
		if len(ws) != 1 || ws[0].Write.Path != ".workflow/retry-context/ga-attempt-"+want+".md" {
			t.Fatalf("want file %s, owed %+v", want, ws)
		}
		s.writes()
	}
	s.done("a")
	s.judged("ga", OutcomeFail)
	path("1")

	// A failure downstream resets ga's count, not the number of its file.
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.writes()
	s.want(s.failures("ga"), "0")
	s.done("a")
	s.judged("ga", OutcomeFail)
	s.want(s.failures("ga"), "1")
	path("2")
}

func TestRule15SendingBack(t *testing.T) {
	conform.Rule(t, "004 §5 question 7", "a failure routes further back")
	conform.Rule(t, "field asks successors", "the successor of a gate asked again runs again")
	w := flow("x", aStep("a"), aGate("a", to("b", "o")), // a -> b -> c, and a -> o; c's failure goes back to b
		aStep("b"), aGate("b", to("c")), aStep("c"), aGate("c", to(EndDone), onFail("b")),
		aStep("o"), aGate("o", to(EndDone)))
	s := begin(t, "8-semantics 15",
		"sending back supersedes T and all downstream of it, its rounds too; other branches go on", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomePass)
	s.done("c")
	s.judged("gc", OutcomeFail)
	s.want(s.step("b"), "2 ready", s.gate("gb"), "-", s.step("c"), "-")
	s.want(s.step("a"), "1 passed", s.step("o"), "1 running")
	s.writes()
	s.want(s.step("b"), "2 running")
	s.done("b")
	s.judged("gb", OutcomePass)
	conform.Rule(t, "field asks 10", "a retried gate runs its successors again")
	s.want(s.step("c"), "2 running")
}

func TestRule15FixingStep(t *testing.T) {
	w := flow("x", aStep("a"), aGate("a", to("b")), // a -> b; b's failure goes to fix -> b
		aStep("b"), aGate("b", to(EndDone), onFail("fix"), route("replan", "a")),
		aStep("fix"), aGate("fix", to("b")))
	s := begin(t, "8-semantics 15",
		"a fixing step is led to by the sending, until the step that sent is undone by going back further", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.done("b")
	s.judged("gb", OutcomeFail)
	s.writes()
	s.want(s.step("fix"), "1 running", s.step("b"), "-")
	s.done("fix")
	s.judged("gfix", OutcomePass)
	s.want(s.step("b"), "2 running", s.step("fix"), "1 passed")

	s.done("b")
	s.judged("gb", "replan")
	s.want(s.step("fix"), "-", s.step("a"), "2 running", s.step("b"), "-")
	s.done("a")
	s.judged("ga", OutcomePass)
	s.want(s.step("b"), "3 running")
}

func TestRule16Elsewhere(t *testing.T) {
	conform.Rule(t, "1-language routes", "a route leads to a step or an end")
	conform.Rule(t, "1-language rule 2", "FAILED and ABORTED end the run at once")
	w := flow("x", aStep("a"), aGate("a", to("b"), route("other", "c"), route("stop", EndDone)),
		aStep("b"), aGate("b", to(EndDone)), aStep("c"), aGate("c", to(EndDone)),
		aStep("n", needs("a")), aGate("n", to(EndDone)))
	s := begin(t, "8-semantics 16",
		"sending elsewhere: the step is routed, settled but not passed: needs on it are not met", w)
	s.done("a")
	s.judged("ga", "other")
	s.writes()
	s.want(s.step("a"), "1 routed", s.step("c"), "1 running", s.step("n"), "-")
	s.done("c")
	s.judged("gc", OutcomePass)
	s.want(s.r().Phase, RunCompleted)

	// A second run, to an end.
	s.start("x")
	s.done("a")
	s.judged("ga", "stop")
	s.want(s.r().Phase, RunCompleted, s.step("a"), "1 routed", s.step("b"), "-")

	for outcome, phase := range map[string]string{EndFailed: RunFailed, EndAborted: RunAborted} {
		s := begin(t, "8-semantics 16", "a route to "+outcome+" ends the run at once", one(route("end", outcome)))
		s.done("a")
		s.judged("ga", "end")
		s.want(s.r().Phase, phase, s.step("a"), "-")
	}
}

func TestRetryPath(t *testing.T) {
	conform.Rule(t, "004 §3 retry_context_path", "{n} is which failure")
	for _, c := range [][3]string{
		{".workflow/retry-context/G-attempt-{n}.md", "", ".workflow/retry-context/G-attempt-7.md"},
		{".workflow/retry-context/{n}/G.md", "w-2", ".workflow/retry-context/w-2/7/G.md"},
	} {
		if got := RetryPath(c[0], c[1], 7); got != c[2] {
			t.Errorf("RetryPath(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestRule13TolerantJoin: a branch that failed (b), or had no result (c), leads to the join as its
// pass would.
func TestRule13TolerantJoin(t *testing.T) {
	b, gb := ungated("b", to("d"))
	gb.OnFail, gb.OnExhausted, gb.MaxRetries = "d", Human, DefaultMaxRetries
	none := 0
	once := func(st *Step) { st.Restarts = &none }
	w := flow("x", aStep("a"), aGate("a", to("b", "c")), b, gb, // a -> b -> d, and a -> c -> d
		aStep("c", once), aGate("c", to("d"), route(OutcomeLost, "d")), aStep("d"), aGate("d", to(EndDone)))
	s := begin(t, "13-law tolerant", "on_fail beside next_step, and routes: {lost: …}", w)
	s.done("a")
	s.judged("ga", OutcomePass)
	s.sentinel("b", StatusFailed)
	s.exit("b", Exit{})
	s.checked()
	s.want(s.step("b"), "1 routed", s.step("d"), "-")
	s.exit("c", Exit{Signal: "killed"})
	s.writes()
	s.want(s.step("c"), "1 routed", s.step("d"), "1 running", s.failures("gc"), "0")
	s.done("d")
	s.judged("gd", OutcomePass)
	s.want(s.r().Phase, RunCompleted)
	s.want(fmt.Sprint(s.r().Rounds["b"][0].LetThrough, s.r().Rounds["gc"][0].LetThrough), "1 1")

	// Without the route a person is asked.
	w = flow("x", aStep("c", once), aGate("c", to(EndDone)))
	s = begin(t, "13-law tolerant", "no result without a route asks a person", w)
	s.exit("c", Exit{Signal: "killed"})
	s.want(s.gate("gc"), "1 human")
}
