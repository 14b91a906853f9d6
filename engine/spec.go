package engine

import (
	"encoding/json"
	"strings"
	"time"
)

// The ends a branch or a run can come to.
const (
	EndDone    = "DONE"    // the branch ends here
	EndFailed  = "FAILED"  // the run ends at once, failed
	EndAborted = "ABORTED" // the run ends at once, aborted
)

// The levels of a gate.
const (
	LevelAuto   = "auto"   // the reviewer's verdict decides
	LevelNotify = "notify" // so, and a person is told and may veto
	LevelHuman  = "human"  // a person decides
)

// The ways a step's agent is launched.
const (
	LaunchHeadless    = "headless"    // the daemon starts the process
	LaunchInteractive = "interactive" // the step is offered; a person drives an agent and signals
	LaunchSubagent    = "subagent"    // the step is offered to an orchestrating agent
)

// The signals by which a step says it is done.
const (
	SignalFile   = "sentinel_file" // a JSON file appears in .workflow/signals/
	SignalCommit = "git_commit"    // a commit carries the marker
	SignalPull   = "pr_creation"   // a pull request appears whose head is the step's
	SignalExit   = "stdout_exit"   // the process exits 0, or with another code has failed
)

// Human is the target and outcome that makes a gate's round a person's.
const Human = "human"

// Outcomes every gate knows without naming them.
const (
	OutcomePass    = "pass"
	OutcomeFail    = "fail"
	OutcomeVeto    = "veto"
	OutcomeBlocked = "blocked"
	OutcomeLost    = "lost" // no result, after all restarts
)

// DefaultMaxRetries is max_failures (or max_retries, the same) where a gate does not say.
const DefaultMaxRetries = 3

// DefaultMaxSameFailure is how often the same failure over an unchanged tree may come before a person is asked.
const DefaultMaxSameFailure = 3

// Spec is a workflow as the engine reads it: compiled, checked, immutable. Package specs makes it from YAML.
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
	AfterTask    *Command // the AfterRun of the runs of its tasks
	Notify       bool     // a person is told of each step that passes, or is sent back
	Protect      []string
	Workspace    string // WorkspaceRun, or "" for the person's checkout
	OnDone       OnDone
	Setup        *Setup  // for those who judge; nil = none
	Steps        []*Step // in the order of the file
	Gates        []*Gate // in the order of the file, the implicit ones of gateless steps last

	Inline     bool  // the one step of a list's task: no file has it
	Outer      *Spec `json:"-"` // of an inline one: the workflow whose step it is
	ReadsTasks bool  // some expression reads `tasks`
	Looked     bool  // a step of it, of what it starts or of what started it only looks: all work is taken, to be seen by that

	graph *graph // set by Link
}

// ChildVar is the value of a var that a child run is started with, over its parent's names. The value is of the var's type.
type ChildVar struct {
	Name  string
	Value Value
}

// List is `for_each`: the step is done once for each task of a file.
type List struct {
	Tasks       Text
	From        Value // what is written there as a task file when the list begins; none: the file is somebody's
	MaxParallel int
	Attempts    int
	MaxTries    int    // tries of all tasks; 0 = any number
	OnExhausted string // a step; "" = the task has failed
	MaxDepth    int
	OnMissing   string // a step; "" = the list fails
	OnInvalid   string
}

// sides are the steps the list may go to.
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

// All returns the spec and those of the child runs it may start.
func (s *Spec) All() []*Spec {
	out := []*Spec{s}
	for _, st := range s.Steps {
		if st.Child != nil {
			out = append(out, st.Child.All()...)
		}
	}
	return out
}

// List returns the step with for_each; nil where there is none.
func (s *Spec) List() *Step {
	for _, st := range s.Steps {
		if st.ForEach != nil {
			return st
		}
	}
	return nil
}

// Of returns the spec of a digest: that of a child run is its parent's, "/" and the step it is for.
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
	Default     any // nil where Required
	Required    bool
	OneOf       []any // the values it may have; nil = any
	Description string
}

