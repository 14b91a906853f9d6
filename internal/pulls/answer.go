package pulls

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/forge"
	"sluice/internal/job"
	"sluice/internal/text"
)

func answerMark(id int64) string { return fmt.Sprintf("<!-- sluice:answer %d -->", id) }

// answer tells each thread for which the work was sent back which commit was made for it, once, and
// asks those who wanted changes to look again.
func (p *Pulls) answer(ctx context.Context, hub *forge.Hub, j job.Job, pull forge.Pull, commit string) error {
	rec, err := p.load(j.Run)
	if err != nil {
		return err
	}
	var due []thread
	for _, t := range rec.Threads {
		if t.Commit != commit {
			due = append(due, t)
		}
	}
	if len(due) == 0 {
		return nil
	}
	me, err := hub.Me(ctx)
	if err != nil {
		return err
	}
	lines, err := hub.LineComments(ctx, pull.Number)
	if err != nil {
		return err
	}
	var again []string
	for _, t := range due {
		if !slices.Contains(again, t.By) {
			again = append(again, t.By)
		}
		answered := slices.ContainsFunc(lines, func(c forge.Comment) bool {
			return strings.EqualFold(c.Author, me) && strings.Contains(c.Body, answerMark(t.ID))
		})
		if answered {
			continue
		}
		body := fmt.Sprintf("%s was made for this (%s.%d).", commit, j.Round.Step, j.Attempt.N)
		if j.Attempt.Summary != "" {
			body += "\n\n" + text.Code(text.Clip(j.Attempt.Summary, maxWords))
		}
		err := hub.Reply(ctx, pull.Number, t.ID, unmarked(body)+"\n"+answerMark(t.ID))
		if err != nil && !forge.Is(err, forge.Missing) { // the comment was removed
			return err
		}
	}
	if err := hub.AskReview(ctx, pull.Number, again); err != nil && !forge.Is(err, forge.Refused) {
		return err
	}
	return p.note(j.Run, func(r *record) {
		r.Threads = slices.DeleteFunc(r.Threads, func(t thread) bool { return slices.Contains(due, t) })
	})
}
