//go:build linux

package test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/conform"
)

// newDevCycle creates document 002's workflow in a repo that a daemon serves; its usual stand-ins
// play it, or script.
func newDevCycle(t *testing.T, notify, script string) *sandbox {
	t.Helper()
	w := newSandbox(t, "notify: {desktop: false"+notify+"}\nsettle: 200ms\nrescan: 500ms\nkill_after: 2s\n")
	w.do("git", "init", "-q", "-b", "main")
	w.do(w.bin, "init", "--template", "dev-cycle", "--writer", "claude", "--reviewer", "codex")
	if script != "" {
		w.put("repo/.workflow/stubs/dev-cycle.yaml", script)
	}
	w.do("git", "add", "-A")
	w.do("git", "commit", "-q", "-m", "start")
	w.up()
	return w
}

// found returns a run of the daemon's, and whether it is there.
func (w *sandbox) found(id string) (daemon.RunStatus, bool) {
	st, _ := w.status()
	for _, r := range st.Runs {
		if r.ID == id {
			return r, true
		}
	}
	return daemon.RunStatus{}, false
}

// finished waits until a run has ended.
func (w *sandbox) finished(id string) (last daemon.RunStatus) {
	w.t.Helper()
	eventually(w.t, id+" has ended", func() bool {
		r, ok := w.found(id)
		last = r
		return ok && !r.Live()
	})
	return last
}

// TestDevCycleNotices: a person is told of each phase by a real webhook where the setting says so, and else of the end alone.
func TestDevCycleNotices(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "002 notifyOnPhaseComplete", "each phase that ends is told to a webhook once; unset, the run's end alone is")
	told := &hooks{}
	server := httptest.NewServer(told)
	t.Cleanup(server.Close)
	w := newDevCycle(t, fmt.Sprintf(", webhook: {url: %q}", server.URL+"/"), "")
	w.do(w.bin, "start", "dev-cycle", "--stub", "--var", "task=dates")
	w.completed(w.finished("dev-cycle-1"))
	eventually(t, "its end is told", func() bool { return len(told.all()) == 1 })
	w.do(w.bin, "start", "dev-cycle", "--stub", "--var", "task=dates", "--var", "notify_on_phase_complete=true")
	w.completed(w.finished("dev-cycle-2"))
	wants := []string{
		"plan review: fail → planning. Say how one sees that the errors are right.", "planning has passed",
		"code review: rejected → execution. The error of a 13th month has no test.", "execution has passed", "finalize has passed",
	}
	eventually(t, "its phases and its end are told", func() bool { return len(told.all()) >= 1+len(wants)+1 })
	for _, want := range wants {
		n := 0
		for _, got := range told.all()[1:] {
			if strings.Contains(fmt.Sprint(got["title"], "\n", got["body"]), want) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q was told %d times: %v", want, n, told.all())
		}
	}
}

// slowExecution has the second task's stand-in work until it is told to end.
const slowExecution = `steps:
  planning:
    write:
      plan.md: "Three tasks.\n"
      tasks.json: |
        {"schema_version": 1, "tasks": [
          {"id": "T1", "title": "one", "priority": 1, "status": "todo"},
          {"id": "T2", "title": "two", "priority": 1, "status": "todo", "depends_on": ["T1"]},
          {"id": "T3", "title": "three", "priority": 1, "status": "todo", "depends_on": ["T2"]}]}
  T2/execution: {takes: 4s, write: {two.txt: "two\n"}}
`

