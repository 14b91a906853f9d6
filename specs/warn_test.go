package specs

import (
	"fmt"
	"strings"
	"testing"

	"sluice/tools/conform"
)

func notesOf(t *testing.T, src string) []Fault {
	t.Helper()
	c, faults := load("", []byte(src), sources{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return c.notes.sorted()
}

// TestAlmostAMachines: for a criterion that a machine could check, the form is reported; for other
// sentences nothing is.
func TestAlmostAMachines(t *testing.T) {
	conform.Rule(t, "13-law almost", "the note says which form a machine checks")
	for sentence, want := range map[string]string{
		"make test exit 0":                     "make test exits 0",
		"make test exits with 0":               "make test exits 0",
		"`make test` exits with code 0.":       "make test exits 0",
		"The command go vet ./... returns 0":   "go vet ./... exits 0",
		"npm run lint must exit with status 0": "npm run lint exits 0",
		"make test passes":                     "make test exits 0",
		"make test":                            "make test exits 0",
		"go test -race ./...":                  "go test -race ./... exits 0",
		"make test && make lint":               "make test && make lint exits 0",
		"make test | grep ok":                  "make test | grep ok exits 0",
		"./ci/check.sh --all":                  "./ci/check.sh --all exits 0",
		"go test covers the edge cases":        "",
		"make sure that nothing is left":       "",
		"./ci/check.sh succeeds":               "./ci/check.sh exits 0",
		"The file plan.md exists":              "file plan.md exists",
		"plan.md exists and is not empty":      "file plan.md exists and is non-empty",
		"file docs/x.md is there":              "file docs/x.md exists",
		"make test exits 0":                    "",
		"file plan.md exists and is non-empty": "",
		"All tests pass":                       "",
		"make sure that the plan works":        "",
		"go on only if the plan works":         "",
		"A test exists for each function":      "",
		"The parser ends with a clear message": "",
		"the plan is there":                    "",
	} {
		got := notesOf(t, fmt.Sprintf("workflow: {id: w}\nsteps:\n  - id: a\n    run: x\n    success_criterion:\n      - %q\n    next_step: DONE\n", sentence))
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].Line != 6 || !strings.Contains(got[0].Message, fmt.Sprintf("write %q", want))) {
			t.Errorf("%s: %v, want %q", sentence, got, want)
		}
	}
}

