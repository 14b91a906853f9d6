//go:build linux && !amd64 && !arm64

package sandbox

import "fmt"

func filter() ([]byte, error) {
	return nil, fmt.Errorf("%w: its filter of system calls is made for amd64 and arm64", ErrUnavailable)
}
