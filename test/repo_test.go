//go:build linux

package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/fault"
	"sluice/internal/show"
	"sluice/tools/conform"
)

// binary runs the real binary: what launches agents launches them through it.
func (w *playground) binary(path string, args ...string) (code int, out string) {
	w.t.Helper()
	cmd := exec.Command(path, append([]string{"-C", w.dir}, args...)...)
	cmd.Env = w.env
	raw, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(raw)
}

// background starts sluice in the world, and returns what ends it.
func (w *playground) background(binary string, args ...string) func() {
	w.t.Helper()
	cmd := exec.Command(binary, append([]string{"-C", w.dir}, args...)...)
	cmd.Env = w.env
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}
	}
	w.t.Cleanup(end)
	return end
}

// until runs a command until its output matches.
func (w *playground) until(pattern string, args ...string) string {
	w.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	out, errs := "", ""
	for end := time.Now().Add(waitMost); time.Now().Before(end); time.Sleep(pollEvery) {
		if _, out, errs = w.sluice(args...); re.MatchString(out + errs) {
			return out
		}
	}
	w.t.Fatalf("%v never says %q; at last: %s%s", args, pattern, out, errs)
	return ""
}

func (w *playground) stateDir() string {
	w.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(filepath.Dir(w.dir), "state", "sluice", "*", "journal.jsonl"))
	if err != nil || len(dirs) != 1 {
		w.t.Fatalf("%v %v", dirs, err)
	}
	return filepath.Dir(dirs[0])
}

// TestLookingMakesNothing: commands that only look leave no state behind.
func TestLookingMakesNothing(t *testing.T) {
	w, _ := gated(t)
	for _, args := range [][]string{{"ls"}, {"status"}, {"log"}, {"inbox"}, {"next"}, {"validate"}, {"graph", "w"}, {"config"}, {"watch", "ls"}} {
		if code, _, errs := w.sluice(args...); code != 0 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(w.dir), "state")); err == nil {
		t.Error("there is a state folder now")
	}
}

// TestInboxOverAllRepos: each repo's waits are listed once, served or not, from any folder.
func TestInboxOverAllRepos(t *testing.T) {
	w, binary := gated(t)
	stop := w.background(binary, "run", "w")
	w.until("G for a person", "status")
	elsewhere := newWorld(t, false)
	elsewhere.env = w.env
	ask := func(served bool) {
		t.Helper()
		for _, from := range []*playground{w, elsewhere} {
			code, out, errs := from.sluice("inbox", "--json")
			var items []show.Waiting
			if err := json.Unmarshal([]byte(out), &items); err != nil || code != 0 {
				t.Fatalf("%d %q %q: %v", code, out, errs, err)
			}
			n := 0
			for _, i := range items {
				if i.Kind == "human" && i.Gate == "G" && i.Run == "w-1" && i.Served == served {
					n++
				}
			}
			if n != 1 {
				t.Errorf("served %v: %+v", served, items)
			}
		}
	}
	ask(true)
	stop()
	w.until("no sluice process serves", "status")
	ask(false)
}

