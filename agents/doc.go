// Package agents starts, adopts and stops processes: agents, reviewers, run
// steps, gate commands, hooks. It knows what to start (a [Spec]) and how it
// ended (an [Exit]), nothing of runs, gates or the journal.
//
// # The shim
//
// A process is never a child of the daemon alone. The daemon starts a shim
// (the same binary, see [ShimMain]), the shim starts the command:
//
//	daemon (Runner) ── specs by pipe ──> shim ──> command ──> whatever it starts
//	                <── what came of it ─ │ pid file: who the shim is, before the command runs; how it ended, afterwards
//	                                      └ exit.json: the same, beside the output, a moment later
//
// A shim has one launch at a time. When that launch's whole tree is gone and
// its end recorded, it waits for the next one: to give it a spec takes a
// hundredth of the time that a new process of this size takes to start. It has
// a session of its own and outlives the daemon until its launch is over. One
// that waits goes when the daemon's end of the pipe does, or when it was let go:
// a Runner keeps up to Options.Warm of them, each for half a minute.
//
// The pid file is a line of JSON, made before the command starts: key, pid, start
// time, boot id and mark of the shim, a digest of the token, cgroup, folder. The
// end of the launch is one more line, {"ended":{…}}, after an empty one; that
// line counts. exit.json is for those who look beside the output, and where a
// shim was killed it is also where a Runner puts down what it found.
//
// A daemon that comes back finds the pid file, checks that the process named in
// it is the one that wrote it (pid, start time, boot id, a mark in its
// environment), and that it says nothing of an end, and goes on waiting. A bare
// pid is never signalled. As a shim may have another launch by now, what ends
// one is a mark beside its pid file; the signal only says "look for it". The
// mark also keeps a launch from starting that was called off before.
//
// # Promises
//
//   - At most one live process tree per pid file, whoever races: the shim
//     takes the pid file exclusively before it starts the command.
//   - A recorded outcome stays: [Runner.Ensure] with a spec that has ended
//     gives its recorded Exit and starts nothing.
//   - [Proc.Wait] returns when the whole tree is gone: daemonised
//     grandchildren, those in sessions of their own and those that ignore
//     TERM among them. A shim that is killed is noticed, and what it left is
//     found by its cgroup and by the token in its environment.
//   - Output is always drained and its files are bounded: head and tail are
//     kept, the middle is left out and said to be.
//   - A command gets descriptors 0, 1 and 2 and no other.
//
// Records are not synced: no process outlives a power cut. After one a launch
// whose pid file is there, without an end, is lost; one whose pid file is not on
// the disk any more looks as if it had never been, and one with half a pid file is
// [ErrTorn]. Who calls Ensure has to know from its own record which launches are
// from before ([BootID]); [Runner.Stop] ends by its token what may be left of one.
//
// # What is not promised
//
// A process that another daemon starts on the tree's behalf (docker,
// systemd-run) is not of the tree. Where there is no writable cgroup and the
// shim is killed with -9, a process that has also dropped SLUICE_TOKEN from
// its environment, and whose parents are gone, is not found. A process that
// the kernel cannot kill (uninterruptible sleep) is waited for. On macOS
// there is neither cgroup nor subreaper: what daemonises is found by the token
// only.
//
// Reading order: spec.go and record.go (what goes in, what is written down),
// runner.go and host_unix.go (the daemon's side), shim_unix.go, place_unix.go,
// start_unix.go and output.go (the shim's side), runner_unix.go (adopting and
// stopping), tree.go (finding what a launch has started).
package agents
