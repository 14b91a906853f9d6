package engine

import "time"

// Limits on what a state may hold; all are checked where the value comes in.
const (
	MaxOutput   = 8 << 10  // bytes of a process's output in an event
	MaxAnswer   = 64 << 10 // bytes of a structured answer
	MaxFeedback = 16 << 10 // bytes of feedback in a fact
	KeepRefused = 50       // refused files of a launch's own inbox that are kept; more are counted. Its own signal is still read, …
	MostRefused = 200      // … until so many were refused
	MaxVars     = 64 << 10 // bytes of a run's vars as JSON
	MaxStubs    = 64 << 10 // bytes of what a run's stand-ins are to do, as JSON
	KeepEnded   = 50       // ended runs of one workflow that stay in the state
	MaxNote     = 4 << 10  // bytes of a person's note
	MaxNotes    = 100      // of a run
	MaxPending  = 1000     // runs that may be alive in one repo
)

// Trust levels, least first.
const (
	TrustFile    = "file"
	TrustSandbox = "sandbox"
	TrustSigned  = "signed"
)

// GapAllowed is how long the daemon may be away before a deadline that passed meanwhile is opened once more.
const GapAllowed = 30 * time.Second

// ReopenHuman is how long a person's deadline that passed in a gap is opened again.
const ReopenHuman = 10 * time.Minute

// Config is what the engine itself goes by of the settings.
type Config struct {
	MaxParallel int                   `json:"max_parallel"`
	Grace       Duration              `json:"grace"`   // after exit 0 without the signal
	Linger      Duration              `json:"linger"`  // after the signal without the exit
	PRPoll      Duration              `json:"pr_poll"` // the grace of pr_creation
	VetoWindow  Duration              `json:"veto_window"`
	Timeout     Duration              `json:"timeout"` // of an attempt's launch, and of a review's
	Remind      Duration              `json:"remind"`  // between two reminders at a human gate; 0 = none
	Restarts    int                   `json:"restarts"`
	Trust       string                `json:"trust"`            // the least level a gate accepts
	Attempt     Usage                 `json:"attempt,omitzero"` // what one attempt, or one round's reviewer, may cost; 0 = no bound
	Day         Spend                 `json:"day,omitzero"`     // what all repos of a daemon may use in a day; 0 = no bound
	Roles       map[string]RoleLimits `json:"roles,omitempty"`
}

// AnyRole is the name under which Roles says what holds for every role that it does not name.
const AnyRole = "*"

// RoleLimits are a role's own time-outs, restarts and budget.
type RoleLimits struct {
	Usage Usage `json:"usage,omitzero"` // instead of Config.Attempt, where it is not 0

	Timeout     Duration `json:"timeout,omitempty"`
	IdleTimeout Duration `json:"idle_timeout,omitempty"`
	Restarts    *int     `json:"restarts,omitempty"`
}

// DefaultConfig is what holds where no settings say otherwise.
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

// trustRank orders the levels; an unknown one is above all, so that it fails closed.
func trustRank(level string) int {
	switch level {
	case "", "auto", TrustFile:
		return 0
	case TrustSandbox:
		return 1
	case TrustSigned:
		return 2
	}
	return 3
}

// trusted reports whether a word of level has counts where want is asked; of a level nobody knows neither does.
func trusted(has, want string) bool {
	return trustRank(has) >= trustRank(want) && trustRank(has) <= trustRank(TrustSigned)
}

// role returns what holds for a role; nothing for a bare command, which has none.
func (c Config) role(name string) RoleLimits {
	if r, ok := c.Roles[name]; ok || name == "" {
		return r
	}
	return c.Roles[AnyRole]
}

// timeout is the time-out of a launch: the spec's, else the role's, else the settings'.
func (c Config) timeout(own Duration, role string) Duration {
	if own > 0 {
		return own
	}
	if r := c.role(role); r.Timeout > 0 {
		return r.Timeout
	}
	return c.Timeout
}

// restarts is how often a launch is tried again after an infrastructure failure.
func (c Config) restarts(own *int, role string) int {
	if own != nil {
		return *own
	}
	if r := c.role(role); r.Restarts != nil {
		return *r.Restarts
	}
	return c.Restarts
}

// What a step may say of itself.
const (
	StatusDone    = "done"
	StatusFailed  = "failed"
	StatusBlocked = "blocked"
)
