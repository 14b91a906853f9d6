// Package world is the world as the daemon's loop sees it. It creates the rooms, connects them, and
// decides which room carries out an effect. Work (steps, hooks, task files) uses judge (checks,
// reviews), which uses collect (prompts), launch (processes) and folders (where attempts work).
// Inbox, refs and people are beside these. No adapter and no part of the loop imports this package.
//
// # What is promised
//
// Carrying out an effect twice does no harm, even by another World after a crash. A launch is found
// by its pid file and waited for, or its recorded end is returned; a file is written whole by
// rename, or not again; a file that has left the inbox is not moved twice. When a context ends, the
// waiting ends and never a process. Temporary errors (a full disk) are retried until the context
// ends.
//
// # What is not promised
//
// Without a sandbox, an agent runs with the rights of the daemon. Package launch decides whether a
// sandbox holds a launch.
package world
