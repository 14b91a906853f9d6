package launch

import (
	"cmp"
	"fmt"
	"strconv"
	"sync"
	"time"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/job"
)

// Spending is what all repos of a daemon have used on the newest day. Their engines count it, so it
// survives the daemon. The zero value is ready; nil knows nothing.
type Spending struct {
	mu    sync.Mutex
	repos map[string]engine.Day
	given map[string]bool // day and mark that a repo was given to report
	going map[string]*going
}

// going is a launched agent whose end its engine has not counted yet.
type going struct {
	root  string
	since time.Time // zero: it has not begun
	ended bool
}

// lock locks it, and makes its maps at first use.
func (s *Spending) lock() {
	s.mu.Lock()
	if s.repos == nil {
		s.repos, s.given, s.going = map[string]engine.Day{}, map[string]bool{}, map[string]*going{}
	}
}

// Set sets what a repo has used.
func (s *Spending) Set(root string, d engine.Day) {
	if s == nil {
		return
	}
	s.lock()
	defer s.mu.Unlock()
	counted := d.Usage.Launches
	if old := s.repos[root]; old.Day == d.Day {
		counted -= old.Usage.Launches
	}
	s.repos[root] = d
	for key, g := range s.going {
		if counted > 0 && g.ended && g.root == root {
			delete(s.going, key)
			counted--
		}
	}
}

// launches counts another launch of an agent and reports whether the day allows it; most 0 = no
// limit.
func (s *Spending) launches(key, root, day string, now time.Time, most int) bool {
	if s == nil {
		return true
	}
	s.lock()
	defer s.mu.Unlock()
	if s.going[key] != nil {
		return true
	}
	if most > 0 && s.sum(day, now).Launches >= most {
		return false
	}
	s.going[key] = &going{root: root}
	return true
}

// runs records when an agent began, launched by this daemon or the one before.
func (s *Spending) runs(key, root string, since time.Time) {
	if s == nil {
		return
	}
	s.lock()
	defer s.mu.Unlock()
	if g := s.going[key]; g != nil && !g.since.IsZero() { // asked again
		g.ended = false
		return
	}
	s.going[key] = &going{root: root, since: since}
}

// over records the end of an agent, for its engine to count. One that never ran, to the engine,
// counts as nothing.
func (s *Spending) over(key string, ran bool) {
	if s == nil {
		return
	}
	s.lock()
	defer s.mu.Unlock()
	switch g := s.going[key]; {
	case g == nil:
	case !ran || g.since.IsZero():
		delete(s.going, key)
	default:
		g.ended = true
	}
}

// on returns what all repos have used on the day.
func (s *Spending) on(day string, now time.Time) (used engine.Spend) {
	if s == nil {
		return used
	}
	s.lock()
	defer s.mu.Unlock()
	return s.sum(day, now)
}

func (s *Spending) sum(day string, now time.Time) (used engine.Spend) {
	for _, d := range s.repos {
		if d.Day == day {
			used = used.Plus(d.Usage)
		}
	}
	for _, g := range s.going {
		used.Launches++
		if !g.since.IsZero() {
			used.Time += engine.Duration(max(now.Sub(g.since), 0))
		}
	}
	return used
}

// once reports whether no person was told of the day's mark, and nobody was given it to report before.
func (s *Spending) once(day, mark string) bool {
	if s == nil {
		return true
	}
	s.lock()
	defer s.mu.Unlock()
	for _, d := range s.repos {
		if d.Day == day && d.Told[mark] {
			return false
		}
	}
	what := day + " " + mark
	before := s.given[what]
	s.given[what] = true
	return !before
}

// dayNearly is the percentage of the day's budget at which a person gets a notice.
const dayNearly = 80

// DayOf returns the day of a moment, in the daemon's time zone.
func DayOf(at time.Time) string { return at.Local().Format(time.DateOnly) }

