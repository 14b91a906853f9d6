//go:build linux

package agents

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

func TestDescriptors(t *testing.T) {
	// A descriptor inheritable by mistake, as a library or the daemon's starter may leave it.
	leak, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	spec := testSpec(t, `ls -l /proc/$$/fd > fds; while [ ! -e go ]; do sleep 0.01; done`)
	p := ensure(t, newRunner(), spec)
	eventually(t, "it lists", fileHas(filepath.Join(spec.Cwd, "fds"), " 2 ->"))
	for fd, want := range map[string]bool{" 0 -> /dev/null": true, " 1 -> ": true, " 2 -> pipe:": true, "passwd": false, " 3 ->": false, " 4 ->": false} {
		if got := strings.Contains(content(t, filepath.Join(spec.Cwd, "fds")), fd); got != want {
			t.Errorf("descriptor %q: %v, want %v:\n%s", fd, got, want, content(t, filepath.Join(spec.Cwd, "fds")))
		}
	}
	shim := "/proc/" + strconv.Itoa(p.id.Pid)
	fds, _ := os.ReadDir(shim + "/fd")
	for _, fd := range fds {
		target, _ := os.Readlink(shim + "/fd/" + fd.Name())
		if strings.Contains(target, "passwd") || (len(fd.Name()) == 1 && fd.Name() <= "2" && target != "/dev/null") {
			t.Errorf("the shim holds %s -> %s", fd.Name(), target)
		}
	}
	if cwd, _ := os.Readlink(shim + "/cwd"); cwd != "/" {
		t.Errorf("the shim is in %s", cwd)
	}
	env, _ := os.ReadFile(shim + "/environ")
	args, _ := os.ReadFile(shim + "/cmdline")
	if strings.Contains(string(env)+string(args), spec.Token) {
		t.Error("the shim shows the token")
	}
	os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600)
	wait(t, p)
}

func TestStdin(t *testing.T) {
	conform.Rule(t, "field ask 3", "standard input is never an open pipe")
	t.Parallel()
	spec := testSpec(t, "cat; echo end")
	wait(t, ensure(t, newRunner(), spec))
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "end\n" {
		t.Errorf("without a file: %q", got)
	}
	spec = testSpec(t, "cat; echo end")
	spec.Stdin = filepath.Join(spec.Cwd, "prompt.md")
	os.WriteFile(spec.Stdin, []byte("do it\n"), 0o600)
	wait(t, ensure(t, newRunner(), spec))
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "do it\nend\n" {
		t.Errorf("with a file: %q", got)
	}
}

// Signals from the terminal go to the daemon's process group; the launch has its own session.
func TestTerminalSignalsDoNotReachIt(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "")
	script := `echo up > ` + spec.Cwd + `/up; while [ ! -e ` + spec.Cwd + `/go ]; do sleep 0.01; done; exit 8`
	self, _ := os.Executable()
	daemon := startOther(t, self, "ensure", spec.Key, spec.Dir, spec.PidFile, spec.Token, script)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		if err := syscall.Kill(-daemon.Process.Pid, sig); err != nil && sig != syscall.SIGKILL {
			t.Fatal(err)
		}
	}
	daemon.Wait()
	p := ensure(t, newRunner(), spec)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} { // even sent to it directly, it is ignored
		syscall.Kill(p.id.Pid, sig)
	}
	os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600)
	if e := wait(t, p); e.Code != 8 || e.Lost || e.Stopped {
		t.Errorf("%+v, want code 8", e)
	}
}

// A daemon without descriptors cannot see a process: it must not consider it gone.
func TestNoDescriptorsLeft(t *testing.T) {
	t.Parallel()
	self, _ := os.Executable()
	for _, script := range []string{"while :; do sleep 0.05; done", "exit 3"} {
		spec := testSpec(t, script)
		p := ensure(t, newRunner(), spec)
		if script == "exit 3" {
			wait(t, p)
		}
		if out, err := exec.Command(self, "starve", spec.PidFile).CombinedOutput(); err != nil || string(out) != "well\n" {
			t.Errorf("%s: %v: %s", script, err, out)
		}
		if script == "exit 3" {
			continue
		}
		if _, err := readExit(spec.Dir); err == nil || len(withToken(spec.Token)) == 0 || !runs(p.id.Pid) {
			t.Error("a live launch was ended")
		}
	}
}

// As on kernels without pidfds.
func TestWaitWithoutPidfd(t *testing.T) {
	t.Parallel()
	other := startOther(t, "sleep", "60")
	h := handle{other.Process.Pid, -1}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	gone := func() bool { return !runs(other.Process.Pid) }
	if err := h.wait(ctx, gone); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait for a live one: %v", err)
	}
	if err := h.signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if err := h.wait(testContext(t), gone); err != nil {
		t.Error(err)
	}
	h.reap()
	if err := h.signal(syscall.SIGKILL); err != nil {
		t.Errorf("to one that is gone: %v", err)
	}
}

// TestChildGone: a child that has ended is gone, before and after it is collected, also where its number is another's.
func TestChildGone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if childGone(pid) {
		t.Error("it runs")
	}
	in.Close()
	eventually(t, "it has ended", func() bool { return childGone(pid) })
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("it is not collected yet: %v", err)
	}
	if err := cmd.Wait(); err != nil || !childGone(pid) {
		t.Errorf("it is collected, and not gone: %v", err)
	}
	if !childGone(os.Getppid()) {
		t.Error("the number is another's")
	}
}

// TestStopWithoutFirstThread: the system calls a process whose first thread has ended a zombie, though others work.
func TestStopWithoutFirstThread(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, "exec "+self+" leader")
	r := newRunner()
	p := ensure(t, r, spec)
	pid := 0
	eventually(t, "it works, as a zombie", func() bool {
		up, _ := os.ReadFile(filepath.Join(spec.Cwd, "up"))
		if pid, _ = strconv.Atoi(string(up)); pid == 0 {
			return false
		}
		stat, err := readProc(pid, "stat", maxStatBytes)
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
	if got, err := lookProc(pid); err != nil || got.dead {
		t.Errorf("it counts as dead: %+v %v", got, err)
	}
	if err := r.Stop(testContext(t), spec); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); !e.Stopped {
		t.Errorf("it counts as ended by itself: %+v", e)
	}
}
