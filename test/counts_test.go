//go:build linux

package test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the daemon costs, in things that do not depend on the machine's speed. A bound is what is there today, and some
// room for what threads do in another order.
const (
	countSignals    = 5   // the one with the fewest calls counts: meanwhile the daemon may do something else
	countTries      = 5   // times so many, until that one has no more than it may
	countSteps      = 20  // of a chain
	signalSyncsMost = 1   // the decision's
	signalCallsMost = 46  // from the event to the launch's order; two compare the settings files, which no event may have reported
	passCallsMost   = 60  // the same from a person's pass
	stepSyncsMost   = 1.2 // of a step in a chain
	stepCallsMost   = 40  // of the step that has the fewest
	stepFilesMost   = 1   // created for such a step: its folder
	heldCallsMost   = 440 // of such a step in a sandbox
	heldFilesMost   = 5
	gitSteps        = 6  // of a chain whose steps write a file
	stepGitsMost    = 19 // of such a step and its gate's command
	idleRepos       = 20
	idleWindow      = 10 * time.Second
	idleWindows     = 9
	idleWakeupsMost = 0.6 // a second; two looks in ten seconds, and a thread or two that something else still wakes
	idleMiBMost     = 9.5 // of anonymous memory
	idleFileMiBMost = 8   // of the program's file; a start maps 25
)

// call is a system call of a trace, as strace prints it.
type call struct{ name, text string }

var callLine = regexp.MustCompile(`^\d+ +(\w+)\((.*)`)

// noWork are the calls by which the runtime keeps its threads and its memory: they follow the load.
func noWork(name string) bool {
	switch name {
	case "futex", "nanosleep", "epoll_pwait", "sched_yield", "madvise", "tgkill", "rt_sigreturn", "getpid", "restart_syscall",
		"mmap", "munmap", "sched_getaffinity", "clone", "clone3", "sigaltstack", "gettid", "rt_sigprocmask", "rseq",
		"set_robust_list", "rt_sigaction":
		return true
	}
	return false
}

func callsOf(t *testing.T, trace string) (out []call) {
	t.Helper()
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if m := callLine.FindStringSubmatch(line); m != nil && !noWork(m[1]) {
			out = append(out, call{m[1], m[2]})
		} else if strings.Contains(line, "A-done.json") || strings.Contains(line, "G-pass.json") {
			out = append(out, call{"", line}) // the end of a call that waited for the event
		}
	}
	return out
}

// made is how many calls there are, without the ends of others, the calls by which threads wake each other, and those that
// read events: how many events one read returns follows the load.
func made(calls []call) (n int) {
	for _, c := range calls {
		file, _, _ := strings.Cut(c.text, ",")
		if c.name != "" && !strings.Contains(file, "anon_inode:[eventfd]") && !strings.Contains(file, "anon_inode:inotify") {
			n++
		}
	}
	return n
}

func syncsIn(calls []call) (n int) {
	for _, c := range calls {
		if strings.HasSuffix(c.name, "sync") {
			n++
		}
	}
	return n
}

// filesOf returns how many files and folders a run has created that are there after it: each takes a tenth of a
// millisecond or more where many were removed lately (ext4 looks past them for a free number).
func (w *sandbox) filesOf(run string) int {
	w.t.Helper()
	files := map[uint64]bool{}
	for _, dir := range []string{filepath.Join(w.repo, ".workflow/runs", run), filepath.Join(w.state(), "launches", run)} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				files[info.Sys().(*syscall.Stat_t).Ino] = true
			}
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return len(files)
}

// traced starts the daemon under strace.
func (w *sandbox) traced(trace string) {
	w.t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		w.t.Skip("needs: strace (apt-get install strace)")
	}
	w.boot("strace", "-f", "-qq", "-y", "-s", "120", "-b", "execve", "-o", trace)
	eventually(w.t, "the daemon serves", func() bool { _, ok := w.status(); return ok })
}

// untraced ends it: the trace is whole.
func (w *sandbox) untraced() {
	w.t.Helper()
	for _, pid := range childrenOf(w.last.Process.Pid) { // strace would let it go
		if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
			w.t.Fatal(err)
		}
	}
	_ = w.last.Wait() // it was told to end
	w.last = nil
}

