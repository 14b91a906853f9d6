package launch

import (
	"io"
	"time"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
)

// MaxStream is how much of a launch's standard output is read. More than is kept of it was written
// by somebody else.
const MaxStream = agents.DefaultMaxOutput + 64<<10

const (
	streamStep = 1 << 20 // bytes read at once
	streamMost = 8       // reads per look: the rest follows at the next
)

// Stream reads the output of an agent's program as it grows.
type Stream struct {
	Reader  *program.Reader
	Offsets map[string]int64 // name of a file -> how far it was read
}

// NewStream returns a stream of the format; nil if the format has no reader.
func NewStream(format string, now func() time.Time) *Stream {
	if !program.Known(format) {
		return nil
	}
	return &Stream{Reader: program.NewReader(format, now), Offsets: map[string]int64{}}
}

// More reads what a file has grown by, up to MaxStream: the agent can make the file as long as it
// likes. A missing or unreadable file has not grown.
func (s *Stream) More(dir, name string) (events []program.Event) {
	f, st, err := atomicfile.Open(dir, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st.Size < s.Offsets[name] { // begun anew: what came between is left out
		s.Offsets[name] = 0
		s.Reader.Skip()
	}
	data := make([]byte, streamStep)
	for range streamMost {
		n, err := f.ReadAt(data[:min(max(min(st.Size, MaxStream)-s.Offsets[name], 0), streamStep)], s.Offsets[name])
		s.Offsets[name] += int64(n)
		events = append(events, s.Reader.Take(data[:n])...)
		if n == 0 || err != nil && err != io.EOF {
			break
		}
	}
	return events
}

// Total returns how many bytes were read.
func (s *Stream) Total() (n int64) {
	for _, at := range s.Offsets {
		n += at
	}
	return n
}

// maxAsks is more than the answers of a program that one launch has, with its corrections.
const maxAsks = 100

// Plausible reports whether a launch can have used so much, and be made to wait for so long.
func Plausible(x engine.Exit) bool {
	u := x.Usage
	return u.Tokens >= 0 && u.Tokens <= maxAsks*program.MaxTokens && u.CostUSD >= 0 &&
		u.CostUSD <= maxAsks*program.MaxCost && time.Until(x.ResumeAt) <= program.Furthest
}

// UsageOf converts a program's usage for the engine.
func UsageOf(u program.Usage) engine.Usage {
	return engine.Usage{Tokens: u.Input + u.Output, CostUSD: u.CostUSD}
}
