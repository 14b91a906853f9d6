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
