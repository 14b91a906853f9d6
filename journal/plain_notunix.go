//go:build !unix

package journal

import (
	"os"
	"sluice/internal/fault"
)

const exportPerm = 0o644

// openPlain looks before it opens: elsewhere there is no way to do both at once.
func openPlain(name string, flag int) (*os.File, error) {
	if st, err := os.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return nil, fault.New("remove it", "it is not a regular file")
	}
	f, err := os.OpenFile(name, flag, exportPerm)
	if err != nil {
		return nil, err
	}
	return regular(f)
}
