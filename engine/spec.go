package engine

import (
	"encoding/json"
	"strings"
	"time"
)

// Ends of a branch or a run.
const (
	EndDone    = "DONE"    // the branch ends here
	EndFailed  = "FAILED"  // the run ends at once, failed
	EndAborted = "ABORTED" // the run ends at once, aborted
)

// Levels of a gate.
const (
	LevelAuto   = "auto"   // the reviewer's verdict decides
	LevelNotify = "notify" // like auto, but a person is notified and may veto
	LevelHuman  = "human"  // a person decides
)

// Ways to launch a step's agent.
const (
	LaunchHeadless    = "headless"    // the daemon starts the process
	LaunchInteractive = "interactive" // the step is offered; a person drives an agent and signals
	LaunchSubagent    = "subagent"    // the step is offered to an orchestrating agent
)

// Signals by which a step reports that it is done.
const (
	SignalFile   = "sentinel_file" // a JSON file appears in .workflow/signals/
	SignalCommit = "git_commit"    // a commit with the marker
	SignalPull   = "pr_creation"   // a pull request appears whose head is the step's
	SignalExit   = "stdout_exit"   // the process exits: 0 is done, another code failed
)

// Human is the target or outcome that leaves a gate's round to a person.
const Human = "human"

// Outcomes that every gate knows without naming them.
const (
	OutcomePass    = "pass"
	OutcomeFail    = "fail"
	OutcomeVeto    = "veto"
	OutcomeBlocked = "blocked"
	OutcomeLost    = "lost" // no result after all restarts
)

// DefaultMaxRetries is the default of max_failures (or max_retries, the same).
const DefaultMaxRetries = 3

// DefaultMaxSameFailure is how often the same failure over an unchanged tree may occur before a
// person is asked.
const DefaultMaxSameFailure = 3

// Spec is a workflow, compiled from YAML by package specs, checked and immutable.
type Spec struct {
	ID           string
	Name         string
	Description  string
	Digest       string // hex SHA-256 of the source
	ContextFiles []string
	Vars         []Var
	Limits       Limits
	Needs        []Need // the run waits for these before its first step
	AfterStep    *Command
	AfterRun     *Command
	AfterTask    *Command // the AfterRun of its tasks' runs
	Notify       bool     // notify a person of each step that passes or is sent back
	Protect      []string
	Workspace    string // WorkspaceRun, or "" for the person's checkout
	OnDone       OnDone
	Setup        *Setup  // for judges; nil = none
	Steps        []*Step // in file order
	Gates        []*Gate // in file order, then the implicit ones of steps without a gate

	Inline     bool  // the single step of a list's task, not a file
	Outer      *Spec `json:"-"` // of an inline spec: the workflow with its step
	ReadsTasks bool  // some expression reads `tasks`
	Looked     bool  // a step of it, its parents or children only reads: all work is taken, so that the step can see it

	graph *graph // set by Link
}

// ChildVar is a var for a child run, an expression over the parent's names, of the var's type.
type ChildVar struct {
	Name  string
	Value Value
}

// List is `for_each`: the step is done once for each task of a file.
type List struct {
	Tasks       Text
	From        Value // content for the task file when the list begins; none if the file comes from elsewhere
	MaxParallel int
	Attempts    int
	MaxTries    int    // tries of all tasks; 0 = any number
	OnExhausted string // a step; "" = the task has failed
	MaxDepth    int
	OnMissing   string // a step; "" = the list fails
	OnInvalid   string
}

