//go:build linux || darwin

package agents

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

// warm returns a Runner that keeps the shims of ended launches.
func warm(t testing.TB, n int) *Runner {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{Shim: shimCommand(self), Warm: n})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// nth is the spec's n-th sibling.
func nth(spec Spec, n int, script string) Spec {
	spec.Key += fmt.Sprint("-", n)
	spec.Dir += fmt.Sprint(n)
	spec.PidFile += fmt.Sprint(n)
	spec.Argv = []string{"sh", "-c", script}
	return spec
}

// TestAShimTakesOneLaunchAfterTheOther: a launch leaves no trace in the next, and the shim ends
// with its Runner.
func TestAShimTakesOneLaunchAfterTheOther(t *testing.T) {
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 1)
	pid := 0
	for i := range 6 {
		s := nth(base, i, fmt.Sprintf("echo out %d; echo err %d >&2; umask; ls -l /proc/self/fd | grep -c ' -> '; trap; (setsid sleep 60 &) ; exit %d", i, i, i))
		if i == 3 {
			s.KillAfter = 10 * time.Millisecond
		}
		p := ensure(t, r, s)
		if e := wait(t, p); e.Code != i || e.Signal != "" || e.NotStarted != "" || e.Lost || e.Stopped || e.Started.IsZero() || e.Ended.Before(e.Started) {
			t.Errorf("launch %d: %+v", i, e)
		}
		if pid != 0 && p.id.Pid != pid {
			t.Errorf("launch %d has shim %d, not %d", i, p.id.Pid, pid)
		}
		pid = p.id.Pid
		if got, want := content(t, filepath.Join(s.Dir, "stdout")), fmt.Sprintf("out %d\n", i); !strings.HasPrefix(got, want) {
			t.Errorf("launch %d: %q", i, got)
		}
		if got := content(t, filepath.Join(s.Dir, "stderr")); got != fmt.Sprintf("err %d\n", i) {
			t.Errorf("launch %d: %q", i, got)
		}
		if left := withToken(base.Token); len(left) > 0 {
			t.Fatalf("launch %d left %v", i, left)
		}
		if again := wait(t, ensure(t, newRunner(), s)); again.Code != i {
			t.Errorf("launch %d again: %+v", i, again)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if runs(pid) {
		t.Error("the shim outlives its Runner though it has no launch")
	}
}

// TestARestedShimIsLetGo: an idle daemon has no shim, and a busy one keeps the one it uses.
func TestARestedShimIsLetGo(t *testing.T) {
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 2)
	r.warmFor = 100 * time.Millisecond
	p, q := ensure(t, r, nth(base, 1, "exec sleep 60")), ensure(t, r, nth(base, 2, "exit 0"))
	if p.id.Pid == q.id.Pid {
		t.Fatal("one shim has two launches")
	}
	wait(t, q)
	eventually(t, "the rested one goes", func() bool { return !runs(q.id.Pid) })
	if !runs(p.id.Pid) {
		t.Error("the one with a launch has gone too")
	}
	if err := r.Stop(testContext(t), nth(base, 1, "")); err != nil {
		t.Error(err)
	}
	eventually(t, "the other goes", func() bool { return !runs(p.id.Pid) })
	if e := wait(t, ensure(t, r, nth(base, 3, "exit 3"))); e.Code != 3 {
		t.Errorf("a launch after the rest: %+v", e)
	}
}

// TestAStopReachesItsLaunchAlone: not the shim's current launch.
func TestAStopReachesItsLaunchAlone(t *testing.T) {
	conform.Rule(t, "3-engine identity", "a live process that is not its shim is not signalled")
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 1)
	first, second := nth(base, 1, "exit 1"), nth(base, 2, `touch up; while [ ! -e go ]; do sleep 0.01; done; exit 2`)
	wait(t, ensure(t, r, first))
	p := ensure(t, r, second)
	old, err := r.Adopt(first.PidFile, "")
	if err != nil || old.id.Pid != p.id.Pid {
		t.Fatalf("another shim: %v", err)
	}
	eventually(t, "the second runs", func() bool { _, err := os.Stat(filepath.Join(base.Cwd, "up")); return err == nil })
	for _, stopper := range []*Runner{r, newRunner()} {
		if err := stopper.Stop(testContext(t), first); err != nil {
			t.Error(err)
		}
	}
	// What a late stop of the first would do after all its checks.
	if err := syscall.Kill(p.id.Pid, stopSignal); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); e.Code != 2 || e.Stopped || e.Signal != "" {
		t.Errorf("%+v", e)
	}
}

// TestStoppedBeforeItStarted: a late start finds that it was called off.
func TestStoppedBeforeItStarted(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "touch started")
	if err := newRunner().Stop(testContext(t), spec); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, ensure(t, newRunner(), spec)); !e.Stopped || e.Code != -1 {
		t.Errorf("%+v", e)
	}
	if _, err := os.Stat(filepath.Join(spec.Cwd, "started")); err == nil {
		t.Error("it was started")
	}
}

