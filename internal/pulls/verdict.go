package pulls

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/engine"
	"sluice/internal/findings"
	"sluice/internal/forge"
	"sluice/internal/git"
	"sluice/internal/text"
)

// Limits of what the work is sent back with.
const (
	maxLogs    = 4       // failing checks whose log is given
	maxLog     = 3 << 10 // bytes of the end of a log
	maxReview  = 4 << 10 // bytes of a review's words
	maxThreads = 200
)

// checksSeen sorts the checks of a commit.
type checksSeen struct {
	green, pending, silent []string
	red                    []forge.Check
}

func seeChecks(all []forge.Check) (c checksSeen) {
	for _, one := range all {
		switch one.State {
		case forge.Green:
			c.green = append(c.green, one.Name)
		case forge.Pending:
			c.pending = append(c.pending, one.Name)
		case forge.Silent:
			c.silent = append(c.silent, one.Name)
		default:
			c.red = append(c.red, one)
		}
	}
	return c
}

// settled reports whether there are checks and all of them are green.
func (c checksSeen) settled() bool { return len(c.green) > 0 && len(c.pending)+len(c.red) == 0 }

func (c checksSeen) names() string {
	slices.Sort(c.green)
	return strings.Join(c.green, "\n")
}

// skips returns what in a commit's message has GitHub, or another service that reports to it, run no checks of that
// commit; "" = nothing has. A message that was cut may have it in the rest.
// (https://docs.github.com/en/actions/how-tos/manage-workflow-runs/skip-workflow-runs)
func skips(message string) string {
	if len(message) > git.MaxMessageBytes-utf8.UTFMax {
		return fmt.Sprintf("more than %d bytes, or nearly", git.MaxMessageBytes)
	}
	return regexp.MustCompile(`(?i)\[(no[ -]ci|skip[ -][a-z-]+|[a-z-]+[ -]skip)\]|\*\*\*no_ci\*\*\*|skip-checks: *true`).
		FindString(message)
}

// reviewsSeen sorts what people decided about a commit: the newest decision of each counts.
type reviewsSeen struct {
	approved []string       // who has approved this commit, and counts
	readers  []string       // who has approved it, and may not write to the repo
	stale    []string       // who wanted changes of an earlier one, and has not looked again
	wants    []forge.Review // who wants changes of this one
}

// seeReviews leaves out gh's own account, which agents may hold, and everybody who neither belongs
// to the repo nor is an approver. With approvers at the forge, only their approval counts; without,
// that of everybody who may write to the repo: see writers.
func seeReviews(all []forge.Review, commit, me string, approvers []string) (out reviewsSeen) {
	named := names(approvers)
	newest := map[string]forge.Review{}
	var order []string
	for _, r := range all {
		who := strings.ToLower(r.Author)
		if who == "" || strings.EqualFold(r.Author, me) || !r.Belongs && !isApprover(approvers, r.Author) ||
			!slices.Contains([]string{forge.Approved, forge.WantsChange, forge.Dismissed}, r.State) {
			continue
		}
		if _, seen := newest[who]; !seen {
			order = append(order, who)
		}
		newest[who] = r
	}
	for _, who := range order {
		switch r := newest[who]; {
		case r.State == forge.WantsChange && r.Commit == commit:
			out.wants = append(out.wants, r)
		case r.State == forge.WantsChange:
			out.stale = append(out.stale, r.Author)
		case r.State == forge.Approved && r.Commit == commit && (!named || isApprover(approvers, r.Author)):
			out.approved = append(out.approved, r.Author)
		}
	}
	return out
}

// writers keeps the approvals of those who may write to the repo, as the forge says now.
func (r *reviewsSeen) writers(may func(login string) (bool, error)) error {
	all := r.approved
	r.approved = nil
	for _, who := range all {
		switch ok, err := may(who); {
		case err != nil:
			return err
		case ok:
			r.approved = append(r.approved, who)
		default:
			r.readers = append(r.readers, who)
		}
	}
	return nil
}

