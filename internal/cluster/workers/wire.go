package workers

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/cluster"
	"sluice/internal/git"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/strictjson"
	"sluice/internal/text"
	"sluice/journal"
)

// Subjects. Each has the worker's id, so that an account can give a worker its own and no other.
const (
	prefix   = "sluice.worker."
	beatEnd  = ".beat"  // from the worker: heartbeats
	orderEnd = ".order" // to the worker: requests
)

// Limits on messages.
const (
	maxBeat   = 1 << 20 // one with maxKeys launches of the longest keys has half of it
	maxCall   = 6 << 20 // an order has a prompt, vars and a schema
	maxAnswer = 2 << 20
	maxKeys   = 1000 // launches that a heartbeat names
	maxHave   = 64   // commits that a worker says it has
	maxWhy    = 2 << 10
	maxName   = 200
)

// Beat is a heartbeat: who a worker is, and what it does. Anybody of its account can send one in its
// name, so it is a hint, but for the marks of its launches.
type Beat struct {
	Worker  string `json:"worker"`
	Name    string `json:"name"` // of its machine, for people
	Journal string `json:"journal"`
	Version string `json:"version,omitempty"` // of its release, for people
	Versions
	Labels   []string  `json:"labels"`
	Slots    int       `json:"slots"`
	Since    time.Time `json:"since"`
	At       time.Time `json:"at"`                 // of this heartbeat, by the worker's clock
	Draining bool      `json:"draining,omitempty"` // it finishes what it has, and takes nothing new
	Epoch    int64     `json:"epoch,omitempty"`    // the newest that it has heard of
	Launches []Doing   `json:"launches,omitempty"`
	Stalled  string    `json:"stalled,omitempty"` // what it waits for to store a result, or to read an order

	Foreign string `json:"-"` // why it is sent nothing: it speaks another version, so the launches are not known
	Twin    string `json:"-"` // the machine of another worker with its id: see twinOf
}

// Doing is a launch that a worker has.
type Doing struct {
	Key   string    `json:"key"`
	Ended bool      `json:"ended,omitempty"`
	Since time.Time `json:"since"`
	Words int       `json:"words,omitempty"` // differs when the signals in its inbox do; 0 = there are none
	Mark  string    `json:"mark,omitempty"`  // see mark
}

// mark shows that the worker that has a launch's token still has the launch at a time.
func mark(token, worker, key string, at time.Time) string {
	text := fmt.Sprintf("sluice beat\n%s\n%s\n%s", worker, key, at.UTC().Format(time.RFC3339Nano))
	return mac(token, []byte(text))[:markLen]
}

// marked reports whether a heartbeat is of the worker that has the launch's token.
func (l Doing) marked(b Beat, token string) bool {
	return hmac.Equal([]byte(l.Mark), []byte(mark(token, b.Worker, l.Key, b.At)))
}

// later returns a clock's time, or the next after the last one if the clock was set back.
func later(last, now time.Time) time.Time {
	if now = now.UTC(); now.After(last) {
		return now
	}
	return last.Add(1)
}

const markLen = 32 // 128 bits: a heartbeat has up to maxKeys of them

// free returns how many launches the worker can take.
func (b Beat) free() int {
	n := b.Slots
	for _, l := range b.Launches {
		if !l.Ended {
			n--
		}
	}
	return n
}

func (b Beat) has(key string) (Doing, bool) {
	i := slices.IndexFunc(b.Launches, func(l Doing) bool { return l.Key == key })
	if i < 0 {
		return Doing{}, false
	}
	return b.Launches[i], true
}

// labelled reports whether a worker with some labels has all that are asked for.
func labelled(labels, on []string) bool {
	return !slices.ContainsFunc(on, func(l string) bool { return !slices.Contains(labels, l) })
}

// What is asked of a worker.
const (
	doLaunch = "launch" // make it, or answer with its state
	doAsk    = "ask"
	doStop   = "stop" // end it; its result is then asked for
	doDrop   = "drop" // end it and forget it: nobody waits for its result
	// of the worker itself
	doGreet  = "greet"  // hear who decides
	doDrain  = "drain"  // finish what it has, and take nothing new
	doResume = "resume" // take orders again
)

