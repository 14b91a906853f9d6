package pulls

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/forge"
	"sluice/internal/job"
	"sluice/internal/text"
)

// lastWords is how long the last word on an issue is tried.
const lastWords = time.Minute

// tellIssue says on the issue that the run was started for where it stands: in one comment, which
// is edited.
func (p *Pulls) tellIssue(ctx context.Context, hub *forge.Hub, j job.Job) error {
	n := engine.IssueOf(j.Vars)
	if n == 0 {
		return nil
	}
	rec, err := p.load(j.Run)
	if err != nil {
		return err
	}
	body := stands(j, rec)
	if body == rec.Stands {
		return nil
	}
	id, err := reword(ctx, hub, n, rec.Issue, markOf(j.Run), body)
	if forge.Is(err, forge.Missing) { // the issue is gone
		p.opt.Notes.Logf("issue %d of %s: %v", n, j.Run, err)
	} else if err != nil {
		return err
	}
	return p.note(j.Run, func(r *record) { r.Issue, r.Stands = id, body })
}

// reword gives sluice's comment on an issue a new body, and creates the comment where it is missing. id is 0
// if it was never noted, perhaps because a kill came before: the mark in its body identifies it.
func reword(ctx context.Context, hub *forge.Hub, issue int, id int64, mark, body string) (int64, error) {
	if id == 0 {
		me, err := hub.Me(ctx)
		if err != nil {
			return 0, err
		}
		all, err := hub.Comments(ctx, issue)
		if err != nil {
			return 0, err
		}
		for _, c := range all {
			if strings.EqualFold(c.Author, me) && strings.Contains(c.Body, mark) {
				id = c.ID
			}
		}
	}
	if id > 0 {
		if err := hub.Reword(ctx, id, body); !forge.Is(err, forge.Missing) { // else somebody has removed it
			return id, err
		}
	}
	c, err := hub.Say(ctx, issue, body)
	return c.ID, err
}

// stands says where a run stands.
func stands(j job.Job, rec record) string {
	out := []string{fmt.Sprintf("sluice works on this as `%s`.", j.Run)}
	switch phase := j.RunInfo.Phase; {
	case phase == engine.RunRunning || phase == engine.RunPending:
		for _, w := range j.Made.Stands {
			out = append(out, "- waits: "+text.Code(w))
		}
	default:
		line := "It has " + map[string]string{engine.RunCompleted: "completed", engine.RunFailed: "failed",
			engine.RunAborted: "been aborted"}[phase]
		if j.RunInfo.EndWhy != "" {
			line += ": " + text.Code(text.Clip(j.RunInfo.EndWhy, maxWords))
		}
		out = append(out, line+".")
	}
	if rec.Number > 0 {
		out = append(out, fmt.Sprintf("Pull request: #%d", rec.Number))
	}
	return markOf(j.Run) + "\n" + unmarked(strings.Join(out, "\n\n"))
}

// Ended has the last word on the issue that an ended run was started for. A forge that is away is
// asked again, but not for long.
func (p *Pulls) Ended(ctx context.Context, j job.Job) {
	if j.Made == nil || engine.IssueOf(j.Vars) == 0 || len(j.RunInfo.Stubs) > 0 || j.RunInfo.Child != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	for c := (pace{}); ; {
		hub, _, err := p.at(ctx)
		if err == nil {
			err = p.tellIssue(ctx, hub, j)
		}
		if err == nil {
			return
		}
		f := forge.FaultOf(err)
		if f == nil || !f.Passes() || !p.opt.Wait(ctx, c.after(err, 0)) {
			p.opt.Notes.Logf("issue of %s: %v", j.Run, err)
			return
		}
	}
}
