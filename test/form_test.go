//go:build linux

package test

import (
	"strings"
	"testing"

	"sluice/tools/conform"
)

// asking is gated, with a gate that asks for an answer.
func asking(t *testing.T) (w *playground, binary string) {
	t.Helper()
	w, binary = gated(t)
	w.write(".workflow/specs/w.yaml", `workflow: {id: w, name: A workflow}
steps:
  - {id: A, run: "echo hello >> out.txt", outputs: [out.txt], gate: G}
  - {id: B, run: [echo, "${{gates.G.answer.name}} x ${{gates.G.answer.replicas}}"], next_step: DONE}
gates:
  - id: G
    name: review
    reviewer: {level: human}
    answer:
      required: [name]
      properties: {name: {type: string, title: Name of the service}, replicas: {type: integer, minimum: 1, default: 2}}
    on_pass: {next_step: B}
`)
	return w, binary
}

// TestPassAsksInATerminal: sluice pass asks for each property; it reports wrong input and asks
// again, and Ctrl-C decides nothing.
func TestPassAsksInATerminal(t *testing.T) {
	conform.Rule(t, "13-law answer", "\"a person's answer as data (2)\": \"`answer:` (a schema) at a human gate; `sluice pass G -a replicas=2`, a form in the terminal; `gates.G.answer`\"")
	w, sluice := asking(t)
	defer w.serve(sluice)()
	w.start(sluice, "w")
	w.until(`\? G`, "status", "w-1")
	win := w.inTerminal(100, 30, sluice+" pass G; echo first=$?; "+sluice+" pass G")
	win.sees(`^name, Name of the service \(text\): *$`)
	win.types("C-c")
	win.sees(`nothing was decided`)
	win.sees(`first=1`)
	win.sees(`first=1(?s:.*)^name, Name of the service \(text\): *$`)
	win.types("Enter")
	win.sees(`name is required: want text`)
	win.types("web one", "Enter")
	win.sees(`^replicas \(an integer, at least 1\) \[2\]: *$`)
	win.types("none", "Enter")
	win.sees(`replicas: want an integer, at least 1, found "none"`)
	win.types("Enter")
	win.sees(`^rc=0`)
	if _, out, _ := w.sluice("log", "w-1"); !strings.Contains(out, "with name=web one, replicas=2") || strings.Count(out, "passed by root") > 1 {
		t.Errorf("the log says:\n%s", out)
	}
}

// TestTheScreenAsksForAnAnswer: p on the screen of a run asks for each property and then for Enter, and Esc decides nothing.
func TestTheScreenAsksForAnAnswer(t *testing.T) {
	w, sluice := asking(t)
	win := w.inTerminal(100, 30, sluice+" run w")
	win.sees(`\? G review asks you`)
	win.decides("p", `^G #1 of \S+ asks: name, Name of the service \(text\)$`)
	win.types("Escape")
	win.sees(`^p pass · f fail`)
	win.decides("p", `^G #1 of \S+ asks: name, Name of the service \(text\)$`)
	win.looks()
	win.types("Enter")
	win.sees(`name is required: want text`)
	win.types("web")
	win.sees(`^▸ web▏`)
	win.decides("Enter", `^G #1 of \S+ asks: replicas \(an integer, at least 1\) \[2\]$`)
	win.types("x")
	win.sees(`^▸ +x▏`)
	win.decides("Enter", `replicas: want an integer, at least 1, found "x"`)
	win.sees(`^▸ +x▏`) // it stays
	win.types("BSpace")
	win.types("7")
	win.sees(`^▸ +7▏`)
	win.decides("Enter", `^Pass G review, round 1 of w-1: step A, content [0-9a-f]{12}, with name=web, replicas=7\?`)
	win.decides("Enter", `^rc=0`)
	if _, out, _ := w.sluice("log", "w-1"); !strings.Contains(out, "passed by root (terminal) with name=web, replicas=7") {
		t.Errorf("the log says:\n%s", out)
	}
}

// TestShowAsksForAnAnswer: p after sluice show does the same.
func TestShowAsksForAnAnswer(t *testing.T) {
	w, sluice := asking(t)
	defer w.serve(sluice)()
	w.start(sluice, "w")
	w.until(`\? G`, "status", "w-1")
	win := w.inTerminal(100, 40, sluice+" show G")
	win.sees(`asks for +name, Name of the service \(text\)`)
	win.sees(`^p pass · f fail`)
	win.decides("p", `^G #1 of \S+ asks: name, Name of the service \(text\)$`)
	win.looks()
	win.types("web")
	win.sees(`^▸ web▏`)
	win.decides("Enter", `^G #1 of \S+ asks: replicas`)
	win.decides("Enter", `with name=web, replicas=2\?`)
	win.decides("Enter", `^rc=0`)
	if _, out, _ := w.sluice("log", "w-1"); !strings.Contains(out, "with name=web, replicas=2") {
		t.Errorf("the log says:\n%s", out)
	}
}
