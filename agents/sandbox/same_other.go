//go:build !linux

package sandbox

import "errors"

var errLinuxOnly = errors.New("only Linux mounts anything")

// Identify is not needed here: nothing is mounted.
func Identify(_, path string) (Identity, error) { return Identity{Path: path}, nil }

func execute(_, _ []string) error { return errLinuxOnly }