// isOrder reports whether a call orders a launch.
func isOrder(c call, run string) bool {
	return c.name == "write" && strings.Contains(c.text, `{\"Key\":\"`+run)
}

// TestCountsOfASignal: not beside others: what waits is looked at more often.
func TestCountsOfASignal(t *testing.T) {
	w := newSandbox(t, "notify: {desktop: false}\nsandbox: {mode: off}\n")
	w.put("repo/.workflow/specs/sent.yaml", `workflow: {id: sent}
steps:
  - {id: A, agent: {type: worker, launch: subagent}, gate: G}
  - {id: B, run: [echo, done], next_step: DONE}
gates:
  - {id: G, reviewer: {level: auto, from: step}, on_pass: {next_step: B}}
`)
	w.put("repo/.workflow/specs/asked.yaml", `workflow: {id: asked}
steps:
  - {id: A, run: ["true"], gate: G}
  - {id: B, run: [echo, done], next_step: DONE}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: B}}
`)
	w.commit()
	w.do(w.bin, "watch", "add")
	each := func(workflow, waits, file, text string, first int) {
		for n := range countSignals {
			run := fmt.Sprint(workflow, "-", first+n)
			w.do(w.bin, "start", workflow)
			inbox := filepath.Join(w.repo, ".workflow/signals", run)
			eventually(t, run+" waits", func() bool { return strings.Contains(w.do(w.bin, waits), run) })
			w.do(w.bin, "version") // meanwhile the daemon ends what it does for the client before
			err := os.MkdirAll(inbox, 0o755)
			if err == nil {
				err = os.WriteFile(filepath.Join(w.work, "new"), []byte(text), 0o644)
			}
			if err == nil {
				err = os.Rename(filepath.Join(w.work, "new"), filepath.Join(inbox, file))
			}
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the next step has run", func() bool { // without a question to the daemon, which would count
				_, err := os.Stat(filepath.Join(w.repo, ".workflow/runs", run, "B.1/exit.json"))
				return err == nil
			})
			w.finished(run)
		}
	}
	over := []string{"not counted"}
	for first := 1; len(over) > 0 && first <= countTries*countSignals; first += countSignals {
		trace := filepath.Join(w.work, fmt.Sprint("trace-", first))
		w.traced(trace)
		each("sent", "next", "A-done.json", `{"step": "A", "status": "done"}`, first)
		each("asked", "inbox", "G-pass.json", `{"text": "good"}`, first)
		w.untraced()
		calls := callsOf(t, trace)
		over = append(fewest(t, calls, "sent", "A-done.json", first, signalCallsMost),
			fewest(t, calls, "asked", "G-pass.json", first, passCallsMost)...)
	}
	for _, what := range over {
		t.Error(what)
	}
}

// fewest counts the calls from a workflow's signal to the order of the launch that it leads to, of the run with the fewest,
// and returns which limit they exceed. A busy machine adds calls to some runs and never removes one.
func fewest(t *testing.T, calls []call, workflow, file string, first, callsMost int) (over []string) {
	t.Helper()
	from, run := -1, first
	callsLeast, syncsLeast := 1<<20, 1<<20
	for i, c := range calls {
		switch {
		case from < 0 && strings.Contains(c.text, `\200\0\0\0`) && strings.Contains(c.text, file): // IN_MOVED_TO
			from = i
		case from >= 0 && isOrder(c, fmt.Sprintf("%s-%d/B", workflow, run)):
			way := calls[from:i]
			t.Logf("%s: %d calls, %d syncs", c.text[:min(40, len(c.text))], made(way), syncsIn(way))
			callsLeast, syncsLeast = min(callsLeast, made(way)), min(syncsLeast, syncsIn(way))
			from, run = -1, run+1
		}
	}
	if run != first+countSignals {
		t.Fatalf("%s: the ways of %d signals are in the trace, want %d", workflow, run-first, countSignals)
	}
	if callsLeast > callsMost || syncsLeast > signalSyncsMost {
		over = append(over, fmt.Sprintf("%s: from a signal to the launch's order: %d calls and %d syncs, at most %d and %d", workflow,
			callsLeast, syncsLeast, callsMost, signalSyncsMost))
	}
	return over
}

