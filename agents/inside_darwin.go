package agents

import (
	"errors"
	"net"
)

// listenInside is unsupported: macOS has no network namespaces.
func listenInside(int, []string) ([]net.Listener, error) { return nil, errors.ErrUnsupported }
