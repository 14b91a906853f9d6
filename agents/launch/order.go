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
	"sluice/internal/settings"
	"sluice/internal/tree"
)

// Order is one process that is to be, once, under its key.
type Order struct {
	Key   string
	Of    string        // the key of the effect that it is made for; "" = its own
	Dir   string        // below the root: the folder of its files
	Idle  time.Duration // ended when it says nothing for so long; 0 = never
	Agent bool          // takes one of the slots
	Since time.Time     // when it was decided; zero where doing it twice does no harm
	Clock *Clock        // nil where its time-out waits for nothing
}

// job is the key of the effect that the launch is made for.
func (l Order) job() string {
	if l.Of != "" {
		return l.Of
	}
	return l.Key
}

// Clock tells the engine from when on a launch's time-out is to count.
type Clock struct {
	Run, Key string
	Emit     func(engine.Event)
	Held     bool
	spent    engine.Usage // by what has ended of the job: a launch before this one, which is asked again
}

func (c *Clock) hold() {
	if c != nil && c.Emit != nil {
		c.Emit(engine.SlotAwaited{Run: c.Run, Key: c.Key})
		c.Held = true
	}
}

func (c *Clock) begin() {
	if c != nil && c.Emit != nil && c.Held {
		c.Emit(engine.SlotTaken{Run: c.Run, Key: c.Key})
		c.Held = false
	}
}

// add notes what a launch has cost that has ended.
func (c *Clock) add(u engine.Usage) {
	if c != nil {
		c.spent = c.spent.Plus(u)
	}
}

// Process is what a launch starts.
type Process struct {
	Cwd   string
	Argv  []string
	Env   []string
	Stdin string // a file; "" = nothing

	Who    Who         // whose work it is: its role's network, its agent's login
	Judged Judged      // where it judges; its seat is nil where it does not, or in the agent's own folder
	Writes []string    // folders below .workflow/, as seen from the root, that are its to write though it is held
	Work   *tree.Order // whose work its commits are; nil = nobody's: they are thrown away
}

// Native has the agent's own program started and not a launcher that npm has laid before it: what is ended is then what
// works. A command that is not there stays as it is, to be told as such.
func (p Process) Native(w Who) Process {
	if w.Known && program.Known(w.Agent.Format) && len(p.Argv) > 0 {
		if file, err := agents.LookUp(p.Argv[0], p.Env, p.Cwd); err == nil {
			p.Argv[0] = program.Native(w.Agent.Format, file)
		}
	}
	return p
}

// Ended is a process that is gone, or that was never started.
type Ended struct {
	Exit engine.Exit
	Dir  string          // the folder of its files, absolute; "" = it has none
	Said *program.Result // what its agent's program told; nil = its output is its word

	total program.Usage // of its conversation, with all that was in it before
	gone  bool          // the conversation that it was to go on with is not there
}

// Clean reports whether it ended by itself, with code 0.
func (d Ended) Clean() bool { return d.Failure() == "" && d.Exit.Code == 0 }

// Failure returns why there is no exit code to go by; "" = there is one.
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

// OrCode says how a process ended: why there is no exit code to go by, the signal, or the code.
func OrCode(d Ended) string {
	if why := d.Failure(); why != "" {
		return why
	}
	if d.Exit.Signal != "" {
		return "it was ended by " + d.Exit.Signal
	}
	return fmt.Sprintf("it ended with exit code %d", d.Exit.Code)
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

// Stdout is the end of its last words: of its standard output, where that is them.
func (d Ended) Stdout(most int64) string {
	switch {
	case d.Dir == "":
		return ""
	case d.Said != nil:
		return tailOf(d.Said.Text, int(most))
	}
	return fileEnd(d.Dir, "stdout", most)
}

// Structured is the answer that its program gave in a field of its own; nil where it has none.
func (d Ended) Structured() []byte {
	if d.Said == nil {
		return nil
	}
	return d.Said.Structured
}

// undenied is the end without the class that a denied tool alone gave it.
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

// fileEnd is the end of a file of a launch.
func fileEnd(dir, name string, most int64) string {
	f, st, err := atomicfile.Open(dir, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, min(st.Size, most))
	n, _ := f.ReadAt(data, st.Size-int64(len(data))) // what was read counts
	return strings.ToValidUTF8(string(data[:n]), "\uFFFD")
}

// Who is the agent that a launch of a role gets.
type Who struct {
	Name  string
	Role  string
	Set   settings.Role
	Agent settings.Agent
	Known bool
	Stub  bool // a stand-in plays it
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

// Idle returns the idle_timeout of a step, else that of its role, else that of all; 0 = none.
func (ls *Launches) Idle(role string, ofStep engine.Duration) time.Duration {
	s := ls.opt.Settings()
	own := settings.Role{}
	if role != "" {
		own = s.Role(role)
	}
	return time.Duration(cmp.Or(ofStep, own.IdleTimeout, s.IdleTimeout))
}
