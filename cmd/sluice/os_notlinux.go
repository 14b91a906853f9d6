//go:build !linux

package main

// watchLimits: this system sets none that would have to be raised.
func watchLimits() []check { return nil }

// desktop says whether notices can be shown: this system has always a way.
func (a *app) desktop() bool { return true }
