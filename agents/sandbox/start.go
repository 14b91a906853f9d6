package sandbox

import (
	"strings"

	"sluice/internal/fault"
)

// Descriptors that a launch is given beside the three that each command has. bwrap writes to InfoFd, as JSON, which process
// has the sandbox's network, and starts the command when there is something to read from BlockFd, or nobody to write it.
const (
	optionsFd = 3 + iota
	filterFd
	layoutFd
	InfoFd // of a launch with the network NetProxy, as is the next
	BlockFd
)

// Start is how a launch in the sandbox is started. What the launch is given reaches neither the sandbox's own program, which
// works outside, nor anybody who reads the arguments of processes.
type Start struct {
	Argv    []string // the sandbox's program, and the command
	Env     []string // of that program
	Options []byte   // of that program, the environment inside among them
	Filter  []byte   // of system calls
	Layout  []byte   // what CheckMain reads; nil: it is not started
}

// maxOptions is how many bwrap takes.
const maxOptions = 9000

// joined puts options as bwrap reads them: a NUL ends each, so none may hold one.
func joined(options []string) ([]byte, error) {
	if len(options) > maxOptions-100 {
		return nil, fault.New("give the launch fewer variables", "%d options of the sandbox: at most %d", len(options), maxOptions-100)
	}
	var out []byte
	for _, o := range options {
		if strings.IndexByte(o, 0) >= 0 {
			return nil, fault.New("remove it", "a variable or a path has a NUL byte")
		}
		out = append(append(out, o...), 0)
	}
	return out, nil
}
