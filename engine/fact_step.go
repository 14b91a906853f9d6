package engine

import (
	"encoding/json"
	"time"
)

// The facts of a step's attempts.
type (
	// NeedsMet: what the step needs from other workflows is available.
	NeedsMet struct {
		of
		Step string   `json:"step"`
		Pins []string `json:"pins"`
	}
	// StepStarted: attempt n of the step exists and is ready.
	StepStarted struct {
		of
		Step     string   `json:"step"`
		N        int      `json:"n"`
		Worktree string   `json:"worktree,omitempty"`
		Tree     string   `json:"tree"`
		Pins     []string `json:"pins,omitempty"`
		Children bool     `json:"children,omitempty"` // child runs do its work: nothing is launched
		// the child runs are a list's, and each counts as a step of its own
		List  bool `json:"list,omitempty"`
		Reads bool `json:"reads,omitempty"` // it only reads the worktree
	}
	// StepSkipped: the step's `when` was false.
	StepSkipped struct {
		of
		Step string   `json:"step"`
		N    int      `json:"n"`
		To   []string `json:"to"`
		When string   `json:"when"`
	}
	// StepLaunched: launch k of attempt n holds its worktree, unless it only reads; its process is
	// owed, or the step is offered.
	StepLaunched struct {
		of
		Step        string    `json:"step"`
		N           int       `json:"n"`
		K           int       `json:"k"`
		Key         string    `json:"key"`
		Tree        string    `json:"tree"`
		Offered     bool      `json:"offered,omitempty"`
		Person      bool      `json:"person,omitempty"` // no process: a person who had taken over reports it done
		Deadline    time.Time `json:"deadline,omitzero"`
		Role        string    `json:"role,omitempty"` // of the launched agent; "" = a command, or nobody
		SignalType  string    `json:"signal_type"`
		SignalValue string    `json:"signal_value,omitempty"`
	}
	// StepClaimed: somebody took the offered step.
	StepClaimed struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		By   Actor  `json:"by"`
	}
	// GraceBegan: the process exited with 0 and its signal has not come.
	GraceBegan struct {
		of
		Step  string    `json:"step"`
		N     int       `json:"n"`
		Until time.Time `json:"until"`
	}
	// StepSignalled: the attempt reported, or a result was recorded in its place.
	StepSignalled struct {
		of
		Step        string          `json:"step"`
		N           int             `json:"n"`
		K           int             `json:"k"`
		Status      string          `json:"status"`
		Via         string          `json:"via,omitempty"`
		Author      string          `json:"author,omitempty"`
		Summary     string          `json:"summary,omitempty"`
		Question    string          `json:"question,omitempty"`
		Options     []string        `json:"options,omitempty"`
		Answer      json.RawMessage `json:"answer,omitempty"`
		Failure     string          `json:"failure,omitempty"`
		Broken      string          `json:"broken,omitempty"`
		LingerUntil time.Time       `json:"linger_until,omitzero"`
		// who reports it, if a person works: the account, or the names and addresses of a commit
		Makers []string `json:"makers,omitempty"`
	}
	// StopOrdered: a live process is to be stopped, for a time-out for example.
	StopOrdered struct {
		of
		Key string `json:"key"`
		Why string `json:"why"`
	}
	// DeadlineMoved: a deadline that passed in a gap was extended.
	DeadlineMoved struct {
		of
		Step string    `json:"step,omitempty"`
		Gate string    `json:"gate,omitempty"`
		Key  string    `json:"key,omitempty"` // of a check's or hook's process
		N    int       `json:"n"`
		To   time.Time `json:"to"`
		Why  string    `json:"why"`
	}
	// ClockShifted: another machine decides from now on. The run's times are its clock's, which differs by By.
	ClockShifted struct {
		of
		By Duration `json:"by"`
	}
	// TimeLost: sluice was away for By, or the machine slept. No limit counts that time.
	TimeLost struct {
		of
		By Duration `json:"by"`
	}
	// ClockHeld: the launch waits for one of max_agents to end; its time-out does not run.
	ClockHeld struct {
		of
		Key string `json:"key"`
	}
	// ClockBegun: the launch that waited has started; its time-out runs from now on.
	ClockBegun struct {
		of
		Key      string    `json:"key"`
		Deadline time.Time `json:"deadline"`
	}
	// ProcessGone: the process tree with the key is gone.
	ProcessGone struct {
		of
		Key    string          `json:"key"`
		Exit   Exit            `json:"exit"`
		Day    string          `json:"day,omitempty"` // see ProcessEnded
		Output string          `json:"output,omitempty"`
		Answer json.RawMessage `json:"answer,omitempty"`
	}
	// StepHeld: a person has taken the step over; it is not launched until handed back.
	StepHeld struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		By   Actor  `json:"by"`
	}
	// StepHandedBack: the step is no longer held.
	StepHandedBack struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		Done bool   `json:"done,omitempty"`
		By   Actor  `json:"by"`
	}
	// StepRelaunched: the same attempt is ready for its next launch.
	StepRelaunched struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		// infrastructure, limit, fatal or takeover; only the first counts against restarts
		Class     string    `json:"class"`
		Why       string    `json:"why"`
		NotBefore time.Time `json:"not_before,omitzero"`
		Limit     bool      `json:"limit,omitempty"`
		Budget    string    `json:"budget,omitempty"` // it waits for the budget of the day after this one
	}
	// WorkLost: the attempt reported, and the machine that had its work was lost: the same attempt is
	// ready for its next launch. It counts against restarts.
	WorkLost struct {
		of
		Step      string    `json:"step"`
		N         int       `json:"n"`
		Why       string    `json:"why"`
		NotBefore time.Time `json:"not_before"`
	}
	// CheckStarted: the attempt's outputs and criterion are being checked.
	CheckStarted struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		Key  string `json:"key"`
		Tree string `json:"tree"`

		Deadline time.Time `json:"deadline,omitzero"`
	}
	// Checked: the result of the check.
	Checked struct {
		of
		Step        string   `json:"step"`
		N           int      `json:"n"`
		OK          bool     `json:"ok"`
		Why         string   `json:"why,omitempty"`
		Broken      string   `json:"broken,omitempty"`
		Digest      string   `json:"digest,omitempty"`
		Content     string   `json:"content,omitempty"`
		Protected   []string `json:"protected,omitempty"`
		ProtectedAs []string `json:"protected_as,omitempty"` // see CheckResult
		ProtectedBy []string `json:"protected_by,omitempty"`
		ToReview    []string `json:"to_review,omitempty"`
		Unshipped   int      `json:"unshipped,omitempty"`
		Apart       bool     `json:"apart,omitempty"` // see CheckResult
	}
	// HookStarted: a hook is running. Step is "" for after_run.
	HookStarted struct {
		of
		Step string `json:"step,omitempty"`
		N    int    `json:"n,omitempty"`
		Key  string `json:"key"`
		Tree string `json:"tree,omitempty"`

		Deadline time.Time `json:"deadline,omitzero"`
	}
	// StepPassed: all gates of the step passed it.
	StepPassed struct {
		of
		Step string   `json:"step"`
		N    int      `json:"n"`
		To   []string `json:"to"`
	}
	// StepRouted: the step's gate sent the work elsewhere.
	StepRouted struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		To   string `json:"to"`
	}
	// StepSuperseded: the step's current attempt and its rounds are undone.
	StepSuperseded struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		Why  string `json:"why,omitempty"`
	}
	// WorkSent: a gate of From leads to a step that nothing else leads to.
	WorkSent struct {
		of
		Step string `json:"step"`
		From string `json:"from"`
	}
	// WorkUnsent: what sent the work there is itself undone.
	WorkUnsent struct {
		of
		Step string `json:"step"`
	}
)
