// Package program knows the agents' own programs: the arguments that make them work unattended, and
// what they print (claude's stream-json, codex's JSON events). It turns each line into an Event for
// people, and the whole into a Result: how it ended, the last words, the structured answer, the
// conversation, the cost.
//
// Each program has its own file, claude.go, codex.go and opencode.go, with its profile; no other
// code depends on which program it is. Read profile.go first.
//
// Exit code 0 does not mean success: claude exits with 0 after a denied tool or an interruption,
// codex after its sandbox refused a write. So a Result is good only if the program reported its end
// without an error and without a denial. What each program prints was observed (claude 2.1, codex
// 0.169). Unknown lines and fields are ignored, because each release adds some.
package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"sluice/internal/text"
)

// Limits on what is read of a stream.
const (
	MaxLine  = 8 << 20  // bytes of a line; a longer one is skipped
	MaxText  = 1 << 20  // bytes of the last words, from their end
	maxWhy   = 2 << 10  // bytes of a reason
	maxShown = 16 << 10 // bytes of an Event's text
	maxNames = 20       // denied tools that are named

	MaxTokens = 1_000_000_000_000 // more is no plausible count
	MaxCost   = 1_000_000
)

// Kind is the kind of an Event.
type Kind string

// Kinds of events.
const (
	Began  Kind = "began"  // the program is at work: text is the model
	Text   Kind = "text"   // the agent's words
	Tool   Kind = "tool"   // a tool it uses: text is the input
	File   Kind = "file"   // a file it changes: text is the path
	Failed Kind = "failed" // a tool that failed
	Denied Kind = "denied" // a tool it may not use
	Retry  Kind = "retry"  // a new request to the model's service, which did not answer
	Limit  Kind = "limit"  // a usage limit
	Ended  Kind = "ended"  // it reached its end; text is the cost
)

// Event is one thing that an agent did. Its texts come from the agent: treat them as data, with
// control characters.
type Event struct {
	Kind Kind
	Name string // of the tool
	Text string
	Of   string // the kind of a tool's text: command, file_path, query, …; "" if unknown
}

// Class is the kind of failure of an end, in the engine's terms.
type Class string

// Classes of an end.
const (
	Good           Class = ""
	Work           Class = "work"           // the agent's fault: it counts
	Infrastructure Class = "infrastructure" // not the agent's fault: retried
	UsageLimit     Class = "limit"          // nothing can run before Result.Reset
	Fatal          Class = "fatal"          // a person must fix something
)

// Usage is what was used, as the program counts it: see Result.Usage.
type Usage struct {
	Input   int64   `json:"input"` // tokens, including those from the cache
	Output  int64   `json:"output"`
	CostUSD float64 `json:"cost_usd,omitempty"` // 0 if the program does not report it
	// Billed are the tokens that CostUSD covers, if the program separates them.
	Billed int64 `json:"billed,omitempty"`
}

// Result is the result of a launch.
type Result struct {
	Final      bool            // the program reported its end
	Text       string          // its last words
	Structured json.RawMessage // the answer to a schema, or nil
	Session    string          // the conversation, to resume it
	Model      string
	Denied     []string // tools that it was not allowed to use
	Turns      int
	// Usage as reported, for the launch or the whole conversation: see Since.
	Usage Usage

	format string
	gone   bool // the conversation to resume does not exist

	failure failure
	limit   time.Time // from a rejected rate limit
	refused bool      // by that limit
	events  int
	message string // the message that said counts
	said    Usage  // of messages since the last result: all that a launch without an end has
}

// failure is a failed end reported by the program.
type failure struct {
	class Class
	why   string
	reset time.Time
	// words, if any, may tell the class. They are parsed only on demand, because a program that
	// retries prints many.
	words string
	limit string // may contain the end of a limit
	said  time.Time
}

// read returns the failure with the class that its words tell.
func (f failure) read() failure {
	if f.words != "" {
		f.class, f.why = ofText(f.words, f.class)
		if f.class == UsageLimit {
			f.limit = f.why
		}
	}
	if f.limit != "" {
		f.reset = resetIn(f.limit, f.said)
	}
	f.words, f.limit = "", ""
	return f
}

// Reader reads a stream line by line.
type Reader struct {
	format string
	p      profile
	now    func() time.Time
	r      Result
	part   []byte // of an unfinished line: see Take
	skip   bool   // the line is too long or cut: its rest is skipped
}

// NewReader reads a stream of a Known format. now is the clock for "try again in 3 hours".
func NewReader(format string, now func() time.Time) *Reader {
	return &Reader{format: format, p: profileOf(format), now: now}
}

// Line reads one line and returns its events for people.
func (r *Reader) Line(line []byte) []Event {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || len(line) > MaxLine {
		return nil
	}
	var out []Event
	whole := false
	if line[0] == '{' {
		out, whole = r.p.read(r, line)
	}
	if whole {
		r.r.events++
		return out
	}
	if r.p.within != "" {
		if i := bytes.LastIndex(line, []byte(r.p.within)); i > 0 {
			return r.Line(line[i:])
		}
	}
	return nil
}

// Take reads the next bytes of a stream and returns the events of the lines that end in them.
func (r *Reader) Take(data []byte) (out []Event) {
	for len(data) > 0 {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			if r.part = append(r.part, data...); len(r.part) > MaxLine {
				r.Skip()
			}
			return out
		}
		if !r.skip {
			out = append(out, r.Line(append(r.part, line...))...)
		}
		r.part, r.skip, data = r.part[:0], false, rest
	}
	return out
}

