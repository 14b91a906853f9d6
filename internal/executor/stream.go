package executor

import (
	"bytes"
	"io"
	"time"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/atomicfile"
)

// Bounds of reading a stream that grows.
const (
	streamStep = 1 << 20 // bytes read in one go
	streamMost = 8       // goes at a look: the rest is read at the next
)

// stream reads the output of an agent's program as it grows: what is new at each look.
type stream struct {
	r     *program.Reader
	at    map[string]int64      // name of a file -> how far it was read
	part  []byte                // a line whose end has not come
	tells func([]program.Event) // given what each line tells; may be nil
	skip  bool                  // the line is cut, or too long to be read: its rest is passed over
}

// streamOf gives a stream of the format; nil where there is no reader for it.
func streamOf(format string, now func() time.Time) *stream {
	if !program.Known(format) {
		return nil
	}
	return &stream{r: program.NewReader(format, now), at: map[string]int64{}}
}

// more reads what a file has grown by, up to maxStream of it: the agent can make the file as long as it likes. A file that
// is not there, or cannot be read, has not grown.
func (s *stream) more(dir, name string) {
	f, st, err := atomicfile.Open(dir, name)
	if err != nil {
		return
	}
	defer f.Close()
	if st.Size < s.at[name] { // it was begun anew: what came between is left out
		s.at[name], s.part, s.skip = 0, nil, true
	}
	data := make([]byte, streamStep)
	for range streamMost {
		n, err := f.ReadAt(data[:min(max(min(st.Size, maxStream)-s.at[name], 0), streamStep)], s.at[name])
		s.at[name] += int64(n)
		s.take(data[:n])
		if n == 0 || err != nil && err != io.EOF {
			return
		}
	}
}

// sum is how much was read of all files.
func (s *stream) sum() (n int64) {
	for _, at := range s.at {
		n += at
	}
	return n
}

// take splits what was read into lines.
func (s *stream) take(data []byte) {
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			if s.part = append(s.part, data...); len(s.part) > program.MaxLine {
				s.part, s.skip = nil, true
			}
			return
		}
		if !s.skip {
			if events := s.r.Line(append(s.part, data[:i]...)); s.tells != nil {
				s.tells(events)
			}
		}
		s.part, s.skip, data = s.part[:0], false, data[i+1:]
	}
}

// usageOf is a program's usage as the engine counts it.
func usageOf(u program.Usage) engine.Usage {
	return engine.Usage{Tokens: u.Input + u.Output, CostUSD: u.CostUSD}
}
