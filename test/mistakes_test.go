//go:build linux

package test

import (
	"regexp"
	"strings"
	"testing"
)

// mistake is what somebody does in a terminal, and what that ends with.
type mistake struct {
	name    string
	size    [2]int   // columns, rows; zero = 100 by 30
	line    string   // the command, without sluice
	at      string   // what is on the screen when the mistake is made
	keys    []string // the mistake
	says    []string // what the terminal shows then
	then    string   // a key that ends the command; "" = it ends by itself
	code    string   // what the command ends with
	pending bool     // the run w-1 waits at its gate before
	served  bool     // a daemon serves the repo
	dirty   bool     // the checkout has a file that is not committed
}

// terminalMistakes are the mistakes of a new user that need a terminal. The others are in
// testdata/script/twenty-five-mistakes.txtar.
func terminalMistakes() []mistake {
	ctrlC := []string{"C-c"}
	unanswered := []string{`interrupted: the question was not answered`, `give the same command again, and it asks again`}
	return []mistake{
		{name: "a narrow terminal for a run", size: [2]int{24, 7}, line: "run w", at: `p pass`, keys: []string{"p"}, says: []string{`this terminal is too`, `make it larger`}, then: "C-c", code: "130"},
		{name: "a narrow terminal for top", size: [2]int{18, 5}, line: "top", at: `\? help`, keys: []string{"q"}, code: "0", pending: true},
		{name: "a dirty checkout", line: "run w", at: `\? G review asks you`, keys: []string{"q"}, says: []string{`your checkout has 1 uncommitted file: the run works there too`}, code: "130", dirty: true},
		{name: "a dirty checkout beside a worktree", line: "run v", at: `^goal \(what to reach\):`, keys: ctrlC, says: []string{`your checkout has 1 uncommitted file: the run works in its own worktree`}, code: "130", dirty: true},
		{name: "Ctrl-C at a var", line: "run v", at: `^goal \(what to reach\):`, keys: ctrlC, says: unanswered, code: "130"},
		{name: "Ctrl-C at a question of init", line: "-C ../bare init", at: `^Which command tests this repo\?`, keys: ctrlC, says: unanswered, code: "130"},
		{name: "Ctrl-C at yes or no", line: "abort w-1", at: `^End w-1 for good\? \[y/N\]`, keys: ctrlC, says: unanswered, code: "130", pending: true},
		{name: "Ctrl-C where a run could go on", line: "run w", at: `Go on with it\? \[y/N\]`, keys: ctrlC, says: unanswered, code: "130", pending: true},
		{name: "Ctrl-C at a reason", line: "fail G", at: `^What is wrong\?`, keys: ctrlC, says: unanswered, code: "130", pending: true},
		{name: "Ctrl-C while an agent works", line: "run slow", at: `A +running`, keys: ctrlC, says: []string{`slow-1 is paused\. Running agents finish; nothing new is started\.`, `Go on:  sluice run slow-1`}, code: "130"},
		{name: "Ctrl-C at a gate", line: "run w", at: `\? G review asks you`, keys: ctrlC, says: []string{`Go on:  sluice run w-1`}, code: "130"},
		{name: "Ctrl-C at a gate that is shown", line: "show G", at: `^p pass · f fail`, keys: ctrlC, code: "0", pending: true, served: true},
		{name: "Ctrl-C in the demo", line: "demo", at: `Starts in a moment`, keys: ctrlC, says: []string{`interrupted`}, code: "130"},
		{name: "leaving the demo", line: "demo", at: `q pause and leave`, keys: []string{"q"}, says: []string{`The demo ends here, and its repo is removed`}, code: "130"},
		{name: "Ctrl-C in top", line: "top", at: `\? G`, keys: ctrlC, code: "0", pending: true},
		{name: "Ctrl-C in a daemon", line: "daemon", at: `the daemon serves`, keys: ctrlC, code: "0"},
		{name: "Ctrl-C while a run is waited for", line: "start slow --wait", at: `^slow-1$`, keys: ctrlC, says: []string{`interrupted: slow-1 goes on`, "`sluice status slow-1` shows its state"}, code: "130", served: true},
	}
}

// TestTwentyFiveMistakes makes each mistake in a terminal of its own: the message says what to type, and nothing was decided.
func TestTwentyFiveMistakes(t *testing.T) {
	for _, m := range terminalMistakes() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			w, sluice := gated(t)
			w.write("../bare/.git/HEAD", "ref: refs/heads/main\n")
			w.write("../bare/.git/objects/x", "")
			w.write("../bare/.git/refs/x", "")
			w.write(".workflow/specs/v.yaml", "workflow: {id: v, workspace: run, vars: {goal: {required: true, description: what to reach}}}\nsteps: [{id: A, run: [echo, \"${{vars.goal}}\"], next_step: DONE}]\n")
			w.write(".workflow/specs/slow.yaml", "workflow: {id: slow}\nsteps: [{id: A, run: \"sleep 3\", next_step: DONE}]\n")
			if m.dirty {
				w.write("mine.txt", "mine\n")
			}
			if m.pending {
				waits := w.inTerminal(100, 30, sluice+" run w")
				waits.sees(`\? G review asks you`)
				waits.types("q")
				waits.sees(`^rc=130`)
			}
			if m.served {
				defer w.serve(sluice)()
			}
			if m.size[0] == 0 {
				m.size = [2]int{100, 30}
			}
			win := w.inTerminal(m.size[0], m.size[1], sluice+" "+m.line)
			win.sees(m.at)
			win.looks()
			win.types(m.keys...)
			for _, words := range m.says {
				win.sees(words)
			}
			if m.then != "" {
				win.types(m.then)
			}
			last := win.sees(`^rc=\d+$`)
			if !regexp.MustCompile(`(?m)^rc=` + m.code + `$`).MatchString(last) {
				t.Errorf("want rc=%s:\n%s", m.code, last)
			}
			if _, out, _ := w.sluice("log"); strings.Contains(out, "passed by") || strings.Contains(out, "failed by") {
				t.Errorf("something was decided:\n%s", out)
			}
		})
	}
}
