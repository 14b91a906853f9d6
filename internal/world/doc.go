// Package world is the world as the daemon's loop sees it. It makes the rooms, ties them, and says which effect goes to
// which of them: work (steps, hooks, task files) stands on judge (checks, reviews), that on collect (what agents are asked
// about), launch (processes) and folders (where attempts work). Beside these stand inbox, refs and people. No adapter and
// no part of the loop imports this package.
//
// # What is promised
//
// Carrying an effect out twice does no harm, also by another World after a crash: a launch is found by its pid file
// and waited for, or its recorded end is given; a file is written whole by rename, or not again; a file that has left
// the inbox is not moved twice. The end of a context ends the waiting and never a process. What may pass (a full disk)
// is tried again until the context ends.
//
// # What is not promised
//
// Where there is no sandbox, an agent runs with the rights of the daemon. Whether one holds a launch is decided where it is
// made (package launch).
package world
