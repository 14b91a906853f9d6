package daemon

import (
	"context"

	"sluice/engine"
	"sluice/internal/job"
)

// World carries out effects and reads the inboxes of one repo.
//
// Carry works until the effect is done and returns the resulting event. It returns nil only if ctx
// ended first, which happens when the effect is no longer owed or the daemon stops; processes then
// keep running. Carrying out the same effect (the same Name) again must be harmless: a launch is
// adopted, or its recorded end returned. Carry does not give up on a full disk or the like: it
// retries until ctx ends. It may pass intermediate events to emit.
//
// Scan reads the inboxes once (with Only: just those) and returns their contents as FileSeen
// events, in the order they count: sentinels by name, then a person's veto, fail, pass and the rest
// by name. Incomplete files are left for the next scan; if one may be a person's fail or veto, the events
// end with a Scanned of the time it was written: no window closes over it. With more, some folder has more than was
// read: the next scan continues there.
type World interface {
	Carry(ctx context.Context, job job.Job, emit func(engine.Event)) engine.Event
	Scan(ctx context.Context, in job.Inboxes) (seen []engine.Event, more bool, err error)
	// DigestNow returns the current digest of what a round was opened on.
	DigestNow(ctx context.Context, q job.Reviewed) (string, error)
	// Proven checks an answer that came as a signed text; with proof "" it returns the zero value.
	// The result has what the text says, or why it does not count; words is the signed text.
	Proven(proof string) (p engine.Proven, words string)
	// Trees returns, for each worktree a spec names, the key of its checkout if that exists
	// already.
	Trees(ctx context.Context, spec *engine.Spec) map[string]string
	// Hints signals that an inbox may have changed: Hinted has something.
	Hints() <-chan struct{}
	// Hinted returns the folders that may have changed, each once, and forgets them.
	Hinted() []job.Place
	// Health reports what is wrong with the world; empty = nothing.
	Health() []string
	// Awaits says what an open round of a gate waits for at the forge; "" = nothing is known.
	Awaits(run, gate string) string
	// Level returns what separates the agents of a run from its gates (engine.TrustFile,
	// engine.TrustSandbox) and, if nothing does, why. The empty run is for future runs.
	Level(run string) (level, why string)
}
