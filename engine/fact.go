package engine

import (
	"encoding/json"
	"time"
)

// Fact is what we decided. Facts are folded into the state by Apply and never decided again: what a kind means may not
// change in any release. RunID is the run it is about, "" for the repo's own.
type Fact interface {
	FactKind() string
	RunID() string
	apply(s *State, at time.Time)
}

// of is what every fact about a run begins with.
type of struct {
	Run string `json:"run"`
}

// RunID is the run the fact is about.
func (o of) RunID() string { return o.Run }

// Of names the run a fact is about.
func Of(run string) of { return of{run} }

// The facts of a run.
type (
	// SettingsTaken: the engine goes by these settings from here on.
	SettingsTaken struct {
		Config Config `json:"config"`
	}
	// RunStarted: a run exists, with the spec as it was then.
	RunStarted struct {
		of
		Workflow   string            `json:"workflow"`
		N          int               `json:"n"`
		Digest     string            `json:"digest"`
		File       string            `json:"file,omitempty"` // hex SHA-256 of the spec's file
		Source     string            `json:"source"`
		Vars       map[string]any    `json:"vars,omitempty"`
		Trees      map[string]string `json:"trees,omitempty"`
		Workspace  string            `json:"workspace,omitempty"` // the run's own worktree, below the root; a child's is its parent's
		Parallel   bool              `json:"parallel,omitempty"`
		MaxSteps   int               `json:"max_steps,omitempty"`
		TimeLimit  Duration          `json:"time_limit,omitempty"`
		UsageLimit Usage             `json:"usage_limit,omitzero"`
		RoleLimits map[string]Spend  `json:"role_limits,omitempty"` // what a role may use over the run
		Stubs      json.RawMessage   `json:"stubs,omitempty"`       // what stand-ins do in place of its agents; absent: it is a real run
		By         Actor             `json:"by"`
		Ratio      float64           `json:"max_failed_ratio,omitempty"`
		Child      *ChildOf          `json:"child,omitempty"` // it is a child run: Digest is its parent's, "/" and the step
	}
	// RunBegan: the run is not pending any more.
	RunBegan struct {
		of
		RetryDir string `json:"retry_dir,omitempty"` // where its retry-context files lie below .workflow/retry-context/
	}
	// NeedsMet: what the step needs of other workflows is there.
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
		Children bool     `json:"children,omitempty"` // nothing is launched: child runs do its work
		List     bool     `json:"list,omitempty"`     // they are those of a list, which count each in its place
		Reads    bool     `json:"reads,omitempty"`    // it only looks at the worktree
	}
	// StepSkipped: the step's `when` was false.
	StepSkipped struct {
		of
		Step string   `json:"step"`
		N    int      `json:"n"`
		To   []string `json:"to"`
		When string   `json:"when"`
	}
	// StepLaunched: launch k of attempt n holds its worktree, unless it only looks; its process is owed, or the step is offered.
	StepLaunched struct {
		of
		Step        string    `json:"step"`
		N           int       `json:"n"`
		K           int       `json:"k"`
		Key         string    `json:"key"`
		Tree        string    `json:"tree"`
		Offered     bool      `json:"offered,omitempty"`
		Person      bool      `json:"person,omitempty"` // no process: a person who had taken it over says that it is done
		Deadline    time.Time `json:"deadline,omitzero"`
		Role        string    `json:"role,omitempty"` // of the agent that is launched; "" = a command, or nobody
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
	// GraceBegan: the process ended with 0 and its signal has not come.
	GraceBegan struct {
		of
		Step  string    `json:"step"`
		N     int       `json:"n"`
		Until time.Time `json:"until"`
	}
	// StepSignalled: the attempt's word has come, or stands for it.
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
		Makers      []string        `json:"makers,omitempty"` // who says so, where people work: the account, or the names and addresses of a commit
	}
	// StopOrdered: a live process is to be ended: timeout, idle, linger.
	StopOrdered struct {
		of
		Key string `json:"key"`
		Why string `json:"why"`
	}
	// DeadlineMoved: a deadline that passed in a gap was opened again.
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
	// ClockBegun: the launch that waited is started; its time-out runs from here on.
	ClockBegun struct {
		of
		Key      string    `json:"key"`
		Deadline time.Time `json:"deadline"`
	}
	// ProcessGone: the process tree with the key is not there any more.
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
	// BudgetNeared: four fifths of what the run may use are used. Limit is the whole, as it was then.
	BudgetNeared struct {
		of
		Budget string `json:"budget"` // max_cost_usd, max_tokens, max_steps, max_duration
		Limit  string `json:"limit"`
		Text   string `json:"text"`
	}
	// BudgetLifted: what waits for the day's budget goes on, as the settings give another.
	BudgetLifted struct{ of }
	// DayBudgetNeared: so it is with the day's budget, over all repos; or it is used up.
	DayBudgetNeared struct {
		Day    string `json:"day"`
		Budget string `json:"budget"`
		Used   bool   `json:"used,omitempty"`
		Text   string `json:"text"`
	}
	// NoteTaken: the run's n-th note; where Step is given it is for that step alone.
	NoteTaken struct {
		of
		N    int    `json:"n"`
		Step string `json:"step,omitempty"`
		Text string `json:"text"`
		By   Actor  `json:"by"`
	}
	// StepHeld: a person has taken the step over; nothing of it is launched until it is handed back.
	StepHeld struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		By   Actor  `json:"by"`
	}
	// StepHandedBack: it is not held any more.
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
		Step      string    `json:"step"`
		N         int       `json:"n"`
		Class     string    `json:"class"` // infrastructure, limit, fatal or takeover; only the first counts against restarts
		Why       string    `json:"why"`
		NotBefore time.Time `json:"not_before,omitzero"`
		Limit     bool      `json:"limit,omitempty"`
		Budget    string    `json:"budget,omitempty"` // it waits for the budget of the day after this one
	}
	// CheckStarted: outputs and criterion of the attempt are being checked, under the key.
	CheckStarted struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		Key  string `json:"key"`
		Tree string `json:"tree"`

		Deadline time.Time `json:"deadline,omitzero"`
	}
	// Checked: what the check came to.
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
	// HookStarted: a hook runs under the key. Step is "" for after_run.
	HookStarted struct {
		of
		Step string `json:"step,omitempty"`
		N    int    `json:"n,omitempty"`
		Key  string `json:"key"`
		Tree string `json:"tree,omitempty"`

		Deadline time.Time `json:"deadline,omitzero"`
	}
	// RoundOpened: round n of the gate is over the step's current attempt.
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
	// ReviewStarted: launch k of the round's reviewer holds the worktree; "" = it sees what was taken of it.
	ReviewStarted struct {
		of
		Gate     string    `json:"gate"`
		N        int       `json:"n"`
		K        int       `json:"k"`
		Key      string    `json:"key"`
		Tree     string    `json:"tree"`
		Deadline time.Time `json:"deadline,omitzero"`
		Role     string    `json:"role,omitempty"` // of the agent that is launched; "" = a command
	}
	// Judged: the reviewer's verdict was taken in, and the outcome computed.
	Judged struct {
		of
		Gate     string             `json:"gate"`
		N        int                `json:"n"`
		Outcome  string             `json:"outcome"`
		Word     string             `json:"word,omitempty"` // the reviewer's own, where `verdict:` computes the outcome
		Score    *float64           `json:"score,omitempty"`
		Scores   map[string]float64 `json:"scores,omitempty"`
		Feedback string             `json:"feedback,omitempty"`
		Findings json.RawMessage    `json:"findings,omitempty"`
		Answer   json.RawMessage    `json:"answer,omitempty"`
		ByKind   string             `json:"by_kind,omitempty"` // step: its own word; command; "" = a reviewer's agent
		Read     string             `json:"read,omitempty"`    // where its verdict stood, in words
	}
	// Inconclusive: a review came to nothing; it never passes and never counts.
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
	// HumanAsked: only a person's answer to this round counts from here on.
	HumanAsked struct {
		of
		Gate     string    `json:"gate"`
		N        int       `json:"n"`
		Why      string    `json:"why"`
		Forced   bool      `json:"forced,omitempty"`  // the gate is human for the rest of the run
		Protect  bool      `json:"protect,omitempty"` // asked because the step changed protected files
		Due      time.Time `json:"due,omitzero"`
		RemindAt time.Time `json:"remind_at,omitzero"`
	}
	// Reminded: the person was (to be) told again.
	Reminded struct {
		of
		Gate   string    `json:"gate"`
		N      int       `json:"n"`
		NextAt time.Time `json:"next_at,omitzero"`
		Due    time.Time `json:"due,omitzero"`
	}
	// GateFailed: a round's failure was counted; where it goes back, its retry-context file is owed.
	GateFailed struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Count    int    `json:"count"`
		Outcome  string `json:"outcome"`
		Feedback string `json:"feedback,omitempty"`
		ByKind   string `json:"by_kind,omitempty"` // human, where a person says so
		Failure  string `json:"failure,omitempty"` // digest of the normalised feedback, where sameness is watched
		Same     int    `json:"same,omitempty"`
		Digest   string `json:"digest,omitempty"`
	}
	// RouteCounted: a round goes back by a route's name, which has a count of its own at the gate. It is no failure.
	RouteCounted struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Route    string `json:"route"`
		Count    int    `json:"count"`
		Feedback string `json:"feedback,omitempty"`
		ByKind   string `json:"by_kind,omitempty"` // human, where a person says so
	}
	// RetryContextOwed: the feedback is to be written before the work goes on.
	RetryContextOwed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
		File int    `json:"file"`
		Path string `json:"path"`
	}
	// OutputsOwed: the gate's outputs are to be written from its answer before the work goes on.
	OutputsOwed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
	}
	// AdvanceOwed: the branch is to move to what was taken of the attempt before the work goes on.
	AdvanceOwed struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
	}
	// RewindOwed: the branch is to move back to before the attempt, which a person has vetoed after it passed, or which was
	// built on such work.
	RewindOwed struct {
		of
		Step  string   `json:"step"`
		N     int      `json:"n"`
		With  []string `json:"with,omitempty"`  // the attempts that go with it: STEP.N
		Files bool     `json:"files,omitempty"` // the folder goes back to what was taken of it
	}
	// LandingOwed: nothing is left to do, and the work is to go where the spec says before the run ends.
	LandingOwed struct {
		of
		ID string `json:"id"`
	}
	// WriteDone: a file that was owed lies there (or cannot: Why).
	WriteDone struct {
		of
		ID  string `json:"id"`
		Why string `json:"why,omitempty"`
	}
	// SignatureUsed: a signed answer was taken in; it counts once.
	SignatureUsed struct {
		of
		Gate    string    `json:"gate"`
		N       int       `json:"n"`
		Outcome string    `json:"outcome"`
		By      Actor     `json:"by"`
		Nonce   string    `json:"nonce"`
		Expires time.Time `json:"expires"`
		Proof   string    `json:"proof,omitempty"` // the text with its signature: who has the list of keys can check it
	}
	// RoundPassed: the gate let the work through.
	RoundPassed struct {
		of
		Gate   string `json:"gate"`
		N      int    `json:"n"`
		ByKind string `json:"by_kind"` // reviewer, window, human, exhausted, when
		By     *Actor `json:"by,omitempty"`
		Text   string `json:"text,omitempty"` // why it is not judged

		Feedback   string `json:"feedback,omitempty"`    // a person's words
		LetThrough int    `json:"let_through,omitempty"` // by on_exhausted: after so many failures
		Route      string `json:"route,omitempty"`       // or after the route by this name was taken so often

		Answer json.RawMessage `json:"answer,omitempty"` // a person's, held against the gate's schema
	}
	// RoundFailed: the gate did not.
	RoundFailed struct {
		of
		Gate     string `json:"gate"`
		N        int    `json:"n"`
		Outcome  string `json:"outcome"`
		ByKind   string `json:"by_kind"` // reviewer, criterion, human, timeout
		By       *Actor `json:"by,omitempty"`
		Feedback string `json:"feedback,omitempty"`
		To       string `json:"to"`
		Forced   bool   `json:"forced,omitempty"` // by a person, and max_retries is reached: the gate is human for the rest of the run

		LetThrough int `json:"let_through,omitempty"` // the work goes on all the same; it was the gate's failure of this number
		Times      int `json:"times,omitempty"`       // of a RoundRouted that leads back: its count
	}
	// RoundRouted: the gate sent the work on by the name of one of its routes, which is Outcome. It is no failure: of an older
	// release it was a RoundFailed. LetThrough is one more than the gate had failures by then.
	RoundRouted RoundFailed
	// RoundVoided: what the round was over has changed; the attempt is checked and judged anew.
	RoundVoided struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
		Why  string `json:"why"`
		By   *Actor `json:"by,omitempty"`
	}
	// ExhaustedTo: max_failures is used up and on_exhausted names a step, which the work goes to, once.
	ExhaustedTo struct {
		of
		Gate  string `json:"gate"`
		To    string `json:"to"`
		Renew bool   `json:"renew,omitempty"` // the counts begin anew when To has passed; an older release's did at once
	}
	// CountRenewed: the step of on_exhausted has passed, and the gate's counts begin anew. The step was used all the same.
	CountRenewed struct {
		of
		Gate string `json:"gate"`
	}
	// CountReset: the gate's counts are 0 again, and the step of on_exhausted may be used again.
	CountReset struct {
		of
		Gate string `json:"gate"`
	}
	// StepPassed: all gates of the step's row let it through.
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
	// WorkSent: a step nothing else leads to is led to by a gate of From.
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
	// RunPaused: nothing of the run is started or closed until it is resumed.
	RunPaused struct {
		of
		Why  string `json:"why"` // user, limit:<key>, fatal, spec
		Text string `json:"text,omitempty"`
		By   *Actor `json:"by,omitempty"`
	}
	// RunResumed: it goes on; where a limit had paused it, the same amount is granted once more.
	RunResumed struct {
		of
		By    *Actor `json:"by,omitempty"`
		Grant Grant  `json:"grant,omitzero"`
	}
	// RunEnded: the run is over at once; what is alive in it is undone and stopped.
	RunEnded struct {
		of
		Phase string `json:"phase"`
		Step  string `json:"step,omitempty"`
		Why   string `json:"why,omitempty"`
		By    *Actor `json:"by,omitempty"`
		Cause string `json:"cause,omitempty"` // person, limit, parent or blocked, where it was one of these
		Limit string `json:"limit,omitempty"` // the key of the limit that ended it
	}
	// RunReopened: a person retries an ended run.
	RunReopened struct {
		of
		By       *Actor `json:"by,omitempty"`
		Grant    Grant  `json:"grant,omitzero"`
		RetryDir string `json:"retry_dir,omitempty"` // where its retry-context files lie from now on; "" = as before
	}
	// RunForgotten: the ended run leaves the state; the journal keeps it.
	RunForgotten struct{ of }

	// FileTaken: a file of an inbox was taken in; it is to be moved.
	FileTaken struct {
		Move Move `json:"move"`
	}
	// FileGone: it has left the inbox.
	FileGone struct {
		ID string `json:"id"`
	}
	// NoticeOwed: a person is to be told.
	NoticeOwed struct {
		Notice Notice `json:"notice"`
	}
	// NoticeTried: it was attempted; what came of it.
	NoticeTried struct {
		ID      string   `json:"id"`
		Run     string   `json:"run,omitempty"`
		Gate    string   `json:"gate,omitempty"`
		N       int      `json:"n,omitempty"`
		Results []string `json:"results,omitempty"`
	}
	// Ignored: somebody acted and nothing came of it; Why says it in words.
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

// RunID of a fact of the repo.
func (SettingsTaken) RunID() string { return "" }

// RunID of a fact of the repo.
func (DayBudgetNeared) RunID() string { return "" }

// RunID is the run whose attempt the file was for, if any.
func (f FileTaken) RunID() string { return f.Move.Run }

// RunID of a fact of the repo.
func (FileGone) RunID() string { return "" }

// RunID is the run the notice is about.
func (f NoticeOwed) RunID() string { return f.Notice.Run }

// RunID is the run the notice was about.
func (f NoticeTried) RunID() string { return f.Run }

// RunID is the run somebody meant, if any.
func (f Ignored) RunID() string { return f.Run }