// TestParallelStepsInOneFolder: two steps that are ready at once and share a folder are reported;
// steps with their own folders, in sequence, or as alternatives are not.
func TestParallelStepsInOneFolder(t *testing.T) {
	conform.Rule(t, "13-law beside", "steps that can be ready at once and have the same folder are told")
	const head = "workflow: {id: w%s}\nsteps:\n  - {id: a, run: x, next_step: [b, c]}\n"
	for _, c := range []struct {
		name, src string
		want      []string
	}{
		{"a fork", fmt.Sprintf(head, "") + "  - {id: b, run: x, next_step: DONE}\n  - {id: c, run: x, next_step: DONE}\n", []string{"5:10: steps b and c can be ready together and share your checkout, so one waits for the other. To run both at once: "}},
		{"of a run's worktree", fmt.Sprintf(head, ", workspace: run") + "  - {id: b, run: x, next_step: DONE}\n  - {id: c, run: x, next_step: DONE}\n", []string{"share the worktree of the run"}},
		{"one named worktree", fmt.Sprintf(head, "") + "  - {id: b, run: x, agent: {worktree: wt/x}, next_step: DONE}\n  - {id: c, run: x, agent: {worktree: wt/x}, next_step: DONE}\n", []string{"share wt/x"}},
		{"each its own", fmt.Sprintf(head, "") + "  - {id: b, run: x, agent: {worktree: wt/b}, next_step: DONE}\n  - {id: c, run: x, agent: {worktree: wt/c}, next_step: DONE}\n", nil},
		{"each its own, by its name", fmt.Sprintf(head, "") + "  - {id: b, run: x, agent: {worktree: 'wt/${{step}}'}, next_step: DONE}\n  - {id: c, run: x, agent: {worktree: 'wt/${{step}}'}, next_step: DONE}\n", nil},
		{"behind the fork, and a join", fmt.Sprintf(head, "") + "  - {id: b, run: x, agent: {worktree: wt/b}, next_step: d}\n  - {id: c, run: x, agent: {worktree: wt/c}, next_step: e}\n  - {id: d, run: x, next_step: f}\n  - {id: e, run: x, next_step: f}\n  - {id: f, run: x, next_step: DONE}\n", []string{"steps d and e can be ready together"}},
		{"by needs", "workflow: {id: w}\nsteps:\n  - {id: a, run: x, next_step: b}\n  - {id: b, run: x, next_step: DONE}\n  - {id: c, run: x, needs: [a], next_step: DONE}\n", []string{"steps b and c can be ready together"}},
		{"two that start", "workflow: {id: w}\nsteps:\n  - {id: a, run: x, next_step: DONE}\n  - {id: b, run: x, needs: [], next_step: DONE}\n", []string{"steps a and b can be ready together"}},
		{"one after the other", "workflow: {id: w}\nsteps:\n  - {id: a, run: x, next_step: b}\n  - {id: b, run: x, next_step: DONE}\n", nil},
		{"alternatives", "workflow: {id: w}\nsteps:\n  - {id: a, run: x, gate: G}\n  - {id: b, run: x, next_step: DONE}\n  - {id: c, run: x, next_step: DONE}\n" +
			"gates: [{id: G, reviewer: {level: auto, run: y}, on_pass: {next_step: b}, on_fail: {next_step: c}}]\n", nil},
		{"on a condition", "workflow: {id: w, vars: {v: {default: x}}}\nsteps:\n  - {id: a, run: x, next_step: [b, c]}\n  - {id: b, run: x, when: vars.v == \"x\", next_step: DONE}\n  - {id: c, run: x, when: vars.v != \"x\", next_step: DONE}\n", nil},
	} {
		got := notesOf(t, c.src)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i].Error(), want) {
				t.Errorf("%s: %s, want %s", c.name, got[i], want)
			}
		}
	}
}

// TestCyclesAmongOtherFaults: other faults hide no cycle, nor the other way around.
func TestCyclesAmongOtherFaults(t *testing.T) {
	conform.Rule(t, "13-law cycles", "cycles are told together with the other faults")
	for _, c := range []struct {
		src  string
		want []string
	}{
		{"workflow: {id: w}\nsteps:\n  - {id: a, run: x, next_step: b}\n  - {id: b, run: x, next_step: a, timeout: soon}\n  - {id: c, run: x, next_step: nowhere}\n",
			[]string{"cycle a -> b -> a", `timeout: "soon"`, `"nowhere"`}},
		{"workflow: {id: w}\nsteps:\n  - {id: a, run: x, next_step: b}\n  - {id: b, run: x, next_step: a}\n  - {id: c, run: x, next_step: d}\n  - {id: d, run: x, next_step: c}\n  - {id: e, run: x, next_step: DONE}\n",
			[]string{"cycle a -> b -> a", "cycle c -> d -> c", "step e is never reached"}},
		{"workflow: {id: w}\nsteps:\n  - {id: a, run: x, gate: G}\n  - {id: b, run: x, needs: [c], next_step: DONE}\n  - {id: c, run: x, needs: [b], next_step: DONE}\n", []string{`"G"`, "cycle b -> c -> b"}},
		{"workflow: {id: w}\nsteps:\n  - {id: a, run: x, next_step: b}\n  - {id: b, run: x, next_step: c}\n  - {id: c, run: x, next_step: [a, d]}\n  - {id: d, run: x, next_step: DONE}\n", []string{"cycle a -> b -> c -> a"}},
	} {
		_, faults := Load("", []byte(c.src))
		all := fmt.Sprint(faults)
		if len(faults) != len(c.want) {
			t.Errorf("%s\n%v", c.src, faults)
		}
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s\nmisses %s: %v", c.src, want, faults)
			}
		}
	}
}
