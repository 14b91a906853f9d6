package notify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// markVariable is in the environment of every process a test starts, so that
// what is left over can be found however it was forked.
const markVariable = "SLUICE_TEST_MARK"

// TestMain lets this test binary be its own helper, as the real binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "notify-helper" {
		os.Exit(HelperMain(os.Stdin))
	}
	os.Exit(m.Run())
}

// helperArgv runs this test binary as the notify helper.
func helperArgv(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe, "notify-helper"}
}

// waitFor polls for a condition until a deadline.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 5s for: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// mark returns an environment entry of this test's own, and fails the test at
// its end if a process that bears it is still alive.
func mark(t *testing.T) string {
	t.Helper()
	entry := fmt.Sprintf("%s=%s-%d-%d", markVariable, t.Name(), os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		deadline := time.Now().Add(time.Second)
		for {
			left := marked(entry)
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("processes left over: %q", left)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return entry
}

// marked lists the live processes with entry in their environment.
func marked(entry string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(entry+"\x00")) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		found = append(found, filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return found
}

// byName finds a channel's result.
func byName(t *testing.T, results []Result, name string) Result {
	t.Helper()
	for _, r := range results {
		if r.Channel == name {
			return r
		}
	}
	t.Fatalf("no result of channel %q in %+v", name, results)
	return Result{}
}
