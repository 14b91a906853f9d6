//go:build !linux

package test

// theChromium: the tests of the page run on Linux.
var theChromium noBrowser

type noBrowser struct{}

func (noBrowser) close() {}
