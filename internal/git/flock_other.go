//go:build !unix

package git

import "os"

// tryLock always succeeds: no daemon runs on these systems.
func tryLock(*os.File) (bool, error) { return true, nil }
