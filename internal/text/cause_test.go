package text

import "testing"

// TestCause: what went to stderr says why a process failed, else its last line.
func TestCause(t *testing.T) {
	for out, want := range map[string]string{
		"stdout:\nlooking\nno module\n": "no module",
		"stdout:\nlooking\nstderr:\nno pull request: origin cannot be read.\nfatal: and the repository exists.\n": "no pull request: origin cannot be read. fatal: and the repository exists.",
		"stderr:\n\x1b[31mno\x1b[0m route\n": "no route",
		"I did it.\nwarn: x":                 "warn: x",
		"":                                   "",
	} {
		if got := Cause(out, 300); got != want {
			t.Errorf("%q: got %q, want %q", out, got, want)
		}
	}
}
