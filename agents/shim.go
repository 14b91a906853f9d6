package agents

// A shim's answers, one line each.
const (
	saysClaimed = "claimed" // the launch is its own; the first line of its pid file follows
	saysTaken   = "taken"   // another was first; it has done nothing
	saysRefused = "refused" // nothing was started; the reason follows
	saysEnded   = "ended"   // the launch is over and recorded; the result follows as JSON. It can take another
)

// NoCgroup is an argument of the shim: create no cgroup, for systems on which they do harm. The
// tree is then found only by ancestry and by the token.
const NoCgroup = "--no-cgroup"

// Exit codes of the shim, for information: only the record counts.
const (
	shimDone    = 0
	shimRefused = 1 // nothing was started
	shimSilent  = 2 // the command ended, its record could not be written
)
