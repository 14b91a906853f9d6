// Package agents starts, adopts and stops processes: agents, reviewers, run steps, gate commands,
// hooks. It knows what to start (a [Spec]) and how it ended (an [Exit]), but nothing of runs, gates
// or the journal.
//
// # The shim
//
// The daemon never has only the command as its child. It starts a shim (the same binary, see
// [ShimMain]), which starts the command:
//
//	daemon (Runner) ── specs by pipe ──> shim ──> command ──> whatever it starts
//	                <── results ──────── │ pid file: who the shim is, before the command runs;
//	                                     │ how it ended, afterwards
//	                                     └ exit.json: the same, beside the output, a moment later
//
// A shim has one launch at a time. When that launch's whole tree is gone and its end recorded, it
// waits for the next one: passing it a spec takes a hundredth of the time that starting a new
// process of this size takes. It has its own session and outlives the daemon until its launch is
// over. An idle shim ends when the daemon's end of the pipe closes or when it is dismissed; a
// Runner keeps up to Options.Warm of them, each for half a minute.
//
// The pid file has a line of JSON, written before the command starts: the pid file's name, key, pid,
// start time, boot id and mark of the shim, a digest of the token, cgroup, folder. The end of the
// launch is one more line, {"ended":{…}}, after an empty one; that line counts. On Linux the pid files
// of a shim's launches, if their folders are side by side, are names of one file while that is small:
// a name is quicker than a file. exit.json is for readers beside the output; if a shim was killed, a
// Runner also records there what it found, where the folder exists.
//
// A restarted daemon finds the pid file and checks that the named process wrote it (pid, start
// time, boot id, a mark in its environment) and that no end is recorded. Then it continues waiting.
// A bare pid is never signalled. Because a shim may have another launch by then, a launch is
// stopped by a mark beside its pid file; the signal only says "look for it". The mark also prevents
// a start that was called off before.
//
// # Promises
//
//   - At most one live process tree per pid file: the shim takes the pid file exclusively before it
//     starts the command.
//   - A recorded outcome is final: for an ended spec [Runner.Ensure] returns the recorded Exit and
//     starts nothing.
//   - [Proc.Wait] returns when the whole tree is gone, including daemonised grandchildren,
//     processes in other sessions and those that ignore TERM. If a shim is killed, its processes
//     are found by its cgroup and by the token in their environment.
//   - A launch without output that succeeds creates no file but its record.
//   - Output is always drained and its files are bounded: head and tail are kept, and a line marks
//     the omitted middle.
//   - A command gets descriptors 0, 1 and 2 and no other.
//
// Records are not synced, as no process survives a power cut. After one, a launch with a pid file
// but no end is lost; one whose pid file did not reach the disk looks as if it had never been; one
// with half a pid file is [ErrTorn]. Callers of Ensure must know from their own record which
// launches predate the boot ([BootID]); [Runner.Stop] ends by its token what may be left of one.
//
// # What is not promised
//
// A process that another daemon starts on the tree's behalf (docker, systemd-run) is not part of
// the tree. Without a writable cgroup, after the shim is killed with -9, a process is not found if
// it has dropped SLUICE_TOKEN from its environment and its parents are gone. A process that the
// kernel cannot kill (uninterruptible sleep) is waited for. macOS has neither cgroups nor
// subreapers: daemonised processes are found only by the token.
//
// Reading order: spec.go and record.go (what goes in, what is recorded), runner.go and host_unix.go
// (the daemon's side), shim_unix.go, supervise_unix.go, place_unix.go, start_unix.go and output.go (the shim's side),
// runner_unix.go (adopting and stopping), tree.go (finding what a launch has started).
package agents
