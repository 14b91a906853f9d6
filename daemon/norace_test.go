//go:build !race

package daemon

const thin = 1
