package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// reviewWords returns the text of a task that fixes a failed round: the feedback, what was said
// before a person decided, findings and recommendations with their places, and the scores. It is
// never empty.
func reviewWords(g *Gate, q *Round, feedback string) string {
	var out strings.Builder
	if feedback = strings.TrimSpace(feedback); feedback == "" && len(q.Comments) == 0 {
		feedback = fmt.Sprintf("%s sent the work back (%s) and gave no reason. Compare the work with what was asked, find "+
			"what keeps it from passing, and fix that.", g.ID, q.Outcome)
	}
	out.WriteString(feedback)
	if q.Said != "" && q.Said != feedback {
		out.WriteString("\n\nSaid before a person decided:\n" + q.Said)
	}
	itemList(&out, "Comments", q.Comments)
	itemList(&out, "Findings", q.Findings)
	itemList(&out, "Recommendations", typed[map[string]json.RawMessage](q.Answer)["recommendations"])
	if q.Score != nil {
		out.WriteString("\n\nScore: " + strconv.FormatFloat(*q.Score, 'f', -1, 64))
	}
	if len(q.Scores) > 0 {
		out.WriteString("\n\nScores:")
	}
	for _, name := range slices.Sorted(maps.Keys(q.Scores)) {
		out.WriteString("\n- " + name + ": " + strconv.FormatFloat(q.Scores[name], 'f', -1, 64))
	}
	return clip(out.String(), MaxFeedback)
}

// words returns the feedback of the round, with a person's comments below it.
func (q *Round) words() string {
	var out strings.Builder
	out.WriteString(q.Feedback)
	itemList(&out, "Comments", q.Comments)
	return clip(out.String(), MaxFeedback)
}

// itemList writes a list from an answer, one item per line.
func itemList(out *strings.Builder, title string, raw json.RawMessage) {
	items := typed[[]json.RawMessage](raw)
	if len(items) == 0 {
		return
	}
	out.WriteString("\n\n" + title + ":")
	for _, item := range items {
		out.WriteString("\n- " + itemWords(item))
	}
}

// itemWords formats one item: a text, or an object's place and message, else the raw JSON.
func itemWords(item json.RawMessage) string {
	keys := typed[map[string]json.RawMessage](item)
	words := typed[string](item)
	if message := typed[string](keys["message"]); message != "" {
		words = message
		if file := typed[string](keys["file"]); file != "" {
			if n := typed[int](keys["line"]); n > 0 {
				file += ":" + strconv.Itoa(n)
			}
			words = file + ": " + words
		}
		if severity := typed[string](keys["severity"]); severity != "" {
			words = "[" + severity + "] " + words
		}
	}
	words = cmp.Or(words, string(item))
	return strings.Join(strings.Fields(words), " ")
}