// call is a request to a worker. It is signed with the key that its sender logs in with, if it does so
// with one: see cluster.Conn.
type call struct {
	Wire    int          `json:"wire,omitempty"` // the version that it is of: see Versions
	Do      string       `json:"do"`
	Journal string       `json:"journal"`
	Epoch   int64        `json:"epoch"`
	At      time.Time    `json:"at"`            // when it is sent; a later request of a desk has a later one
	By      string       `json:"by"`            // who decides, for people
	Key     string       `json:"key,omitempty"` // of a launch
	On      []string     `json:"on,omitempty"`  // of launch: the labels that its worker needs
	Sent    *launch.Sent `json:"sent,omitempty"`
}

// ofWorker reports whether it is about the worker, and no launch of it.
func (c call) ofWorker() bool { return c.Do == doGreet || c.Do == doDrain || c.Do == doResume }

// What a worker answers.
const (
	isRunning = "running"
	isEnded   = "ended"
	isUnknown = "unknown" // it has never had the launch
	isOver    = "over"    // it has had it, and was asked to forget it
	isFull    = "full"    // no free slot, or it drains: try another
	isDone    = "done"    // of drain and resume
	isLacking = "lacking" // it lacks the commits: send a pack
	isRefused = "refused" // the request is wrong, or its epoch is over
)

// answer is a worker's reply.
type answer struct {
	Is      string          `json:"is"`
	Why     string          `json:"why,omitempty"`
	Have    []string        `json:"have,omitempty"` // of lacking: commits that a pack may build on
	Signals []launch.Signal `json:"signals,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"` // of ended: a launch.Back
	Sign    string          `json:"sign,omitempty"`
}

// sign signs the bytes of a result with the token of its order.
func sign(token, key string, result []byte) string {
	return mac(token, slices.Concat([]byte("sluice result\n"+key+"\n"), result))
}

func mac(token string, text []byte) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write(text)
	return hex.EncodeToString(m.Sum(nil))
}

func signed(token, key string, a answer) bool {
	return hmac.Equal([]byte(a.Sign), []byte(sign(token, key, a.Result)))
}

// isWorker reports whether a text can be the id of a worker: one token of a subject.
func isWorker(s string) bool { return ids.Hex(s, idBytes) }

const idBytes = 8

// read reads a message into v: strict JSON of at most `most` bytes.
func read(data []byte, most int, v any) error {
	if err := strictjson.Object(data, most); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// readBeat reads a heartbeat from the subject of a worker.
func readBeat(data []byte, worker string) (b Beat, err error) {
	err = read(data, maxBeat, &b)
	if b.Foreign = b.foreign("it", err); b.Foreign != "" {
		b.Launches = nil
	} else if err != nil {
		return b, err
	}
	switch {
	case b.Worker != worker || !isWorker(worker):
		return b, fmt.Errorf("it is said to be of %.40q", b.Worker)
	case !journal.IsID(b.Journal):
		return b, fmt.Errorf("its journal is %.40q", b.Journal)
	case b.Slots < 1 || b.Slots > MaxSlots || len(b.Launches) > maxKeys:
		return b, fmt.Errorf("it has %d slots and %d launches", b.Slots, len(b.Launches))
	}
	if why := ids.LabelsFault(b.Labels, 1); why != "" {
		return b, errors.New(why)
	}
	b.Name, b.Version = plain(b.Name), plain(b.Version)
	b.Stalled = text.Message(b.Stalled)
	for _, l := range b.Launches {
		if !isKey(l.Key) || len(l.Mark) > markLen {
			return b, fmt.Errorf("launch %.100q", l.Key)
		}
	}
	return b, nil
}

// MaxSlots is how many launches a worker may make at once.
const MaxSlots = 1000

// isKey reports whether a text can be the key of a step's launch: <run>/<step>#<attempt>.<launch>, and
// of its corrections.
func isKey(s string) bool {
	run, step, numbers := splitKey(s)
	return ids.ValidRun(run) && ids.Valid(step) && numbers != "" && len(numbers) < 40 &&
		strings.Trim(numbers, "0123456789.+f") == ""
}

// splitKey returns the parts of a launch's key.
func splitKey(key string) (run, step, numbers string) {
	run, rest, _ := strings.Cut(key, "/")
	step, numbers, _ = strings.Cut(rest, "#")
	return run, step, numbers
}

func plain(s string) string { return text.Line(s[:min(len(s), maxName)]) }

// readCall reads a request.
func readCall(data []byte) (c call, err error) {
	err = read(data, maxCall, &c)
	c.By = plain(c.By)
	if why := (Versions{c.Wire, c.Wire}).foreign("the machine that decides", err); why != "" {
		return c, errors.New(why)
	}
	if err != nil {
		return c, err
	}
	if !slices.Contains([]string{doLaunch, doAsk, doStop, doDrop, doGreet, doDrain, doResume}, c.Do) {
		return c, fmt.Errorf("it asks for %.40q", c.Do)
	}
	if !journal.IsID(c.Journal) || c.Epoch < 1 || c.At.IsZero() || isKey(c.Key) == c.ofWorker() ||
		(c.Do == doLaunch) != (c.Sent != nil) || len(c.On) > ids.MaxLabels {
		return c, fmt.Errorf("it is incomplete")
	}
	if c.Sent != nil {
		return c, checkSent(c.Key, *c.Sent)
	}
	return c, nil
}

// checkSent checks an order.
func checkSent(key string, s launch.Sent) error {
	hexToken, _ := hex.DecodeString(s.Token)
	bad := firstBad(map[string]bool{
		"key":     s.Key != key,
		"token":   len(hexToken) < 16 || len(s.Token) > 128,
		"dir":     !isDir(s.Dir),
		"run":     !ids.ValidRun(s.Run) || len(s.Run) >= len(key) || key[:len(s.Run)+1] != s.Run+"/",
		"step":    !ids.Valid(s.Step) || s.N < 1,
		"role":    (s.Role == "") != (len(s.Argv) > 0) || s.Role+s.EnvOf != "" && !ids.Valid(cmp.Or(s.Role, s.EnvOf)),
		"signal":  s.Signal != "" && !ids.Valid(s.Signal),
		"head":    !git.IsName(s.Head) || !git.IsName(s.Start),
		"pack":    s.Pack != "" && !cluster.IsDigest(s.Pack),
		"bases":   len(s.Bases) > maxHave || slices.ContainsFunc(s.Bases, func(b string) bool { return !git.IsName(b) }),
		"idle_ns": s.Idle < 0,
	})
	if bad != "" {
		return fmt.Errorf("the order's %s cannot be used", bad)
	}
	return nil
}

// firstBad returns the bad member whose name sorts first; "" = none is bad.
func firstBad(members map[string]bool) string {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] {
			return name
		}
	}
	return ""
}