// Skip has Take begin with the next line: what comes before is left out.
func (r *Reader) Skip() { r.part, r.skip = nil, true }

// Write is Take for those who want no events.
func (r *Reader) Write(data []byte) (int, error) {
	r.Take(data)
	return len(data), nil
}

// Result returns what was read so far.
func (r *Reader) Result() Result {
	out := r.r
	out.Usage, out.format, out.failure = out.Usage.plus(out.said), r.format, out.failure.read()
	return out
}

// plus adds, within plausible bounds.
func (u Usage) plus(of Usage) Usage {
	tokens := func(a, b int64) int64 { return min(min(max(a, 0), MaxTokens)+min(max(b, 0), MaxTokens), MaxTokens) }
	cost := func(c float64) float64 {
		if !(c > 0) { // also for NaN
			return 0
		}
		return min(c, MaxCost)
	}
	return Usage{Input: tokens(u.Input, of.Input), Output: tokens(u.Output, of.Output),
		CostUSD: cost(cost(u.CostUSD) + cost(of.CostUSD)),
		Billed:  tokens(u.Billed, of.Billed)}
}

// Since returns the launch's usage and its conversation's total; base is the conversation's total
// before, zero for a new one. Programs count per launch unless their profile says otherwise.
func (r Result) Since(base Usage) (launch, total Usage) {
	base = base.plus(Usage{}) // a worker can report any
	if since := profileOf(r.format).since; since != nil {
		return since(r.Usage, base)
	}
	return r.Usage, base.plus(r.Usage)
}

// Gone reports whether the launch did nothing because the conversation to resume does not exist.
func (r Result) Gone(stderr string) bool {
	return r.gone || r.events == 0 && slices.ContainsFunc(profileOf(r.format).gone,
		func(words string) bool { return strings.Contains(stderr, words) })
}

// OnlyDenied reports whether the only problem is a tool that was not allowed: then a signal
// of another kind than its exit decides.
func (r Result) OnlyDenied() bool { return r.Final && r.failure.class == Good && len(r.Denied) > 0 }

// Class returns how a launch ended whose stream was read: code is its exit code, -1 after a signal,
// and stderr the end of its error output. why is for people.
func (r Result) Class(code int, stderr string) (class Class, why string, reset time.Time) {
	f := r.failure
	switch {
	case f.class == UsageLimit, r.refused && (f.class == Infrastructure || f.class == Good && !r.Final):
		if f.reset.IsZero() {
			f.reset = r.limit
		}
		return UsageLimit, or(f.why, "the usage limit is reached"), f.reset
	case f.class != Good:
		return f.class, f.why, time.Time{}
	case !r.Final && r.events == 0:
		class, why = ofText(stderr, Infrastructure)
		return class, "it ended before it began: " + or(why, "it printed nothing"), time.Time{}
	case !r.Final:
		return Infrastructure, "it ended without its final event: it was interrupted, or it crashed", time.Time{}
	case len(r.Denied) > 0:
		return Work, "it was not allowed to use " + strings.Join(r.Denied, ", ") +
			": allow it in the agent's command, or change the step so that it does not need it", time.Time{}
	case code != 0:
		return Infrastructure, or(clip(stderr, maxWhy), "it reported success, but its exit code did not"), time.Time{}
	}
	return Good, "", time.Time{}
}

type input map[string]json.RawMessage

func members(of json.RawMessage) (in input) {
	_ = json.Unmarshal(of, &in) // a tool without these members is only named
	return in
}

func (in input) text(key string) string {
	var s string
	_ = json.Unmarshal(in[key], &s)
	return clip(s, maxShown)
}

// use returns a tool's use, by the first member present.
func (in input) use(tool string, keys ...string) Event {
	for _, key := range keys {
		if s := in.text(key); s != "" {
			return Event{Kind: Tool, Name: tool, Of: key, Text: s}
		}
	}
	return Event{Kind: Tool, Name: tool}
}

// reads returns the read function of a program whose lines have the form L; tells makes a line's events. A line counts
// if the members with the right type could be read.
func reads[L any](tells func(*Reader, L) []Event) func(*Reader, []byte) ([]Event, bool) {
	return func(r *Reader, line []byte) ([]Event, bool) {
		var l L
		err := json.Unmarshal(line, &l)
		if _, typed := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !typed {
			return nil, false
		}
		return tells(r, l), true
	}
}

func (r *Reader) fail(class Class, why string) {
	r.r.failure = failure{class: class, why: clip(why, maxWhy)}
	if class == UsageLimit {
		r.r.failure.limit, r.r.failure.said = r.r.failure.why, r.now()
	}
}

// failWords records a failure known only by its message; other is its class if the message is
// unknown.
func (r *Reader) failWords(words string, other Class) {
	r.r.failure = failure{class: other, words: clip(words, maxWhy), said: r.now()}
}

func (r *Reader) deny(tool string) {
	if slices.Contains(r.r.Denied, tool) {
		return
	}
	if len(r.r.Denied) < maxNames {
		r.r.Denied = append(r.r.Denied, clip(tool, 100))
	}
}

func or(s, other string) string {
	if strings.TrimSpace(s) == "" {
		return other
	}
	return s
}

// clip keeps the beginning of a text.
func clip(s string, most int) string { return strings.TrimSpace(text.Clip(s, most)) }

// end keeps the end of a text.
func end(s string) string {
	if len(s) > MaxText {
		s = s[len(s)-MaxText:]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
