//go:build linux

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sluice/daemon"
)

// The tests of watch*_test.go do to a real daemon what the world does to an inbox. A step is
// offered, somebody changes the folder it waits for, the step's signal is written, and the run must
// come to its end. If the daemon cannot know the folder's contents, its status must say `degraded`
// and nothing may be concluded. watcher/FAILURES.md lists what can go wrong, and the test of each.

// watchSpec has a step that is offered to somebody, and one that shows that it was passed.
const watchSpec = `workflow: {id: w}
steps:
  - {id: X-1, agent: {type: a, launch: interactive, prompt: by hand}, signal: {type: sentinel_file}, next_step: X-2}
  - {id: X-2, run: echo "$SLUICE_RUN" >>../done, next_step: DONE}
`

// watchSettings make the daemon wait for a growing file.
const watchSettings = `notify: {desktop: false}
rescan: 300ms
settle: 150ms
`

const sentinel = "X-1-done.json"

// inboxBox is a sandbox whose inbox something happens to.
type inboxBox struct{ *sandbox }

// newInbox makes one, with a daemon that serves it.
func newInbox(t *testing.T, settings string) *inboxBox {
	t.Helper()
	w := &inboxBox{newSandbox(t, settings)}
	w.put("repo/.workflow/specs/w.yaml", watchSpec)
	w.commit()
	w.do(w.bin, "watch", "add")
	return w
}

// served starts the daemon and waits until it serves.
func (w *inboxBox) served() {
	w.t.Helper()
	w.boot()
	eventually(w.t, "the daemon serves", func() bool {
		_, ok := w.status()
		return ok
	})
}

// inbox is a path in the signals folder.
func (w *inboxBox) inbox(name ...string) string {
	return filepath.Join(append([]string{w.repo, ".workflow", "signals"}, name...)...)
}

// offered starts a run and waits until its step is offered.
func (w *inboxBox) offered() (run string) {
	w.t.Helper()
	w.do(w.bin, "start", "w")
	eventually(w.t, "the step is offered", func() bool {
		r, ok := w.run()
		run = r.ID
		return ok && r.Live() && len(r.Waits) > 0 && r.Waits[0].Kind == "offer"
	})
	return run
}

// run returns the newest run.
func (w *inboxBox) run() (daemon.RunStatus, bool) {
	st, ok := w.status()
	if !ok || len(st.Runs) == 0 {
		return daemon.RunStatus{}, false
	}
	return st.Runs[len(st.Runs)-1], true
}

// passes waits until the run has come to its end, by one signal, and none has been refused.
func (w *inboxBox) passes(what, run string) {
	w.t.Helper()
	w.ends(what, run)
	if why, err := os.ReadFile(w.inbox("rejected", sentinel+".why")); err == nil {
		w.t.Errorf("%s: refused: %s", what, why)
	}
}

// ends waits until the run has come to its end, by one signal.
func (w *inboxBox) ends(what, run string) {
	w.t.Helper()
	defer func() {
		if why, err := os.ReadFile(w.inbox("rejected", sentinel+".why")); err == nil && w.t.Failed() {
			w.t.Logf("refused: %s", why)
		}
	}()
	eventually(w.t, what+": the run ends", func() bool {
		r, ok := w.run()
		if ok && r.ID == run && !r.Live() && r.Phase != "completed" {
			w.t.Fatalf("%s: %s is %s: %s", what, run, r.Phase, r.EndWhy)
		}
		return ok && r.ID == run && r.Phase == "completed"
	})
	data, err := os.ReadFile(filepath.Join(w.work, "done"))
	if err != nil || strings.Count(string(data), run+"\n") != 1 {
		w.t.Errorf("%s: the step after the signal ran %d times: %v", what, strings.Count(string(data), run+"\n"), err)
	}
}

// degraded waits until the status says that it is, and why; every want must be in one note.
func (w *inboxBox) degraded(want ...string) {
	w.t.Helper()
	out := ""
	defer func() {
		if w.t.Failed() {
			w.t.Log(out)
		}
	}()
	eventually(w.t, fmt.Sprintf("degraded: %q", want), func() bool {
		out, _ = w.try(w.bin, "status")
		for line := range strings.SplitSeq(out, "\n") {
			if !strings.Contains(line, "degraded") {
				continue
			}
			all := true
			for _, s := range want {
				all = all && strings.Contains(line, s)
			}
			if all {
				return true
			}
		}
		return false
	})
}

// well waits until nothing is degraded.
func (w *inboxBox) well() {
	w.t.Helper()
	out := ""
	eventually(w.t, "nothing is degraded", func() bool {
		var err error
		out, err = w.try(w.bin, "status")
		return err == nil && !strings.Contains(out, "degraded")
	})
}

// drop writes a file into the inbox whole.
func (w *inboxBox) drop(name, text string) {
	w.t.Helper()
	w.put("repo/.workflow/signals/."+"dropped", text)
	w.must(os.Rename(w.inbox(".dropped"), w.inbox(name)))
}

func (w *inboxBox) must(errs ...error) {
	w.t.Helper()
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// rejected returns how many files are in rejected/, without their reasons.
func (w *inboxBox) rejected() int {
	entries, err := os.ReadDir(w.inbox("rejected"))
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".why") && !strings.HasPrefix(e.Name(), ".") { // a reason is written as a dotfile
			n++
		}
	}
	return n
}

// peakMB is the most memory that the daemon had.
func (w *inboxBox) peakMB() int { return peakMB(w.t, w.last.Process.Pid) }

// peakMB is the most memory that the process had.
func peakMB(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// inNamespace runs the test once more in a namespace of its own, made by unshare with args after
// script: there it may mount and set limits without touching the machine. It reports whether this
// is that run.
func inNamespace(t *testing.T, script string, args ...string) bool {
	t.Helper()
	const mark = "SLUICE_TEST_NAMESPACE"
	if bin := os.Getenv(mark); bin != "" {
		theBinary.once.Do(func() { // as the run outside has built it
			if theBinary.dir, theBinary.err = os.MkdirTemp("", "sluice-bin-"); theBinary.err == nil {
				copyFile(t, filepath.Join(bin, "sluice"), filepath.Join(theBinary.dir, "sluice"), 0o755)
			}
		})
		return true
	}
	if err := exec.Command("unshare", append(args, "true")...).Run(); err != nil {
		t.Skipf("kernel: no namespace to be had (unshare %s): %v", strings.Join(args, " "), err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(args, "sh", "-c", script+` && exec "$0" "$@"`, exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd := exec.Command("unshare", argv...)
	cmd.Env = append(os.Environ(), mark+"="+binDir(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.SplitSeq(string(out), "\n") {
		if i := strings.Index(line, "kernel: "); i >= 0 && strings.Contains(string(out), "--- SKIP") {
			t.Skip(line[i:])
		}
	}
	t.Logf("%s", out)
	return false
}
