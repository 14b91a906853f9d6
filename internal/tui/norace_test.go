//go:build !race

package tui

const thin = 1
