package specs

import (
	"fmt"
	"strings"
	"testing"
)

// TestYAMLFaultsHaveTheirLine: invalid YAML is reported with the line where a person finds the
// fault.
func TestYAMLFaultsHaveTheirLine(t *testing.T) {
	for src, line := range map[string]int{
		"workflow: {id: w}\nsteps:\n  - id: a\n    run: x\n   next_step: DONE\n":                            5,
		"workflow: {id: w}\nsteps:\n  - id: a\n    run: x\n    needs: [b\n    next_step: DONE\n  - id: b\n": 5,
		"workflow: {id: w}\nsteps:\n- {id: a, run: x, next_step: DONE\n":                                    3,
		"workflow: {id: w}\nsteps: {\n":                                                                     2,
		"workflow: {id: w}\n- steps\n":                                                                      2,
		"- a\n\n\nworkflow: {id: w}\n":                                                                      4,
		"workflow: {id: w}\nsteps: }\n":                                                                     2,
		"workflow: {id: w}\nsteps: [a]]\nb: c":                                                              2,
		"workflow: {id: w}\nsteps: a: b\n":                                                                  2,
		"workflow: {id: w}\nsteps: 'x\n\n\n":                                                                2,
		"workflow: {id: w}\n\n\n  steps: []\n":                                                              4,
		"workflow: {id: w}\nsteps: @a\nb: c\n":                                                              2,
		"workflow:\n\tid: w\n":                                                                              2,
		"workflow: {id: w}\nsteps: *a\nb: c\n":                                                              2,
		"workflow: {id: w}\nx: \x01\n":                                                                      2,
		"workflow: {id: w}\nx: \"\\q\"\n":                                                                   2,
		"workflow: a: b":                                                                                    1,
		"workflow: {":                                                                                       1,
		"workflow: [\n  a,\n  b\n  c: d\n":                                                                  1,
	} {
		_, faults := Load("", []byte(src))
		if want := fmt.Sprintf("%d:1: not YAML: ", line); len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), want) {
			t.Errorf("%q: %v, want %s", src, faults, want)
		}
	}
	for src, want := range map[string]string{
		"workflow:\n\tid: w\n": "2:1: not YAML: line 2 is indented with a tab: YAML takes spaces only",
		"workflow: {id: Is it right?}\n": "1:1: not YAML: did not find expected ',' or '}': " +
			"put a text that contains : # ? or a bracket in quotes, and check the indentation",
		"workflow:\n  id: a: b\n": "2:1: not YAML: mapping values are not allowed in this context: " +
			"put a text that contains : # ? or a bracket in quotes, and check the indentation",
		"workflow:\n  id: w\n  \tx: y\n": "3:1: not YAML: line 3 is indented with a tab: YAML takes spaces only",
	} {
		if _, faults := Load("", []byte(src)); len(faults) != 1 || faults[0].Error() != want {
			t.Errorf("%q: %v, want %s", src, faults, want)
		}
	}
}
