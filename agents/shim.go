package agents

// What a shim says to the one who gave it a spec, a line each.
const (
	saysClaimed = "claimed" // the launch is its own
	saysTaken   = "taken"   // another was first; it has done nothing
	saysRefused = "refused" // nothing was started; why follows
	saysEnded   = "ended"   // the launch is over and recorded; how follows as JSON. It takes another
)

// NoCgroup is an argument of the shim: make no cgroup, for a system on which
// they do harm. The tree is then found by ancestry and by the token alone.
const NoCgroup = "--no-cgroup"

// Exit codes of the shim. Nobody decides by them: the record counts.
const (
	shimDone    = 0
	shimRefused = 1 // nothing was started
	shimSilent  = 2 // the command ended, its record could not be written
)