// sides returns the steps that the list may visit.
func (l *List) sides() (out []string) {
	if l == nil {
		return nil
	}
	for _, t := range []string{l.OnMissing, l.OnInvalid, l.OnExhausted} {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

// All returns the spec and those of its child runs.
func (s *Spec) All() []*Spec {
	out := []*Spec{s}
	for _, st := range s.Steps {
		if st.Child != nil {
			out = append(out, st.Child.All()...)
		}
	}
	return out
}

// List returns the step with for_each, or nil.
func (s *Spec) List() *Step {
	for _, st := range s.Steps {
		if st.ForEach != nil {
			return st
		}
	}
	return nil
}

// Of returns the spec of a digest. A child run's digest is its parent's, "/" and the step.
func (f Specs) Of(digest string) *Spec {
	base, rest, child := strings.Cut(digest, "/")
	w := f(base)
	for child && w != nil {
		var step string
		step, rest, child = strings.Cut(rest, "/")
		st := w.Step(step)
		if st == nil {
			return nil
		}
		w = st.Child
	}
	return w
}

// Var is a value the run is started with.
type Var struct {
	Name        string
	Default     any // nil if Required
	Required    bool
	OneOf       []any // the allowed values; nil = any
	Description string
}

// Limits are the run's circuit breakers; zero means none.
type Limits struct {
	MaxDuration    Duration
	MaxSteps       int
	MaxCostUSD     float64
	MaxTokens      int64
	Roles          map[string]Spend // what a role may use over the run
	MaxFailedRatio float64          // 0 to 1; 0 = none
	MaxSameFailure int              // 0 = DefaultMaxSameFailure
	// limit's key (of a role: roles.NAME.KEY) -> FAILED, ABORTED or human; absent = ABORTED
	// (max_same_failure: human)
	OnHit map[string]string
}

// Need is a step that must have passed, of this workflow ("") or of another.
type Need struct{ Workflow, Step string }

// Text is a string of the spec that may contain ${{ … }}. Eval is nil if it has none.
type Text struct {
	Source string
	Eval   func(*Env) (string, error) `json:"-"`
}

// String returns the text's value in env.
func (t Text) String(env *Env) (string, error) {
	if t.Eval == nil {
		return t.Source, nil
	}
	return t.Eval(env)
}

// Cond is a condition of the spec. The zero Cond is always true.
type Cond struct {
	Source string
	Eval   func(*Env) (bool, error) `json:"-"`
}

// Value is an expression with a result of any type, as in outputs.
type Value struct {
	Source string
	Reads  []string                // the steps and gates that it names, in order
	Eval   func(*Env) (any, error) `json:"-"`
}

// Command is the value of `run:`: a shell string (for sh -c) or an argument list.
type Command struct {
	Shell string
	Argv  []Text
}

// Nothing reports whether the command is the placeholder of a step without work.
func (c *Command) Nothing() bool {
	return c.Shell == "" && len(c.Argv) == 1 && c.Argv[0].Source == "true"
}

// Words returns the argument list, through sh -c for a shell string.
func (c *Command) Words() []string {
	if c.Shell != "" {
		return []string{"sh", "-c", c.Shell}
	}
	words := make([]string, len(c.Argv))
	for i, t := range c.Argv {
		words[i] = t.Source
	}
	return words
}

// EnvVar is one entry of `env:`, in file order.
type EnvVar struct {
	Name  string
	Value Text
}

// Agent is who executes a step.
type Agent struct {
	Type     string // the role
	Launch   string // LaunchHeadless, LaunchInteractive, LaunchSubagent
	Worktree Text   // relative to the repo's root; "" = the root
	Branch   Text   // "" = named after the folder
	Context  []string
	Prompt   Text
	Session  Text
	Reads    bool // it only reads the tree taken last in its folder, and does not hold the folder
}

// Output is a path that a step must produce. If Value.Eval is set, the engine writes its value
// there.
type Output struct {
	Path  Text
	Value Value
}

// Setup creates what judges need and a checkout of a commit lacks.
type Setup struct {
	Run      Command
	Files    []string // globs: what its result depends on
	Provides []string // what it creates, relative to its working folder
}

// SetupOf returns the setup for a step's judges, or nil.
func (s *Spec) SetupOf(st *Step) *Setup {
	if st.Setup != nil {
		return st.Setup
	}
	return s.Setup
}

// Criterion is one condition of success_criterion. Exactly one of Command, File and Text is set.
type Criterion struct {
	Command  *Command
	File     string
	NonEmpty bool
	Text     string // for the reviewer: no machine can check it
	Folder   bool   // judged in the step's own folder, with files that do not ship
}

// Schema is a JSON Schema for an answer; Source is its text.
type Schema struct {
	Path   string // "" if inline
	Source json.RawMessage
}

// Signal is how a step reports that it is done.
type Signal struct {
	Type  string
	Value string // sentinel: path below the root; commit: the marker
}

// Step is a discrete work chunk executed by one agent or command.
type Step struct {
	ID, Name    string
	Agent       *Agent   // nil for a command
	Run         *Command // nil for an agent
	Env         []EnvVar
	Inputs      []Text
	Outputs     []Output
	Criteria    []Criterion
	Setup       *Setup // nil = the workflow's
	Answer      *Schema
	Timeout     Duration // 0 = the role's, else the settings'
	IdleTimeout Duration
	Restarts    *int
	Signal      Signal
	Gates       []string // the gates that judge it, in order; at least one (an implicit one has the step's id)
	Needs       []string // steps of this workflow
	HasNeeds    bool     // `needs` is present, even if empty
	ExtNeeds    []Need
	When        Cond
	ForEach     *List // the step is done for each task of a list
	Child       *Spec // the workflow run for each task, or for the step; its steps name who does the work
	ChildVars   []ChildVar
	ChildAnswer Value // over the child's names; none = the answer of its last step

	joint // set by Link
}

// Role returns the role whose agent or environment the step has; "" for a command without one.
func (s *Step) Role() string {
	if s.Agent == nil {
		return ""
	}
	return s.Agent.Type
}

// Reads reports whether the step only reads its folder.
func (s *Step) Reads() bool { return s.Agent != nil && s.Agent.Reads }

// Offered reports whether the daemon offers the step and waits for its signal instead of launching
// it. Runs with stand-ins launch it nevertheless: see Run.Offers.
func (s *Step) Offered() bool {
	return s.Run == nil && s.Agent != nil && s.Agent.Launch != LaunchHeadless
}

// Reviewer is who evaluates a gate.
type Reviewer struct {
	Level     string
	AgentType string   // a role
	Run       *Command // exit 0 = pass
	FromStep  bool     // the step's own report
	Prompt    Text
	Session   Text
	Rubric    []string
	Approvers []string
	Trust     string // the lowest trust level of an answer; "" = the settings'
}

// Rule is one line of `verdict:`: an outcome and its condition.
type Rule struct {
	Outcome string
	When    Cond
}

// Verdict computes a round's outcome from the reviewer's answer. Empty = the reviewer's own.
type Verdict struct {
	Rules []Rule
	Name  *Text // one expression for the name, instead of Rules
}

// Gate is a verification procedure between steps.
type Gate struct {
	ID, Name     string
	Step         string // the step it judges
	Implicit     bool   // created for a step that names no gate
	When         Cond
	Reviewer     Reviewer
	Restarts     *int
	Answer       *Schema // of the reviewer's answer; at level human, of the answer that a person's pass needs
	Outputs      []Output
	Verdict      Verdict
	VetoWindow   *Duration
	Timeout      Duration // for a human's decision; 0 = none
	OnTimeout    string   // remind (default), fail, or an end
	OnPass       []string // steps, or one end; only on a step's last gate
	NextGate     string
	OnFail       string // a step or an end
	RetryContext string // path with {n}
	Routes       []Route
	MaxRetries   int    // max_failures, or max_retries: at least 1
	OnExhausted  string // human, pass, a step or an end

	// ReadAnswer completes a person's answer with Answer's defaults and validates it. The error
	// says what is missing or wrong, and how to correct it. nil if Answer is.
	ReadAnswer func(answer json.RawMessage) (json.RawMessage, error) `json:"-"`
}

// AsksAnswer reports whether a person's pass needs an answer.
func (g *Gate) AsksAnswer() bool { return g.Answer != nil && g.Reviewer.Level == LevelHuman }

// Route is one outcome and its target: a step, an end or "human".
type Route struct{ Outcome, To string }

// Route returns the outcome's target in `routes:`.
func (g *Gate) Route(outcome string) (string, bool) {
	for _, r := range g.Routes {
		if r.Outcome == outcome {
			return r.To, true
		}
	}
	return "", false
}

// Step returns the step with the id, or nil.
func (s *Spec) Step(id string) *Step {
	if s.graph != nil {
		return s.graph.steps[id]
	}
	for _, st := range s.Steps {
		if st.ID == id {
			return st
		}
	}
	return nil
}

// Gate returns the gate with the id, or nil.
func (s *Spec) Gate(id string) *Gate {
	if s.graph != nil {
		return s.graph.gates[id]
	}
	for _, g := range s.Gates {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// LastGate returns the gate whose pass moves the step's work on.
func (s *Spec) LastGate(step *Step) *Gate { return s.Gate(step.Gates[len(step.Gates)-1]) }

// IsEnd reports whether the target is DONE, FAILED or ABORTED.
func IsEnd(target string) bool {
	return target == EndDone || target == EndFailed || target == EndAborted
}

// Duration is a time.Duration whose text form is "2h30m".
type Duration time.Duration

// MarshalText formats the duration like time.Duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

func (d Duration) String() string { return time.Duration(d).String() }

// Env is what a condition or a ${{ … }} sees. Values are plain JSON values (map[string]any, []any,
// float64, string, bool, nil).
type Env struct {
	Run, Workflow string
	Vars          map[string]any
	Steps         map[string]StepEnv
	Gates         map[string]GateEnv

	// In a step.
	Step    string
	Attempt int

	// In a gate: the reviewer's answer, or the step's own if the step is the reviewer.
	Gate      string
	Answer    any
	Score     any // float64, or nil if there is none
	Scores    map[string]any
	Findings  []any
	Failures  int
	Exhausted bool

	Task  map[string]any // in a task's run, and in a step that a list visits for one: the task, with attempt and depth
	Tasks []any          // the list's tasks, if the spec reads them
	Tally Tally

	// Foreign, if set, returns the replacement in a text for a value that agents or people wrote,
	// so that the text's builder can tell it from its own words.
	Foreign func(source, value string) string `json:"-"`
}

// Tally counts the tasks of a list, except those that others replace.
type Tally struct {
	Total   int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Blocked int `json:"blocked"`
}

// StepEnv is a step's latest state, as expressions see it.
type StepEnv struct {
	Answer  any
	Status  string
	Attempt int
	Stdout  string
}

// GateEnv is a gate's latest state, as expressions see it.
type GateEnv struct {
	Answer   any
	Verdict  string
	Score    any
	Feedback string
}