// DayEnd returns the end of the day; zero if it is no day.
func DayEnd(day string) time.Time {
	at, err := time.ParseInLocation(time.DateOnly, day, time.Local)
	if err != nil {
		return time.Time{}
	}
	return at.AddDate(0, 0, 1)
}

// Today returns the usage and the limits of the day's budget over all repos; 0 = no limit.
func (ls *Launches) Today() (day string, used, most engine.Spend) {
	now := ls.opt.Now()
	day = DayOf(now)
	return day, ls.opt.Spending.on(day, now), ls.opt.Settings().Budget.Day.Spend()
}

// Spent sets what this repo has used of a day, and returns what to tell a person about the day's
// budget.
func (ls *Launches) Spent(d engine.Day) []engine.Event {
	ls.opt.Spending.Set(ls.Root, d)
	day, used, most := ls.Today()
	var out []engine.Event
	for _, x := range dayBudgets(used, most) {
		ev := engine.DayNeared{Day: day, Budget: x.name(), Used: x.used >= x.most}
		mark := engine.DayBudgetNeared(ev).Mark()
		if x.most <= 0 || x.used*100 < x.most*dayNearly || !ls.opt.Spending.once(day, mark) {
			continue
		}
		ev.Text = fmt.Sprintf("all repos together have used %s of the day's %s %s", x.text, x.key, x.of)
		if ev.Used {
			ev.Text += ": no agent is launched until 00:00; raise budget.day in the settings (and reload them: SIGHUP) to " +
				"continue earlier"
		}
		out = append(out, ev)
	}
	return out
}

type dayBudget struct {
	key, text, of string
	used, most    float64
}

func (x dayBudget) name() string { return x.key + " " + x.of }

func dayBudgets(used, most engine.Spend) []dayBudget {
	usd := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	return []dayBudget{
		{key: "max_cost_usd", text: usd(used.CostUSD), of: usd(most.CostUSD), used: used.CostUSD, most: most.CostUSD},
		{key: "max_tokens", text: fmt.Sprint(used.Tokens), of: fmt.Sprint(most.Tokens), used: float64(used.Tokens),
			most: float64(most.Tokens)},
		{key: keyLaunches, text: fmt.Sprint(used.Launches), of: fmt.Sprint(most.Launches), used: float64(used.Launches),
			most: float64(most.Launches)},
		{key: "max_duration", text: time.Duration(used.Time).Round(time.Second).String(), of: most.Time.String(),
			used: float64(used.Time), most: float64(most.Time)},
	}
}

// keyLaunches is the limit of a day that ends no running agent.
const keyLaunches = "max_launches"

// dayUp returns why running agents must end; "" = the day's budget is not used up.
func (ls *Launches) dayUp() (day, why string) {
	day, used, most := ls.Today()
	for _, x := range dayBudgets(used, most) {
		if x.most > 0 && x.used >= x.most && x.key != keyLaunches {
			return day, x.up()
		}
	}
	return day, ""
}

func (x dayBudget) up() string {
	return "the day's budget is used up: " + x.text + " of " + x.name()
}

// dayTaken counts a launch of an agent for the day. The error is the Refusal of one that the day's
// budget forbids.
func (ls *Launches) dayTaken(key string) error {
	day, why := ls.dayUp()
	most := ls.opt.Settings().Budget.Day.MaxLaunches
	if now := ls.opt.Now(); why == "" && !ls.opt.Spending.launches(key, ls.Root, DayOf(now), now, most) {
		of := fmt.Sprint(most)
		why = dayBudget{key: keyLaunches, text: of, of: of}.up()
	}
	if why == "" {
		return nil
	}
	return &job.Refusal{Exit: waitsForDay(engine.Exit{Code: -1, NotStarted: why}, day, why)}
}

