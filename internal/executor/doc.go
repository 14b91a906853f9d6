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
// # What is not promised
//
// Where there is no sandbox, an agent runs with the rights of the daemon. Whether one holds a launch is decided where it is
// made (package launch).
package executor
