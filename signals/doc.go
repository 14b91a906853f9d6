// Package signals parses a step's sentinel, a person's decision, a commit's marker, and the names
// of their files. It is pure: it opens nothing, waits for nothing and decides nothing. Whether a
// signal counts (its step, run, attempt, token and time) is up to the engine.
//
// Signals are read while they are being written, so each reading ends in one of three states:
// whole, partial (it may become whole: read it again as it grows) or bad (it never will).
// Everything is bounded and read strictly: see package strictjson for what is refused and why.
//
// The texts in a signal are foreign and unchanged. Clean them before showing them.
package signals