// names reports whether approvers names somebody at the forge.
func names(approvers []string) bool {
	return slices.ContainsFunc(approvers, func(a string) bool { return strings.HasPrefix(a, engine.ForgePrefix) })
}

func isApprover(approvers []string, who string) bool {
	return slices.ContainsFunc(approvers, func(a string) bool { return strings.EqualFold(a, engine.ForgePrefix+who) })
}

// waiting says what a round waits for.
func waiting(by []string, name string, c checksSeen, r reviewsSeen) string {
	var out []string
	if slices.Contains(by, engine.ForgeChecks) {
		switch n := len(c.green) + len(c.pending); {
		case n == 0 && len(c.silent) > 0:
			out = append(out, fmt.Sprintf("for checks of %s, none has run (%d skipped or neutral)", name, len(c.silent)))
		case n == 0:
			out = append(out, "for checks of "+name+", none has reported yet")
		default:
			out = append(out, fmt.Sprintf("for checks of %s, %d of %d green", name, len(c.green), n))
		}
	}
	if slices.Contains(by, engine.ForgeReviews) {
		switch {
		case len(r.stale) > 0:
			out = append(out, fmt.Sprintf("for %s, who wanted changes, to review %s again", text.JoinMost(r.stale), name))
		case len(r.approved) == 0 && len(r.readers) > 0:
			out = append(out, fmt.Sprintf("for an approval of %s by somebody who may write there; %s may not", name,
				text.JoinMost(r.readers)))
		case len(r.approved) == 0:
			out = append(out, "for an approval of "+name)
		default:
			out = append(out, "approved by "+text.JoinMost(r.approved))
		}
	}
	return strings.Join(out, "; ")
}

func passWords(name, commit string, c checksSeen, r reviewsSeen) string {
	out := fmt.Sprintf("%s at %.12s:", name, commit)
	if len(c.green) > 0 {
		out += fmt.Sprintf(" %s green", text.Plural(len(c.green), "check"))
	}
	if len(r.approved) > 0 {
		out += " approved by " + text.JoinMost(r.approved)
	}
	return out
}

// redWords tells of a failing check with the end of its log.
func redWords(c forge.Check, log string) string {
	out := fmt.Sprintf("The check %s failed (%s)", text.Line(c.Name), text.Line(c.How))
	if c.URL != "" {
		out += ": " + text.Line(c.URL)
	}
	if log = strings.TrimSpace(log); log != "" {
		out += "\n" + text.Tail(text.CleanLines(log, 4*maxLog), maxLog)
	}
	return out
}

// changes makes findings of the comments on lines, and words of the reviews themselves.
func changes(wants []forge.Review, lines []forge.Comment, commit string) (found json.RawMessage, open []thread,
	words []string) {
	var list []findings.Finding
	for _, r := range wants {
		said := text.Line(r.Author) + " wants changes"
		if body := strings.TrimSpace(r.Body); body != "" {
			said += ":\n" + text.Head(text.CleanLines(body, 4*maxReview), maxReview)
		}
		words = append(words, said)
		for _, c := range lines {
			if c.Review != r.ID || c.ReplyTo != 0 || len(list) == findings.Max {
				continue
			}
			list = append(list, findings.Finding{Severity: "change wanted", File: c.File, Line: c.Line,
				Message: text.Head(text.Line(c.Author)+": "+text.CleanLines(c.Body, findings.MaxText), findings.MaxText)})
			open = append(open, thread{ID: c.ID, Commit: commit, By: r.Author})
		}
	}
	found, err := findings.Encode(list)
	for err != nil && len(list) > 1 { // too long together
		list = list[:len(list)/2]
		found, err = findings.Encode(list)
	}
	return found, open, words
}

// merged adds threads that are not among those known.
func merged(was, more []thread) []thread {
	for _, t := range more {
		if !slices.ContainsFunc(was, func(o thread) bool { return o.ID == t.ID }) {
			was = append(was, t)
		}
	}
	return newest(was, maxThreads)
}
