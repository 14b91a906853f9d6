package launch

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"sluice/agents/program"
	"sluice/engine"
)

// Afar has launches made on other machines, the workers. It keeps in the state folder what it has
// sent, so that a launch outlives a restart of this process.
type Afar interface {
	// Launch has a worker with all labels make the launch, once under its key, and waits for its end.
	// prepare returns its order, before it is sent for the first time; its error is returned. If prepare is
	// nil, another machine may have sent the launch, and it is lost if no worker shows that it has it. A worker
	// that is silent for too long has lost the launch. Any other error is ctx's, and the launch goes on.
	Launch(ctx context.Context, key string, on []string, prepare func() (Sent, error), w Watch) (Back, error)
	// Stop ends a launch and returns its end; nil: no worker has it. One that Launch was never called for
	// is looked for, as Launch does. The error is ctx's.
	Stop(ctx context.Context, key string) (*Back, error)
	// Recorded says which launches the journal has. What a worker does of no such launch is ended.
	Recorded(keys []string)
	// Knows reports whether Launch was ever called on this machine.
	Knows(key string) bool
	// Token returns the token of a launch that a worker has or had; "" = none has.
	Token(key string) string
	// Get returns what a machine has stored under its digest.
	Get(ctx context.Context, digest string) (io.ReadCloser, error)
}

// Watch is called while a launch is made on a worker.
type Watch struct {
	Waits func(why string)          // no worker can take it now
	Began func()                    // a worker has it
	Hear  func(words []Signal) bool // what its inbox has; false: it is to be called again
}

// Sent is the order of a launch for a worker: a plain value that can be understood without a folder
// of this machine. It names a role: the worker's own settings say which agent plays it, and what its
// environment has. A command comes as it is.
type Sent struct {
	Key   string        `json:"key"`
	Token string        `json:"token"` // of the launch; its result is signed with it
	Dir   string        `json:"dir"`   // of its files, below the root
	Idle  time.Duration `json:"idle_ns,omitempty"`

	Run      string         `json:"run"`
	Workflow string         `json:"workflow"`
	Step     string         `json:"step"`
	N        int            `json:"n"` // of the attempt
	Task     string         `json:"task,omitempty"`
	Try      int            `json:"try,omitempty"`
	Vars     map[string]any `json:"vars,omitempty"` // of the run

	Role   string            `json:"role"`             // "" = a command
	Argv   []string          `json:"argv,omitempty"`   // the command
	EnvOf  string            `json:"env_of,omitempty"` // the role whose environment and network a command has; "" = none
	Turn   int               `json:"turn"`             // which of the role's agents: see job.Job
	Env    map[string]string `json:"env,omitempty"`
	Signal string            `json:"signal,omitempty"` // name of its signal file; "" = it writes none

	Prompt  string          `json:"prompt"`
	Schema  json.RawMessage `json:"schema,omitempty"`  // of its answer
	Session string          `json:"session,omitempty"` // names its conversation
	Resume  string          `json:"resume,omitempty"`  // the conversation that a correction continues
	Base    program.Usage   `json:"base,omitzero"`     // what that has cost
	CostUSD float64         `json:"cost_usd,omitempty"`

	Head  string   `json:"head"`            // the commit that HEAD is at
	Start string   `json:"start"`           // the commit of the folder's files, on top of Head
	Pack  string   `json:"pack,omitempty"`  // digest of a pack of both; "" = the worker has them
	Bases []string `json:"bases,omitempty"` // commits whose objects the pack may lack
	Works bool     `json:"works,omitempty"` // its files and commits come back
}

// Back is the result of a launch on a worker, as plain as its order.
type Back struct {
	Exit    engine.Exit `json:"exit"` // as the process ended, without what its agent said
	Program Program     `json:"program,omitzero"`
	Open    string      `json:"open,omitempty"`   // why no sandbox held it
	Output  string      `json:"output,omitempty"` // digest of its output and answer; "" = nothing was started
	Signals []Signal    `json:"signals,omitempty"`

	Commit  string `json:"commit,omitempty"` // its files; "" = none come back
	Tip     string `json:"tip,omitempty"`    // the last commit of its agent
	Pack    string `json:"pack,omitempty"`   // digest of a pack of both, without Head and Start
	Head    string `json:"head,omitempty"`   // Head and Start of the order, for a machine that did not send it
	Start   string `json:"start,omitempty"`
	Refused string `json:"refused,omitempty"` // why its work cannot be taken
}

// Signal is a file in a launch's inbox.
type Signal struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Commands is the label of a worker that takes commands. With agents alone, it starts only what its
// own settings name.
const Commands = "commands"

// Limits on what a worker returns.
const (
	MaxSignals     = 16
	MaxSignalBytes = 64 << 10
)