// Limits are the run's circuit breakers; zero is none.
type Limits struct {
	MaxDuration    Duration
	MaxSteps       int
	MaxCostUSD     float64
	MaxTokens      int64
	Roles          map[string]Spend  // what a role may use over the run
	MaxFailedRatio float64           // 0 to 1; 0 = none
	MaxSameFailure int               // DefaultMaxSameFailure where the spec is silent
	OnHit          map[string]string // limit's key (of a role: roles.NAME.KEY) -> FAILED, ABORTED or human; absent = ABORTED (max_same_failure: human)
}

// Need is a step that must have passed, of this workflow ("" ) or of another.
type Need struct{ Workflow, Step string }

// Text is a string of the spec that may hold ${{ … }}. Eval is nil where it holds none.
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

// Cond is a condition of the spec. The zero Cond holds always.
type Cond struct {
	Source string
	Eval   func(*Env) (bool, error) `json:"-"`
}

// Value is an expression that gives any value, as in outputs.
type Value struct {
	Source string
	Reads  []string                // the steps and gates that it names, in order
	Eval   func(*Env) (any, error) `json:"-"`
}

// Command is what `run:` holds: a shell string (for sh -c) or an argument list.
type Command struct {
	Shell string
	Argv  []Text
}

// Nothing reports whether the command only succeeds: what a step without work has.
func (c *Command) Nothing() bool {
	return c.Shell == "" && len(c.Argv) == 1 && c.Argv[0].Source == "true"
}

// Words is the argument list as the spec has it: that of sh -c for a text.
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

// EnvVar is one entry of `env:`, in the order of the file.
type EnvVar struct {
	Name  string
	Value Text
}

// Agent says who executes a step.
type Agent struct {
	Type     string // the role
	Launch   string // LaunchHeadless, LaunchInteractive, LaunchSubagent
	Worktree Text   // relative to the repo's root; "" = the root
	Branch   Text   // "" = of the folder's name
	Context  []string
	Prompt   Text
	Session  Text
	Reads    bool // it only looks: at the tree that was taken last in its folder, which it does not hold
}

// Output is a path a step must have produced; Value, where Eval is set, is what the engine writes there.
type Output struct {
	Path  Text
	Value Value
}

// Setup makes what a checkout of a commit lacks and its judges need.
type Setup struct {
	Run      Command
	Files    []string // globs: what its result depends on
	Provides []string // what it makes, from the folder that it runs in
}

// SetupOf is the setup for those who judge a step; nil = none.
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
	Text     string // what no machine can check: the reviewer judges it
	Folder   bool   // it is judged in the step's own folder, with files that do not ship
}

// Schema is a JSON Schema for an answer; Source is the schema itself.
type Schema struct {
	Path   string // "" where it stood inline
	Source json.RawMessage
}

// Signal is how a step announces that it is done.
type Signal struct {
	Type  string
	Value string // sentinel: path below the root; commit: the marker
}

// Step is a discrete work chunk executed by one agent or command.
type Step struct {
	ID, Name    string
	Agent       *Agent   // nil for a bare command
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
	Gates       []string // the row of gates that judges it, in order; at least one (the implicit one bears the step's id)
	Needs       []string // steps of this workflow
	HasNeeds    bool     // `needs` is written, be it empty
	ExtNeeds    []Need
	When        Cond
	ForEach     *List // the step is done for each task of a list
	Child       *Spec // what is run for each task, or for the step; who does the work is said there
	ChildVars   []ChildVar
	ChildAnswer Value // over the child's names; without one, the answer of its last step

	joint // set by Link
}

// Role is the role whose agent, or whose environment, the step has; "" for a bare command without one.
func (s *Step) Role() string {
	if s.Agent == nil {
		return ""
	}
	return s.Agent.Type
}

// Reads reports whether the step only looks at its folder.
func (s *Step) Reads() bool { return s.Agent != nil && s.Agent.Reads }

// Offered says that the daemon launches nothing: it offers the step and waits for its signal. In a run that stand-ins play
// it is launched all the same: see Run.Offers.
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
	Trust     string // the least level of trust an answer needs; "" = the settings'
}