// TestStopAgainstStart: whichever is first, nothing runs after both.
func TestStopAgainstStart(t *testing.T) {
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 2)
	for i := range 40 {
		s := nth(base, i, "exec sleep 60")
		done := make(chan error, 1)
		go func() {
			p, err := r.Ensure(testContext(t), s)
			if err == nil {
				_, err = p.Wait(testContext(t))
			}
			done <- err
		}()
		if err := newRunner().Stop(testContext(t), s); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if left := withToken(base.Token); len(left) > 0 {
			t.Fatalf("round %d: %v", i, left)
		}
	}
}

// TestWhoAdoptedSeesTheEndThoughTheShimGoesOn: the shim belongs to another Runner, and takes its
// next launch.
func TestWhoAdoptedSeesTheEndThoughTheShimGoesOn(t *testing.T) {
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 1)
	s := nth(base, 1, `while [ ! -e go ]; do sleep 0.01; done; exit 3`)
	p := ensure(t, r, s)
	adopted, err := newRunner().Adopt(s.PidFile, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	next := ensure(t, r, nth(base, 2, "exec sleep 60"))
	if next.id.Pid != p.id.Pid {
		t.Fatal("another shim")
	}
	if err := os.RemoveAll(s.Dir); err != nil { // an agent can
		t.Fatal(err)
	}
	if e := wait(t, adopted); e.Code != 3 {
		t.Errorf("%+v", e)
	}
	if err := next.Stop(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestAShimThatDiedWhileItWaited: the next launch goes to another shim, once.
func TestAShimThatDiedWhileItWaited(t *testing.T) {
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 2)
	first := ensure(t, r, nth(base, 1, "exit 0"))
	wait(t, first)
	if err := syscall.Kill(first.id.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p := ensure(t, r, nth(base, 2, "echo x >> starts; exit 4"))
	if e := wait(t, p); e.Code != 4 || e.Lost {
		t.Errorf("%+v", e)
	}
	if got := content(t, filepath.Join(base.Cwd, "starts")); got != "x\n" {
		t.Errorf("%q", got)
	}
}

// TestAClosedRunnerLeavesItsLaunches: they continue, can be adopted, and their shims end with them.
func TestAClosedRunnerLeavesItsLaunches(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `while [ ! -e go ]; do sleep 0.01; done; exit 8`)
	r := warm(t, 2)
	p := ensure(t, r, spec)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	adopted := ensure(t, newRunner(), spec)
	if err := os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, adopted); e.Code != 8 {
		t.Errorf("%+v", e)
	}
	eventually(t, "the shim goes", func() bool { return !runs(p.id.Pid) })
}

// TestShimsGoWithADeadDaemon: an idle shim ends at once, one with a launch after it.
func TestShimsGoWithADeadDaemon(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "")
	self, _ := os.Executable()
	daemon := exec.Command(self, "warm", spec.Key, spec.Dir, spec.PidFile, spec.Token, `while [ ! -e go ]; do sleep 0.01; done; exit 6`)
	daemon.Dir = spec.Cwd
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	var idle, busy int
	if _, err := fmt.Fscan(bufio.NewReader(out), &idle, &busy); err != nil || idle == busy {
		t.Fatalf("%d %d %v", idle, busy, err)
	}
	if !runs(idle) || !runs(busy) {
		t.Fatal("they do not run")
	}
	_ = daemon.Process.Kill()
	_ = daemon.Wait()
	eventually(t, "the idle one goes", func() bool { return !runs(idle) })
	if !runs(busy) {
		t.Fatal("the one with a launch went too")
	}
	if err := os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, ensure(t, newRunner(), spec)); e.Code != 6 || e.Lost {
		t.Errorf("%+v", e)
	}
	eventually(t, "the other goes", func() bool { return !runs(busy) })
}

// warmMain is a daemon with an idle shim and one with a launch.
func warmMain(args []string) int {
	self, _ := os.Executable()
	r := New(Options{Shim: shimCommand(self), Warm: 1})
	base := Spec{Key: args[0], Dir: args[1], PidFile: args[2], Token: args[3], Cwd: filepath.Dir(args[1]), Env: []string{"PATH=/usr/bin:/bin", "SLUICE_TOKEN=" + args[3]}}
	busy := base
	busy.Argv = []string{"sh", "-c", args[4]}
	p, err := r.Ensure(context.Background(), busy)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	idle, err := r.Ensure(context.Background(), nth(base, 1, "exit 0"))
	if err == nil {
		_, err = idle.Wait(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(idle.id.Pid, p.id.Pid)
	select {}
}

// TestATermEndsAShim: at a shutdown, a shim with a launch ends that first and takes no other.
func TestATermEndsAShim(t *testing.T) {
	t.Parallel()
	base := testSpec(t, "")
	r := warm(t, 1)
	p := ensure(t, r, nth(base, 1, "exec sleep 60"))
	eventually(t, "it runs", func() bool { return len(withToken(base.Token)) > 0 })
	if err := syscall.Kill(p.id.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); !e.Stopped {
		t.Errorf("%+v", e)
	}
	eventually(t, "it goes", func() bool { return !runs(p.id.Pid) })
	q := ensure(t, r, nth(base, 2, "exit 0"))
	wait(t, q)
	if err := syscall.Kill(q.id.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the idle one goes", func() bool { return !runs(q.id.Pid) })
}
