//go:build linux && !amd64

package agents

import "testing"

func stampProgram(tb testing.TB) string {
	tb.Skip("kernel: no stamp program for this kind of machine")
	return ""
}
