//go:build linux

package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/fault"
)

// factsOf are the facts of a repo's journal, asked of who serves it.
func (w *playground) factsOf() []engine.Fact {
	w.t.Helper()
	c := daemon.NewClient(w.stateDir())
	defer c.Close()
	var out []engine.Fact
	if err := c.Facts(context.Background(), "", 0, false, func(l daemon.Line) error {
		f, err := engine.DecodeFact(l.Fact)
		out = append(out, f)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// byTerminal reports whether a person decided it at a terminal.
func byTerminal(by *engine.Actor) bool { return by != nil && by.Via == "terminal" && by.Who != "" }

// TestTopDecides: a fail with words of several lines and a pass arrive as facts, via the terminal, and the terminal is left
// as it was.
func TestTopDecides(t *testing.T) {
	w, sluice := gated(t)
	w.serve(sluice)
	if code, out := w.binary(sluice, "start", "w"); code != 0 {
		t.Fatal(out)
	}
	win := w.inTerminal(80, 24, sluice+" top"+andStty)
	win.sees(`^› \? G review of w-1 asks you`)
	win.types("Enter")
	win.sees(`^\+hello`)
	win.decides("f", `^fail G #1 of \S+: what is wrong\?`)
	win.looks()
	win.types("two lines,", "M-Enter", "please")
	win.sees(`^  please▏`)
	win.decides("Enter", `G is at round 2 by now`)
	win.types("Escape")
	win.sees(`^› \? G review of w-1 asks you .* failed 1/`)
	win.passes(`^Pass G`, `^. ✓ w-1 +completed`)
	win.types("q")
	if last := win.sees(`^rc=0`); strings.Contains(last, "q quit") {
		t.Errorf("at the end the terminal shows:\n%s", last)
	}
	facts := w.factsOf()
	if !slices.ContainsFunc(facts, func(f engine.Fact) bool {
		x, ok := f.(engine.RoundFailed)
		return ok && x.Gate == "G" && x.N == 1 && x.Feedback == "two lines,\nplease" && byTerminal(x.By)
	}) {
		t.Error("no fact tells the fail")
	}
	if !slices.ContainsFunc(facts, func(f engine.Fact) bool {
		x, ok := f.(engine.RoundPassed)
		return ok && x.Gate == "G" && x.N == 2 && byTerminal(x.By)
	}) {
		t.Error("no fact tells the pass")
	}
}

// serve has a daemon serve the repo until the test ends; stop ends it before.
func (w *playground) serve(sluice string) (stop func()) {
	w.t.Helper()
	if code, out := w.binary(sluice, "watch", "add"); code != 0 {
		w.t.Fatal(out)
	}
	stop = w.background(sluice, "daemon")
	w.until(`^served`, "watch", "ls")
	return stop
}

// played adds two workflows to the world: one whose agent keeps saying things, and one whose
// reviewer passes the work with a veto window.
func played(t *testing.T) (w *playground, sluice string, stop func()) {
	t.Helper()
	w, sluice = gated(t)
	w.own(`notify: {desktop: false}
roles: {"*": {agent: judge}}
agents: {judge: {command: [sh, -c, 'echo "{\"verdict\": \"pass\", \"score\": 80}"']}}
`)
	w.write(".workflow/specs/talk.yaml", `workflow: {id: talk, name: A long talk}
steps:
  - {id: T, name: talks, run: "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo word $i; sleep 0.05; done", next_step: DONE}
`)
	w.write(".workflow/specs/n.yaml", `workflow: {id: n, name: Passed unless vetoed}
steps:
  - {id: V, run: "echo hello >> out.txt", gate: VG}
gates:
  - {id: VG, name: a look, reviewer: {level: notify, agent_type: r}, veto_window: 10m, on_pass: {next_step: DONE}, max_retries: 9}
`)
	return w, sluice, w.serve(sluice)
}

// start starts a run through the daemon.
func (w *playground) start(sluice string, args ...string) {
	w.t.Helper()
	if code, out := w.binary(sluice, append([]string{"start"}, args...)...); code != 0 {
		w.t.Fatal(out)
	}
}

// has reports whether a fact of the journal is as wanted.
func has[F engine.Fact](facts []engine.Fact, want func(F) bool) bool {
	return slices.ContainsFunc(facts, func(f engine.Fact) bool { x, ok := f.(F); return ok && want(x) })
}

// andStty prints the state of the terminal below the exit code.
const andStty = `; echo "rc=$?"; stty -a`

// left checks that the terminal is as it was before: its own buffer, its cursor, echo and lines.
func (win *terminalWindow) left() {
	win.t.Helper()
	win.sees(`^rc=`)
	if got := win.tmux("display", "-p", "#{alternate_on}#{cursor_flag}#{bracket_paste_flag}"); !strings.HasPrefix(got, "01") {
		win.t.Errorf("alternate buffer, cursor: %s", got)
	}
	if got := win.sees(`icanon`); strings.Contains(got, "-icanon") || !regexp.MustCompile(`[^-]echo `).MatchString(got) {
		win.t.Errorf("the terminal is left as:\n%s", got)
	}
}

// TestTopSteers: an agent is heard, its run paused, resumed and aborted, each as a fact via the terminal.
func TestTopSteers(t *testing.T) {
	w, sluice, _ := played(t)
	w.start(sluice, "talk")
	win := w.inTerminal(80, 24, sluice+" top"+andStty)
	win.sees(`T talks +running .*“word \d+”`)
	win.types("t")
	win.sees(`^── output of T in talk-1`)
	win.sees(`^── output of T in talk-1 · line [2-9]\d* of`)
	win.types("g")
	win.sees(`^── output of T in talk-1 · line 1 of`)
	win.sees(`^word 1$`)
	win.types("G")
	win.sees(`^── output of T in talk-1 · line [2-9]\d* of`)
	win.types("Escape")
	win.sees(`^p pass|^⏎ show`)
	win.decides("P", `‖ talk-1 is paused`)
	win.sees(`P resume`)
	win.decides("P", `^› ▸ talk-1 +running`)
	win.types("?")
	win.sees(`^Move$`)
	win.types("q")
	win.sees(`^› ▸ talk-1`)
	win.types("/nothing")
	win.sees(`no run matches the filter`)
	win.types("Escape")
	win.sees(`^› ▸ talk-1|^  ▸ talk-1`)
	win.types("j", "k", "a")
	win.sees(`^End talk-1 for good\? y yes`)
	win.types("n")
	win.sees(`nothing was done`)
	win.types("a")
	win.sees(`^End talk-1 for good\?`)
	win.decides("y", `– talk-1 +aborted`)
	win.types("C-c")
	win.left()
	facts := w.factsOf()
	if !has(facts, func(f engine.RunPaused) bool { return byTerminal(f.By) }) || !has(facts, func(f engine.RunResumed) bool { return byTerminal(f.By) }) ||
		!has(facts, func(f engine.RunEnded) bool { return f.Phase == engine.RunAborted && byTerminal(f.By) }) {
		t.Error("not all was told by facts")
	}
}

// TestTopVetoes: a veto with words in an open window, and one at a gate whose run another has just passed.
func TestTopVetoes(t *testing.T) {
	w, sluice, _ := played(t)
	w.start(sluice, "n")
	win := w.inTerminal(80, 24, sluice+" top"+andStty)
	win.sees(`^› ‖ VG a look of n-1 goes on in 9m\d\ds unless you veto · score 80`)
	win.sees(`^v veto`)
	win.decides("v", `^veto VG #1 of \S+: what is wrong\?`)
	win.looks()
	win.types("the tests miss it")
	win.decides("Enter", `‖ VG a look of n-1 .* failed 1/9`)
	if !has(w.factsOf(), func(f engine.RoundFailed) bool {
		return f.Gate == "VG" && f.N == 1 && f.Feedback == "the tests miss it" && byTerminal(f.By)
	}) {
		t.Error("no fact tells the veto")
	}
	win.types("q")
	win.left()
}

// TestTopTellsTheSecond: if two people decide at once, one counts and the other is informed.
func TestTopTellsTheSecond(t *testing.T) {
	w, sluice, _ := played(t)
	w.start(sluice, "w")
	one := w.inTerminal(80, 24, sluice+" top"+andStty)
	two := w.inTerminal(80, 24, sluice+" top"+andStty)
	for _, win := range []*terminalWindow{one, two} {
		win.sees(`^› \? G review of w-1 asks you`)
		win.types("Enter")
		win.sees(`^\+hello`)
	}
	one.looks()
	for _, win := range []*terminalWindow{one, two} {
		win.types("p")
		win.sees(`^Enter passes it`)
	}
	one.types("Enter")
	two.types("Enter")
	for _, win := range []*terminalWindow{one, two} { // the second learns of the pass at its key press, or before
		win.sees(`^pass of G: taken in|G was decided already|pass of G did not count|G is passed by now`)
	}
	var both string
	eventually(t, "one pass is taken in", func() bool {
		both = one.tmux("capture-pane", "-p") + two.tmux("capture-pane", "-p")
		return strings.Contains(both, "pass of G: taken in")
	})
	passed := 0
	for _, f := range w.factsOf() {
		if x, ok := f.(engine.RoundPassed); ok && x.Gate == "G" && byTerminal(x.By) {
			passed++
		}
	}
	if passed != 1 {
		t.Errorf("passed %d times", passed)
	}
	if strings.Count(both, "pass of G: taken in") != 1 {
		t.Errorf("not one was taken in and one told:\n%s", both)
	}
}

// TestTopOutlivesTheDaemon: a killed daemon is reported, nothing is decided meanwhile, and the
// screen continues with the next.
func TestTopOutlivesTheDaemon(t *testing.T) {
	w, sluice, stop := played(t)
	w.start(sluice, "w")
	win := w.inTerminal(80, 24, sluice+" top"+andStty)
	win.sees(`^› \? G review of w-1 asks you`)
	stop()
	win.sees(`^! work: no answer for \d+s, trying again`)
	win.sees(`^! no daemon answers: .sluice daemon. starts one`)
	win.types("p")
	win.sees(`nobody serves work now, so nothing was done`)
	w.serve(sluice)
	for win.sees(`^sluice \? 1 for you`); strings.Contains(win.tmux("capture-pane", "-p"), "no answer for"); {
		time.Sleep(pollEvery)
	}
	win.passes(`^Pass G`, `^. ✓ w-1 +completed`)
	win.types("q")
	win.left()
}

// TestTopLooksOnly: a repo that nobody serves is shown by its journal, and says how to go on.
func TestTopLooksOnly(t *testing.T) {
	w, sluice, stop := played(t)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	stop()
	win := w.inTerminal(80, 24, sluice+" top"+andStty)
	win.sees(`^! work: nobody serves it, so you can only look: run .sluice daemon.`)
	win.sees(`^› \? G review of w-1 asks you`)
	win.types("Enter")
	win.sees(`^\+hello`)
	win.types("p")
	win.sees(`nobody serves work now, so nothing was done`)
	win.types("Escape")
	w.serve(sluice) // it was not in its way
	for win.sees(`^› \? G review of w-1`); strings.Contains(win.tmux("capture-pane", "-p"), "only look"); {
		time.Sleep(pollEvery)
	}
	win.types("q")
	win.left()
}

// TestTopWithout: without a terminal, and without a repo and a daemon, it says what to do.
func TestTopWithout(t *testing.T) {
	w := newWorld(t, false)
	if code, _, errs := w.sluice("top"); code != fault.ExitUsage || !strings.Contains(errs, "needs a terminal") || !strings.Contains(errs, "sluice status") {
		t.Errorf("%d %q", code, errs)
	}
	win := w.inTerminal(80, 24, filepath.Join(binDir(t), "sluice")+" top")
	win.sees("no daemon runs now, and ")
	win.sees("`sluice daemon` serves the repos")
	win.sees("^rc=1")
}

// TestTopFits: at every size nothing is wider than the terminal, and what matters is there.
func TestTopFits(t *testing.T) {
	w, sluice, _ := played(t)
	w.start(sluice, "w")
	w.start(sluice, "n")
	win := w.inTerminal(80, 24, sluice+" top"+andStty)
	win.sees(`‖ VG a look`)
	for _, size := range [][2]string{{"40", "10"}, {"120", "40"}, {"80", "24"}, {"40", "10"}} {
		win.tmux("resize-window", "-x", size[0], "-y", size[1])
		win.sees(`^. \? G (review )?of w-1 asks you`)
		win.sees(`^p pass · f fail .*(\n.*)?q quit$`) // in two lines at 80 columns
	}
	win.sees(strings.Join([]string{`\Asluice \? 2 for you · 2 live of 2 runs`, `waits for you \(2\)`, `› \? G of w-1 asks you · \d+s.*`,
		`  ‖ VG of n-1 goes on in 9m\d+s.*`, `work · 2 live, 0 ended · trust file · /.*`}, `\n`))
}

// TestTopLeavesAtASignal: a SIGTERM and a terminal that is closed end it, and the first leaves the terminal as it was.
func TestTopLeavesAtASignal(t *testing.T) {
	w, sluice, _ := played(t)
	pid := filepath.Join(filepath.Dir(w.dir), "pid")
	win := w.inTerminal(80, 24, "(sh -c 'echo $$ > "+pid+"; exec "+sluice+" top')"+andStty)
	win.sees(`^work · 0 live`)
	raw, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err := syscall.Kill(n, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	win.left()
}

// TestTopSigns: at a gate that wants a signature the key's passphrase is asked for in the terminal, and the screen goes on.
func TestTopSigns(t *testing.T) {
	needsKeygen(t)
	w, sluice, _ := played(t)
	w.write(".workflow/specs/s.yaml", `workflow: {id: s, name: Signed}
steps:
  - {id: S, run: "echo hello >> out.txt", gate: SG}
gates:
  - {id: SG, reviewer: {level: human, approvers: [ann]}, on_pass: {next_step: DONE}}
`)
	key := filepath.Join(filepath.Dir(w.dir), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-C", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if code, out := w.binary(sluice, "keys", "add", key+".pub", "--name", "ann"); code != 0 {
		t.Fatal(out)
	}
	w.start(sluice, "s")
	win := w.inTerminal(80, 24, sluice+" top"+andStty)
	win.sees(`^› \? SG of s-1 asks you`)
	win.passes(`^Pass SG`, `Enter passphrase:\s*$`)
	win.types("wrong", "Enter")
	win.sees(`pass of SG was not signed`)
	win.sees(`^› \? SG of s-1 asks you`)
	win.passes(`^Pass SG`, `(?s)Enter passphrase:.*Enter passphrase:\s*$`)
	win.types("open sesame", "Enter")
	win.sees(`^. ✓ s-1 +completed`)
	win.types("q")
	win.left()
	if !has(w.factsOf(), func(f engine.RoundPassed) bool {
		return f.Gate == "SG" && f.By != nil && f.By.Who == "ann" && f.By.Trust == engine.TrustSigned && strings.HasPrefix(f.By.Via, "terminal")
	}) {
		t.Error("no fact tells the signed pass")
	}
}

// TestTopWithManyRuns: with 100 live runs (SLUICE_TOP_RUNS=1000: as many) all can be reached, a change is shown at once, and
// the screen costs next to nothing while nothing changes.
func TestTopWithManyRuns(t *testing.T) {
	runs := 100
	if n, err := strconv.Atoi(os.Getenv("SLUICE_TOP_RUNS")); err == nil {
		runs = n
	}
	w, sluice, _ := played(t)
	source := `workflow: {id: many, name: Many}
steps:
  - {id: M, agent: {type: x, launch: interactive, prompt: "do it"}, next_step: DONE}
`
	w.write(".workflow/specs/many.yaml", source)
	w.start(sluice, "w")
	w.until("G for a person", "status")
	w.request(source, runs-1)
	pid := filepath.Join(filepath.Dir(w.dir), "pid")
	began := time.Now()
	win := w.inTerminal(80, 24, "(sh -c 'echo $$ > "+pid+"; exec "+sluice+" top')"+andStty)
	win.sees(fmt.Sprintf(`^sluice \? 1 for you · %d live of %d runs`, runs, runs))
	t.Logf("from the start until %d runs are on the screen: %s", runs, time.Since(began).Round(time.Millisecond))
	win.sees(`^› \? G review of w-1 asks you`)
	win.types("G")
	win.sees(`^› ▸ w-1 +running`)
	win.types("Space")
	win.sees(`^      \? G review`)
	win.types("/", fmt.Sprintf("many-%d", runs-2), "Enter")
	win.sees(fmt.Sprintf(`▸ many-%d +running`, runs-2))
	for i, said := range []string{"paused", "running", "paused"} {
		win.types("g", "Tab", "G")
		win.looks()
		began, before := time.Now(), ticksOf(t, pid)
		win.types("P")
		win.sees(fmt.Sprintf(`[▸‖] many-%d +%s`, runs-2, said))
		t.Logf("change %d is on the screen after %s, and cost the screen %s of processor time", i+1, time.Since(began).Round(time.Millisecond), ticksOf(t, pid)-before)
	}
	began, before := time.Now(), ticksOf(t, pid)
	for time.Since(began) < 3*time.Second {
		time.Sleep(pollEvery)
	}
	used := ticksOf(t, pid) - before
	t.Logf("at rest, with %d live runs: %s of processor time in %s", runs, used, time.Since(began).Round(time.Millisecond))
	if used > time.Since(began)/4 {
		t.Errorf("at rest it uses %s in %s", used, time.Since(began))
	}
	win.types("q")
	win.left()
}

// request has so many runs of a spec started side by side.
func (w *playground) request(source string, runs int) {
	w.t.Helper()
	const askers = 8
	var wg sync.WaitGroup
	for i := range askers {
		wg.Go(func() {
			c := daemon.NewClient(w.stateDir())
			defer c.Close()
			for n := i; n < runs; n += askers {
				if _, err := c.Do(w.t.Context(), engine.RunRequested{Workflow: "many", Source: source, Parallel: true}, "command"); err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// ticksOf is the processor time that the process has used whose id is in a file.
func ticksOf(t *testing.T, file string) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(raw)) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on Linux
}

// TestTopLeavesDecisionsToPeople: in the environment of an attempt one may look, and decides nothing.
func TestTopLeavesDecisionsToPeople(t *testing.T) {
	w, sluice, _ := played(t)
	w.start(sluice, "w")
	win := w.inTerminal(80, 24, "SLUICE_TOKEN=x "+sluice+" top"+andStty)
	win.sees(`^› \? G review of w-1 asks you`)
	win.passes(`^Pass G`, `pass of G was not accepted: this is the environment of an attempt`)
	win.types("q")
	win.left()
	if has(w.factsOf(), func(engine.RoundPassed) bool { return true }) {
		t.Error("it was passed")
	}
}
