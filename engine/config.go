package engine

import (
	"cmp"
	"time"
)

// Limits on what a state may hold; each is checked where the value enters.
const (
	MaxOutput   = 8 << 10  // bytes of a process's output in an event
	MaxAnswer   = 64 << 10 // bytes of a structured answer
	MaxFeedback = 16 << 10 // bytes of feedback in a fact
	// files kept of a launch's own refused ones; more are only counted. Its signal is still read
	// until MostRefused.
	KeepRefused = 50
	MostRefused = 200      // refused files after which a launch's signal is no longer read
	MaxVars     = 64 << 10 // bytes of a run's vars as JSON
	MaxStubs    = 64 << 10 // bytes of a run's stand-in script as JSON
	KeepEnded   = 50       // ended runs per workflow that stay in the state
	MaxNote     = 4 << 10  // bytes of a person's note
	MaxNotes    = 100      // notes per run
	MaxPending  = 1000     // live runs per repo
)

// Trust levels, lowest first.
const (
	TrustFile    = "file"
	TrustSandbox = "sandbox"
	TrustForge   = "forge" // an account at the forge that the agents do not hold
	TrustSigned  = "signed"
)

// GapAllowed is how long the daemon may be away before missed deadlines are extended once.
const GapAllowed = 30 * time.Second

// ReopenHuman is the extension of a person's deadline that passed in a gap.
const ReopenHuman = 10 * time.Minute

// Config holds the settings that the engine itself uses.
type Config struct {
	MaxParallel int      `json:"max_parallel"`
	Grace       Duration `json:"grace"`   // after exit 0 without the signal
	Linger      Duration `json:"linger"`  // after the signal without the exit
	PRPoll      Duration `json:"pr_poll"` // the grace of pr_creation
	VetoWindow  Duration `json:"veto_window"`
	Timeout     Duration `json:"timeout"` // of a launch or a review
	Remind      Duration `json:"remind"`  // between two reminders at a human gate; 0 means none
	Restarts    int      `json:"restarts"`
	Trust       string   `json:"trust"` // the lowest level a gate accepts
	// limit per attempt, or per round's reviewer; 0 means none
	Attempt Usage `json:"attempt,omitzero"`
	// limit per day over all repos of a daemon; 0 means none
	Day   Spend                 `json:"day,omitzero"`
	Roles map[string]RoleLimits `json:"roles,omitempty"`
}

// AnyRole is the key in Roles for roles without their own entry.
const AnyRole = "*"

// RoleLimits are a role's own time-outs, restarts and budget.
type RoleLimits struct {
	Usage Usage `json:"usage,omitzero"` // replaces Config.Attempt unless 0

	Timeout     Duration `json:"timeout,omitempty"`
	IdleTimeout Duration `json:"idle_timeout,omitempty"`
	Restarts    *int     `json:"restarts,omitempty"`
}

// DefaultConfig returns the settings of a repo that sets none.
func DefaultConfig() Config {
	return Config{
		MaxParallel: 4,
		Grace:       Duration(5 * time.Second),
		Linger:      Duration(30 * time.Second),
		PRPoll:      Duration(60 * time.Second),
		VetoWindow:  Duration(30 * time.Second),
		Timeout:     Duration(2 * time.Hour),
		Remind:      Duration(time.Hour),
		Restarts:    1,
		Trust:       TrustFile,
	}
}

// trustRank orders the levels. An unknown one ranks highest, so it fails closed.
func trustRank(level string) int {
	switch level {
	case "", "auto", TrustFile:
		return 0
	case TrustSandbox:
		return 1
	case TrustForge:
		return 2
	case TrustSigned:
		return 3
	}
	return 4
}

// Trusted reports whether level has meets level want. Unknown levels never do.
func Trusted(has, want string) bool {
	return trustRank(has) >= trustRank(want) && trustRank(has) <= trustRank(TrustSigned)
}

// role returns the limits of a role; none for a command, which has no role.
func (c Config) role(name string) RoleLimits {
	if r, ok := c.Roles[name]; ok || name == "" {
		return r
	}
	return c.Roles[AnyRole]
}

// timeout returns a launch's time-out: the spec's, else the role's, else the settings'.
func (c Config) timeout(own Duration, role string) Duration {
	return cmp.Or(own, c.role(role).Timeout, c.Timeout)
}

// restarts returns how often a launch is retried after an infrastructure failure.
func (c Config) restarts(own *int, role string) int {
	return *cmp.Or(own, c.role(role).Restarts, &c.Restarts)
}

// Statuses that a step may report.
const (
	StatusDone    = "done"
	StatusFailed  = "failed"
	StatusBlocked = "blocked"
)
