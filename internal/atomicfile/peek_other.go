//go:build !linux

package atomicfile

// Peek looks at folders without waiting; only Linux has it.
type Peek struct{}

// NewPeek returns nil: this system lacks the calls.
func NewPeek() *Peek { return nil }

// Dir is never called.
func (*Peek) Dir(string) (Stat, bool) { return Stat{}, false }
