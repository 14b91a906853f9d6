package workers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/cluster"
	"sluice/internal/git"
	"sluice/internal/ids"
	"sluice/internal/layout"
	"sluice/internal/settings"
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
	maxBeat   = 256 << 10
	maxCall   = 6 << 20 // an order has a prompt, vars and a schema
	maxAnswer = 2 << 20
	maxKeys   = 1000 // launches that a heartbeat names
	maxHave   = 64   // commits that a worker says it has
	maxWhy    = 2 << 10
	maxName   = 200
)

// Beat is a heartbeat: who a worker is, and what it does.
type Beat struct {
	Worker  string `json:"worker"`
	Name    string `json:"name"` // of its machine, for people
	Journal string `json:"journal"`
	Version string `json:"version,omitempty"` // of its release, for people
	Versions
	Labels   []string  `json:"labels"`
	Slots    int       `json:"slots"`
	Since    time.Time `json:"since"`
	Launches []Doing   `json:"launches,omitempty"`

	Foreign string `json:"-"` // why it is sent nothing: it speaks another version, so the launches are not known
}

// Doing is a launch that a worker has.
type Doing struct {
	Key   string    `json:"key"`
	Ended bool      `json:"ended,omitempty"`
	Since time.Time `json:"since"`
	Words int       `json:"words,omitempty"` // signals in its inbox
}

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

func (b Beat) labelled(on []string) bool {
	return !slices.ContainsFunc(on, func(l string) bool { return !slices.Contains(b.Labels, l) })
}

// What is asked of a worker.
const (
	doLaunch = "launch" // make it, or say what is known of it
	doAsk    = "ask"
	doStop   = "stop" // end it; its result is then asked for
	doDrop   = "drop" // end it and forget it: nobody waits for its result
)

// call is a request to a worker.
type call struct {
	Wire    int          `json:"wire,omitempty"` // the version that it is of: see Versions
	Do      string       `json:"do"`
	Journal string       `json:"journal"`
	Epoch   int64        `json:"epoch"`
	By      string       `json:"by"` // who decides, for people
	Key     string       `json:"key"`
	Sent    *launch.Sent `json:"sent,omitempty"` // of launch
}

// What a worker answers.
const (
	isRunning = "running"
	isEnded   = "ended"
	isUnknown = "unknown" // it has never had the launch
	isOver    = "over"    // it has had it, and was told to forget it
	isFull    = "full"    // no free slot: try another
	isLacking = "lacking" // it has not the commits: send a pack
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
	m := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(m, "sluice result\n%s\n", key)
	m.Write(result)
	return hex.EncodeToString(m.Sum(nil))
}

func signed(token, key string, a answer) bool {
	return hmac.Equal([]byte(a.Sign), []byte(sign(token, key, a.Result)))
}

// isWorker reports whether a text can be the id of a worker: one token of a subject.
func isWorker(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == idBytes && hex.EncodeToString(b) == s
}

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
	case CheckLabels(b.Labels) != nil:
		return b, CheckLabels(b.Labels)
	}
	b.Name, b.Version = plain(b.Name), plain(b.Version)
	for _, l := range b.Launches {
		if !isKey(l.Key) {
			return b, fmt.Errorf("launch %.100q", l.Key)
		}
	}
	return b, nil
}

// MaxSlots is how many launches a worker may make at once.
const MaxSlots = 1000

// CheckLabels returns what is wrong with a worker's labels.
func CheckLabels(labels []string) error {
	if len(labels) == 0 || len(labels) > settings.MaxLabels {
		return fmt.Errorf("%d labels: want 1 to %d", len(labels), settings.MaxLabels)
	}
	for _, l := range labels {
		if why := ids.Fault(l); why != "" {
			return fmt.Errorf("label %.40q %s", l, why)
		}
	}
	return nil
}

// isKey reports whether a text can be the key of a step's launch: <run>/<step>#<attempt>.<launch>, and
// of its corrections.
func isKey(s string) bool {
	run, rest, _ := strings.Cut(s, "/")
	step, numbers, _ := strings.Cut(rest, "#")
	return ids.ValidRun(run) && ids.Valid(step) && numbers != "" && len(numbers) < 40 &&
		strings.Trim(numbers, "0123456789.+f") == ""
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
	if !slices.Contains([]string{doLaunch, doAsk, doStop, doDrop}, c.Do) {
		return c, fmt.Errorf("it asks for %.40q", c.Do)
	}
	if !journal.IsID(c.Journal) || c.Epoch < 1 || !isKey(c.Key) || (c.Do == doLaunch) != (c.Sent != nil) {
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
	for what, bad := range map[string]bool{
		"key":     s.Key != key,
		"token":   len(hexToken) < 16 || len(s.Token) > 128,
		"dir":     !isDir(s.Dir),
		"run":     !ids.ValidRun(s.Run) || len(s.Run) >= len(key) || key[:len(s.Run)+1] != s.Run+"/",
		"step":    !ids.Valid(s.Step) || s.N < 1,
		"role":    !ids.Valid(s.Role),
		"signal":  s.Signal != "" && !ids.Valid(s.Signal),
		"head":    !git.IsName(s.Head) || !git.IsName(s.Start),
		"pack":    s.Pack != "" && !cluster.IsDigest(s.Pack),
		"bases":   len(s.Bases) > maxHave || slices.ContainsFunc(s.Bases, func(b string) bool { return !git.IsName(b) }),
		"idle_ns": s.Idle < 0,
	} {
		if bad {
			return fmt.Errorf("the order's %s cannot be used", what)
		}
	}
	return nil
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
	for what, bad := range map[string]bool{
		"exit":    x.Code < -1 || x.Code > 255 || !slices.Contains(classes, x.Class) || len(x.Signal) > 40,
		"usage":   x.Usage.Tokens < 0 || x.Usage.CostUSD < 0,
		"output":  b.Output != "" && !cluster.IsDigest(b.Output),
		"signals": len(b.Signals) > launch.MaxSignals,
		"commit":  b.Commit != "" && (!git.IsName(b.Commit) || !git.IsName(b.Tip) || !cluster.IsDigest(b.Pack)),
	} {
		if bad {
			return b, fmt.Errorf("its %s cannot be used", what)
		}
	}
	x.Why, x.NotStarted, x.Refused = lines(x.Why), lines(x.NotStarted), lines(x.Refused)
	b.Refused, b.Open = lines(b.Refused), lines(b.Open)
	return b, nil
}

func lines(s string) string { return text.Message(s[:min(len(s), maxWhy)]) }
