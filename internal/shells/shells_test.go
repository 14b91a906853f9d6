package shells

import (
	"slices"
	"strings"
	"testing"
)

// TestCodeArgs: the rest is with the specs, where each is a fault at its place.
func TestCodeArgs(t *testing.T) {
	for argv, want := range map[string][]int{
		"sh -c x": {2}, "env sh -c x": {3}, "sh x -c y": nil, "perl -e a -e b": {2, 4}, "sh -c": nil, "python3 -c": nil, "python -mx -c y": nil, "sh -o": nil,
		"timeout 9 env A=b bash -lc x": {6}, "node -p a": {2}, "": nil,
	} {
		if got := CodeArgs(strings.Fields(argv)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", argv, got, want)
		}
	}
}

func FuzzCodeArgs(f *testing.F) {
	f.Add("env sh -c x")
	f.Add("perl -e")
	f.Fuzz(func(t *testing.T, s string) {
		argv := strings.Split(s, " ")
		for _, i := range CodeArgs(argv) {
			if i < 1 || i >= len(argv) {
				t.Fatalf("%q: %d", argv, i)
			}
		}
	})
}
