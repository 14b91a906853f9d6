//go:build linux || darwin

package world

import (
	"strings"
	"testing"

	"sluice/engine"
	"sluice/gates"
	"sluice/gates/judge"
	"sluice/tools/conform"
)

// TestAnswerOfAnotherTask: a summary that names a task other than the one that was given is asked for again, and is none at
// last; one that comes with a signal fails the try; one that names no task is the given one's.
func TestAnswerOfAnotherTask(t *testing.T) {
	conform.Rule(t, "001 summary.task", "exit code and signal file: asked again with words, then the try has failed")
	for name, x := range map[string]struct{ signal, said, bad string }{
		"its own":              {"stdout_exit", `"T1"`, ""},
		"none":                 {"stdout_exit", `null`, ""},
		"another":              {"stdout_exit", `"T9"`, `its task_id is "T9", and the task that was given is T1`},
		"another, in a signal": {"sentinel_file", `"T9"`, `its task_id is "T9", and the task that was given is T1`},
		"its own, in a signal": {"sentinel_file", `"T1"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, strings.Replace(answerSpec, "%s", x.signal, 1))
			b.script("one", `echo x >>.git/ran; cat >.git/prompt
if [ -n "$SLUICE_SIGNAL" ]; then printf '{"status":"done","answer":{"plan":"p","task_id":`+x.said+`}}' >"$SLUICE_SIGNAL"
else printf '{"plan":"p","task_id":`+x.said+`,"token":"%s"}' $SLUICE_TOKEN >"$SLUICE_ANSWER"; fi`)
			j, spec := b.stepJob("A", 1, 1), *b.spec
			spec.Inline = true
			j.Spec, j.RunInfo.Child = &spec, &engine.ChildOf{Parent: "p-1", Task: "T1", Try: 1, Dir: run1, Body: []byte(`{"id":"T1"}`)}
			ev := b.carry(j)
			told, asked := "", 1 // one in a signal is read where that is taken in: by the check
			if x.signal == "stdout_exit" && x.bad != "" {
				told, asked = x.bad, 1+gates.MaxCorrections
				wantText(t, "the correction", b.get(".git/prompt"), "the task that was given is T1")
			}
			if !strings.Contains(ev.AnswerBad, told) || (told == "") != (ev.AnswerBad == "") {
				t.Errorf("answer %s bad %q, want %q", ev.Answer, ev.AnswerBad, told)
			}
			if got := strings.Count(b.get(".git/ran"), "x"); got != asked {
				t.Errorf("asked %d times, want %d", got, asked)
			}
			j.Attempt.Answer = []byte(`{"plan":"p","task_id":` + x.said + `}`)
			if why := judge.AnswerFits(j, j.Spec.Step("A")); !strings.Contains(why, x.bad) || (x.bad == "") != (why == "") {
				t.Errorf("the check says %q", why)
			}
			spec.Inline = false // of a workflow that does the task each step has ids of its own
			if why := judge.AnswerFits(j, j.Spec.Step("A")); why != "" {
				t.Errorf("in a workflow of its own: %q", why)
			}
		})
	}
}
