//go:build !unix

package main

import "os"

// reloadSignals: there is none on this system. An empty list would mean all signals, so it names one that never comes.
func reloadSignals() []os.Signal { return []os.Signal{never{}} }

type never struct{}

func (never) String() string { return "never" }
func (never) Signal()        {}

// toJournal: there is no journald on this system.
func toJournal(*os.File, string) bool { return false }
