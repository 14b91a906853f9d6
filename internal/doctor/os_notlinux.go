//go:build !linux

package doctor

import "sluice/internal/console"

// Watching: this system sets no limit that would have to be raised.
func Watching() []Check { return nil }

// HasDesktop reports whether notices can be shown: this system has always a way.
func HasDesktop(*console.Console) bool { return true }
