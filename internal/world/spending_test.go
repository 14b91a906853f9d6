//go:build linux || darwin

package world

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/settings"
	"sluice/tools/conform"
	"sluice/tools/twoclocks"
)

// spender is a claude that reports a number of tokens, waits for a file `go`, and ends well.
const spender = `echo '{"type":"system","subtype":"init","session_id":"s-1"}'
echo '{"type":"assistant","message":{"id":"a","usage":{"input_tokens":700}}}'
n=0; while [ ! -e go ] && [ $((n += 1)) -lt 2000 ]; do sleep 0.02; done
echo '{"type":"result","subtype":"success","result":"Done.","total_cost_usd":1,"usage":{"input_tokens":900}}'
`

// ledger plays the daemons of several repos: it takes what each tells of its spending, as the engine counts it.
type ledger struct {
	mu   sync.Mutex
	seen []engine.UsageSeen
	e    *World
	said []engine.Event
}

func (l *ledger) take(ev engine.Event) {
	u, ok := ev.(engine.UsageSeen)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, u)
	l.said = append(l.said, l.e.Spent(engine.Day{Day: u.Day, Usage: engine.Spend{Usage: u.Usage}})...)
}

func (l *ledger) tokens() (out []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.seen {
		out = append(out, u.Usage.Tokens)
	}
	return out
}

// paid is a bench whose world keeps the day's budget, of which another repo has used some.
func paid(t *testing.T, most, other int64) (*bench, *ledger) {
	b := newBench(t, toldSpec)
	b.claude(spender)
	b.settings.Budget.Day.MaxTokens = most
	spent := &launch.Spending{}
	spent.Set("/another", engine.Day{Day: launch.DayOf(time.Now()), Usage: engine.Spend{Usage: engine.Usage{Tokens: other}}})
	b.e = b.executor(func(o *Options) { o.Spending = spent })
	return b, &ledger{e: b.e}
}

// TestSpentWhileItWorks: an agent's cost is reported while it works, even by another daemon that
// adopted it, and its end reports no less.
func TestSpentWhileItWorks(t *testing.T) {
	conform.Rule(t, "7-agents spend", "the stream is read as it grows, by whoever waits for the agent")
	b, l := paid(t, 0, 0)
	ctx, cancel := context.WithCancel(b.ctx())
	first := background(ctx, b.e, b.stepJob("A", 1, 1), l.take)
	eventually(t, "it is told", func() bool { return fmt.Sprint(l.tokens()) == "[700]" })
	cancel()
	<-first
	b.e = b.executor()
	l.e = b.e
	second := background(b.ctx(), b.e, b.stepJob("A", 1, 1), l.take)
	eventually(t, "the next one tells it again", func() bool { return fmt.Sprint(l.tokens()) == "[700 700]" })
	b.put("go", "")
	ev := (<-second).(engine.ProcessEnded)
	if ev.Exit.Usage != (engine.Usage{Tokens: 900, CostUSD: 1}) || ev.Exit.Class != "" || ev.Day != launch.DayOf(time.Now()) {
		t.Errorf("%+v", ev)
	}
}

// TestDayEndsWhatRuns: what runs is ended when all repos together have used up the day's budget, a step as a reviewer, and
// waits for the next day; so does what is launched then, and nothing of it is begun.
func TestDayEndsWhatRuns(t *testing.T) {
	conform.Rule(t, "7-agents day", "what runs is ended when all repos together have used up the day's budget")
	for name, j := range map[string]func(b *bench) job.Job{
		"step":   func(b *bench) job.Job { return b.stepJob("A", 1, 1) },
		"review": func(b *bench) job.Job { return b.reviewJob("G", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			b, l := paid(t, 1000, 300)
			before := time.Now()
			ev, ok := b.e.Carry(b.ctx(), j(b), l.take).(engine.ProcessEnded)
			x := ev.Exit
			if !ok || x.Class != engine.ClassLimit || x.Budget != launch.DayOf(before) || !x.Stopped || !x.ResumeAt.Equal(launch.DayEnd(x.Budget)) || x.Usage.Tokens != 700 {
				t.Fatalf("%+v", ev)
			}
			if len(l.said) != 1 || !l.said[0].(engine.DayNeared).Used || !strings.Contains(l.said[0].(engine.DayNeared).Text, "1000 of the day's max_tokens 1000") {
				t.Errorf("told %+v", l.said)
			}
			next := b.stepJob("Q", 1, 1)
			ev = b.carry(next)
			if x := ev.Exit; x.Class != engine.ClassLimit || x.Budget == "" || x.NotStarted == "" || !strings.Contains(x.Why, "1000 of max_tokens 1000") || b.has(b.e.JobDir(next)) {
				t.Errorf("%+v", ev.Exit)
			}
			b.settings.Budget.Day.MaxTokens = 0
			b.put("go", "")
			if ev := b.carry(b.stepJob("A", 2, 1)); ev.Exit.Class != "" {
				t.Errorf("%+v", ev.Exit)
			}
		})
	}
}

