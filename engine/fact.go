package engine

import (
	"encoding/json"
	"time"
)

// Fact is what we decided. Apply folds facts into the state; they are never decided again, so no
// release may change what a kind means. RunID is "" for facts about the repo.
type Fact interface {
	FactKind() string
	RunID() string
	apply(s *State, at time.Time)
}

// of is embedded in every fact about a run.
type of struct {
	Run string `json:"run"`
}

// RunID returns the run the fact is about.
func (o of) RunID() string { return o.Run }

// Of returns the embedded part of a fact about the run.
func Of(run string) of { return of{run} }

// The facts of a run.
type (
	// SettingsTaken: the engine uses these settings from now on.
	SettingsTaken struct {
		Config Config `json:"config"`
	}
	// RunStarted: a run exists, with a copy of its spec.
	RunStarted struct {
		of
		Workflow string            `json:"workflow"`
		N        int               `json:"n"`
		Digest   string            `json:"digest"`
		File     string            `json:"file,omitempty"` // hex SHA-256 of the spec's file
		Source   string            `json:"source"`
		Vars     map[string]any    `json:"vars,omitempty"`
		Trees    map[string]string `json:"trees,omitempty"`
		// the run's own worktree, below the root; a child has its parent's
		Workspace  string           `json:"workspace,omitempty"`
		Parallel   bool             `json:"parallel,omitempty"`
		MaxSteps   int              `json:"max_steps,omitempty"`
		TimeLimit  Duration         `json:"time_limit,omitempty"`
		UsageLimit Usage            `json:"usage_limit,omitzero"`
		RoleLimits map[string]Spend `json:"role_limits,omitempty"` // what a role may use over the run
		// what stand-ins do in place of its agents; absent for a real run
		Stubs json.RawMessage `json:"stubs,omitempty"`
		By    Actor           `json:"by"`
		Fired *FiredBy        `json:"fired,omitempty"` // the trigger that started it
		Ratio float64         `json:"max_failed_ratio,omitempty"`
		// set for a child run; its Digest is its parent's, "/" and the step
		Child *ChildOf `json:"child,omitempty"`
	}
	// RunBegan: the run is no longer pending.
	RunBegan struct {
		of
		// folder of its retry-context files, below .workflow/retry-context/
		RetryDir string `json:"retry_dir,omitempty"`
	}
	// UsageCounted: what the process with the key has cost so far.
	UsageCounted struct {
		of
		Key   string `json:"key"`
		Usage Usage  `json:"usage"`
		Day   string `json:"day,omitempty"`
	}
	// BudgetNeared: the run has used four fifths of a limit. Limit is its value at that time.
	BudgetNeared struct {
		of
		Budget string `json:"budget"` // max_cost_usd, max_tokens, max_steps, max_duration
		Limit  string `json:"limit"`
		Text   string `json:"text"`
	}
	// BudgetLifted: the day's budget was changed, so what waits for it resumes.
	BudgetLifted struct{ of }
	// DayBudgetNeared: four fifths of the day's budget over all repos are used, or (Used) all of
	// it.
	DayBudgetNeared struct {
		Day    string `json:"day"`
		Budget string `json:"budget"`
		Used   bool   `json:"used,omitempty"`
		Text   string `json:"text"`
	}
	// NoteTaken: the run's n-th note; for one step if Step is set.
	NoteTaken struct {
		of
		N    int    `json:"n"`
		Step string `json:"step,omitempty"`
		Text string `json:"text"`
		By   Actor  `json:"by"`
	}
	// RunPaused: nothing of the run starts or closes until it is resumed.
	RunPaused struct {
		of
		Why  string `json:"why"` // user, limit:<key>, fatal, spec
		Text string `json:"text,omitempty"`
		By   *Actor `json:"by,omitempty"`
	}
	// RunResumed: the run continues; if a limit had paused it, the same amount is granted again.
	RunResumed struct {
		of
		By    *Actor `json:"by,omitempty"`
		Grant Grant  `json:"grant,omitzero"`
	}
	// RunEnded: the run is over at once; its live work is undone and stopped.
	RunEnded struct {
		of
		Phase string `json:"phase"`
		Step  string `json:"step,omitempty"`
		Why   string `json:"why,omitempty"`
		By    *Actor `json:"by,omitempty"`
		Cause string `json:"cause,omitempty"` // person, limit, parent, blocked, merged or ""
		Limit string `json:"limit,omitempty"` // the key of the limit that ended it
	}
	// RunReopened: a person retries an ended run.
	RunReopened struct {
		of
		By       *Actor `json:"by,omitempty"`
		Grant    Grant  `json:"grant,omitzero"`
		RetryDir string `json:"retry_dir,omitempty"` // new folder of its retry-context files; "" = unchanged
	}
	// RunForgotten: the ended run leaves the state; the journal keeps it.
	RunForgotten struct{ of }
	// Ignored: an action had no effect; Why is the reason in words.
	Ignored struct {
		Run  string `json:"run,omitempty"`
		What string `json:"what"` // the event's kind, or the name of the file
		Why  string `json:"why"`
		Who  *Actor `json:"who,omitempty"`
	}
)

// Grant is what a limit is raised by.
type Grant struct {
	Steps int      `json:"steps,omitempty"`
	Time  Duration `json:"time,omitempty"`
	Usage Usage    `json:"usage,omitzero"`
	Role  string   `json:"role,omitempty"` // Spend is for this one
	Spend Spend    `json:"spend,omitzero"`
	Ratio float64  `json:"ratio,omitempty"` // of tasks that may fail
}

// RunID returns "": the fact is about the repo.
func (SettingsTaken) RunID() string { return "" }

// RunID returns "": the fact is about the repo.
func (DayBudgetNeared) RunID() string { return "" }

// RunID returns the run somebody meant, if any.
func (f Ignored) RunID() string { return f.Run }
