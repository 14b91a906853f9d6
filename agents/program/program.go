// Package program knows the agents' own programs: the arguments that have them work without a person, and what they print
// about their work (claude's stream-json, codex's JSON events). It turns each line into an Event for people, and the whole
// into a Result: how it ended, the last words, the structured answer, the conversation, what it cost.
//
// Each program has a file of its own, claude.go, codex.go and opencode.go, whose profile answers all that is asked of it; no other code
// asks which program it is. Read profile.go first.
//
// An exit code of 0 is not success: claude ends with 0 where a tool was denied or it was interrupted, codex where its
// sandbox refused a write. So a Result is good only where the program itself said that it came to its end, without an
// error and without a denial. What each program prints was measured (claude 2.1, codex 0.169); lines and fields that are
// not known here are passed over, as both add some with every release.
package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"sluice/internal/text"
)

// Bounds of what is read of a stream.
const (
	MaxLine  = 8 << 20  // bytes of a line; a longer one is passed over
	MaxText  = 1 << 20  // bytes of the last words: their end is kept
	maxWhy   = 2 << 10  // bytes of a reason
	maxShown = 16 << 10 // bytes of an Event's text
	maxNames = 20       // denied tools that are named

	maxTokens = 1_000_000_000_000 // more is no count of a launch's
	maxCost   = 1_000_000
)

// Kind says what an Event is.
type Kind string

// Kinds of events.
const (
	Began  Kind = "began"  // the program is at work: text is the model
	Text   Kind = "text"   // the agent's words
	Tool   Kind = "tool"   // a tool it uses: text is what with
	File   Kind = "file"   // a file it changes: text is the path
	Failed Kind = "failed" // a tool that failed
	Denied Kind = "denied" // a tool it may not use
	Retry  Kind = "retry"  // the model's service did not answer, and is asked again
	Limit  Kind = "limit"  // a usage limit
	Ended  Kind = "ended"  // it came to its end; text is what it cost
)

// Event is one thing that an agent did. Its texts come from the agent: they are data, with control characters.
type Event struct {
	Kind Kind
	Name string // of the tool
	Text string
	Of   string // what the text of a tool is: command, file_path, query, …; "" is not told
}

// Class is what kind of failure an end is; the words are those of the engine.
type Class string

// Classes of an end.
const (
	Good           Class = ""
	Work           Class = "work"           // the agent's doing: it counts
	Infrastructure Class = "infrastructure" // not its doing: it is tried again
	UsageLimit     Class = "limit"          // nothing goes on before Result.Reset
	Fatal          Class = "fatal"          // a person has to mend something
)

// Usage is what was used, as the program counts it: see Result.Usage.
type Usage struct {
	Input   int64   `json:"input"` // tokens, those from the cache included
	Output  int64   `json:"output"`
	CostUSD float64 `json:"cost_usd,omitempty"` // 0 where the program does not tell
	// Billed are the tokens that CostUSD is of, where the program tells them apart.
	Billed int64 `json:"billed,omitempty"`
}

// Result is what came of a launch.
type Result struct {
	Final      bool            // the program said that it came to its end
	Text       string          // its last words
	Structured json.RawMessage // the answer to a schema; nil where there is none
	Session    string          // the conversation, to go on with
	Model      string
	Denied     []string // tools that it was not allowed to use
	Turns      int
	// Usage as it was told. Some count the whole conversation and some the launch: see Since.
	Usage Usage

	format string
	gone   bool // the conversation to go on with is not there

	failure failure
	limit   time.Time // that a rejected rate limit names
	refused bool      // by that limit
	events  int
	message string // the one that said counts
	said    Usage  // of messages since the last result: what there is of a launch that came to no end
}

