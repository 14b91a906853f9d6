package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/tools/conform"
)

const (
	reuseCycles = 28  // in `make test`; SLUICE_ADOPTIONS overrides it
	ways        = 7   // of a cycle
	reuseTries  = 500 // for a number
	ownPidsVar  = "SLUICE_TEST_PIDS"
	lastPid     = "/proc/sys/kernel/ns_last_pid" // the next process gets the number after it
)

// ownPids runs the test in a process namespace of its own, where it may choose the next process's
// number. It reports whether this is that process. The shell before it collects orphans, like a
// machine's first process.
func ownPids(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownPidsVar) != "" {
		return true
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs: unshare (apt-get install util-linux)")
	}
	in := []string{"--pid", "--fork", "--mount-proc", "--kill-child"}
	if out, err := exec.Command("unshare", append(in, "sh", "-c", "echo 300 > "+lastPid)...).CombinedOutput(); err != nil {
		t.Skipf("kernel: pid namespaces: %s", bytes.TrimSpace(out))
	}
	cmd := exec.Command("unshare", append(in, "sh", "-c", `"$0" "$@"; exit $?`, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "2h")...)
	cmd.Env = append(os.Environ(), ownPidsVar+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("in its own process namespace:\n%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("it ends with %v", err)
	}
	return false
}

// innocent is a foreign process with a number that was ours. It blocks every signal from the start,
// so signals stay pending and visible. It leads a session and a group, like the previous owner of
// the number, so it also gets signals sent to those.
type innocent struct {
	cmd *exec.Cmd
	tid int // its thread that has the number, or 0
}

// anInnocent starts one with the number; nil if another process was quicker and keeps it: a thread
// of the test itself, or of the system.
func anInnocent(t *testing.T, pid int) *innocent {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }()
	for range reuseTries {
		cmd := exec.Command("sleep", "1000")
		cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, "/", &syscall.SysProcAttr{Setsid: true}
		next(t, pid)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			return &innocent{cmd: cmd}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Lstat("/proc/self/task/" + strconv.Itoa(pid)); err == nil {
			return nil
		}
	}
	return nil
}

// next makes the next process get the number, unless another is quicker.
func next(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(lastPid, []byte(strconv.Itoa(pid-1)), 0); err != nil {
		t.Fatal(err)
	}
}

// threaded is an innocent of which only a thread has the number.
const threaded = `import signal, sys, threading
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
pid = int(sys.argv[1])
def run():
	if threading.get_native_id() == pid:
		print("up", flush=True)
		threading.Event().wait()
while True:
	with open("` + lastPid + `", "w") as f:
		f.write(str(pid - 1))
	t = threading.Thread(target=run)
	t.start()
	if t.native_id == pid:
		break
	t.join()
`

func anInnocentThread(t *testing.T, pid int) *innocent {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs: python3 (apt-get install python3-minimal)")
	}
	in := &innocent{cmd: exec.Command("python3", "-c", threaded, strconv.Itoa(pid)), tid: pid}
	out, err := in.cmd.StdoutPipe()
	if err == nil {
		err = in.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("its thread has not got the number: %q, %v", line, err)
	}
	return in
}

var pendingSignals = regexp.MustCompile(`(?m)^(SigPnd|ShdPnd):\s+(\S*[1-9a-f]\S*)$`)

// harm returns what was done to it, or "".
func (in *innocent) harm() string {
	for _, dir := range []string{strconv.Itoa(in.cmd.Process.Pid), strconv.Itoa(max(in.tid, in.cmd.Process.Pid))} {
		status, err := os.ReadFile("/proc/" + dir + "/status")
		switch {
		case err != nil:
			return "it is gone"
		case bytes.Contains(status, []byte("State:\tZ")):
			return "it was killed"
		case bytes.Contains(status, []byte("State:\tT")), bytes.Contains(status, []byte("State:\tt")):
			return "it was held"
		}
		if m := pendingSignals.FindSubmatch(status); m != nil {
			return fmt.Sprintf("it got signals %s (%s)", m[2], m[1])
		}
	}
	return ""
}

func (in *innocent) end() {
	_ = in.cmd.Process.Kill()
	_ = in.cmd.Wait()
}

// crashed is a launch whose daemon was killed.
type crashed struct {
	spec Spec
	id   identity
	main int // its command
}

