package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sluice/internal/conform"
)

const (
	reuseCycles  = 48  // of `make test`; SLUICE_ADOPTIONS says another number
	reuseTries   = 500 // to have a process under a number: others may come between
	lastPid      = "/proc/sys/kernel/ns_last_pid"
	reuseMark    = "SLUICE_TEST_OWN_PIDS"
	reuseProgram = "sleep 1000" // every signal that a Runner sends but CONT ends it, or holds it
)

// ownPids runs the test once more where it numbers the processes itself, and
// tells whether this is that run.
func ownPids(t *testing.T) bool {
	t.Helper()
	if os.Getenv(reuseMark) != "" {
		return true
	}
	args := []string{"--pid", "--fork", "--mount-proc"}
	if out, err := exec.Command("unshare", append(args, "sh", "-c", "echo 5000 >"+lastPid)...).CombinedOutput(); err != nil {
		t.Skipf("kernel: process numbers of one's own (unshare %s; %s): %v %s", strings.Join(args, " "), lastPid, err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell collects what loses its parent: a process that nobody collects keeps its number.
	cmd := exec.Command("unshare", append(args, "sh", "-c", `"$0" "$@"; exit $?`, self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=50m")...)
	cmd.Env = append(os.Environ(), reuseMark+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v", err)
	}
	t.Logf("%s", out)
	return false
}

// innocent is a process that has the number of one that has gone.
type innocent struct {
	*exec.Cmd
	of string
}

// takeNumber starts one. It leads a session and a group of its own, as what
// had the number before.
func takeNumber(t *testing.T, pid int, of string) innocent {
	t.Helper()
	eventually(t, of+" has gone", func() bool { _, err := os.Lstat("/proc/" + strconv.Itoa(pid)); return err != nil })
	for range reuseTries {
		if err := os.WriteFile(lastPid, []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(reuseProgram)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Dir = []string{}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			return innocent{cmd, of}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Fatalf("the number %d of %s is not to be had", pid, of)
	return innocent{}
}

// end ends it, and says what was done to it before.
func (p innocent) end(t *testing.T) {
	t.Helper()
	stat := content(t, "/proc/"+strconv.Itoa(p.Process.Pid)+"/stat")
	if i := strings.LastIndexByte(stat, ')'); i < 0 || strings.ContainsAny(stat[i+2:i+3], "TtZX") {
		t.Errorf("a process that has the number of %s was signalled: %s", p.of, stat)
	}
	_ = p.Process.Kill()
	if err := p.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("a process that has the number of %s: %v", p.of, err)
	}
}

// A daemon that takes up what another has left signals nothing but what is its
// launch's: not what has the numbers by now.
func TestPidsUsedAgain(t *testing.T) {
	conform.Rule(t, "3-engine identity", "crash and adoption again and again, the numbers of the dead given to other processes: none of them is signalled")
	t.Parallel()
	if !ownPids(t) {
		return
	}
	number := number(t, "SLUICE_ADOPTIONS", reuseCycles)
	for i := range number {
		reuseCycle(t, i)
		if t.Failed() {
			t.Fatalf("cycle %d", i)
		}
	}
	t.Logf("%d crashes and adoptions", number)
}

func reuseCycle(t *testing.T, i int) {
	t.Helper()
	spec := testSpec(t, `[ ! -e strays ] || setsid sleep 1000 & echo $$ >pid.new; mv pid.new pid; [ ! -e ends ] || exit 4; exec sleep 1000`)
	spec.KillAfter *= 5 // what is killed at once has been taken for a stranger
	kind := i % 5
	for name, is := range map[string]bool{"strays": kind == 0 || kind == 3, "ends": kind == 2} {
		if !is {
			continue
		}
		if err := os.WriteFile(filepath.Join(spec.Cwd, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := ensure(t, newRunner(), spec)
	pidFile := filepath.Join(spec.Cwd, "pid")
	eventually(t, "it is up", fileHas(pidFile, "\n"))
	command, err := strconv.Atoi(strings.TrimSpace(content(t, pidFile)))
	if err != nil {
		t.Fatal(err)
	}
	var others []innocent
	want := Exit{Code: -1, Lost: true}
	// As long as a session or a group has a process, nobody is given its number.
	both := func() {
		crash(t, p.Pid())
		crash(t, command)
	}
	taken := func() {
		others = append(others, takeNumber(t, p.Pid(), "the shim"), takeNumber(t, command, "the command"))
	}
	switch kind {
	case 0: // they are killed; what has a session of its own is left
		both()
		taken()
	case 1: // nothing is left
		both()
		taken()
	case 2: // the end is on the record
		wait(t, p)
		want = Exit{Code: 4}
		taken()
	case 3: // what has the shim's number was started in the same moment, as the system tells moments apart
		both()
		taken()
		startedAt(t, spec.PidFile, p.Pid())
	case 4: // the daemon alone has gone: the launch is live
		want = Exit{Stopped: true}
	}
	r := newRunner()
	adopted, err := r.Adopt(spec.PidFile, "")
	if err != nil {
		t.Fatal(err)
	}
	if i%2 == 0 || want.Stopped {
		if err := adopted.Stop(testContext(t)); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	if e := wait(t, adopted); e.Lost != want.Lost || e.Stopped != want.Stopped || !want.Stopped && e.Code != want.Code {
		t.Errorf("it ended as %+v, want %+v", e, want)
	}
	if err := r.Stop(testContext(t), spec); err != nil {
		t.Errorf("stop: %v", err)
	}
	if left := withToken(spec.Token); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, p := range others {
		p.end(t)
	}
}

// crash kills a process.
func crash(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// startedAt has a pid file's record say that its process was started when the
// process that has the number was.
func startedAt(t *testing.T, pidFile string, pid int) {
	t.Helper()
	now, err := lookProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	id, err := readIdentity(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	text := content(t, pidFile)
	changed := strings.Replace(text, `"start":"`+id.Start+`"`, `"start":"`+now.start+`"`, 1)
	if id.Start != now.start && changed == text {
		t.Fatalf("no start in %s", text)
	}
	if err := os.WriteFile(pidFile, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}
