package world

import "testing"

// TestJudgesPythonReadsSources: compiled Python in the work, which may be of another source, is not run in place of the
// source when work is judged. Work without any costs no judge its compiled files.
func TestJudgesPythonReadsSources(t *testing.T) {
	for name, c := range map[string]struct {
		work string
		want bool
	}{
		"compiled": {"mkdir -p ci/__pycache__; echo evil >ci/__pycache__/check.cpython-311.pyc", true},
		"source":   {"echo work >a.py", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer}, success_criterion: [{run: 'test "$PYTHONPYCACHEPREFIX" = "$HOME/.cache/python"'}], next_step: DONE}
`)
			b.hold(true)
			b.put("ci/check.py", "raise SystemExit(1)\n")
			b.script("writer", c.work+"\n")
			b.sh("git add -A; git commit -q -m before")
			b.carry(b.stepJob("A", 1, 1))
			if check := b.carry(b.checkJob("A", 1)).Check; check.OK != c.want {
				t.Errorf("%+v", check)
			}
		})
	}
}
