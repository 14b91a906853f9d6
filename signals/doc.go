// Package signals turns bytes that were seen into what they mean: a step's
// sentinel, a person's decision, a commit's marker, and the names of the files
// they come in. It is pure: it opens nothing, waits for nothing and decides
// nothing. Whether a signal counts (its step, run, attempt, token and time) is
// the engine's to say.
//
// Signals are read while they are being written, so each reading ends in one
// of three states: whole, partial (it may still become whole: read it again
// as it grows) or bad (it never will). Everything is bounded, and read strictly:
// see package strictjson for what is refused and why.
//
// The texts in a signal are foreign and come as they were written. Who shows
// them has to clean them first.
package signals
