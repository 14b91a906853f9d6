package daemon

import (
	"context"
	"errors"
	"time"

	"sluice/internal/health"
	"sluice/journal"
)

// The check of old records uses at most a tenth of one core.
const (
	pastShare   = 9 // rests this many times as long as a piece took
	pastAtLeast = time.Millisecond
)

// checkPast checks, behind the loop, the records that a snapshot let the start skip. Damage there
// does not affect current work, so the repo stays served; but its history is broken, and a person
// is told.
func (r *Repo) checkPast(ctx context.Context) {
	err := r.core.log.CheckPast(func(took time.Duration) error {
		health.Wait(ctx, max(took*pastShare, pastAtLeast))
		return ctx.Err()
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	why := "journal: " + err.Error()
	var damage *journal.Damage
	if errors.As(err, &damage) {
		why = "journal: " + damage.Past()
	}
	r.mu.Lock()
	r.past = why
	r.mu.Unlock()
	r.opt.Log.Error().Str("repo", r.opt.Root).Str("why",
		why).Msg("old records of the journal are damaged; what goes on is not concerned")
	if r.opt.Alarm != nil {
		r.opt.Alarm(ctx, "the journal is damaged", why)
	}
}
