package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/findings"
	"sluice/internal/text"
)

const (
	maxRetryContext  = 160 << 10 // bytes of a retry-context file
	maxCommentsShown = 88 << 10  // all of a person: findings.Of takes 64 KiB of JSON
	maxFindingsShown = 24 << 10
	maxFinding       = 4 << 10 // one finding's message
	maxEarlier       = 50      // files
)

// RetryInput is what a retry-context file is made of.
type RetryInput struct {
	Workflow string
	Run      string
	Gate     string
	GateName string
	Step     string
	Attempt  int
	N        int // the number of this file, of this gate in this run
	Max      int // max_failures
	Outcome  string
	Reviewer string // who judged, in words
	At       time.Time
	Score    *float64
	Scores   map[string]float64
	Feedback string
	Asked    string // why a person was asked; "" = none was
	Said     string // what was said of the work before a person decided, by SaidBy
	SaidBy   string
	Missed   string          // why the review before a person's decision has no verdict
	Comments json.RawMessage // the person's, by file and line
	Findings json.RawMessage // the reviewer's
	Earlier  []string        // earlier files of the run, oldest first
}

// RetryContext returns the Markdown that says to the next attempt what was wrong, at most maxRetryContext bytes. The
// reviewer's words stand in it as data.
func RetryContext(in RetryInput) []byte {
	p := &page{}
	gate := in.Gate
	if in.GateName != "" && in.GateName != gate {
		gate += " (" + in.GateName + ")"
	}
	p.title(fmt.Sprintf("Sent back by gate %s, time %d", gate, in.N))
	p.raw("\n")
	p.list(in.about())
	p.wrong(in)
	if list := findings.List(in.Comments); len(list) > 0 {
		p.section("Comments on lines")
		p.text("The line numbers are those of the files as they were judged.\n")
		p.findings(list, maxCommentsShown)
	}
	p.before(in)
	if list := findings.List(in.Findings); len(list) > 0 {
		p.section("Findings")
		p.findings(list, maxFindingsShown)
	}
	if len(in.Scores) > 0 {
		p.section("Scores")
		p.scores(in.Scores)
	}
	p.section("What to do now")
	p.text("1. The work that was judged is still there. Change it; do not start over.")
	p.text("2. Fix every point above. Where you think a point is wrong, say so and why, and fix the rest.")
	p.text("3. Change no test, check or criterion only to make it pass.")
	p.text("4. Check the step's outputs and criterion yourself, then say that you are done, as before.")
	if len(in.Earlier) > 0 {
		p.section("Earlier files of this run")
		p.text("Read them too: what they ask for has to stay fixed.\n")
		from := max(0, len(in.Earlier)-maxEarlier)
		if from > 0 {
			p.text("- … (%d older ones)", from)
		}
		p.list(each(in.Earlier[from:], text.Code))
	}
	return []byte(p.String())
}

// about lists who judged what, when and how.
func (in RetryInput) about() []string {
	about := []string{
		fmt.Sprintf("Step: %s, attempt %d", text.Code(in.Step), in.Attempt),
		"Outcome: " + text.Code(in.Outcome),
		"Judged by: " + orElse(text.RevealLine(in.Reviewer, maxLabel), "unknown"),
		"At: " + in.At.UTC().Format(time.RFC3339),
		fmt.Sprintf("Workflow: %s, run %s", text.Code(in.Workflow), text.Code(in.Run)),
	}
	if in.Score != nil {
		about = append(about, "Score: "+number(*in.Score)+" of 100")
	}
	if in.Max > 0 {
		about = append(about, fmt.Sprintf("From failure %d on this gate sends nothing back by itself", in.Max))
	}
	return about
}

func (p *page) wrong(in RetryInput) {
	p.section("What is wrong")
	switch {
	case strings.TrimSpace(in.Feedback) != "":
		p.raw(text.Data("Word for word", in.Feedback, engine.MaxFeedback))
	case len(in.Comments) > 0:
		p.text("The person who decided gave no words beside the comments below.")
	case strings.TrimSpace(in.Said) != "":
		p.text("The person who decided gave no words of their own: what was said before is what is wrong.")
	default:
		p.text("No words were given. See the findings and scores, where there are any; " +
			"otherwise check the work against the criterion again.")
	}
}

// before shows what was said before a person decided.
func (p *page) before(in RetryInput) {
	if in.Said+in.Missed+in.Asked == "" {
		return
	}
	p.section("Before the person decided")
	if in.Asked != "" {
		p.text("A person was asked because: %s\n", text.RevealLine(in.Asked, maxInline))
	}
	if in.Missed != "" {
		p.text("The review was inconclusive: %s\n", text.RevealLine(in.Missed, maxInline))
	}
	if in.Said != "" {
		p.text("Where these words and the person's differ, the person's hold. " +
			"The findings and scores below, where there are any, belong to these.\n")
		label := "Said by " + orElse(in.SaidBy, "a reviewer") + ", word for word"
		p.raw(text.Data(label, in.Said, engine.MaxFeedback))
	}
}

// findings lists findings, at most most bytes of them.
func (p *page) findings(list []findings.Finding, most int) {
	used := 0
	for i, f := range list {
		item := findingLine(f)
		if used += len(item); used > most {
			p.text("- … (%d more left out)", len(list)-i)
			return
		}
		p.text("- %s", item)
	}
}

func findingLine(f findings.Finding) string {
	var parts []string
	if s := text.RevealLine(f.Severity, maxLabel); s != "" {
		parts = append(parts, "["+s+"]")
	}
	if f.File != "" {
		parts = append(parts, text.Code(f.Place()))
	}
	parts = append(parts, orElse(text.RevealLine(f.Message, maxFinding), "(no words)"))
	return strings.Join(parts, " ")
}

func (p *page) scores(scores map[string]float64) {
	p.list(each(slices.Sorted(maps.Keys(scores)), func(name string) string {
		return text.RevealLine(name, maxLabel) + ": " + number(scores[name])
	}))
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
