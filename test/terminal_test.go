//go:build linux

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/internal/fault"
	"sluice/internal/press"
	"sluice/internal/setup"
)

// terminalWindow is a real terminal (tmux's) with a command in it.
type terminalWindow struct {
	t      *testing.T
	socket string
}

// inTerminal runs a command line in a terminal of so many cells.
func (w *playground) inTerminal(columns, rows int, line string) *terminalWindow {
	w.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		w.t.Skip("needs: tmux (a terminal to look at the screen in)")
	}
	win := &terminalWindow{w.t, filepath.Join(w.t.TempDir(), "tmux")}
	args := []string{"new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "-c", w.dir}
	for _, e := range append(w.env, "NO_COLOR=1") {
		args = append(args, "-e", e)
	}
	win.tmux(append(args, line+`; echo "rc=$?"; sleep 600`)...)
	w.t.Cleanup(func() { _ = exec.Command("tmux", "-S", win.socket, "kill-server").Run() })
	return win
}

func (win *terminalWindow) tmux(args ...string) string {
	win.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", win.socket, "-f", os.DevNull}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm")
	out, err := cmd.CombinedOutput()
	if err != nil {
		win.t.Fatalf("tmux %v: %v %s", args, err, out)
	}
	return string(out)
}

// sees waits until the terminal shows what matches.
func (win *terminalWindow) sees(pattern string) string {
	win.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	last := ""
	for until := time.Now().Add(waitMost); time.Now().Before(until); time.Sleep(pollEvery) {
		if last = win.tmux("capture-pane", "-p"); re.MatchString(last) {
			return last
		}
	}
	win.t.Fatalf("the terminal never shows %q; it shows:\n%s", pattern, last)
	return ""
}

func (win *terminalWindow) types(keys ...string) {
	win.t.Helper()
	win.tmux(append([]string{"send-keys"}, keys...)...)
}

// looks lets a second pass, and a little: so long a person looks at what is on the screen before a key decides it.
func (win *terminalWindow) looks() { <-time.After(press.Shown + press.Shown/5) }

// decides presses a key at what has been looked at.
func (win *terminalWindow) decides(key, pattern string) {
	win.t.Helper()
	win.looks()
	win.types(key)
	win.sees(pattern)
}

// passes passes what is on the screen.
func (win *terminalWindow) passes(question, pattern string) {
	win.t.Helper()
	win.decides("p", question)
	win.decides("Enter", pattern)
}

// gated is a world with a workflow whose gate is a person's.
func gated(t *testing.T) (w *playground, binary string) {
	t.Helper()
	w = newWorld(t, true)
	w.env = append(w.env, "SLUICE_CONFIG_NOTIFY_DESKTOP=false", "SLUICE_CONFIG_VETO_WINDOW=30s")
	w.write(".workflow/specs/w.yaml", `workflow: {id: w, name: A workflow}
steps:
  - {id: A, run: "echo hello >> out.txt", outputs: [out.txt], gate: G}
gates:
  - {id: G, name: review, reviewer: {level: human}, on_pass: {next_step: DONE}}
`)
	w.write(".workflow/.gitignore", setup.Ignored)
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x"}} {
		if out, err := exec.Command("git", append([]string{"-C", w.dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, out)
		}
	}
	return w, filepath.Join(binDir(t), "sluice")
}

// TestTheScreenAsks: a run in a terminal shows itself live, shows what there is to decide, takes a fail with words and a
// pass, and leaves the terminal as it was.
func TestTheScreenAsks(t *testing.T) {
	w, sluice := gated(t)
	win := w.inTerminal(100, 30, sluice+" run w")
	win.sees(`\? G review asks you`)
	win.sees(`^p pass · f fail · c comment · ⏎ show`)
	win.sees(`q pause and leave`)
	win.types("Enter")
	win.sees(`^  task +run: echo hello`)
	win.sees(`\+hello`)
	win.types("Escape")
	win.sees(`^p pass`)
	win.decides("f", `^fail G #1 of \S+: what is wrong\?`)
	win.looks()
	win.types("two lines, please")
	win.sees(`^  two lines, please▏`)
	win.decides("Enter", `G #1 +failed by .*\(terminal\) → A: two lines, please`)
	win.sees(`G #2 +asks you`)
	win.tmux("resize-window", "-x", "40", "-y", "12")
	win.sees(`^p pass · .*q pause and leave`)
	win.tmux("resize-window", "-x", "100", "-y", "30")
	win.passes(`Pass G review, round 2 of w-1: step A, content [0-9a-f]{12}\?`, `^rc=0`)
	last := win.sees(`^rc=0`)
	if !strings.Contains(last, "w-1 completed") || strings.Contains(last, "p pass") {
		t.Errorf("at the end the terminal shows:\n%s", last)
	}
}

// TestTheDemoEndsOnOneScreen: 24 lines show its end whole, with the outcome last.
func TestTheDemoEndsOnOneScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	for _, flags := range []string{"", " --keep kept"} {
		win := w.inTerminal(80, 24, filepath.Join(binDir(t), "sluice")+" demo --yes"+flags)
		screen := win.sees(`^rc=`)
		if !strings.Contains(screen, "\n"+setup.DemoFlow+"-1 completed in ") ||
			!strings.Contains(screen, "\nThe record of it\n") || !strings.Contains(screen, "\n  sluice ") {
			t.Errorf("sluice demo%s ends with\n%s", flags, screen)
		}
	}
}

// TestCtrlCPauses: the run stays, and the same command goes on with it after a question.
func TestCtrlCPauses(t *testing.T) {
	w, sluice := gated(t)
	win := w.inTerminal(100, 30, sluice+" run w --set veto_window=9s; echo first=$?; "+sluice+" run w")
	win.sees(`\? G review asks you`)
	win.types("C-c")
	win.sees(`Go on:  sluice run w-1 --set veto_window=9s`)
	win.sees(`first=130`)
	win.sees(`w-1 is paused\. Go on with it\? \[y/N\]`)
	win.types("y", "Enter")
	win.sees(`\? G review asks you`)
	win.passes(`Pass G`, `^rc=0`)
}

// TestANoticeReachesItsCommand: notify uses the person's own settings.
func TestANoticeReachesItsCommand(t *testing.T) {
	w := newWorld(t, true)
	seen := filepath.Join(filepath.Dir(w.dir), "seen")
	w.own(fmt.Sprintf("notify: {desktop: false, command: [sh, -c, 'echo \"$SLUICE_NOTICE_TITLE|$SLUICE_NOTICE_KIND\" > %s']}\n", seen))
	if code, out, errs := w.sluice("notify", "hello"); code != 0 || !strings.Contains(out, "sent") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if got, err := os.ReadFile(seen); err != nil || string(got) != "hello|info\n" {
		t.Errorf("%q %v", got, err)
	}
	w.own("notify: {desktop: false}\n")
	if code, _, errs := w.sluice("notify", "hello"); code != fault.ExitFailed || !strings.Contains(errs, "reached nobody") {
		t.Errorf("%d %q", code, errs)
	}
}