// TestCleanLeavesWhatLives: transcripts of live runs, of young ones and of the newest stay; the journal is never touched.
func TestCleanLeavesWhatLives(t *testing.T) {
	conform.Rule(t, "001 cli.clean", "what is over goes, what lives stays")
	w, binary := gated(t)
	w.write(".workflow/specs/short.yaml", "workflow: {id: short}\nsteps:\n  - {id: A, run: \"true\", next_step: DONE}\n")
	for range 2 {
		if code, out := w.binary(binary, "run", "short"); code != 0 {
			t.Fatalf("%d %s", code, out)
		}
	}
	stop := w.background(binary, "run", "w")
	w.until("G for a person", "status", "w")
	stop()
	w.until("no sluice process serves", "status")
	have := func() string {
		names, _ := filepath.Glob(filepath.Join(w.dir, ".workflow", "runs", "*-*"))
		for i, n := range names {
			names[i] = filepath.Base(n)
		}
		return strings.Join(names, " ")
	}
	before, err := os.ReadFile(filepath.Join(w.stateDir(), "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		left string
	}{
		{[]string{"--keep", "0", "--older", "1h"}, "short-1 short-2 w-1"},
		{[]string{"--keep", "0", "--older", "0s", "--dry-run"}, "short-1 short-2 w-1"},
		{[]string{"--keep", "1", "--older", "0s"}, "short-2 w-1"},
		{[]string{"--keep", "0", "--older", "0s"}, "w-1"},
	} {
		code, out, errs := w.sluice(append([]string{"clean", "--yes"}, c.args...)...)
		if got := have(); code != 0 || got != c.left {
			t.Errorf("%v: %d, left %q, want %q: %s%s", c.args, code, got, c.left, out, errs)
		}
	}
	after, err := os.ReadFile(filepath.Join(w.stateDir(), "journal.jsonl"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the journal is not as it was: %v", err)
	}
}

// TestDamageIsTold: a changed journal is reported with exit code 78, its line and the fix; repair
// fixes it.
func TestDamageIsTold(t *testing.T) {
	w, binary := gated(t)
	w.write(".workflow/specs/short.yaml", "workflow: {id: short}\nsteps:\n  - {id: A, run: \"true\", next_step: DONE}\n")
	if code, out := w.binary(binary, "run", "short"); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	dir := w.stateDir()
	file := filepath.Join(dir, "journal.jsonl")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(raw), "\n")
	n := len(lines) - 2 // the last but one that is whole
	lines[n-1] = strings.Replace(lines[n-1], `"kind"`, `"kinD"`, 1)
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	snaps, _ := filepath.Glob(filepath.Join(dir, "snap*"))
	for _, s := range snaps {
		os.Remove(s)
	}
	for _, args := range [][]string{{"status"}, {"run", "w"}, {"log"}, {"inbox", "--here"}} {
		code, _, errs := w.sluice(args...)
		if code != fault.ExitDamaged || !strings.Contains(errs, "line "+itoa(n)) || !strings.Contains(errs, "journal repair --to "+itoa(n-1)) {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
	if code, out, _ := w.sluice("doctor"); code != fault.ExitFailed || !strings.Contains(out, "fail  journal") {
		t.Errorf("doctor: %d %s", code, out)
	}
	if code, out, _ := w.sluice("audit", "verify"); code != fault.ExitFailed || !strings.Contains(out, "BROKEN  journal") {
		t.Errorf("audit: %d %s", code, out)
	}
	if code, _, errs := w.sluice("journal", "repair", "--to", itoa(n-1)); code != fault.ExitUsage || !strings.Contains(errs, "Cut the journal of") {
		t.Errorf("repair did not ask: %d %q", code, errs)
	}
	if code, out, errs := w.sluice("journal", "repair", "--to", itoa(n-1), "--yes"); code != 0 || !strings.Contains(out, "ends at line "+itoa(n-1)) {
		t.Errorf("repair: %d %q %q", code, out, errs)
	}
	if code, _, errs := w.sluice("status"); code != 0 {
		t.Errorf("after the repair: %d %s", code, errs)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// TestARunThatCannotBeKeptIsNotStarted: where .workflow/runs is not ours to write to, nothing begins.
func TestARunThatCannotBeKeptIsNotStarted(t *testing.T) {
	w, binary := gated(t)
	if err := os.WriteFile(filepath.Join(w.dir, ".workflow", "runs"), nil, 0o644); err != nil { // also for root
		t.Fatal(err)
	}
	if code, out := w.binary(binary, "run", "w"); code != fault.ExitFailed || !strings.Contains(out, "not a directory") {
		t.Errorf("%d %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(w.dir), "state", "sluice")); err == nil {
		if runs, _ := filepath.Glob(filepath.Join(filepath.Dir(w.dir), "state", "sluice", "*", "journal.jsonl")); len(runs) > 0 {
			t.Error("there is a journal")
		}
	}
}
