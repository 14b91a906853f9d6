package sandbox

import (
	"strings"

	"sluice/internal/fault"
)

// Descriptors for a launch beyond a command's three. bwrap writes to InfoFd, as JSON, which process
// has the sandbox's network. It starts the command once BlockFd is readable or closed.
const (
	optionsFd = 3 + iota
	filterFd
	layoutFd
	InfoFd // only with the network NetProxy, like the next
	BlockFd
)

// Start describes how to start a launch in the sandbox. Its data reaches neither the sandbox's own
// program, which works outside, nor anybody who reads process arguments.
type Start struct {
	Argv    []string // the sandbox's program, and the command
	Env     []string // of that program
	Options []byte   // of that program, including the environment inside
	Filter  []byte   // of system calls
	Layout  []byte   // CheckMain's input; nil: CheckMain is not used
}

// maxOptions is bwrap's limit.
const maxOptions = 9000

// joined encodes options for bwrap, each ended by a NUL, so none may contain one.
func joined(options []string) ([]byte, error) {
	if len(options) > maxOptions-100 {
		return nil, fault.New("give the launch fewer variables", "%d options of the sandbox: at most %d",
			len(options), maxOptions-100)
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
