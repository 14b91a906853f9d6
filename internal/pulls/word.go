package pulls

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/forge"
	"sluice/internal/job"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// summons begins a comment that speaks to sluice.
const summons = "/sluice"

const (
	noEdits  = "an edited comment does not count: write a new one"
	leastHex = 12 // digits of a commit that name it
	maxSays  = 8 << 10
	// skew is how much earlier than a round's opening a comment may seem: the forge has its own
	// clock, in whole seconds.
	skew = 5 * time.Second
)

// word is what a comment says to sluice.
type word struct {
	outcome string
	commit  string // as named; "" = none
	text    string
}

// parse reads a comment whose first line begins with /sluice.
func parse(body string) (w word, ok bool) {
	body = strings.TrimSpace(body)
	if len(body) > maxSays {
		body = text.Head(body, maxSays)
	}
	first, rest, _ := strings.Cut(body, "\n")
	fields := strings.Fields(first)
	if len(fields) == 0 || fields[0] != summons {
		return w, false
	}
	fields = fields[1:]
	if len(fields) > 0 {
		w.outcome, fields = strings.ToLower(fields[0]), fields[1:]
	}
	if len(fields) > 0 && isHex(fields[0]) {
		w.commit, fields = strings.ToLower(fields[0]), fields[1:]
	}
	w.text = text.CleanLines(strings.TrimSpace(strings.Join(fields, " ")+"\n"+rest), maxSays)
	return w, true
}

