//go:build linux

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/engine"
	"sluice/tools/modelstub"
)

// TestRealLimit: a usage limit holds the attempt up and counts as nothing: until the time that it names, or for a while
// where it names none.
func TestRealLimit(t *testing.T) {
	t.Parallel()
	noRetry := map[string]string{"x-should-retry": "false"}
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent+", a reset", func(t *testing.T) {
			t.Parallel()
			limit := modelstub.Act{Error: 429, Header: noRetry, Message: "You've hit your usage limit. Please try again in 6s."}
			most := time.Minute
			if agent == "codex" { // it tells the minute
				limit.Code, limit.Resets, most = "usage_limit_reached", time.Now().Add(10*time.Minute), 10*time.Minute
			}
			w, stub := newAgents(t, fmt.Sprintf("roles: {writer: {agent: %s}}\n", agent), map[string]modelstub.Part{"solo": {
				{limit}, {{Text: "done"}}}})
			class, why, until := w.classified()
			if class != engine.ClassLimit || !strings.Contains(why, "429") && !strings.Contains(why, "limit") || time.Until(until) > most || agent == "codex" && time.Until(until) < 8*time.Minute {
				t.Fatalf("class %q, why %q, until %s", class, why, until)
			}
			if agent == "codex" {
				return
			}
			w.eventually("the run has ended", func() bool {
				st, ok := w.status()
				return ok && len(st.Runs) == 1 && st.Runs[0].Phase == engine.RunCompleted
			})
			if a := w.attempt(); a.N != 1 || a.K != 2 || a.Waits != 1 || a.Restarts != 0 || a.Launched.Before(until) {
				t.Errorf("it waited until %s: %+v", until, a)
			}
			if n := len(stub.Seen()); n < 2 {
				t.Errorf("%d requests", n)
			}
		})
		t.Run(agent+", no reset", func(t *testing.T) {
			t.Parallel()
			w, _ := newAgents(t, fmt.Sprintf("roles: {writer: {agent: %s}}\n", agent), map[string]modelstub.Part{"solo": {{{Error: 429, Header: noRetry}}}})
			class, why, until := w.classified()
			if left := time.Until(until); class != engine.ClassLimit || left < 3*time.Minute || left > 6*time.Minute {
				t.Errorf("class %q, why %q, for %s", class, why, left)
			}
			if status := w.do(w.bin, "status"); !strings.Contains(status, "limit") {
				t.Errorf("status:\n%s", status)
			}
		})
	}
}

// TestRealRefused: what a sandbox forbids an agent to write is not there, whatever the agent says:
// with codex' own sandbox, which ends with 0 and reports nothing, and with sluice's.
func TestRealRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ agent, settings, out string }{
		"codex' own":     {"codex", "sandbox: {mode: off}\nagents: {codex: {command: [codex, exec, --sandbox, read-only]}}\n", "out.txt"},
		"sluice, codex":  {"codex", "", ".workflow/made.txt"},
		"sluice, claude": {"claude", "agents: {claude: {command: [claude, --allowedTools, Bash]}}\n", ".workflow/made.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := map[string]modelstub.Part{}
			w, stub := newAgents(t, c.settings+fmt.Sprintf("roles: {writer: {agent: %s}}\n", c.agent), parts)
			if strings.HasPrefix(name, "sluice") {
				w.hold(stub, c.agent)
			}
			out := filepath.Join(w.repo, c.out)
			parts["solo"] = modelstub.Part{{{Bash: "echo x > " + out + "; true"}, {Text: "I wrote it."}}}
			w.put("repo/.workflow/specs/solo.yaml", strings.Replace(soloSpec, "    signal:", "    outputs: ["+c.out+"]\n    signal:", 1))
			run := w.ran("solo")
			if _, err := os.Stat(out); err == nil || run.Phase != engine.RunFailed {
				t.Errorf("%v: %+v", err, run)
			}
			if a := w.attempt(); a.N != 1 || !strings.Contains(a.Failure, c.out) {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestRealTerminated: an agent that somebody else ends in the middle of its work is launched again, and that is no failure of
// the work.
func TestRealTerminated(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			w, _ := newAgents(t, fmt.Sprintf("agents: {claude: {command: [claude, --allowedTools, Bash]}}\nroles: {writer: {agent: %s}}\n", agent), map[string]modelstub.Part{"solo": {
				{{Bash: "touch began; while [ ! -e go-on ]; do sleep 0.1; done"}}, {{Text: "done"}}}})
			w.solo()
			w.atWork()
			pids := w.programs(agent)
			if len(pids) == 0 {
				t.Fatal("no such process")
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) { // one that it started for a moment
					t.Fatal(err)
				}
			}
			w.eventually("the run has ended", func() bool {
				st, ok := w.status()
				return ok && len(st.Runs) == 1 && st.Runs[0].Phase == engine.RunCompleted
			})
			if a := w.attempt(); a.N != 1 || a.K != 2 || a.Restarts != 1 {
				t.Errorf("%+v", a)
			}
			if log := w.do(w.bin, "log", "--all"); !strings.Contains(log, "infrastructure") {
				t.Errorf("log:\n%s", log)
			}
			if left := w.programs(agent); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
		})
	}
}

// hold has the sandbox's daemon hold its launches; the writer is the agent, and reaches the stub alone.
func (w *sandbox) hold(stub *modelstub.Stub, agent string) {
	w.t.Helper()
	needsCage(w.t)
	w.caged()
	w.put("config/sluice/config.yaml", fmt.Sprintf("notify: {desktop: false}\nsettle: 200ms\nkill_after: 2s\nsandbox: {mode: on}\nroles: {writer: {agent: %s, network: [%q]}}\n",
		agent, strings.TrimPrefix(stub.URL, "http://")))
}

// attempt is the newest attempt of the step W.
func (w *sandbox) attempt() engine.Attempt {
	w.t.Helper()
	var sh struct{ Attempt engine.Attempt }
	if err := json.Unmarshal([]byte(w.do(w.bin, "show", "W", "--json")), &sh); err != nil {
		w.t.Fatal(err)
	}
	return sh.Attempt
}

// programs are the processes of a program that were launched for the sandbox's repo.
func (w *sandbox) programs(name string) []int {
	w.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, _ := os.Readlink(filepath.Join("/proc", e.Name(), "exe")) // gone meanwhile, or the kernel's own
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if strings.HasPrefix(filepath.Base(exe), name) && bytes.Contains(env, []byte("SLUICE_PROMPT="+w.repo)) {
			out = append(out, pid)
		}
	}
	return out
}