// isDir reports whether a path can be the folder of a launch's files.
func isDir(s string) bool {
	rest, ours := strings.CutPrefix(s, layout.RunsDir+"/")
	return ours && len(s) < 1000 && !slices.ContainsFunc(strings.Split(rest, "/"),
		func(part string) bool { return !ids.ValidRun(part) })
}

// readAnswer reads a reply.
func readAnswer(data []byte) (a answer, err error) {
	if err := read(data, maxAnswer, &a); err != nil {
		return a, err
	}
	a.Why = text.Line(a.Why[:min(len(a.Why), maxWhy)])
	if len(a.Signals) > launch.MaxSignals || len(a.Have) > maxHave ||
		slices.ContainsFunc(a.Have, func(h string) bool { return !git.IsName(h) }) {
		return a, fmt.Errorf("it has %d signals and %d commits", len(a.Signals), len(a.Have))
	}
	return a, nil
}

// readResult reads a signed result.
func readResult(data []byte) (b launch.Back, err error) {
	if err := read(data, maxAnswer, &b); err != nil {
		return b, err
	}
	x := &b.Exit
	classes := []string{"", engine.ClassWork, engine.ClassInfrastructure, engine.ClassLimit, engine.ClassFatal}
	bad := firstBad(map[string]bool{
		"exit":    x.Code < -1 || x.Code > 255 || !slices.Contains(classes, x.Class) || len(x.Signal) > 40,
		"budget":  x.Budget != "" && launch.DayEnd(x.Budget).IsZero(),
		"usage":   !launch.Plausible(*x),
		"output":  b.Output != "" && !cluster.IsDigest(b.Output),
		"signals": len(b.Signals) > launch.MaxSignals,
		"head":    b.Head+b.Start != "" && (!git.IsName(b.Head) || !git.IsName(b.Start)),
		"commit":  b.Commit != "" && (!git.IsName(b.Commit) || !git.IsName(b.Tip) || !cluster.IsDigest(b.Pack)),
	})
	if bad != "" {
		return b, fmt.Errorf("its %s cannot be used", bad)
	}
	x.Signal, x.Why, x.NotStarted, x.Refused = lines(x.Signal), lines(x.Why), lines(x.NotStarted), lines(x.Refused)
	b.Refused, b.Open = lines(b.Refused), lines(b.Open)
	return b, nil
}

func lines(s string) string { return text.Message(s[:min(len(s), maxWhy)]) }