// aCrashed launches with its own daemon and kills that.
func aCrashed(t *testing.T, base Spec, i int) crashed {
	t.Helper()
	c := crashed{spec: nth(base, i, "")}
	c.spec.KillAfter = 100 * time.Millisecond // its Runner's: see ensureMain
	up := filepath.Join(c.spec.Cwd, fmt.Sprint("up", i))
	script := fmt.Sprintf(`setsid sh -c 'trap "" TERM; while :; do sleep 0.05; done' & echo $$ > %s; while [ ! -e %s.go ]; do sleep 0.01; done; exit 4`, up, up)
	self, _ := os.Executable()
	daemon := exec.Command(self, "ensure", c.spec.Key, c.spec.Dir, c.spec.PidFile, c.spec.Token, script)
	if err := os.MkdirAll(c.spec.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	in, err := daemon.StdinPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	eventually(t, "its command is up", fileHas(up, "\n"))
	_ = daemon.Process.Kill()
	_ = daemon.Wait()
	if c.id, err = readIdentity(c.spec.PidFile); err != nil {
		t.Fatal(err)
	}
	if c.main, err = strconv.Atoi(strings.TrimSpace(content(t, up))); err != nil {
		t.Fatal(err)
	}
	return c
}

// kill kills processes of it, and waits until their numbers are free.
func (c crashed) kill(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	c.freed(t, pids...)
}

func (c crashed) freed(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, "its number is free", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
}

// sameTick makes the pid file claim that the shim started when the innocent did, as if both started
// within one tick of the clock.
func (c crashed) sameTick(t *testing.T) {
	t.Helper()
	now, err := lookProc(c.id.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id := c.id
	id.Start = now.start
	data, err := json.Marshal(id)
	if err == nil {
		err = os.WriteFile(c.spec.PidFile, append(data, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPidsUsedAgain makes daemons crash again and again. Before the next one adopts a launch, the
// numbers in its pid file belong to others.
func TestPidsUsedAgain(t *testing.T) {
	conform.Rule(t, "3-engine identity", "crash and adoption again and again, the numbers of the dead given to other processes: none of them is signalled")
	t.Parallel()
	if !ownPids(t) {
		return
	}
	control := anInnocent(t, 20_000)
	if control == nil {
		t.Fatal("this test has 20,000 threads")
	}
	if harm := control.harm(); harm != "" {
		t.Fatalf("before anything: %s", harm)
	}
	if _ = syscall.Kill(20_000, syscall.SIGCONT); control.harm() == "" {
		t.Fatal("a signal is not seen")
	}
	control.end()
	if control.harm() == "" {
		t.Fatal("its end is not seen")
	}
	base, done := testSpec(t, ""), map[string]int{}
	for n, i := number(t, "SLUICE_ADOPTIONS", reuseCycles), 0; n > 0; i++ {
		if way, ok := cycle(t, base, i); ok {
			done[way]++
			n--
		} else if done["none was to be had"]++; i > reuseCycles && done["none was to be had"] > i/10 {
			t.Fatalf("of %d cycles: %v", i, done)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("crashes and adoptions: %v", done)
}

// cycle is one crash, in the way for its number. What the launch left lives on in its own session:
// the kernel does not reuse a number that a living process has as its session or group. ok reports
// whether all numbers could be taken.
func cycle(t *testing.T, base Spec, i int) (way string, ok bool) {
	t.Helper()
	c := aCrashed(t, base, i)
	shim, want := c.id.Pid, Exit{Code: -1, Lost: true}
	var others []*innocent
	ok = true
	take := func(pids ...int) {
		for _, pid := range pids {
			if in := anInnocent(t, pid); in != nil {
				others = append(others, in)
			} else {
				ok = false
			}
		}
	}
	switch i % ways {
	case 0:
		way = "shim"
		c.kill(t, shim, c.main)
		take(shim)
	case 1:
		way = "shim and command"
		c.kill(t, shim, c.main)
		take(shim, c.main)
	case 2:
		way = "shim, within a tick"
		c.kill(t, shim, c.main)
		if take(shim); len(others) > 0 {
			c.sameTick(t)
		}
	case 3:
		way, want = "both, after a good end", Exit{Code: 4}
		if err := os.WriteFile(filepath.Join(c.spec.Cwd, fmt.Sprintf("up%d.go", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.freed(t, c.main, shim)
		take(shim, c.main)
	case 4:
		way = "shim, by a thread"
		c.kill(t, shim, c.main)
		others = append(others, anInnocentThread(t, shim))
	case 5:
		way, want = "command, under a live shim", Exit{Code: -1, Signal: "SIGKILL"}
		c.kill(t, c.main)
		take(c.main)
	case 6:
		way = "none: the launch is live"
		want = Exit{Code: -1, Signal: "SIGTERM", Stopped: true}
	}
	c.ends(t, i, want)
	for _, in := range others {
		if harm := in.harm(); harm != "" {
			t.Errorf("cycle %d (%s): the one that has number %d is not ours: %s", i, way, max(in.tid, in.cmd.Process.Pid), harm)
		}
		in.end()
	}
	if left := withToken(c.spec.Token); len(left) > 0 {
		t.Errorf("cycle %d (%s): left: %q", i, way, left)
	}
	return way, ok
}

// ends has another daemon adopt the launch and stop it, or wait for its end.
func (c crashed) ends(t *testing.T, i int, want Exit) {
	t.Helper()
	r := newRunner()
	defer r.Close()
	var err error
	switch how := i / ways % 3; {
	case how == 0 || want.Stopped:
		err = r.Stop(testContext(t), c.spec)
	case how == 1:
		var p *Proc
		if p, err = r.Adopt(c.spec.PidFile, ""); err == nil {
			err = p.Stop(testContext(t))
		}
	}
	if err != nil {
		t.Errorf("cycle %d: %v", i, err)
	}
	p, err := r.Ensure(testContext(t), c.spec)
	if err != nil {
		t.Errorf("cycle %d: %v", i, err)
		return
	}
	e, err := p.Wait(testContext(t))
	e.Started, e.Ended = time.Time{}, time.Time{}
	if err != nil || e != want {
		t.Errorf("cycle %d: %+v, %v: want %+v", i, e, err, want)
	}
}

// TestPidUsedAgainWithinATick uses a start time that cannot distinguish, for real: two processes
// with the same number within one tick of the clock.
func TestPidUsedAgainWithinATick(t *testing.T) {
	conform.Rule(t, "3-engine identity", "where pid and start time agree, the mark tells")
	t.Parallel()
	if !ownPids(t) {
		return
	}
	pid := 20_000
	base := testSpec(t, "")
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	for i, met := 0, 0; met < 10; i++ {
		if i == 1000 {
			t.Fatalf("only %d pairs within a tick", met)
		}
		spec := nth(base, i, "")
		first := anInnocent(t, pid)
		if first == nil {
			pid++
			continue
		}
		was, err := lookProc(pid)
		if err != nil {
			t.Fatal(err)
		}
		first.end()
		second := anInnocent(t, pid)
		if second == nil {
			pid++
			continue
		}
		now, err := lookProc(pid)
		if err != nil {
			t.Fatal(err)
		}
		if now.start == was.start {
			met++
			data, _ := json.Marshal(identity{Version: recordVersion, Name: recordName(spec.PidFile), Key: spec.Key, Pid: pid, Start: was.start, Boot: boot, Mark: "abc",
				Token: tokenDigest(spec.Token), Dir: spec.Dir, KillAfter: time.Second, Launched: time.Now()})
			if err := errors.Join(os.MkdirAll(filepath.Dir(spec.PidFile), 0o700), os.WriteFile(spec.PidFile, append(data, '\n'), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := newRunner().Stop(testContext(t), spec); err != nil {
				t.Error(err)
			}
			if harm := second.harm(); harm != "" {
				t.Errorf("pair %d: the second is not ours: %s", i, harm)
			}
		}
		second.end()
		if t.Failed() {
			return
		}
	}
}

// takesAgain has what outlives the first process start another with its number.
const takesAgain = `cat > again.sh <<'END'
trap '' TERM
: > ready
while [ -e /proc/$1 ]; do :; done
while :; do
	echo $(($1 - 1)) > ` + lastPid + `
	sh -c 'trap "" TERM; sleep 0.1; exit 7' &
	[ $! = $1 ] && break
done
echo $! > again
END
echo $$ > first
setsid sh again.sh $$ &
while [ ! -e ready ]; do :; done
exit 3`

// Another process of the same tree may get the first process's number before the tree is gone, once
// its process group is empty: that one's end is not the launch's.
func TestPidOfTheFirstProcessUsedAgain(t *testing.T) {
	t.Parallel()
	if !ownPids(t) {
		return
	}
	for range 30 { // the grace may be over before the number is available
		spec := testSpec(t, takesAgain)
		e := wait(t, ensure(t, newRunner(), spec))
		again, err := os.ReadFile(filepath.Join(spec.Cwd, "again"))
		if err != nil || string(again) != content(t, filepath.Join(spec.Cwd, "first")) {
			continue
		}
		if e.Code != 3 || e.Signal != "" || e.Lost {
			t.Errorf("%+v, want code 3", e)
		}
		return
	}
	t.Fatal("the number was never used again")
}
