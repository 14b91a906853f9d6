package daemon

import (
	"context"
	"errors"
	"time"

	"sluice/journal"
)

// The check of old records takes at most a tenth of one core.
const (
	pastShare   = 9 // times what a piece took, it rests
	pastAtLeast = time.Millisecond
)

// checkPast looks, behind the loop, at the records that the start did not read because a snapshot stands for them. Damage
// there takes nothing from what goes on, so the repo is served on; but the record is broken, and a person is told.
func (r *Repo) checkPast(ctx context.Context) {
	err := r.core.log.CheckPast(func(took time.Duration) error { return rest(ctx, max(took*pastShare, pastAtLeast)) })
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
	r.opt.Log.Error().Str("repo", r.opt.Root).Str("why", why).Msg("old records of the journal are damaged; what goes on is not concerned")
	if r.opt.Alarm != nil {
		r.opt.Alarm(ctx, "the journal is damaged", why)
	}
}