// failure is an end that the program itself calls one.
type failure struct {
	class Class
	why   string
	reset time.Time
	// words, where there are any, say which class it is, if they can. They are read where somebody asks: a program that
	// tries again says many.
	words string
	limit string // where the end of a limit may stand
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

// Reader takes a stream line by line.
type Reader struct {
	format string
	p      profile
	now    func() time.Time
	r      Result
}

// NewReader reads a stream of the format, one of those that are Known. now is the clock by which "try again in 3 hours"
// counts.
func NewReader(format string, now func() time.Time) *Reader {
	return &Reader{format: format, p: profileOf(format), now: now}
}

// Line takes one line, and gives what it says to people.
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

// Read takes all lines of a stream. An error is the reader's; what was read before counts.
func (r *Reader) Read(in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		if len(line) <= MaxLine { // of a longer one only its end is looked for
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		r.Line(line)
		if line = line[:0]; err != nil {
			return nil
		}
	}
}

// Result returns what was read so far.
func (r *Reader) Result() Result {
	out := r.r
	out.Usage, out.format, out.failure = out.Usage.plus(out.said), r.format, out.failure.read()
	return out
}

// plus adds, within bounds: what a program prints is not believed beyond them.
func (u Usage) plus(of Usage) Usage {
	tokens := func(a, b int64) int64 { return min(min(max(a, 0), maxTokens)+min(max(b, 0), maxTokens), maxTokens) }
	cost := func(c float64) float64 {
		if !(c > 0) { // not a number, too
			return 0
		}
		return min(c, maxCost)
	}
	return Usage{Input: tokens(u.Input, of.Input), Output: tokens(u.Output, of.Output), CostUSD: cost(cost(u.CostUSD) + cost(of.CostUSD)),
		Billed: tokens(u.Billed, of.Billed)}
}

// Since gives what the launch used, and what its conversation has used with it; base is what that had before, zero for a new
// one. A program counts the launch alone, unless its profile says otherwise.
func (r Result) Since(base Usage) (launch, total Usage) {
	if since := profileOf(r.format).since; since != nil {
		return since(r.Usage, base)
	}
	return r.Usage, base.plus(r.Usage)
}

// Gone reports whether the launch did nothing, as the conversation that it was to go on with is not there.
func (r Result) Gone(stderr string) bool {
	return r.gone || r.events == 0 && slices.ContainsFunc(profileOf(r.format).gone, func(words string) bool { return strings.Contains(stderr, words) })
}

// OnlyDenied says that nothing is wrong with the launch but that it was not allowed to use a tool: where its word is another
// than its exit, that decides.
func (r Result) OnlyDenied() bool { return r.Final && r.failure.class == Good && len(r.Denied) > 0 }

// Class returns how a launch ended whose stream is read: code is its exit code, -1 where a signal ended it, and stderr the
// end of what it said there. why is for people.
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
		return Work, "it was not allowed to use " + strings.Join(r.Denied, ", ") + ": allow it in the agent's command, or have the step not need it", time.Time{}
	case code != 0:
		return Infrastructure, or(clip(stderr, maxWhy), "it said that it was done, and its exit code says that it was not"), time.Time{}
	}
	return Good, "", time.Time{}
}

// input is what a tool is given.
type input map[string]json.RawMessage

func members(of json.RawMessage) (in input) {
	_ = json.Unmarshal(of, &in) // a tool without such members is named alone
	return in
}

func (in input) text(key string) string {
	var s string
	_ = json.Unmarshal(in[key], &s)
	return clip(s, maxShown)
}

// use returns what a tool is used for, by the first of the members that it has.
func (in input) use(tool string, keys ...string) Event {
	for _, key := range keys {
		if s := in.text(key); s != "" {
			return Event{Kind: Tool, Name: tool, Of: key, Text: s}
		}
	}
	return Event{Kind: Tool, Name: tool}
}

// readable reports whether a line was read, at least what of it has the type it should have.
func readable(err error) bool {
	var typed *json.UnmarshalTypeError
	return err == nil || errors.As(err, &typed)
}

func (r *Reader) fail(class Class, why string) {
	r.r.failure = failure{class: class, why: clip(why, maxWhy)}
	if class == UsageLimit {
		r.r.failure.limit, r.r.failure.said = r.r.failure.why, r.now()
	}
}

// failWords notes a failure that is told in words only; other is its class where they say nothing known.
func (r *Reader) failWords(words string, other Class) {
	r.r.failure = failure{class: other, words: clip(words, maxWhy), said: r.now()}
}

func (r *Reader) deny(tool string) {
	for _, t := range r.r.Denied {
		if t == tool {
			return
		}
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
func end(s string, most int) string {
	if len(s) > most {
		s = s[len(s)-most:]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
