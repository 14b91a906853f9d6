//go:build !unix

package journal

import (
	"errors"
	"os"
)

const exportPerm = 0o644

// openPlain looks before it opens: elsewhere there is no way to do both at once.
func openPlain(name string, flag int) (*os.File, error) {
	if st, err := os.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file: remove it")
	}
	f, err := os.OpenFile(name, flag, exportPerm)
	if err != nil {
		return nil, err
	}
	return regular(f)
}