// TestDayBudgetTold: at four fifths and when it is used up, each once a day over all repos, and
// again for another budget; a restart does not repeat it.
func TestDayBudgetTold(t *testing.T) {
	b, l := paid(t, 1000, 300)
	day := launch.DayOf(time.Now())
	tell := func(tokens int64, told ...string) (marks string) {
		d := engine.Day{Day: day, Usage: engine.Spend{Usage: engine.Usage{Tokens: tokens}}, Told: map[string]bool{}}
		for _, m := range told {
			d.Told[m] = true
		}
		for _, ev := range l.e.Spent(d) {
			marks += engine.DayBudgetNeared(ev.(engine.DayNeared)).Mark() + ";"
		}
		return marks
	}
	for i, c := range []struct {
		tokens int64
		want   string
	}{{499, ""}, {500, "max_tokens 1000;"}, {501, ""}, {700, "max_tokens 1000 used;"}, {800, ""}} {
		if got := tell(c.tokens); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	b.settings.Budget.Day.MaxTokens = 1200
	if got := tell(800); got != "max_tokens 1200;" {
		t.Errorf("of another budget: %q", got)
	}
	b.e = b.executor(func(o *Options) { o.Spending = &launch.Spending{} })
	l.e = b.e
	if got := tell(1100, "max_tokens 1200"); got != "" {
		t.Errorf("after a restart: %q", got)
	}
	if _, used, most := b.e.Today(); used.Tokens != 1100 || most.Tokens != 1200 {
		t.Errorf("today %v of %v", used, most)
	}
}

// TestMayCost: what claude may cost by itself is what its attempt, its run and the day leave.
func TestMayCost(t *testing.T) {
	b, _ := paid(t, 0, 0)
	b.claude(`echo "$@" >args
echo '{"type":"result","subtype":"error_max_budget_usd","is_error":true,"total_cost_usd":2,"usage":{"input_tokens":5}}'; exit 1`)
	b.settings.Budget.Day.MaxCostUSD = 3
	j := b.stepJob("A", 1, 1)
	j.Config.Attempt.CostUSD, j.Attempt.Usage.CostUSD = 5, 3.5
	bound := func(most, used float64) engine.Bound {
		return engine.Bound{Most: engine.Usage{CostUSD: most}, Used: engine.Usage{CostUSD: used}}
	}
	j.RunInfo.Bounds = []engine.Bound{bound(20, 1), bound(10, 9.25)}
	ev := b.carry(j)
	wantText(t, "arguments", b.get("args"), "--max-budget-usd 0.7500 ")
	if ev.Exit.Class != engine.ClassLimit || ev.Exit.Usage.CostUSD != 2 || !strings.Contains(ev.Exit.Why, "cost that it was given") {
		t.Errorf("%+v", ev.Exit)
	}
	for _, c := range []struct {
		attempt, used, run, most, day, spent, want float64
	}{{0, 0, 0, 0, 0, 0, 0}, {2, 0.5, 0, 0, 0, 0, 1.5}, {2, 2, 0, 0, 0, 0, launch.CostLeast}, {0, 0, 0, 0, 3, 1, 2}, {9, 0, 0, 0, 3, 3, launch.CostLeast}, {0, 0, 1, 4, 9, 0, 3}} {
		b.settings.Budget.Day.MaxCostUSD = c.day
		b.e.Spent(engine.Day{Day: launch.DayOf(time.Now()), Usage: engine.Spend{Usage: engine.Usage{CostUSD: c.spent}}})
		again := b.stepJob("A", 2, 1)
		again.Config.Attempt.CostUSD, again.Attempt.Usage.CostUSD, again.RunInfo.Bounds = c.attempt, c.used, []engine.Bound{bound(c.most, c.run)}
		if got := b.e.MayCost(again, "writer"); got != c.want {
			t.Errorf("%+v: %g", c, got)
		}
	}
}

// TestDayEnd: a day is that of the clock on the wall, also where it has 23 or 25 hours.
func TestDayEnd(t *testing.T) {
	now := time.Now()
	end := launch.DayEnd(launch.DayOf(now))
	if !end.After(now) || end.Sub(now) > 25*time.Hour || launch.DayOf(end) == launch.DayOf(now) || launch.DayOf(end.Add(-time.Second)) != launch.DayOf(now) {
		t.Errorf("the day of %v ends at %v", now, end)
	}
	if !launch.DayEnd("x").IsZero() {
		t.Error("no day has an end")
	}
}

// TestStreamGrows: a stream is read as it grows, line by line, wherever the reading stops; a tail
// that began again continues at its next line.
func TestStreamGrows(t *testing.T) {
	b := newBench(t, toldSpec)
	s := launch.NewStream(program.Claude, time.Now)
	line := func(id string, n int) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"usage":{"input_tokens":%d}}}`+"\n", id, n)
	}
	text := ""
	for _, part := range []string{line("a", 1)[:20], line("a", 1)[20:], line("b", 10) + line("c", 100)[:7], line("c", 100)[7:]} {
		text += part
		b.put("s/stdout", text)
		s.More(b.path("s"), "stdout")
	}
	if n := s.Reader.Result().Usage.Input; n != 111 {
		t.Errorf("%d tokens, want 111", n)
	}
	b.put("s/stdout.tail", strings.Repeat("x", 500)+"\n")
	s.More(b.path("s"), "stdout.tail")
	b.put("s/stdout.tail", "half of a line\n"+line("d", 1000))
	s.More(b.path("s"), "stdout.tail")
	s.More(b.path("s"), "not there")
	if n := s.Reader.Result().Usage.Input; n != 1111 {
		t.Errorf("%d tokens, want 1111", n)
	}
	if launch.NewStream("text", time.Now) != nil {
		t.Error("a reader of text")
	}
}

// TestRolesOfTheEngine: what holds for every role not named holds for those alone, for the engine as for the launches.
func TestRolesOfTheEngine(t *testing.T) {
	s := settings.Default()
	s.Budget.Attempt = settings.Amount{MaxTokens: 9, MaxCostUSD: 3}
	s.Roles = map[string]settings.Role{settings.AnyRole: {Agent: []string{"claude"}, MaxTokens: 5, Timeout: engine.Duration(time.Minute)}, "named": {Agent: []string{"claude"}}, "own": {Agent: []string{"claude"}, MaxCostUSD: 1}}
	c := s.Engine()
	for role, want := range map[string]engine.Usage{"other": {Tokens: 5, CostUSD: 3}, "named": {Tokens: 9, CostUSD: 3}, "own": {Tokens: 9, CostUSD: 1}, "": {}} {
		if got := c.Left(role, engine.Usage{}); got != want {
			t.Errorf("%q: %v, want %v", role, got, want)
		}
	}
	if faults := (settings.Settings{Budget: settings.Budget{Day: settings.Day{MaxTokens: -1}}}).Check(); !strings.Contains(fmt.Sprint(faults), "budget.day: must not be negative") {
		t.Errorf("%v", faults)
	}
}

// TestDayLaunches: no agent is launched beyond the day's launches, over all repos and also before an engine has counted the
// end of one; what runs goes on.
func TestDayLaunches(t *testing.T) {
	conform.Rule(t, "7-agents day", "no agent is launched beyond the day's launches; the time they run is counted while they run")
	b, l := paid(t, 0, 0)
	b.settings.Budget.Day.MaxLaunches = 2
	b.e.opt.Spending.Set("/another", engine.Day{Day: launch.DayOf(time.Now()), Usage: engine.Spend{Launches: 1}})
	first := background(b.ctx(), b.e, b.stepJob("A", 1, 1), l.take)
	eventually(t, "it works", func() bool { return len(l.tokens()) > 0 })
	if _, used, _ := b.e.Today(); used.Launches != 2 || used.Time <= 0 {
		t.Errorf("while one runs: %+v", used)
	}
	next := b.stepJob("Q", 1, 1)
	ev := b.carry(next)
	if x := ev.Exit; x.Class != engine.ClassLimit || x.Budget == "" || !strings.Contains(x.Why, "2 of max_launches 2") || b.has(b.e.JobDir(next)) {
		t.Errorf("a third: %+v", x)
	}
	b.put("go", "")
	if ev := (<-first).(engine.ProcessEnded); ev.Exit.Class != "" {
		t.Errorf("the one that ran: %+v", ev.Exit)
	}
	if ev := b.carry(b.stepJob("Q", 2, 1)); ev.Exit.Budget == "" {
		t.Errorf("before its end was counted: %+v", ev.Exit)
	}
	b.e.Spent(engine.Day{Day: launch.DayOf(time.Now()), Usage: engine.Spend{Launches: 1}})
	if _, used, _ := b.e.Today(); used.Launches != 2 {
		t.Errorf("its end is counted twice: %+v", used)
	}
}

// TestDayCountsNoFalseStart: a launch whose program could not be started is none of the day's, as the engine sees it.
func TestDayCountsNoFalseStart(t *testing.T) {
	b, l := paid(t, 0, 0)
	b.put("bin/bad", "#!/no/such/interpreter\n")
	if err := os.Chmod(b.path("bin/bad"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.settings.Agents["claude"] = settings.Agent{Command: []string{b.path("bin/bad")}}
	ev, ok := b.e.Carry(b.ctx(), b.stepJob("A", 1, 1), l.take).(engine.ProcessEnded)
	if !ok || ev.Exit.NotStarted == "" {
		t.Fatalf("it was started: %+v", ev)
	}
	if _, used, _ := b.e.Today(); used.Launches != 0 || used.Time != 0 {
		t.Errorf("counted: %+v", used)
	}
}

// TestDayTime: the time that agents run is counted while they run, and ends them.
func TestDayTime(t *testing.T) {
	b, l := paid(t, 0, 0)
	b.settings.Budget.Day.MaxDuration = engine.Duration(2 * time.Hour)
	b.e.opt.Spending.Set("/another", engine.Day{Day: launch.DayOf(time.Now()), Usage: engine.Spend{Time: engine.Duration(2*time.Hour - time.Millisecond)}})
	if ev, ok := b.e.Carry(b.ctx(), b.stepJob("A", 1, 1), l.take).(engine.ProcessEnded); !ok || ev.Exit.Budget == "" || !ev.Exit.Stopped {
		t.Errorf("beyond the day's time: %+v", ev)
	}
}

// TestDayTimeAsleep: the time in which the machine slept is not time at work.
func TestDayTimeAsleep(t *testing.T) {
	b, l := paid(t, 0, 0)
	b.settings.Budget.Day.MaxDuration = engine.Duration(2 * time.Hour)
	var slept atomic.Int64
	began := time.Now()
	b.e = b.executor(func(o *Options) {
		o.Spending = &launch.Spending{}
		o.Now = func() time.Time {
			return twoclocks.Time(time.Now().Add(time.Duration(slept.Load())), time.Since(began))
		}
	})
	l.e = b.e
	end := background(b.ctx(), b.e, b.stepJob("A", 1, 1), l.take)
	eventually(t, "it works", func() bool { return fmt.Sprint(l.tokens()) == "[700]" })
	slept.Store(int64(3 * time.Hour))
	if _, used, _ := b.e.Today(); used.Launches != 1 || time.Duration(used.Time) > time.Hour {
		t.Errorf("counted: %+v", used)
	}
	b.put("go", "")
	if ev := (<-end).(engine.ProcessEnded); ev.Exit.Class != "" {
		t.Errorf("%+v", ev.Exit)
	}
}
