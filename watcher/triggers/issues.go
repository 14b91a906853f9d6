package triggers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"sluice/engine"
	"sluice/internal/forge"
	"sluice/internal/job"
)

// Forge is asked for open issues, and for who may write to the repo: see forge.Hub.
type Forge interface {
	Issues(ctx context.Context, labels []string, assignee string) ([]forge.Issue, error)
	MayWrite(ctx context.Context, login string) (bool, error)
}

// askMost limits a look at a remote or a forge.
const askMost = 30 * time.Second

var errSlow = errors.New("the forge has not answered in time")

// valuesOf returns what expressions see of an issue. All of it is of whoever wrote it.
func valuesOf(i forge.Issue) map[string]any {
	labels := make([]any, len(i.Labels))
	for n, l := range i.Labels {
		labels[n] = l
	}
	return map[string]any{"issue": map[string]any{"number": float64(i.Number), "title": i.Title, "body": i.Body,
		"url": i.URL, "author": i.Author, "labels": labels}}
}

func keyOf(i forge.Issue) string { return strconv.Itoa(i.Number) }

// issues reports open issues, each when it is new. A forge that is away is asked again.
func (t *Triggers) issues(ctx context.Context, j job.Job, of *engine.Trigger, tell func(engine.Fired)) {
	told := map[string]bool{}
	for {
		at, open, err := t.open(ctx, of)
		if ctx.Err() != nil {
			return
		}
		t.NoteError(j.Key, said(err))
		writes := map[string]bool{} // by author, each asked for once
		for _, i := range open {
			if told[keyOf(i)] {
				continue
			}
			if _, asked := writes[i.Author]; !asked {
				writes[i.Author] = t.mayWrite(ctx, at, i)
			}
			if ctx.Err() != nil { // so nothing is known of the author
				return
			}
			told[keyOf(i)] = true
			tell(engine.Fired{Key: keyOf(i), Values: valuesOf(i), Trusted: writes[i.Author]})
		}
		if !wait(ctx, nil, t.opt.Poll()) {
			return
		}
	}
}

// mayWrite reports whether the forge says that an issue's author may write to the repo. Whoever does
// not belong to it is not asked for, so that a flood by outsiders costs no calls.
func (t *Triggers) mayWrite(ctx context.Context, at Forge, i forge.Issue) bool {
	if !i.Belongs {
		return false
	}
	may, err := at.MayWrite(ctx, i.Author)
	if err != nil {
		t.Logf("trigger issue: %d: may %q write to the repo? %v", i.Number, i.Author, err)
	}
	return may && err == nil
}

func (t *Triggers) presentIssues(ctx context.Context, of *engine.Trigger) (keys []string, err error) {
	_, open, err := t.open(ctx, of)
	for _, i := range open {
		keys = append(keys, keyOf(i))
	}
	return keys, said(err)
}

// said returns an error as the forge says it.
func said(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(forge.Says(err))
}

func (t *Triggers) open(ctx context.Context, of *engine.Trigger) (Forge, []forge.Issue, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askMost, errSlow)
	defer cancel()
	at, err := t.opt.Forge(ctx)
	if err != nil {
		return nil, nil, err
	}
	open, err := at.Issues(ctx, of.Labels, of.Assignee)
	return at, open, err
}