// waitsForDay returns the end of a launch, begun or not, that waits for the next day's budget.
func waitsForDay(x engine.Exit, day, why string) engine.Exit {
	x.Class, x.Why, x.Budget, x.ResumeAt = engine.ClassLimit, why, day, DayEnd(day)
	return x
}

// dayMark ends the name of the mark, beside a pid file, of a launch that the day's budget ended.
// The mark contains the day.
const dayMark = ".day"

// meterPace is how often an agent's cost so far is read, and the free disk space of a held launch.
const meterPace = time.Second

// meter is what an agent's program has reported while it works.
type meter struct {
	read *Stream       // nil: it reports nothing
	base program.Usage // of the conversation before
	told engine.Usage
	n    int // lines that it has said: see hear
}

// meterOf returns the meter of a launch.
func (ls *Launches) meterOf(l Order) meter {
	if !l.Agent {
		return meter{}
	}
	p, _ := programOf(ls.Layout, l.Key) // without one there is nothing to read
	return meter{read: NewStream(p.Format, ls.opt.Now), base: p.Base}
}

// look tells the engine the launch's cost so far, if it has grown.
func (f *following) look() {
	m, c := &f.meter, f.Clock
	if m.read == nil {
		return
	}
	f.hear(false)
	if c == nil || c.emit == nil {
		return
	}
	used, _ := m.read.Reader.Result().Since(m.base)
	if u := UsageOf(used); u != m.told {
		m.told = u
		c.emit(engine.UsageSeen{Run: c.run, Key: c.key, Usage: c.spent.Plus(u), Day: DayOf(f.ls.opt.Now())})
	}
}

// lookAgain returns the time until the next look at a launch; 0 = never: only its end counts.
func lookAgain(idle, silent time.Duration, metered bool) time.Duration {
	pause := time.Duration(0)
	if idle > 0 {
		pause = max(min(idle-silent, idle/idleLooks), 10*time.Millisecond)
	}
	if metered && (pause == 0 || pause > meterPace) {
		pause = meterPace
	}
	return pause
}

// CostLeast is the limit of a launch, in USD, when nothing is left: programs accept no limit of 0.
const CostLeast = 0.0001

// MayCost returns what a launch may cost, in USD, by the budgets of its attempt or round, its run
// and the day; 0 = no limit.
func (ls *Launches) MayCost(j job.Job, role string) float64 {
	before := engine.Usage{}
	if j.Proc != nil && j.Proc.Kind == engine.ProcReview && j.Round != nil {
		before = j.Round.Usage
	} else if j.Attempt != nil {
		before = j.Attempt.Usage
	}
	left := j.Config.Left(role, before, j.RunInfo.Bounds...).CostUSD
	if _, used, most := ls.Today(); most.CostUSD > 0 && (left == 0 || most.CostUSD-used.CostUSD < left) {
		left = cmp.Or(most.CostUSD-used.CostUSD, -1)
	}
	if left < 0 {
		return CostLeast
	}
	return left
}

// hear reads what a launch has said since the last call; if ended, all of it.
func (f *following) hear(ended bool) {
	read := f.meter.read
	if read == nil {
		return
	}
	names := []string{"stdout", "stdout" + agents.TailSuffix}
	// The parts were joined since: the head's new text was read as the tail.
	if ended && read.Offsets[names[1]] > 0 {
		names = names[1:]
	}
	for was := int64(-1); was != read.Total(); {
		was = read.Total()
		var events []program.Event
		for _, name := range names {
			events = append(events, read.More(f.dir, name)...)
		}
		f.say(events)
		if !ended {
			return
		}
	}
	f.say(read.Reader.Take([]byte("\n"))) // the last line may lack its end
}

// say adds events to the log of the run.
func (f *following) say(events []program.Event) {
	var lines []Said
	for _, e := range events {
		if l, ok := LineOf(e); ok {
			f.meter.n++
			l.N = f.meter.n
			lines = append(lines, l)
		}
	}
	f.ls.Log.Say(f.Key, lines)
}
