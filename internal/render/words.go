package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/text"
)

// Mark is the sign and the style of a state of a run, a step or a gate. The sign alone tells the state: a colour may be
// missing.
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

// Judge returns whose a verdict is: of a gate that goes by what its step said of itself there is no reviewer.
func Judge(kind string) string {
	switch kind {
	case "step":
		return "the step's own word"
	case "command":
		return "its command"
	}
	return "reviewer"
}

// Due is the state of a gate whose round is open and whose reviewer is not at work yet: the run is paused, or what the
// review needs is taken.
const Due = "review due"

// Ago is a span of time as a person says it.
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

// Unpassed is what a gate did not pass and yet went on.
type Unpassed struct {
	Where    string
	Outcome  string // the route's name, or on_exhausted
	Failures int    // of the gate by then
	Route    string // the route that was taken, or used up
	Times    int    // how often by then, of one that leads back
	To       string // whither, where that is known
}

// String is the sentence that names it.
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

// Counts say how often a gate failed and took each of its routes back, of how often it may: "failed 1/3", "replan 2/3".
func Counts(failed int, routes map[string]int, most int) (out []string) {
	if failed > 0 {
		out = append(out, fmt.Sprintf("failed %d/%d", failed, most))
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		out = append(out, fmt.Sprintf("%s %d/%d", name, routes[name], most))
	}
	return out
}

// NotPassed is the mark of a run of which n rounds went on without a pass: "2 not passed"; "" of none.
func NotPassed(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d not passed", n)
}

// Spent returns what was used, and of what; "" where nothing was and nothing bounds it.
func Spent(u, most engine.Usage) string {
	var parts []string
	if u.Tokens > 0 || most.Tokens > 0 {
		s := fmt.Sprintf("%d tokens", u.Tokens)
		if most.Tokens > 0 {
			s = fmt.Sprintf("%d of %d tokens", u.Tokens, most.Tokens)
		}
		parts = append(parts, s)
	}
	if u.CostUSD > 0 || most.CostUSD > 0 {
		s := fmt.Sprintf("%.2f USD", u.CostUSD)
		if most.CostUSD > 0 {
			s = fmt.Sprintf("%.2f of %.2f USD", u.CostUSD, most.CostUSD)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// SpentInAll returns what was used with launches and time, where those are bounded, and of what.
func SpentInAll(u, most engine.Spend) string {
	return strings.Join(append(nonEmpty(Spent(u.Usage, most.Usage)), bounded(u, most)...), ", ")
}

// SpentShort is Spent for where there is little room: the cost first, tokens by the thousand.
func SpentShort(u, most engine.Usage) string {
	var parts []string
	if most.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("%.2f of %.2f USD", u.CostUSD, most.CostUSD))
	} else if u.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("%.2f USD", u.CostUSD))
	}
	if most.Tokens > 0 {
		parts = append(parts, short(u.Tokens)+" of "+short(most.Tokens)+" tokens")
	} else if u.Tokens > 0 {
		parts = append(parts, short(u.Tokens)+" tokens")
	}
	return strings.Join(parts, ", ")
}

// SpentInAllShort is SpentInAll for where there is little room.
func SpentInAllShort(u, most engine.Spend) string {
	return strings.Join(append(nonEmpty(SpentShort(u.Usage, most.Usage)), bounded(u, most)...), ", ")
}

// bounded are the launches and the time that were used, where they are bounded.
func bounded(u, most engine.Spend) (parts []string) {
	if most.Launches > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d launches", u.Launches, most.Launches))
	}
	if most.Time > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s at work", time.Duration(u.Time).Round(time.Second), most.Time))
	}
	return parts
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// short is a number in three figures or four.
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

// Who names an actor, with a "by" before it; "" where nobody is known.
func Who(by *engine.Actor) string {
	if by == nil || by.Who == "" && by.Via == "" {
		return ""
	}
	s := by.Who
	via := by.Via
	if by.Trust == engine.TrustSigned && by.Key != "" {
		via = strings.TrimPrefix(via+", signed", ", ")
	}
	if via != "" {
		s += " (" + via + ")"
	}
	return " by " + strings.TrimSpace(s)
}

// Why returns why a person is asked.
func Why(why string) string {
	switch why {
	case "level":
		return "this gate is for a person"
	case "forced":
		return "it went back too often before, so it asks you for the rest of the run"
	}
	return text.Line(why)
}

// By returns who decided a round.
func By(kind string, by *engine.Actor) string {
	switch kind {
	case "window":
		return "its reviewer, no veto came"
	case "human":
		if w := Who(by); w != "" {
			return strings.TrimPrefix(w, " by ")
		}
		return "a person"
	case "reviewer":
		return "its reviewer"
	case "step":
		return "the step's own word"
	case "when":
		return "its `when`, unjudged"
	case "exhausted":
		return "on_exhausted"
	case "":
		return "the engine"
	}
	return kind
}

// Size is a number of bytes as a person says it.
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