func TestCountsOfAStep(t *testing.T) { // not beside others, as above
	countsOfAStep(newSandbox(t, "notify: {desktop: false}\nsandbox: {mode: off}\n"), stepCallsMost, stepFilesMost)
}

// TestCountsOfAHeldStep: what the daemon does for a launch in a sandbox, before it and while it works.
func TestCountsOfAHeldStep(t *testing.T) {
	countsOfAStep(newCaged(t, "sandbox: {mode: on}\nroles: {\"*\": {agent: claude, network: none}}\n"), heldCallsMost, heldFilesMost)
}

func countsOfAStep(w *sandbox, callsMost, filesMost int) {
	t := w.t
	var steps, gates strings.Builder
	for i := range countSteps {
		next := fmt.Sprint("S", i+1)
		if i == countSteps-1 {
			next = "DONE"
		}
		fmt.Fprintf(&steps, "  - {id: S%d, run: [\"true\"], gate: G%d}\n", i, i)
		fmt.Fprintf(&gates, "  - {id: G%d, reviewer: {level: auto, from: step}, on_pass: {next_step: %s}}\n", i, next)
	}
	w.put("repo/.workflow/specs/chain.yaml", "workflow: {id: chain}\nsteps:\n"+steps.String()+"gates:\n"+gates.String())
	w.commit()
	w.do(w.bin, "watch", "add")
	least, syncs, files := 0, 0.0, 0
	for try := range countTries { // a busy machine adds calls, and never removes one
		least, syncs, files = w.countsOfAChain(try)
		if least <= callsMost && syncs <= stepSyncsMost {
			break
		}
	}
	if least > callsMost || syncs > stepSyncsMost {
		t.Errorf("a step of a chain: %d calls and %.2f syncs, at most %d and %.1f", least, syncs, callsMost, stepSyncsMost)
	}
	if files > filesMost {
		t.Errorf("a step of a chain creates %d files and folders, at most %d", files, filesMost)
	}
}

// countsOfAChain traces a few runs of a chain, and returns the calls of the step that has the fewest, the syncs of a step,
// and the files that each creates.
func (w *sandbox) countsOfAChain(try int) (least int, syncs float64, files int) {
	t := w.t
	trace := filepath.Join(w.work, fmt.Sprint("trace-", try))
	w.traced(trace)
	const runs, first = 3, 3 // what is made once for a run is there after its first steps
	name := func(n int) string { return fmt.Sprint("chain-", try*runs+n+1) }
	for n := range runs {
		w.do(w.bin, "start", "chain")
		w.finished(name(n))
	}
	w.untraced()
	calls := callsOf(t, trace)
	var each []int
	for n := range runs {
		var orders []int
		for i, c := range calls {
			if isOrder(c, name(n)+"/S") {
				orders = append(orders, i)
			}
		}
		if len(orders) != countSteps {
			t.Fatalf("%d orders of launches, want %d", len(orders), countSteps)
		}
		for i := first; i < countSteps-1; i++ {
			each = append(each, made(calls[orders[i]:orders[i+1]]))
		}
		syncs += float64(syncsIn(calls[orders[first]:orders[countSteps-1]])) / float64(countSteps-1-first) / runs
	}
	slices.Sort(each)
	files = w.filesOf(name(runs-1)) / countSteps
	t.Logf("%d calls (%v), %.2f syncs, %d files", each[0], each, syncs, files)
	return each[0], syncs, files
}