// Rule is one line of `verdict:`: the outcome's name and when it holds.
type Rule struct {
	Outcome string
	When    Cond
}

// Verdict computes a round's outcome from the reviewer's answer. Empty = the reviewer's own word.
type Verdict struct {
	Rules []Rule
	Name  *Text // one expression that gives the name, instead of Rules
}

// Gate is a verification procedure between steps.
type Gate struct {
	ID, Name     string
	Step         string // the step it judges
	Implicit     bool   // made for a step that names no gate
	When         Cond
	Reviewer     Reviewer
	Restarts     *int
	Answer       *Schema // of the reviewer's answer; at level human of the one that a person's pass has to give
	Outputs      []Output
	Verdict      Verdict
	VetoWindow   *Duration
	Timeout      Duration // for a human's decision; 0 = none
	OnTimeout    string   // remind (default), fail, or an end
	OnPass       []string // steps, or one end; of the last gate of a row
	NextGate     string
	OnFail       string // a step or an end
	RetryContext string // path with {n}
	Routes       []Route
	MaxRetries   int    // max_failures, or max_retries: at least 1
	OnExhausted  string // human, pass, a step or an end

	// ReadAnswer completes a person's answer from the defaults of Answer and holds it against that; the error says what is
	// missing or wrong, and how to give it. nil where Answer is.
	ReadAnswer func(answer json.RawMessage) (json.RawMessage, error) `json:"-"`
}

// AsksAnswer reports whether a person's pass has to give an answer.
func (g *Gate) AsksAnswer() bool { return g.Answer != nil && g.Reviewer.Level == LevelHuman }

// Route is one outcome and where it leads: a step, an end or "human".
type Route struct{ Outcome, To string }

// Route returns where the outcome leads by `routes:`.
func (g *Gate) Route(outcome string) (string, bool) {
	for _, r := range g.Routes {
		if r.Outcome == outcome {
			return r.To, true
		}
	}
	return "", false
}

// Step finds a step by its id; nil where there is none.
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

// Gate finds a gate by its id; nil where there is none.
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

// LastGate is the gate whose pass lets the step's work go on.
func (s *Spec) LastGate(step *Step) *Gate { return s.Gate(step.Gates[len(step.Gates)-1]) }

// IsEnd reports whether the target is DONE, FAILED or ABORTED.
func IsEnd(target string) bool {
	return target == EndDone || target == EndFailed || target == EndAborted
}

// Duration is a span of time that reads and writes itself as "2h30m".
type Duration time.Duration

// MarshalText writes the duration as time.Duration prints it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

func (d Duration) String() string { return time.Duration(d).String() }

// Env is what a condition or a ${{ … }} sees. Values are plain JSON values (map[string]any, []any, float64, string, bool, nil).
type Env struct {
	Run, Workflow string
	Vars          map[string]any
	Steps         map[string]StepEnv
	Gates         map[string]GateEnv

	// In a step.
	Step    string
	Attempt int

	// In a gate: the reviewer's answer, or the step's own where the reviewer is the step.
	Gate      string
	Answer    any
	Score     any // float64, or nil where none was given
	Scores    map[string]any
	Findings  []any
	Failures  int
	Exhausted bool

	Task  map[string]any // of a task's run, and of a step a list went to for one: the task, with attempt and depth
	Tasks []any          // the list's tasks, where the spec reads them
	Tally Tally

	// Foreign, where given, is what stands in a text for the value of an expression that reads what agents or people said:
	// so that who puts the text together can tell its words from theirs.
	Foreign func(source, value string) string `json:"-"`
}

// Tally counts the tasks of a list. Those that others stand for are not counted.
type Tally struct {
	Total   int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Blocked int `json:"blocked"`
}

// StepEnv is the latest of a step, as expressions see it.
type StepEnv struct {
	Answer  any
	Status  string
	Attempt int
	Stdout  string
}

// GateEnv is the latest of a gate, as expressions see it.
type GateEnv struct {
	Answer   any
	Verdict  string
	Score    any
	Feedback string
}
