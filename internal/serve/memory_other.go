//go:build !linux

package serve

func unmapProgram() {} // nobody has measured it there
