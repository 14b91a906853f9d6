// Package executor is the world as the daemon's loop sees it: it carries out what a run owes, by way of the adapters,
// and reads the inboxes. Beside the wiring of the command it is the one place where adapters meet; no adapter and no
// part of the loop imports it.
//
// # What is promised
//
// Carrying an effect out twice does no harm, also by another Executor after a crash: a launch is found by its pid file
// and waited for, or its recorded end is given; a file is written whole by rename, or not again; a file that has left
// the inbox is not moved twice. The end of a context ends the waiting and never a process. What may pass (a full disk)
// is tried again until the context ends.
//
// # Where things lie
//
// What others may read, and agents may write, lies in .workflow/: runs/<run>/<step>.<n>/ has the prompt, the output and
// the end of each launch (from the second one on in launch-<k>/), <gate>.<round>/ those of reviews. What a decision
// hangs on lies in the state folder, out of an agent's reach:
//
//	secret                           makes the launches' tokens: HMAC-SHA256 of a launch's key, so that they outlive
//	                                 a restart and are written down nowhere
//	launches/<run>/<key>.pid         who is (or was) the process of a launch
//	attempts/<run>/<step>.<n>.begin  how the worktree was when the attempt began
//	attempts/<run>/<step>.<n>.files  what the attempt declared and changed: what a person's pass is bound to
//	retry/<digest of its path>       which run wrote a retry-context file: those of ended runs are swept away
//	remote                           the address that is asked for pull requests, as it was when it was first needed
//
// # What is not promised
//
// There is no sandbox yet: an agent runs with the rights of the daemon. Its place is where a launch is made
// (process.start), in front of the command.
package executor
