//go:build linux

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
)

// looked is a world in whose daemon-less repo a run waits at a person's gate; the step's criterion prints something.
func looked(t *testing.T) (w *playground, sluice string) {
	t.Helper()
	w, sluice = gated(t)
	w.write(".workflow/specs/w.yaml", `workflow: {id: w, name: A workflow}
steps:
  - {id: A, agent: {type: writer, prompt: write}, signal: {type: stdout_exit}, outputs: [out.txt], success_criterion: {run: "wc -l < out.txt; echo all is well"}, gate: G}
gates:
  - {id: G, name: review, reviewer: {level: human}, on_pass: {next_step: DONE}}
`)
	w.write(".workflow/config.yaml", "agents: {mine: {command: [sh, -c, 'echo hello >> out.txt']}}\nroles: {writer: {agent: mine}}\n")
	return w, sluice
}

// TestShowDecides: show prints what the criterion printed; in a terminal its page opens on a screen, on which keys show the
// changes since the attempt before, send the work back with words, or pass; any other decides nothing.
func TestShowDecides(t *testing.T) {
	w, sluice := looked(t)
	defer w.serve(sluice)()
	if code, out := w.binary(sluice, "start", "w"); code != 0 {
		t.Fatal(out)
	}
	w.until(`G`, "inbox")
	win := w.inTerminal(110, 50, sluice+" show G; echo left; read x; "+sluice+" show G; echo sent; read x; clear; "+sluice+" show G")
	win.sees(`(?s)^  printed +stdout:\n +1\n +all is well`)
	win.sees(`^\+hello`)
	win.sees(`^p pass · f fail`)
	win.types("o")
	win.sees(`^this is the first attempt`)
	win.types("Escape")
	win.sees(`^left`)
	win.types("Enter")
	win.sees(`^p pass · f fail`)
	win.decides("f", `^fail G #1 of \S+: what is wrong\?`)
	win.looks()
	win.types("two lines")
	win.sees(`^  two lines▏`)
	win.decides("Enter", `^sent`)
	w.until(`attempt 2(.|\n)*\? G review`, "status")
	win.types("Enter")
	win.sees(`^G review of w-1, round 2: asks you`)
	win.sees(`^  round 1 +failed by .*two lines`)
	win.types("o")
	win.sees(`(?s)^@@ -1 \+1,2 @@.* hello.*\+hello`)
	win.passes(`^Pass G review, round 2 of w-1: step A, content [0-9a-f]{12}\?`, `^rc=0`)
	last := win.sees(`^rc=0`)
	if !strings.Contains(last, "pass of G: taken in") {
		t.Errorf("at the end:\n%s", last)
	}
	if code, out, _ := w.sluice("show", "G", "--since"); code != 0 || !strings.Contains(out, "+hello") {
		t.Errorf("--since: %d %s", code, out)
	}
	if code, _, errs := w.sluice("show", "G", "--run", "nothing-1"); code == 0 {
		t.Errorf("of no run: %s", errs)
	}
}

// TestTypedAgain: a pass that is typed again, and names no run, says at a terminal which run it is for now, and asks.
func TestTypedAgain(t *testing.T) {
	t.Parallel()
	w, sluice := looked(t)
	defer w.serve(sluice)()
	w.start(sluice, "w")
	w.until(`G`, "inbox")
	win := w.inTerminal(110, 50, sluice+" pass G; read x; clear; "+sluice+" pass G; "+sluice+" pass G")
	win.sees(`^w-1 +G #1 +passed by`)
	w.until(`completed`, "status")
	w.start(sluice, "w")
	w.until(`G`, "inbox")
	win.types("Enter")
	win.sees(`^Pass G review, round 1 of w-2: step A, content [0-9a-f]{12}\? \[y/N\]`)
	win.types("Enter")
	win.sees(`^sluice: nothing was decided\s+→ .sluice show G --run w-2. shows it\s+Pass G review, round 1 of w-2`)
	win.types("y", "Enter")
	win.sees(`^w-2 +G #1 +passed by`)
}

// TestShowTakesNoTypeAhead: what is typed before show asks, or pasted, decides nothing; a single key then does.
func TestShowTakesNoTypeAhead(t *testing.T) {
	w, sluice := looked(t)
	defer w.serve(sluice)()
	w.start(sluice, "w")
	w.until(`G`, "inbox")
	win := w.inTerminal(110, 50, "read x; stty -icanon; read -t 1 -n 1 y; stty icanon; "+sluice+" show G")
	win.types("Enter", "y", "p")
	win.sees(`^p pass · f fail`)
	win.tmux("set-buffer", "p\nf\nno\np\n")
	win.looks()
	win.tmux("paste-buffer", "-p")
	win.looks()
	win.tmux("paste-buffer")
	win.looks()
	win.sees(`^p pass · f fail`)
	win.decides("f", `^fail G #1 of \S+: what is wrong\?`)
	win.looks()
	win.tmux("send-keys", "pasted", "Enter")
	win.sees(`several keys at once decide nothing: press Enter again`)
	win.types("Escape")
	win.sees(`^p pass · f fail`)
	if has(w.factsOf(), func(engine.RoundPassed) bool { return true }) || has(w.factsOf(), func(engine.RoundFailed) bool { return true }) || has(w.factsOf(), func(engine.RoundRouted) bool { return true }) {
		t.Error("it was decided")
	}
	win.passes(`^Pass G review, round 1 of w-1`, `^rc=0`)
}

