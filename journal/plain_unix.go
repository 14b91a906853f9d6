//go:build unix

package journal

import (
	"errors"
	"os"
	"syscall"

	"sluice/internal/fault"
)

const exportPerm = 0o644

// openPlain opens a regular file in the repo. It follows no link at that name and does not wait for
// a pipe's other end.
func openPlain(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, exportPerm)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fault.New("remove it", "it is a link")
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fault.New("remove it", "it is not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
