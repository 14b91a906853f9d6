package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Ends of a branch or a run.
const (
	EndDone    = "DONE"    // the branch ends here
	EndFailed  = "FAILED"  // the run ends at once, failed
	EndAborted = "ABORTED" // the run ends at once, aborted
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
	On           *On     // what starts runs by itself; nil = nothing
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
func (l *List) sides() []string {
	if l == nil {
		return nil
	}
	return slices.DeleteFunc([]string{l.OnMissing, l.OnInvalid, l.OnExhausted}, func(t string) bool { return t == "" })
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
	return find(s.Steps, func(st *Step) bool { return st.ForEach != nil })
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
	Name              string
	Default           any   // nil if Required
	Required, Foreign bool  // Foreign: agents, or people outside, influence the value
	OneOf             []any // the allowed values; nil = any
	Description       string
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
	On          []string // labels of the workers that may do it, beside those of its role
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

// Step returns the step with the id, or nil.
func (s *Spec) Step(id string) *Step {
	if s.graph != nil {
		return s.graph.steps[id]
	}
	return find(s.Steps, func(st *Step) bool { return st.ID == id })
}

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
