package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice/internal/findings"
	"sluice/internal/text"
)

const (
	maxSent         = 20       // rounds that took a route: as many as a job has of a gate
	maxSentAll      = 24 << 10 // bytes of all, the newest first
	maxSentReviewed = 10 << 10 // in a reviewer's prompt
)

// Sent is a round that sent the work on by the name of a route, which is no failure.
type Sent struct {
	Gate     string
	Route    string
	Times    int    // how often by then; 0 = it does not lead back
	To       string // the step it led to
	Reviewer string // who judged, in words
	At       time.Time
	Score    *float64
	Scores   map[string]float64
	Feedback string
	Said     string // what was said of the work before a person decided, by SaidBy
	SaidBy   string
	Findings json.RawMessage
}

// sentTo shows a step the routes that led to it, or by it.
func (p *page) sentTo(list []Sent, step string, attempt int) {
	intro := "A gate has names for where work goes, besides pass and fail. These were taken, oldest first. " +
		"Take up what the newest asks for, and keep what the older ones did."
	if attempt > 1 {
		intro += " What this step made before is still there: go on from it."
	}
	p.sent(list, step, "Where gates sent the work", intro, maxSentAll)
}

// sentBy shows a gate's reviewer the routes that the gate took.
func (p *page) sentBy(list []Sent) {
	p.sent(list, "", "Where this gate sent the work before",
		"In earlier rounds this gate sent the work on by these names, oldest first.", maxSentReviewed)
}

// sent shows which gates sent the work on, and with which words, oldest first.
func (p *page) sent(list []Sent, step, title, intro string, room int) {
	if len(list) == 0 {
		return
	}
	p.section(title)
	p.text("%s\n", intro)
	list = newest(p, list, maxSent, "older ones")
	shown, most := make([]string, len(list)), room
	for i := len(list) - 1; i >= 0; i-- {
		body := list[i].spoken(most)
		if len(body) > room {
			body = "(What it said is left out here to make room for newer words.)\n"
		}
		shown[i] = list[i].head(step) + "\n" + body
		room -= len(body)
	}
	p.raw(strings.Join(shown, "\n"))
}

func (s Sent) head(step string) string {
	where := "to " + text.Code(name(s.To))
	if s.To == step {
		where = "here"
	}
	out := fmt.Sprintf("Gate %s sent the work %s by %s", text.Code(name(s.Gate)), where, text.Code(name(s.Route)))
	if s.Times > 1 {
		out += fmt.Sprintf(", time %d", s.Times)
	}
	out += ". Decided by " + orElse(text.RevealLine(s.Reviewer, maxLabel), "the engine") +
		", " + s.At.UTC().Format(time.RFC3339)
	if s.Score != nil {
		out += ", score " + number(*s.Score) + " of 100"
	}
	return out + ".\n"
}

// spoken is what was said in one round, at most most bytes.
func (s Sent) spoken(most int) string {
	p := &page{}
	said := strings.TrimSpace(s.Said) != "" && s.Said != s.Feedback
	if strings.TrimSpace(s.Feedback) != "" {
		p.raw(text.Data("Word for word", s.Feedback, most*3/8))
	} else if !said {
		p.text("No words were given.")
	}
	if said {
		by := orElse(text.RevealLine(s.SaidBy, maxLabel), "a reviewer")
		p.raw(text.Data("Before that, said by "+by+", word for word", s.Said, most/8))
	}
	if list := findings.List(s.Findings); len(list) > 0 {
		p.text("\nFindings:\n")
		p.findings(list, most/4)
	}
	if len(s.Scores) > 0 {
		p.text("\nScores:\n")
		p.scores(s.Scores)
	}
	return p.String()
}
