package signals

import (
	"strings"
	"testing"
)

func TestStepOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"X-1-done.json": "X-1", "a-done-done.json": "a-done", "v1.2-done.json": "v1.2",
		"x-1-DONE.json": "", "-done.json": "", "X-1-done": "", "X-1-done.JSON": "", "X-1-done.json.md": "", "../x-done.json": "", ".x-done.json": "", "": "",
		strings.Repeat("x", 65) + "-done.json": "", "n\nl-done.json": "",
	} {
		if got, ok := StepOf(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, ok, want)
		}
	}
}
