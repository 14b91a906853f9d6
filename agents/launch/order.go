package launch

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/settings"
	"sluice/internal/tree"
)

// Order asks for a process that is started once under its key.
type Order struct {
	Key   string
	Of    string        // the key of the effect that it belongs to; "" = its own
	Dir   string        // the folder of its files, below the root
	Idle  time.Duration // the silence after which it is ended; 0 = never
	Agent bool          // it takes a slot, and its usage counts
	Since time.Time     // when it was decided; zero if it may run twice: see the package doc
	Clock *Clock        // nil if its timeout does not wait for a slot
	On    []string      // labels: a worker that has all makes it; none = this machine
	Found bool          // another machine may have sent it to a worker
}

// job returns the key of the effect that the launch belongs to.
func (l Order) job() string { return cmp.Or(l.Of, l.Key) }

// Clock reports to the engine when a launch waits for its slot, and when it has it: its timeout
// starts then. A nil Clock reports nothing.
type Clock struct {
	run, key string
	emit     func(engine.Event) // nil = nothing is reported
	held     bool               // the launch waits
	spent    engine.Usage       // by the job's ended launches, before a correction
}

// NewClock returns the clock of a job. Without a deadline its launch waits for its slot.
func NewClock(j job.Job, deadline time.Time, emit func(engine.Event)) *Clock {
	return &Clock{run: j.Run, key: j.Key, emit: emit, held: deadline.IsZero()}
}

func (c *Clock) hold() {
	if c != nil && c.emit != nil {
		c.emit(engine.SlotAwaited{Run: c.run, Key: c.key})
		c.held = true
	}
}

func (c *Clock) begin() {
	if c != nil && c.emit != nil && c.held {
		c.emit(engine.SlotTaken{Run: c.run, Key: c.key})
		c.held = false
	}
}

func (c *Clock) add(u engine.Usage) {
	if c != nil {
		c.spent = c.spent.Plus(u)
	}
}

// Process is what a launch starts, before it is confined.
type Process struct {
	Cwd   string
	Argv  []string
	Env   []string // complete
	Stdin string   // a file; "" = none
	Told  bool     // its stdout is its program's report: what the agent runs cannot write to it

	Who    Who         // whose network rules and login it has
	Judged Judged      // where it works or judges; without a Seat that is the agent's own folder
	Writes []string    // folders below .workflow/, from the root, that it may write in a sandbox
	Work   *tree.Order // what its work starts from; nil = its commits are discarded
	Sent   *Sent       // for a worker, in place of all of the above
}

// Native replaces npm's launcher by the agent's own program, so that stopping it stops the work. A
// missing command stays, and is reported as such.
func (p Process) Native(w Who) Process {
	if w.Known && program.Known(w.Agent.Format) && len(p.Argv) > 0 {
		if file, err := agents.LookUp(p.Argv[0], p.Env, p.Cwd); err == nil {
			p.Argv[0] = program.Native(w.Agent.Format, file)
		}
	}
	return p
}

// Ended is a process that has ended or was never started.
type Ended struct {
	Exit engine.Exit
	Dir  string          // the absolute folder of its files; "" = none
	Said *program.Result // what its agent's program reported; nil = its output is its answer
	Back *Back           // what a worker returned; nil = it was this machine's

	unkept string        // why its standard output is not whole; "" = it is
	total  program.Usage // of its whole conversation
	gone   bool          // the conversation that it should continue is missing
}

// Clean reports whether it ended by itself with code 0.
func (d Ended) Clean() bool { return d.Failure() == "" && d.Exit.Code == 0 }

// Failure returns why there is no valid exit code; "" = there is one.
func (d Ended) Failure() string {
	x := d.Exit
	switch {
	case x.Refused != "":
		return x.Refused
	case x.NotStarted != "":
		return x.NotStarted
	case x.Class != "":
		return x.Why
	case x.Lost:
		return "it vanished without an exit code: the machine restarted, or its host process was killed"
	case x.Stopped:
		return "it was ended"
	}
	return ""
}

// OrCode describes how a process ended: its failure, signal or exit code.
func OrCode(d Ended) string {
	if why := d.Failure(); why != "" {
		return why
	}
	if d.Exit.Signal != "" {
		return "it was ended by " + d.Exit.Signal
	}
	return fmt.Sprintf("it ended with exit code %d", d.Exit.Code)
}

// Whole returns an error if part of its output is lost: the rest may say something else.
func (d Ended) Whole() error {
	if d.Said != nil || d.unkept == "" { // its program's last event has all
		return nil
	}
	return fmt.Errorf("the output is not whole: %s", d.unkept)
}

// Output returns the end of its output.
func (d Ended) Output() string {
	if d.Dir == "" {
		return ""
	}
	if d.Said != nil {
		return tailOf(strings.TrimSpace(d.Said.Text+"\n"+stderrOf(d.Dir)), engine.MaxOutput)
	}
	return string(agents.Tail(d.Dir, engine.MaxOutput))
}

// Stdout returns the end of its last words, or of its standard output.
func (d Ended) Stdout(most int64) string {
	switch {
	case d.Dir == "":
		return ""
	case d.Said != nil:
		return tailOf(d.Said.Text, int(most))
	}
	return fileEnd(d.Dir, "stdout", most)
}

// Structured returns the answer from its program's own field; nil if there is none.
func (d Ended) Structured() []byte {
	if d.Said == nil {
		return nil
	}
	return d.Said.Structured
}

// undenied returns the end without a class that only a denied tool caused.
func (d Ended) undenied() Ended {
	if d.Said != nil && d.Said.OnlyDenied() && d.Exit.Class == engine.ClassWork {
		d.Exit.Class, d.Exit.Why = "", ""
	}
	return d
}

func tailOf(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[len(s)-most:], "\uFFFD")
	}
	return s
}

func fileEnd(dir, name string, most int64) string {
	f, st, err := atomicfile.Open(dir, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, min(st.Size, most))
	n, _ := f.ReadAt(data, st.Size-int64(len(data))) // a part is enough
	return strings.ToValidUTF8(string(data[:n]), "\uFFFD")
}

// Who is the agent of a launch's role.
type Who struct {
	Name  string
	Role  string
	Set   settings.Role
	Agent settings.Agent
	Known bool
	Stub  bool // played by a stand-in
	Afar  bool // played on a worker
}

// Whose returns the agent whose turn it is.
func (ls *Launches) Whose(role string, nth int) Who {
	if role == "" {
		return Who{} // a bare command
	}
	s := ls.opt.Settings()
	w := Who{Role: role, Set: s.Role(role)}
	if len(w.Set.Agent) == 0 {
		return w
	}
	w.Name = w.Set.Agent[max(nth, 0)%len(w.Set.Agent)]
	w.Agent, w.Known = s.Agent(w.Name)
	return w
}

// Idle returns the idle_timeout of a step, else that of its role, else the general one; 0 = none.
func (ls *Launches) Idle(role string, ofStep engine.Duration) time.Duration {
	s := ls.opt.Settings()
	own := settings.Role{}
	if role != "" {
		own = s.Role(role)
	}
	return time.Duration(cmp.Or(ofStep, own.IdleTimeout, s.IdleTimeout))
}