// TestGitsOfAStep: taking a step's work, judging it and moving its branch starts few gits.
func TestGitsOfAStep(t *testing.T) {
	w := newCaged(t, "")
	var steps, gates strings.Builder
	for i := range gitSteps {
		next := fmt.Sprint("S", i+1)
		if i == gitSteps-1 {
			next = "DONE"
		}
		fmt.Fprintf(&steps, "  - {id: S%d, run: \"echo > %d.txt\", outputs: [%d.txt], gate: G%d}\n", i, i, i, i)
		fmt.Fprintf(&gates, "  - {id: G%d, reviewer: {level: auto, run: \"true\"}, on_pass: {next_step: %s}}\n", i, next)
	}
	w.put("repo/.workflow/specs/work.yaml", "workflow: {id: work, workspace: run}\nsteps:\n"+steps.String()+"gates:\n"+
		gates.String())
	w.commit()
	w.do(w.bin, "watch", "add")
	trace := filepath.Join(w.work, "trace")
	w.traced(trace)
	w.do(w.bin, "start", "work")
	w.finished("work-1")
	w.untraced()
	each := []int{0} // before the first launch, of the first step, …
	for _, c := range callsOf(t, trace) {
		switch last := len(each) - 1; {
		case isOrder(c, fmt.Sprintf("work-1/S%d", last)):
			each = append(each, 0)
		case c.name == "execve" && strings.Contains(c.text, `/git", [`):
			each[last]++
		}
	}
	if len(each) != gitSteps+1 {
		t.Fatalf("the orders of %d launches are in the trace, want %d", len(each)-1, gitSteps)
	}
	t.Logf("gits before, of and after the steps: %v", each)
	if most := slices.Max(each[2:gitSteps]); most > stepGitsMost {
		t.Errorf("a step of a chain starts %d gits, at most %d", most, stepGitsMost)
	}
}

// TestCountsOfIdle: repos that wait for people cost next to nothing.
func TestCountsOfIdle(t *testing.T) {
	t.Parallel()
	w := newSandbox(t, "notify: {desktop: false}\nsandbox: {mode: off}\n")
	var repos []string
	for i := range idleRepos {
		name := fmt.Sprint("r", i)
		w.put(name+"/.workflow/specs/ask.yaml", "workflow: {id: ask}\nsteps:\n  - {id: A, run: [\"true\"], gate: G}\ngates:\n  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}\n")
		w.repo = filepath.Join(w.work, name)
		repos = append(repos, w.repo)
		w.commit()
		w.do(w.bin, "watch", "add")
	}
	w.boot()
	pid := w.last.Process.Pid
	for _, w.repo = range repos {
		eventually(t, "the daemon serves", func() bool { _, err := w.try(w.bin, "start", "ask"); return err == nil })
	}
	eventually(t, "all wait for a person", func() bool { return strings.Count(w.do(w.bin, "inbox"), "ask-1") >= idleRepos })
	eventually(t, "the hosts of launches are gone", func() bool { return len(childrenOf(pid)) == 0 })
	wakeups := func() (n int) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, f := range files {
			n += statusOf(t, f, "voluntary_ctxt_switches")
		}
		return n
	}
	status := fmt.Sprintf("/proc/%d/status", pid)
	rate, anon, file := 1e9, 1e9, 1e9
	enough := func() bool { return rate <= idleWakeupsMost && anon <= idleMiBMost && file <= idleFileMiBMost }
	for range idleWindows { // what was left to do is over in one of them, and its memory given back
		before := wakeups()
		time.Sleep(idleWindow)
		rate = min(rate, float64(wakeups()-before)/idleWindow.Seconds())
		anon = min(anon, float64(statusOf(t, status, "RssAnon"))/1024)
		file = min(file, float64(statusOf(t, status, "RssFile"))/1024)
		if enough() {
			break
		}
	}
	t.Logf("%.2f wake-ups a second, %.1f MiB and %.1f of the program", rate, anon, file)
	if !enough() {
		t.Errorf("%d idle repos: %.2f wake-ups a second, %.1f MiB and %.1f of the program; at most %.1f, %.1f and %d", idleRepos,
			rate, anon, file, idleWakeupsMost, idleMiBMost, idleFileMiBMost)
	}
}

// statusOf reads a number of /proc/PID/status.
func statusOf(t *testing.T, file, key string) int {
	t.Helper()
	text, _ := os.ReadFile(file) // a thread may have ended
	for line := range bytes.Lines(text) {
		if value, ok := strings.CutPrefix(string(line), key+":"); ok {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}
