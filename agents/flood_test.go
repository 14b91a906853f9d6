//go:build linux

package agents

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

// The command writes far more than is kept: it is never blocked, the files stay bounded meanwhile
// too, and the shim stays small.
func TestFlood(t *testing.T) {
	conform.Rule(t, "7-agents output", "never held up, the files bounded")
	t.Parallel()
	const limit = 1 << 20
	spec := testSpec(t, `echo first; head -c 67108864 /dev/zero; echo last; echo first >&2; head -c 4194304 /dev/zero >&2; echo last >&2; touch done; while [ ! -e go ]; do sleep 0.01; done`)
	spec.MaxOutput = limit
	p := ensure(t, newRunner(), spec)
	var most int64
	eventually(t, "all is written", func() bool {
		most = max(most, sizeOf(spec.Dir))
		_, err := os.Stat(filepath.Join(spec.Cwd, "done"))
		return err == nil
	})
	eventually(t, "the tail is there while it runs", func() bool { return strings.Contains(string(Tail(spec.Dir, 100)), "\x00last\n") })
	if since := time.Since(LastOutput(spec.Dir)); since > 30*time.Second {
		t.Errorf("the last output was %v ago", since)
	}
	if most > 2*limit+1024 {
		t.Errorf("%d bytes on disk, limit %d per stream", most, limit)
	}
	status := content(t, "/proc/"+strconv.Itoa(p.id.Pid)+"/status")
	rss, _ := strconv.Atoi(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(status)[1])
	t.Logf("the shim's memory: %d kB", rss)
	if rss > 64<<10 {
		t.Errorf("the shim's memory: %d kB", rss)
	}
	os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600)
	if e := wait(t, p); e.Code != 0 {
		t.Errorf("%+v", e)
	}
	for _, name := range []string{"stdout", "stderr"} {
		got := content(t, filepath.Join(spec.Dir, name))
		if len(got) > limit || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n") || !strings.Contains(got, "bytes of output are left out here]") {
			t.Errorf("%s: %d bytes, begins %.10q, ends %q", name, len(got), got, got[max(0, len(got)-10):])
		}
	}
}

func sizeOf(dir string) int64 {
	var sum int64
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// What a killed shim has written is kept, including the newest.
func TestFloodOfAKilledShim(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `echo first; head -c 1000000 /dev/zero; echo last; touch done; while :; do sleep 0.05; done`)
	spec.MaxOutput = 64 << 10
	p := ensure(t, newRunner(), spec)
	eventually(t, "the tail is there", func() bool { return strings.Contains(string(Tail(spec.Dir, 100)), "\x00last\n") })
	if err := syscall.Kill(p.id.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); !e.Lost {
		t.Errorf("%+v, want lost", e)
	}
	got := content(t, filepath.Join(spec.Dir, "stdout"))
	if len(got) > 64<<10 || !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "last\n") || !strings.Contains(got, "may be left out here]") {
		t.Errorf("stdout: %d bytes, begins %.10q", len(got), got)
	}
}

// Something outside the tree holds the pipe: the record does not wait for it.
func TestStdoutHeldFromOutside(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `echo $$ > pid; echo out; while [ ! -e go ]; do sleep 0.01; done`)
	p := ensure(t, newRunner(), spec)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "pid"), "\n"))
	held, err := os.OpenFile("/proc/"+strings.TrimSpace(content(t, filepath.Join(spec.Cwd, "pid")))+"/fd/1", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600)
	before := time.Now()
	wait(t, p)
	if took := time.Since(before); took > drainLimit+time.Second {
		t.Errorf("took %v", took)
	}
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "out\n" {
		t.Errorf("stdout %q", got)
	}
}

// The command's ends of the pipes block when full.
func TestOutputBlocks(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `grep flags /proc/$$/fdinfo/1 /proc/$$/fdinfo/2`)
	wait(t, ensure(t, newRunner(), spec))
	for line := range strings.Lines(content(t, filepath.Join(spec.Dir, "stdout"))) {
		fields := strings.Fields(line)
		flags, err := strconv.ParseInt(fields[len(fields)-1], 8, 64)
		if err != nil || flags&syscall.O_NONBLOCK != 0 {
			t.Errorf("flags %s", line)
		}
	}
}