// isHex reports whether a word can only be meant as a commit.
func isHex(s string) bool {
	return len(s) >= 7 && len(s) <= 64 && !strings.ContainsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

func viaOf(c forge.Comment) string { return fmt.Sprintf("comment %d", c.ID) }

// means returns the answer that a comment gives, or why it does not count. outsider: its author
// decides at no gate that asks now.
func (t talk) means(c forge.Comment, said word) (ev engine.Answered, why string, outsider bool) {
	asked := t.asked()
	if len(asked) == 0 {
		return ev, "no gate of the run asks anything now", !t.knows(c.Author)
	}
	mine := slices.DeleteFunc(slices.Clone(asked), func(q job.MadeRound) bool {
		return !isApprover(t.j.Spec.Gate(q.Gate).Reviewer.Approvers, c.Author)
	})
	if len(mine) == 0 {
		return ev, text.Line(c.Author) + " is not among the approvers of a gate that asks now, so this does not count", true
	}
	if c.Edited {
		return ev, noEdits, false
	}
	q, why := chosen(mine, said, t.j.Spec)
	if why != "" {
		return ev, why, false
	}
	commit := tree.CommitIn(q.Digest)
	if why := bound(q, said, t.early(q, c), commit, t.pull, t.shown); why != "" {
		return ev, why, false
	}
	by := engine.Actor{Who: c.Author, Via: viaOf(c), Trust: engine.TrustForge}
	if strings.EqualFold(c.Author, t.me) {
		by.Trust = engine.TrustFile
	}
	want := q.Trust
	if engine.Trusted(t.j.Config.Trust, want) { // the stricter of then and now
		want = t.j.Config.Trust
	}
	if by.Trust == engine.TrustFile && !engine.Trusted(by.Trust, want) {
		return ev, fmt.Sprintf("gh is logged in as %s here, and agents may hold that login, so this counts only as `file`; "+
			"gate `%s` wants `%s`: have another approver say it, or answer where sluice runs: `%s`", t.me, q.Gate, want,
			engine.Verb(q.Gate, said.outcome)), false
	} else if !engine.Trusted(engine.TrustForge, want) {
		return ev, fmt.Sprintf("gate `%s` wants `%s`, and a comment is `forge`: answer where sluice runs: `%s`", q.Gate, want,
			engine.Verb(q.Gate, said.outcome)), false
	}
	return engine.Answered{Run: t.j.Run, Gate: q.Gate, Round: q.N, Outcome: said.outcome, Text: said.text,
		Written: c.Created, By: by}, "", false
}

// knows reports whether somebody decides at some gate of the workflow.
func (w *watch) knows(who string) bool {
	return slices.ContainsFunc(w.j.Spec.Gates, func(g *engine.Gate) bool { return isApprover(g.Reviewer.Approvers, who) })
}

// chosen returns the round that a comment is about.
func chosen(mine []job.MadeRound, said word, spec *engine.Spec) (q job.MadeRound, why string) {
	if said.commit != "" {
		mine = slices.DeleteFunc(mine, func(q job.MadeRound) bool {
			return len(said.commit) >= leastHex && !strings.HasPrefix(tree.CommitIn(q.Digest), said.commit)
		})
	}
	switch {
	case len(mine) == 0:
		return q, fmt.Sprintf("commit %s is not what is judged now", said.commit)
	case len(mine) > 1:
		var gates []string
		for _, q := range mine {
			gates = append(gates, q.Gate)
		}
		return q, "several gates ask about that (" + strings.Join(gates, ", ") + "): answer where sluice runs"
	}
	g := spec.Gate(mine[0].Gate)
	if known := g.Outcomes(); !slices.Contains(known, said.outcome) {
		return q, fmt.Sprintf("gate `%s` has no outcome %s: want one of `%s`", g.ID, text.Code(said.outcome),
			strings.Join(known, "`, `"))
	}
	return mine[0], ""
}

// early reports whether a comment was written before the round opened. This machine's clock may be behind
// the forge's. So a comment is early too if another decided a round before this one opened, and it was
// written together with that or before sluice answered that.
func (t talk) early(q job.MadeRound, c forge.Comment) bool {
	return c.Created.Before(q.Opened.Add(-skew)) || slices.ContainsFunc(t.all, func(d forge.Comment) bool {
		was := t.decided(d)
		return was != nil && d.ID != c.ID && !was.Ended.After(q.Opened) &&
			(c.Created.Before(d.Created.Add(skew)) || c.ID < answerTo(t.all, d.ID, t.me))
	})
}

// bound returns why a comment is not about the commit that the round judges.
func bound(q job.MadeRound, said word, early bool, commit string, pull forge.Pull, was shown) string {
	again := fmt.Sprintf("name the commit that you looked at: `/sluice %s %.12s`", said.outcome, commit)
	no := engine.Refuses(said.outcome)
	switch {
	case commit == "":
		return "what gate `" + q.Gate + "` judges is in no commit: answer where sluice runs"
	case said.commit == "" && !no:
		return again
	case said.commit != "" && len(said.commit) < leastHex:
		return fmt.Sprintf("%s is too short to name a commit (%d digits or more): %s", said.commit, leastHex, again)
	case said.commit != "" && !strings.HasPrefix(commit, said.commit):
		return fmt.Sprintf("commit %s is not what is judged now: look again, then %s", said.commit, again)
	case !no && said.commit != commit && slices.ContainsFunc(was.pushed, func(other string) bool {
		return other != commit && strings.HasPrefix(other, said.commit)
	}): // whoever makes commits finds two of one beginning in seconds
		return fmt.Sprintf("two commits that were shown here begin with %s: name all of it: `/sluice %s %s`", said.commit,
			said.outcome, commit)
	case early:
		return fmt.Sprintf("it was written before round %d of gate `%s` opened: look again, then write a new comment",
			q.N, q.Gate)
	case said.outcome == engine.OutcomePass && q.State != engine.OnHuman:
		return fmt.Sprintf("gate `%s` does not ask a person now", q.Gate)
	case !no && pull.Head != commit:
		return fmt.Sprintf("the pull request shows commit %.12s, and gate `%s` judges %.12s: somebody else pushed there",
			pull.Head, q.Gate, commit)
	case !no && pull.Base != was.onto:
		return otherTarget(pull, was.onto)
	}
	return ""
}

const replyMark = "<!-- sluice:reply %d -->"

// replyTo is the answer to a comment. It calls nobody.
func replyTo(c forge.Comment, refused bool, says string) string {
	head := "Counted: "
	if refused {
		head = "Not counted: "
	}
	quote, _, _ := strings.Cut(strings.TrimSpace(c.Body), "\n")
	return unmarked(fmt.Sprintf("> %s\n\n%s%s\n", text.Code(text.Clip(quote, 200)), head, says)) +
		fmt.Sprintf(replyMark, c.ID)
}

// answerTo returns the id of the comment by which sluice answered another, 0 = it has not. The ids of a
// forge's comments increase.
func answerTo(all []forge.Comment, id int64, me string) int64 {
	for _, c := range all {
		if strings.EqualFold(c.Author, me) && strings.Contains(c.Body, fmt.Sprintf(replyMark, id)) {
			return c.ID
		}
	}
	return 0
}
