package pulls

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/text"
)

// Limits of a description.
const (
	maxTitle  = 200
	maxRounds = 60 // rows of the table
	maxAsk    = 4 << 10
	maxWords  = 600 // characters of a step's own words
)

// marks around what sluice writes into a description; what people write outside of them stays.
const endMark = "<!-- /sluice -->"

func markOf(run string) string { return "<!-- sluice:run " + run + " -->" }

// unmarked takes marks out of a text: what somebody else says is not read back as ours.
func unmarked(s string) string { return strings.ReplaceAll(s, "<!--", "<! --") }

// titleOf names the workflow and the run.
func titleOf(m job.Made) string {
	if strings.Contains(m.Title, m.Run) {
		return text.Clean(m.Title, maxTitle)
	}
	return text.Clean(m.Title, maxTitle) + " (" + m.Run + ")"
}

// bodyOf says what was asked, what was done, and who judged it. Agents' words are code there: they
// call nobody and close nothing.
func bodyOf(o opening) string {
	var out, asked []string
	if o.Asked != "" {
		asked = append(asked, text.Data("The workflow", o.Asked, maxAsk))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Vars)) {
		if v, ok := o.Vars[name].(string); ok && v != "" {
			asked = append(asked, "- "+text.Code(name)+": "+text.Code(text.Clip(v, maxWords)))
		}
	}
	if len(asked) > 0 {
		out = append(out, "**What was asked**", strings.Join(asked, "\n"))
	}
	var did []string
	for _, d := range o.Did {
		did = append(did, "- "+text.Code(d.Step)+": "+text.Code(text.Clip(d.Summary, maxWords)))
	}
	did = append(did, listed(o.said)...)
	if len(did) > 0 {
		out = append(out, "**What was done**", strings.Join(did, "\n"))
	}
	if rows := rounds(o.Rounds); len(rows) > 0 {
		out = append(out, "**Gates**", "| gate | round | outcome | by |\n|---|---|---|---|\n"+strings.Join(rows, "\n"))
	}
	if issue := engine.IssueOf(o.Vars); issue > 0 {
		out = append(out, fmt.Sprintf("Closes #%d", issue))
	}
	if len(o.names) > 0 {
		out = append(out, strings.Join(o.names, "\n"))
	}
	return markOf(o.Run) + "\n\n" + unmarked(strings.Join(out, "\n\n")) + "\n\n" + endMark
}

// listed returns the lines of a landing's message as code.
func listed(said string) (out []string) {
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- ")); line != "" {
			out = append(out, "- "+text.Code(line))
		}
	}
	return out
}

func rounds(all []job.MadeRound) (rows []string) {
	for _, q := range all {
		if q.Outcome == "" && q.State != engine.OnHuman {
			continue
		}
		outcome, by := cmp.Or(q.Outcome, "asks a person"), q.ByKind
		if q.By != nil && q.By.Who != "" {
			if by = text.Code(q.By.Who); q.By.Trust != "" {
				by += " (" + q.By.Trust + ")"
			}
		}
		rows = append(rows, fmt.Sprintf("| %s | %d | %s | %s |", text.Code(q.Gate), q.N, text.Code(outcome), by))
	}
	if over := len(rows) - maxRounds; over > 0 {
		rows = append([]string{fmt.Sprintf("| %d earlier ones | | | |", over)}, rows[over:]...)
	}
	return rows
}

// within puts what sluice says into a description, in place of what it said before.
func within(was, says string) string {
	begin, _, _ := strings.Cut(says, "\n")
	i := strings.Index(was, begin)
	if i < 0 {
		if strings.TrimSpace(was) == "" {
			return says
		}
		return strings.TrimRight(was, "\n") + "\n\n" + says
	}
	_, rest, ok := strings.Cut(was[i:], endMark)
	if !ok { // somebody has removed that mark: what is theirs stays, with what was ours
		return within(strings.Replace(was, begin, "", 1), says)
	}
	return was[:i] + says + rest
}
