package daemon

import (
	"context"

	"sluice/engine"
	"sluice/internal/job"
)

// World carries effects out and reads the inboxes of one repo.
//
// Carry works until the effect is done, and gives the event that came of it. It gives nil only when ctx ended first:
// ctx ends when the effect is not owed any more, or the daemon goes; processes go on then. Carrying the same effect out
// again has to be harmless (the same Name): a launch is adopted, or its recorded end is given. Carry never gives up by
// itself on a full disk or the like: it tries again until ctx ends. It may hand over events on the way by emit.
//
// Scan reads the inboxes once (with Only: those) and gives what lies in them as FileSeen events, in the order they count:
// sentinels by name, then a person's veto, fail, pass and the rest by name. Files that are not whole yet are left for the
// next scan. With more, some folder holds more than was read: the next scan goes on there.
type World interface {
	Carry(ctx context.Context, job job.Job, emit func(engine.Event)) engine.Event
	Scan(ctx context.Context, in job.Inboxes) (seen []engine.Event, more bool, err error)
	// DigestNow gives the digest of what a round was opened over, as it is now.
	DigestNow(ctx context.Context, q job.Reviewed) (string, error)
	// Proven checks an answer that came as a signed text (with proof "" there is none, and it gives the zero value). What
	// the text says, or why it does not count, is in what it gives; words are those that were signed.
	Proven(proof string) (p engine.Proven, words string)
	// Trees gives for each worktree a spec names the key of the checkout it lies in, where that exists already.
	Trees(ctx context.Context, spec *engine.Spec) map[string]string
	// Hints tells that an inbox may have changed: Hinted has something.
	Hints() <-chan struct{}
	// Hinted gives the folders that may have changed, each once, and forgets them.
	Hinted() []job.Place
	// Health says what of the world is not as it should be; empty = all well.
	Health() []string
	// Level says what stands between the agents of a run and its gates (engine.TrustFile, engine.TrustSandbox), and, where
	// that is nothing, why. The empty run is for what is to come.
	Level(run string) (level, why string)
}
