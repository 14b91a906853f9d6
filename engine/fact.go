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
	// RoundOpened: round n of the gate is about the step's current attempt.
	RoundOpened struct {
		of
		Gate       string   `json:"gate"`
		N          int      `json:"n"`
		Step       string   `json:"step"`
		Attempt    int      `json:"attempt"`
		Level      string   `json:"level"`
		VetoWindow Duration `json:"veto_window,omitempty"`
		Trust      string   `json:"trust,omitempty"`
		Digest     string   `json:"digest,omitempty"`
	}
	// ReviewStarted: launch k of the round's reviewer holds the worktree; Tree is "" if it sees the
	// taken work instead.
	ReviewStarted struct {
		of
		Gate     string    `json:"gate"`
		N        int       `json:"n"`
		K        int       `json:"k"`
		Key      string    `json:"key"`
		Tree     string    `json:"tree"`
		Deadline time.Time `json:"deadline,omitzero"`
		Role     string    `json:"role,omitempty"` // of the launched agent; "" = a command
	}
	// Judged: the reviewer's verdict was accepted and the outcome computed.
	Judged struct {
		of
		Gate     string             `json:"gate"`
		N        int                `json:"n"`
		Outcome  string             `json:"outcome"`
		Word     string             `json:"word,omitempty"` // the reviewer's own, if `verdict:` computes the outcome
		Score    *float64           `json:"score,omitempty"`
		Scores   map[string]float64 `json:"scores,omitempty"`
		Feedback string             `json:"feedback,omitempty"`
		Findings json.RawMessage    `json:"findings,omitempty"`
		Answer   json.RawMessage    `json:"answer,omitempty"`
		ByKind   string             `json:"by_kind,omitempty"` // step: its own report; command; "" = a reviewing agent
		Read     string             `json:"read,omitempty"`    // where the verdict was found, in words
	}
	// Inconclusive: a review ended without a verdict; it never passes and never counts.
	Inconclusive struct {
		of
		Gate      string    `json:"gate"`
		N         int       `json:"n"`
		Why       string    `json:"why"`
		NotBefore time.Time `json:"not_before,omitzero"`
		Limit     bool      `json:"limit,omitempty"`
		Budget    string    `json:"budget,omitempty"` // see StepRelaunched
	}
	// Agreed: the reviewer passed at level notify; the notice is owed before the window opens.
	Agreed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
	}
	// WindowOpened: a veto counts until then.
	WindowOpened struct {
		of
		Gate  string    `json:"gate"`
		N     int       `json:"n"`
		Until time.Time `json:"until"`
	}
	// HumanAsked: from now on only a person's answer to this round counts.
	HumanAsked struct {
		of
		Gate     string    `json:"gate"`
		N        int       `json:"n"`
		Why      string    `json:"why"`
		Forced   bool      `json:"forced,omitempty"`  // the gate needs a person for the rest of the run
		Protect  bool      `json:"protect,omitempty"` // asked because the step changed protected files
		Due      time.Time `json:"due,omitzero"`
		RemindAt time.Time `json:"remind_at,omitzero"`
	}
	// Reminded: a reminder to the person was owed.
	Reminded struct {
		of
		Gate   string    `json:"gate"`
		N      int       `json:"n"`
		NextAt time.Time `json:"next_at,omitzero"`
		Due    time.Time `json:"due,omitzero"`
	}
	// GateFailed: a round's failure was counted.
	GateFailed struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Count    int    `json:"count"`
		Outcome  string `json:"outcome"`
		Feedback string `json:"feedback,omitempty"`
		ByKind   string `json:"by_kind,omitempty"` // human, if a person decided
		// digest of the normalised feedback, if repeated failures are watched
		Failure string `json:"failure,omitempty"`
		Same    int    `json:"same,omitempty"`
		Digest  string `json:"digest,omitempty"`
	}
	// RouteCounted: a round goes back by a named route, which has its own count at the gate. It is
	// no failure.
	RouteCounted struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Route    string `json:"route"`
		Count    int    `json:"count"`
		Feedback string `json:"feedback,omitempty"`
		ByKind   string `json:"by_kind,omitempty"` // human, if a person decided
	}
	// RetryContextOwed: the feedback must be written before the work goes on.
	RetryContextOwed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
		File int    `json:"file"`
		Path string `json:"path"`
	}
	// OutputsOwed: the gate's outputs must be written from its answer before the work goes on.
	OutputsOwed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
	}
	// AdvanceOwed: the branch must move to the attempt's commit before the work goes on.
	AdvanceOwed struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
	}
	// RewindOwed: the branch must move back to before the attempt, which a person vetoed after it
	// passed, or which was built on such work.
	RewindOwed struct {
		of
		Step  string   `json:"step"`
		N     int      `json:"n"`
		With  []string `json:"with,omitempty"`  // further attempts undone with it: STEP.N
		Files bool     `json:"files,omitempty"` // the folder's files are restored too
	}
	// LandingOwed: nothing is left to do; before the run ends, its work must go where the spec
	// names.
	LandingOwed struct {
		of
		ID string `json:"id"`
	}
	// WriteDone: an owed file is in place, or (Why) cannot be written.
	WriteDone struct {
		of
		ID  string `json:"id"`
		Why string `json:"why,omitempty"`
	}
	// SignatureUsed: a signed answer was accepted; it counts once.
	SignatureUsed struct {
		of
		Gate    string    `json:"gate"`
		N       int       `json:"n"`
		Outcome string    `json:"outcome"`
		By      Actor     `json:"by"`
		Nonce   string    `json:"nonce"`
		Expires time.Time `json:"expires"`
		// the text with its signature, for verification with the list of keys
		Proof string `json:"proof,omitempty"`
	}
	// RoundPassed: the gate passed the work.
	RoundPassed struct {
		of
		Gate   string `json:"gate"`
		N      int    `json:"n"`
		ByKind string `json:"by_kind"` // reviewer, window, human, exhausted, when
		By     *Actor `json:"by,omitempty"`
		Text   string `json:"text,omitempty"` // why it is not judged

		Feedback   string `json:"feedback,omitempty"`    // a person's words
		LetThrough int    `json:"let_through,omitempty"` // by on_exhausted, after this many failures
		Route      string `json:"route,omitempty"`       // or after this route was taken so often

		Answer json.RawMessage `json:"answer,omitempty"` // a person's, valid by the gate's schema
	}
	// RoundFailed: the gate did not pass the work.
	RoundFailed struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Outcome  string `json:"outcome"`
		ByKind   string `json:"by_kind"` // reviewer, criterion, human, timeout
		By       *Actor `json:"by,omitempty"`
		Feedback string `json:"feedback,omitempty"`
		To       string `json:"to"`
		// a person failed it with max_retries reached: the gate needs a person for the rest of the
		// run
		Forced bool `json:"forced,omitempty"`

		// the work goes on nevertheless; this was the gate's failure of this number
		LetThrough int `json:"let_through,omitempty"`
		Times      int `json:"times,omitempty"` // of a RoundRouted that leads back: its count
	}
	// RoundRouted: the gate sent the work along a named route, Outcome. It is no failure, though
	// older releases recorded a RoundFailed. LetThrough is one more than the gate's failures so
	// far.
	RoundRouted RoundFailed
	// RoundVoided: the reviewed content has changed; the attempt is checked and judged again.
	RoundVoided struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
		Why  string `json:"why"`
		By   *Actor `json:"by,omitempty"`
	}
	// ExhaustedTo: the gate's retries are used up, and on_exhausted sends the work to a step, once.
	ExhaustedTo struct {
		of
		Gate  string `json:"gate"`
		To    string `json:"to"`
		Renew bool   `json:"renew,omitempty"` // reset the counts when To has passed; older releases did at once
	}
	// CountRenewed: the step of on_exhausted has passed, and the gate's counts restart. The step
	// stays used.
	CountRenewed struct {
		of
		Gate string `json:"gate"`
	}
	// CountReset: the gate's counts are 0 again, and the step of on_exhausted may be used again.
	CountReset struct {
		of
		Gate string `json:"gate"`
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
		Cause string `json:"cause,omitempty"` // person, limit, parent, blocked or ""
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

	// FileTaken: an inbox file was accepted; it is to be moved.
	FileTaken struct {
		Move Move `json:"move"`
	}
	// FileGone: it has left the inbox.
	FileGone struct {
		ID string `json:"id"`
	}
	// NoticeOwed: a person is to be notified.
	NoticeOwed struct {
		Notice Notice `json:"notice"`
	}
	// NoticeTried: the notice was attempted.
	NoticeTried struct {
		ID      string   `json:"id"`
		Run     string   `json:"run,omitempty"`
		Gate    string   `json:"gate,omitempty"`
		N       int      `json:"n,omitempty"`
		Results []string `json:"results,omitempty"`
	}
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

// RunID returns the run whose attempt the file was for, if any.
func (f FileTaken) RunID() string { return f.Move.Run }

// RunID returns "": the fact is about the repo.
func (FileGone) RunID() string { return "" }

// RunID returns the run the notice is about.
func (f NoticeOwed) RunID() string { return f.Notice.Run }

// RunID returns the run the notice was about.
func (f NoticeTried) RunID() string { return f.Run }

// RunID returns the run somebody meant, if any.
func (f Ignored) RunID() string { return f.Run }
