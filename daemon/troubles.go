package daemon

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"sluice/internal/health"
	"sluice/journal"
)

// The check of old records uses at most a tenth of one core.
const (
	pastShare   = 9 // rests this many times as long as a piece took
	pastAtLeast = time.Millisecond
)

// troubles are what is wrong with the repo's own records: they or their exports cannot be written, or old
// ones are damaged. Any goroutine may call.
type troubles struct {
	opt *RepoOptions

	mu    sync.Mutex // guards what follows; "" = nothing is wrong
	stall string     // with the disk of the journal
	outs  string     // with the exports
	past  string     // with records before the snapshot that the start read
}

// setStall records why the journal cannot be written; nil = it can.
func (t *troubles) setStall(err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok { // what, where and why, in brief
		why = failed.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if why != "" && t.stall == "" {
		t.opt.Log.Error().Str("repo", t.opt.Root).Str("why",
			why).Msg("stalled: the journal cannot be written; nothing is started until it can")
	}
	if why == "" && t.stall != "" {
		t.opt.Log.Info().Str("repo", t.opt.Root).Msg("the journal can be written again")
	}
	t.stall = why
}

// setExport records what is wrong with the exports; "" = nothing. They retry by themselves.
func (t *troubles) setExport(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why != "" && t.outs == "" {
		t.opt.Log.Warn().Str("repo", t.opt.Root).Str("why",
			why).Msg("the audit export cannot be written; what is missing is added as soon as it can")
	}
	t.outs = why
}

// checkPast checks, behind the loop, the records that a snapshot let the start skip. Damage there
// does not affect current work, so the repo stays served; but its history is broken, and people
// are notified.
func (t *troubles) checkPast(ctx context.Context, log *journal.Log) {
	err := log.CheckPast(func(took time.Duration) error {
		health.Wait(ctx, max(took*pastShare, pastAtLeast))
		return ctx.Err()
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	why := "journal: " + err.Error()
	if damage, ok := errors.AsType[*journal.Damage](err); ok {
		why = "journal: " + damage.Past()
	}
	t.mu.Lock()
	t.past = why
	t.mu.Unlock()
	t.opt.Log.Error().Str("repo", t.opt.Root).Str("why",
		why).Msg("old records of the journal are damaged; new ones are not affected")
	if t.opt.Alarm != nil {
		t.opt.Alarm(ctx, "the journal is damaged", why)
	}
}

// unwell returns what is wrong while the loop goes on.
func (t *troubles) unwell() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, why := range []string{t.past, t.outs} {
		if why != "" {
			out = append(out, why)
		}
	}
	return out
}

// stalled returns why the journal cannot be written, its disk or the stream of a cluster, and what to
// do about it.
func (t *troubles) stalled() (why, advice string) {
	if c := clusterOf(t.opt.Lead); c != nil && c.Stalled != "" {
		return c.Stalled, "fix the servers"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stall, "free some space"
}