// TestDevCycleGoesOn: paused in the middle of the execution phase it starts no further task, and resumed it goes on; and after a
// kill -9 of the daemon there, no task is lost or done twice.
func TestDevCycleGoesOn(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "002 execution.resume", "paused and resumed, and after a kill -9 of the daemon, in the middle of the phase")
	w := newDevCycle(t, "", slowExecution)
	at := func(run string) {
		t.Helper()
		eventually(t, "task T2 is worked at", func() bool {
			return strings.Contains(w.do(w.bin, "ls", "--all"), run+".T2.1")
		})
	}
	w.do(w.bin, "start", "dev-cycle", "--stub", "--var", "task=x")
	at("dev-cycle-1")
	w.do(w.bin, "pause", "dev-cycle-1")
	eventually(t, "T2 has ended", func() bool {
		_, err := os.Stat(filepath.Join(w.repo, ".workflow/worktrees/dev-cycle-1/two.txt"))
		return err == nil
	})
	eventually(t, "it rests", func() bool {
		r, _ := w.found("dev-cycle-1.T2.1")
		return r.ID == "" || !r.Live()
	})
	if r, _ := w.found("dev-cycle-1"); r.Paused == "" {
		t.Errorf("it is not paused: %+v", r)
	}
	if _, ok := w.found("dev-cycle-1.T3.1"); ok {
		t.Error("a task was begun in the pause")
	}
	w.do(w.bin, "resume", "dev-cycle-1")
	log := w.completed(w.finished("dev-cycle-1"))
	says(t, log, "T2 is done", "T3 is done", "run completed")

	w.do(w.bin, "start", "dev-cycle", "--stub", "--var", "task=x")
	at("dev-cycle-2")
	w.kill()
	w.boot()
	w.serves()
	log = w.completed(w.finished("dev-cycle-2"))
	says(t, log, "T1 is done", "T2 is done", "T3 is done", "run completed")
	for _, task := range []string{"T1", "T2", "T3"} {
		if n := strings.Count(log, "task "+task+" of execution, try"); n != 1 {
			t.Errorf("%s was begun %d times\n%s", task, n, log)
		}
	}
	if strings.Contains(log, "launched again") || w.file(".workflow/worktrees/dev-cycle-2/two.txt") != "two\n" {
		t.Errorf("the work at T2 was lost\n%s", log)
	}
}

// TestDevCycleBadTasks: a task file that is none, or whose dependencies go round, goes back to planning with what is wrong;
// after two such rounds the run has failed.
func TestDevCycleBadTasks(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "002 tasks.invalid", "text that is no JSON, and a cycle: planned anew with what is wrong; given up after the second time")
	conform.Rule(t, "002 execution.pending", "a task that is done already is left alone")
	const good = `{"schema_version": 1, "tasks": [{"id": "T0", "title": "done before", "priority": 1, "status": "done"}, {"id": "T1", "title": "one", "priority": 1, "status": "todo"}]}`
	const cycle = `{"schema_version": 1, "tasks": [{"id": "T1", "title": "a", "status": "todo", "depends_on": ["T2"]}, {"id": "T2", "title": "b", "status": "todo", "depends_on": ["T1"]}]}`
	w := newDevCycle(t, "", "")
	started := func(run string, tasks ...string) daemon.RunStatus {
		t.Helper()
		script := "steps:\n  planning:\n"
		for _, text := range tasks {
			script += fmt.Sprintf("    - write: {plan.md: a plan, tasks.json: %q}\n", text)
		}
		w.put("repo/script.yaml", script)
		w.do(w.bin, "start", "dev-cycle", "--stub=script.yaml", "--var", "task=x")
		return w.finished(run)
	}
	for i, bad := range []struct{ tasks, why string }{{"no tasks at all", "tasks.json:1: not a JSON object"}, {cycle, "the tasks depend on one another: T1 -> T2 -> T1"}} {
		run := fmt.Sprintf("dev-cycle-%d", i+1)
		log := w.completed(started(run, bad.tasks, good))
		says(t, log, bad.why, "planning.2 says done", "T1 is done", "run completed")
		if strings.Contains(log, "task T0 of execution") {
			t.Errorf("a task that was done is done again\n%s", log)
		}
		says(t, w.file(".workflow/runs/"+run+"/planning.2/prompt.md"), bad.why)
	}
	if r := started("dev-cycle-3", cycle); r.Phase != engine.RunFailed {
		t.Errorf("with no tasks that can be gone by it has ended as %s\n%s", r.Phase, w.do(w.bin, "log", "--all", r.ID))
	}
	if _, err := os.Stat(filepath.Join(w.repo, ".workflow/runs/dev-cycle-3/planning.3")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.repo, ".workflow/runs/dev-cycle-3/planning.4")); err == nil {
		t.Error("it was planned a fourth time")
	}
}
