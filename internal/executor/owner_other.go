//go:build !unix

package executor

import "os/user"

// owner is the name of the user the daemon runs as: whose a file is cannot be told here.
func owner(string) string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// noFollow opens no link.
const noFollow = 0
