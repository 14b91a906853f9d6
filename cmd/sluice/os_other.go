//go:build !unix

package main

import "os"

// reloadSignals: there is none on this system. An empty list would mean all signals, so it names one that never comes.
func reloadSignals() []os.Signal { return []os.Signal{noSignal{}} }

type noSignal struct{}

func (noSignal) String() string { return "never" }
func (noSignal) Signal()        {}

// toJournal: there is no journald on this system.
func toJournal(*os.File, string) bool { return false }