// TestPagerFromTheScreen: w shows the changes in the person's pager, and the screen comes back; a key that was pressed there
// decides nothing.
func TestPagerFromTheScreen(t *testing.T) {
	t.Parallel()
	w, sluice := gated(t)
	defer w.serve(sluice)()
	if code, out := w.binary(sluice, "start", "w"); code != 0 {
		t.Fatal(out)
	}
	w.until(`G +review`, "inbox")
	pager := filepath.Join(filepath.Dir(w.dir), "pager.sh")
	if err := os.WriteFile(pager, []byte("clear; sed s/^/paged:/; read x </dev/tty\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	win := w.inTerminal(100, 30, "PAGER='sh "+pager+"' "+sluice+" top; PAGER=cat "+sluice+" show G")
	win.sees(`^p pass · f fail`)
	win.types("w")
	win.sees(`^paged:\+hello`)
	win.types("p", "Enter")
	win.sees(`^p pass · f fail`)
	win.types("Enter")
	win.sees(`^p pass · f fail · c comment · t tail`)
	win.types("w")
	win.sees(`^paged:\+hello`)
	win.types("Enter")
	win.sees(`^p pass · f fail · c comment · t tail`)
	win.types("Escape")
	win.sees(`q quit`)
	win.types("q")
	win.sees(`esc leave`)
	win.types("w")
	win.sees(`^you have no pager: set PAGER`)
	win.types("Escape")
	win.sees(`^rc=0`)
	if _, log, _ := w.sluice("log"); strings.Contains(log, "passed by") {
		t.Error(log)
	}
}

// TestCutChangesSaySo: changes that are longer than a page, and than what the pager gets, end with how to see the rest.
func TestCutChangesSaySo(t *testing.T) {
	t.Parallel()
	w, sluice := gated(t)
	w.write(".workflow/specs/long.yaml", `workflow: {id: long}
steps:
  - {id: A, run: "yes harmless | head -n 600000 > a.txt; echo harm > z.txt", gate: G}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}
`)
	defer w.serve(sluice)()
	if code, out := w.binary(sluice, "start", "long"); code != 0 {
		t.Fatal(out)
	}
	w.until(`G `, "inbox")
	win := w.inTerminal(100, 30, "PAGER='tail -n 1 | sed s/^/paged:/; read x </dev/tty; true' "+sluice+" show G")
	win.sees(`^p pass · f fail`)
	win.types("G")
	win.sees(`^there is more: sluice attempt diff long-1 A.1$`)
	win.sees(`^p pass · f fail`)
	win.types("w")
	win.sees(`^paged:there is more: sluice attempt diff long-1 A.1$`)
	win.types("Enter")
	win.sees(`^p pass · f fail`)
	win.types("Escape")
	win.sees(`^rc=0`)
}

// TestReviewInTheTerminal: in a terminal the changes go through the person's pager, and fail --review
// opens them in the person's editor, again if it left what cannot be read. The repo's settings choose
// neither.
func TestReviewInTheTerminal(t *testing.T) {
	w, sluice := looked(t)
	defer w.serve(sluice)()
	for name, value := range map[string]string{"core.pager": "echo of the repo; cat", "core.editor": "false"} {
		if out, err := exec.Command("git", "-C", w.dir, "config", name, value).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	w.start(sluice, "w")
	w.until(`G`, "inbox")
	editor := filepath.Join(t.TempDir(), "editor.sh")
	script := "case $(head -c 5 \"$1\") in first) sed -i 's/^+hello!/+hello\\n> say more/' \"$1\"; exit;; esac\n" +
		"sed -i '1i first' \"$1\"\nsed -i 's/^+hello/&!/' \"$1\"\n"
	if err := os.WriteFile(editor, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	win := w.inTerminal(110, 50, "export PAGER='sed s/^/paged:/' EDITOR='sh "+editor+"'; "+
		sluice+" show G --diff; "+sluice+" fail G --review")
	win.sees(`^paged:.*\+hello`)
	win.sees(`^Edit the file again\?`)
	win.sees(`line \d+ of the file is neither a comment nor the next line of the changes: \+hello!`)
	win.types("y", "Enter")
	if last := win.sees(`^rc=0`); strings.Contains(last, "of the repo") {
		t.Errorf("the repo chose the pager:\n%s", last)
	}
	w.until(`attempt 2(.|\n)*\? G review`, "status")
	if _, out, _ := w.sluice("show", "G"); !strings.Contains(out, "comment     out.txt:1 (changed since) say more") {
		t.Error(out)
	}
}

// TestReviewInTheTerminalUnchanged: what was written before is sent without a change only if the person says so.
func TestReviewInTheTerminalUnchanged(t *testing.T) {
	w, sluice := looked(t)
	defer w.serve(sluice)()
	w.start(sluice, "w")
	w.until(`G`, "inbox")
	editor := filepath.Join(t.TempDir(), "editor.sh")
	if err := os.WriteFile(editor, []byte("sed -i '1i first' \"$1\"; exit 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	fail := sluice + " fail G --review"
	win := w.inTerminal(110, 50, "EDITOR='sh "+editor+"' "+fail+"; export EDITOR=true; "+fail+"; "+fail)
	win.sees(`^You changed nothing\. Send what you wrote before\?`)
	win.types("n", "Enter")
	win.sees(`nothing was decided: you changed nothing in what you wrote before(.|\n)*^You changed nothing\.`)
	win.types("y", "Enter")
	win.sees(`^rc=0`)
	w.until(`attempt 2(.|\n)*\? G review`, "status")
}
