package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// Mark returns the sign and the style of a state of a run, a step or a gate. The sign is enough: a
// terminal may have no colours.
func Mark(state string) (sign, style string) {
	switch state {
	case engine.RunCompleted, engine.Passed:
		return "✓", console.Green
	case engine.RunFailed:
		return "✗", console.Red
	case engine.RunAborted, engine.Superseded:
		return "–", console.Dim
	case engine.Running, engine.Signalled, engine.OnReview, engine.Gating:
		return "▸", console.Blue
	case engine.OnHuman:
		return "?", console.Yellow
	case engine.OnWindow, engine.OnNotice, "paused":
		return "‖", console.Yellow
	case engine.Skipped, engine.Routed:
		return "↷", console.Dim
	}
	return "·", console.Dim
}

// judge names who gave a verdict. A gate that uses its step's own report has no reviewer.
func judge(kind string) string {
	switch kind {
	case "step", "command", "forge":
		return By(kind, nil)
	}
	return "reviewer"
}

// Due is the state of a gate with an open round whose reviewer has not started: the run is paused,
// or what the review needs is taken.
const Due = "review due"

// Ago returns a duration as a person says it.
func Ago(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// Unpassed describes work that a gate did not pass and that continued.
type Unpassed struct {
	Where    string
	Outcome  string // the route's name, or on_exhausted
	Failures int    // of the gate by then
	Route    string // the route that was taken, or used up
	Times    int    // how often by then, for a route that leads back
	To       string // where it went, if known
}

// String returns the sentence for it.
func (u Unpassed) String() string {
	s := fmt.Sprintf("not passed, but went on: %s: %s", u.Where, u.Outcome)
	switch {
	case u.Times > 0 && u.Outcome == u.Route:
		s += " " + text.Plural(u.Times, "time")
	case u.Times > 0:
		s += " after " + u.Route + " " + text.Plural(u.Times, "time")
	case u.Failures > 0:
		s += " after " + text.Plural(u.Failures, "failure")
	}
	if u.To != "" {
		s += " → " + u.To
	}
	return s
}

// Counts returns how often a gate failed and took each route back, and the limit: "failed 1/3",
// "replan 2/3".
func Counts(failed int, routes map[string]int, most int) (out []string) {
	if failed > 0 {
		out = append(out, fmt.Sprintf("failed %d/%d", failed, most))
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		out = append(out, fmt.Sprintf("%s %d/%d", name, routes[name], most))
	}
	return out
}

// NotPassed returns the mark of a run with n rounds that continued without a pass: "2 not passed";
// "" = none.
func NotPassed(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d not passed", n)
}

// Spent returns the usage and its limits; "" if there is neither.
func Spent(u, most engine.Usage) string {
	return listed(amount(u.Tokens, most.Tokens, "tokens", whole), amount(u.CostUSD, most.CostUSD, "USD", cents))
}

// SpentInAll is Spent with launches and time, if these are limited.
func SpentInAll(u, most engine.Spend) string {
	return listed(Spent(u.Usage, most.Usage), launches(u, most), atWork(u, most))
}

// SpentShort is the short form of Spent: the cost first, tokens in thousands.
func SpentShort(u, most engine.Usage) string {
	return listed(amount(u.CostUSD, most.CostUSD, "USD", cents), amount(u.Tokens, most.Tokens, "tokens", short))
}

// SpentInAllShort is the short form of SpentInAll.
func SpentInAllShort(u, most engine.Spend) string {
	return listed(SpentShort(u.Usage, most.Usage), launches(u, most), atWork(u, most))
}

// launches and atWork return "" without a limit.
func launches(u, most engine.Spend) string {
	if most.Launches == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d launches", u.Launches, most.Launches)
}

func atWork(u, most engine.Spend) string {
	if most.Time == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s at work", time.Duration(u.Time).Round(time.Second), most.Time)
}

// amount returns how much is used, and of how much if that is limited; "" if there is neither.
func amount[N int64 | float64](used, most N, unit string, as func(N) string) string {
	switch {
	case most > 0:
		return as(used) + " of " + as(most) + " " + unit
	case used > 0:
		return as(used) + " " + unit
	}
	return ""
}

// listed joins those parts that say something.
func listed(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func whole(n int64) string   { return strconv.FormatInt(n, 10) }
func cents(x float64) string { return fmt.Sprintf("%.2f", x) }

func short(n int64) string {
	const k = 1000
	switch {
	case n < 10*k:
		return fmt.Sprint(n)
	case n < k*k:
		return fmt.Sprintf("%dk", n/k)
	}
	return fmt.Sprintf("%.1fM", float64(n)/(k*k))
}

// Who returns " by" and the name of an actor; "" if nobody is known.
func Who(by *engine.Actor) string {
	if by == nil || by.Who == "" && by.Via == "" {
		return ""
	}
	s := by.Who
	via := by.Via
	if strings.HasPrefix(via, "file") { // alone it reads as the level of trust
		via = "by a " + via
	}
	if by.Trust == engine.TrustSigned && by.Key != "" {
		via = strings.TrimPrefix(via+", signed", ", ")
	}
	if via != "" {
		s += " (" + via + ")"
	}
	return " by " + strings.TrimSpace(s)
}

// Paused says who or what paused a run; why is the engine's word for it.
func Paused(why string, by *engine.Actor) string {
	words := map[string]string{
		"user":               "paused" + cmp.Or(Who(by), " by a person"),
		engine.PausedParent:  "paused with its parent run",
		engine.PausedConfirm: "waits for a person before its first step",
		engine.PausedWork:    "paused: its work is not on this machine",
		"fatal":              "paused by an error",
	}
	if limit, is := strings.CutPrefix(why, "limit:"); is {
		return "paused by the limit " + text.Line(limit)
	}
	return cmp.Or(words[why], "paused: "+text.Line(why))
}

// OwnWord reports whether a step has said itself how it ended; via and broken are its attempt's.
func OwnWord(via, broken string) bool { return broken == "" && via != "timeout" && via != "spec" }

// PausedWords says who or what paused a run, and why.
func PausedWords(f engine.RunPaused) string {
	why := f.Text
	if key, limit := strings.CutPrefix(f.Why, "limit:"); limit { // which the first words name
		why = strings.TrimPrefix(strings.TrimPrefix(why, "the limit "+key+" is hit"), ": ")
	}
	return Because(Paused(f.Why, f.By), why)
}

// asked returns what an ignored event asked for, in a command's words; the journal has the event's kind, or a file.
func asked(what string) string {
	words := map[string]string{"answered": "answer", "claimed": "claim", "note_given": "note", "fired": "firing"}
	return cmp.Or(words[what], strings.TrimSuffix(what, "_requested"))
}

// Why returns why a person is asked.
func Why(why string) string {
	switch why {
	case "level":
		return "this gate is for a person"
	case "forced":
		return "it went back too often before, so it asks you for the rest of the run"
	}
	if words, is := strings.CutPrefix(why, "blocked: "); is {
		return "blocked: " + Quoted(words)
	}
	if count, words := lastTime(why); count != "" && words != "" {
		return count + ": " + Quoted(text.Brief(words))
	}
	const still = " over an unchanged tree"
	if count, words, is := strings.Cut(why, still+": "); is {
		return text.Line(count+still) + ": " + Quoted(text.Brief(words))
	}
	return text.Line(text.Brief(why))
}

// Quoted is what an agent said, for a line of our own: quoted, so that no part of it passes for ours. "" stays.
func Quoted(words string) string {
	if words = text.Line(words); words == "" {
		return ""
	}
	return "“" + strings.NewReplacer("“", `"`, "”", `"`).Replace(words) + "”"
}

// WhyElse is Why, for rows that show already that a gate asks a person: "" if its level alone is why.
func WhyElse(why string) string {
	if why == "level" {
		return ""
	}
	return Why(why)
}

// Cause returns why a gate asks, for rows that show how often it failed: the words of the last failure, quoted.
func Cause(why string) string {
	if count, words := lastTime(why); count != "" && words != "" {
		return Quoted(text.Brief(words))
	}
	return why
}

// lastTime splits why a gate asks whose failures are used up: how many there were, and the words of the last.
func lastTime(why string) (count, words string) {
	count, words, _ = strings.Cut(why, ": ")
	if strings.HasPrefix(count, "it ") && strings.Contains(count, " time") {
		return count, words
	}
	return "", why
}

// By returns who decided a round.
func By(kind string, by *engine.Actor) string {
	if kind == engine.Human {
		return cmp.Or(strings.TrimPrefix(Who(by), " by "), "a person")
	}
	words := map[string]string{
		"window":    "its reviewer, no veto came",
		"reviewer":  "its reviewer",
		"command":   "its command",
		"criterion": "its checks",
		"step":      "the step's own report",
		"forge":     "the forge",
		"when":      "its `when`, unjudged",
		"exhausted": "on_exhausted",
		"":          "the engine",
	}
	return cmp.Or(words[kind], kind)
}

// Size returns a number of bytes as a person says it.
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	f, i := float64(n), 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
