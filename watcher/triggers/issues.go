package triggers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sluice/engine"
	"sluice/internal/job"
)

// Issues asks the forge for open issues.
type Issues interface {
	// Open returns the open issues with all of the labels and, unless it is "", the assignee ("me" is
	// the login of who asks), at most most, the newest first.
	Open(ctx context.Context, labels []string, assignee string, most int) ([]Issue, error)
}

// Issue is an issue of the forge. All of it is of whoever wrote it.
type Issue struct {
	Number           int
	Title, Body, URL string
	Author           string
	Labels           []string
	Trusted          bool // its author may write to the repo
}

// Limits of issues.
const (
	maxIssues  = 200
	issueEvery = time.Minute
	askMost    = 30 * time.Second
)

// values returns what expressions see of the issue.
func (i Issue) values() map[string]any {
	labels := make([]any, len(i.Labels))
	for n, l := range i.Labels {
		labels[n] = l
	}
	return map[string]any{"issue": map[string]any{"number": float64(i.Number), "title": i.Title, "body": i.Body,
		"url": i.URL, "author": i.Author, "labels": labels}}
}

func (i Issue) key() string { return strconv.Itoa(i.Number) }

// issues reports open issues. A forge that is away is asked again.
func (t *Triggers) issues(ctx context.Context, j job.Job, of *engine.Trigger, tell func(engine.Fired)) {
	told := map[string]bool{}
	for {
		open, err := t.open(ctx, of)
		if ctx.Err() != nil {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		t.Note(j.Key, why)
		for _, i := range open {
			if !told[i.key()] {
				told[i.key()] = true
				tell(engine.Fired{Key: i.key(), Values: i.values(), Trusted: i.Trusted})
			}
		}
		if !wait(ctx, nil, issueEvery) {
			return
		}
	}
}

func (t *Triggers) presentIssues(ctx context.Context, of *engine.Trigger) (keys []string, err error) {
	open, err := t.open(ctx, of)
	for _, i := range open {
		keys = append(keys, i.key())
	}
	return keys, err
}

func (t *Triggers) open(ctx context.Context, of *engine.Trigger) ([]Issue, error) {
	if t.opt.Issues == nil {
		return nil, fmt.Errorf("the forge cannot be asked for issues")
	}
	ctx, cancel := context.WithTimeout(ctx, askMost)
	defer cancel()
	return t.opt.Issues.Open(ctx, of.Labels, of.Assignee, maxIssues)
}
