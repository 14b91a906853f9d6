package alarm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// sleeper is the variable under which this test's binary only waits.
const sleeper = "ALARM_SLEEPER"

const (
	pace    = 250 * time.Millisecond
	windows = 20
)

// TestOneWakeUp: an alarm wakes one thread of an idle process, once.
func TestOneWakeUp(t *testing.T) {
	if os.Getenv(sleeper) != "" {
		for a := New(); a.Wait(pace); {
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOneWakeUp$")
	cmd.Env = append(os.Environ(), sleeper+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	least := 1000
	for range windows { // what the process does otherwise is absent from one of them
		before := wakeUps(t, cmd.Process.Pid)
		time.Sleep(8 * pace)
		if least = min(least, wakeUps(t, cmd.Process.Pid)-before); least > 0 && least <= 10 {
			return
		}
	}
	t.Errorf("at least %d wake-ups for 8 alarms", least)
}

func wakeUps(t *testing.T, pid int) (n int) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f) // a thread may have ended
		if _, rest, ok := bytes.Cut(text, []byte("\nvoluntary_ctxt_switches:")); ok {
			n1, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
			if err != nil {
				t.Fatal(err)
			}
			n += n1
		}
	}
	return n
}
