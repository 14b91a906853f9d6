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
//	boot                             the start of the machine and the mount of this folder in which the repo was first
//	                                 served, when that was by the clock, and how long the machine was up
//	launches/<run>/<key>.pid         who is (or was) the process of a launch, and how it ended (see package agents)
//	launches/<run>/<key>.pid.stop    the launch is to end, or not to start
//	launches/<run>/<key>.pid.agent   by which program its output was made
//	launches/<run>/<key>.pid.idle    it was ended because it said nothing for its idle_timeout
//	launches/<run>/<key>.pid.git     which git folder is a held launch's own, and where its work began
//	gits/<run>/<key>                 that folder; it goes when its commits were taken
//	attempts/<run>/<step>.<n>.begin  how the worktree was when the attempt began
//	attempts/<run>/<step>.<n>.files  what the attempt declared and changed: what a person's pass is bound to
//	retry/<digest of its path>       which run wrote a retry-context file: those of ended runs are swept away
//	judge/<k>/                       a checkout of a taken commit for those who judge (see package gates/judge)
//	setup/<digest>/<i>               what a setup has made for those who judge, in the order of its `provides`
//	making/<digest of its path>      a worktree is being made: one that a kill left half made is completed
//	remote                           the address that is asked for pull requests, as it was when it was first needed
//
// A launch's <key> is what follows the run in its engine key, with "=" for "/" and ":": write#2.1 (step, attempt, launch),
// check#1.1 (gate, round, launch), write#1.hook, write#1.check-7=0 (the first command of a check), after_run-12; "+1" and
// "+2" behind it are the corrections, where an agent is asked again for an answer that could not be read. What ends a key
// ends these too.
//
// # The start of the machine, or of its disk
//
// The records of launches are not synced: no process outlives a power cut. So what was decided before the start that boot
// tells is never started under its key where it has no pid file: what may still bear its token is ended, and it is lost.
// The engine launches it anew, under another key, as often as restarts allow. A pid file that is no record counts as none
// if it is older than that start, and is removed; the launch of a newer one is lost too, and the file stays.
//
// A state folder on another mount than before is another start: a disk that failed and was mended may have lost what was
// not synced, while the processes live on. Commands of checks and hooks, which do no harm twice, are started again under
// their keys.
//
// # What is not promised
//
// Where there is no sandbox, an agent runs with the rights of the daemon. Whether one holds a launch is decided where it is
// made (process.start).
package executor
