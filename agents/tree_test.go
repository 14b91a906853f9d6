//go:build linux

package agents

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

// stubborn is a tree of processes that fork, create sessions, daemonise, drop their environment and
// ignore TERM.
const stubborn = `
trap '' TERM
(trap '' TERM; while :; do sleep 0.05; done) &
setsid sh -c 'trap "" TERM HUP; setsid sh -c "trap \"\" TERM; while :; do sleep 0.05; done" & while :; do sleep 0.05; done' &
setsid sh -c '(trap "" TERM; setsid sh -c "trap \"\" TERM; while :; do sleep 1; done" &) ; exit 0' &
setsid env -i PATH=$PATH sh -c 'trap "" TERM; echo $$ > '$OUT'/bare; while :; do sleep 0.05; done' &
while [ ! -s $OUT/bare ]; do sleep 0.01; done
echo up > $OUT/up
`

func shimPid(t *testing.T, spec Spec) int {
	t.Helper()
	id, err := readIdentity(spec.PidFile)
	if err != nil {
		t.Fatal(err)
	}
	return id.Pid
}

func barePid(t *testing.T, spec Spec) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(content(t, filepath.Join(spec.Cwd, "bare"))))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestStopIsGentleFirst(t *testing.T) {
	conform.Rule(t, "3-engine tree", "TERM, then KILL")
	t.Parallel()
	spec := testSpec(t, `trap 'echo bye; exit 0' TERM; echo up > up; while :; do sleep 0.01; done`)
	p := ensure(t, newRunner(), spec)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	before := time.Now()
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(before); took >= spec.KillAfter {
		t.Errorf("took %v", took)
	}
	if e := wait(t, p); !e.Stopped || e.Code != 0 || e.Signal != "" {
		t.Errorf("%+v, want stopped with code 0", e)
	}
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "bye\n" {
		t.Errorf("stdout %q", got)
	}
}

// A suspended process is stopped gently too.
func TestStopIsGentleToTheHeld(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `trap 'echo bye; exit 0' TERM; echo up > up; kill -STOP $$; while :; do sleep 0.01; done`)
	p := ensure(t, newRunner(), spec)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	procs := treeOf(t, p.id.Pid)
	eventually(t, "it is held", fileHas("/proc/"+strconv.Itoa(procs[0].pid)+"/stat", ") T "))
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); !e.Stopped || e.Code != 0 || e.Signal != "" {
		t.Errorf("%+v, want stopped with code 0", e)
	}
}

func TestOnlyTheVerifiedIsSignalled(t *testing.T) {
	conform.Rule(t, "3-engine identity", "only the verified process is signalled")
	t.Parallel()
	other := startOther(t, "sleep", "60")
	p, err := lookProc(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	recycled := p
	recycled.start += "1"
	if signalProc(recycled, syscall.SIGKILL) || !runs(p.pid) {
		t.Error("one of another start time was signalled")
	}
	self, _ := lookProc(os.Getpid())
	first, _ := lookProc(1)
	if signalProc(self, syscall.SIGCONT) || signalProc(first, 0) || signalProc(proc{pid: 0}, 0) || signalProc(proc{pid: -1}, 0) {
		t.Error("itself, the first process or a group was signalled")
	}
	if !signalProc(p, syscall.SIGKILL) {
		t.Error("the right one was not signalled")
	}
	eventually(t, "it is gone", func() bool { return !runs(p.pid) })
}

func TestSweepSparesTheSweeper(t *testing.T) {
	t.Parallel()
	self, _ := os.Executable()
	cmd := exec.Command(self, "sweep")
	cmd.Env = append(os.Environ(), "SLUICE_TOKEN="+rand.Text())
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "well\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// A stop after the command ended by itself is not the cause of its end.
func TestStopAfterTheEnd(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `sh -c 'trap "touch termed" TERM; touch up; while :; do sleep 0.01; done' & while [ ! -e up ]; do sleep 0.01; done; exit 3`)
	p := ensure(t, newRunner(), spec)
	eventually(t, "the shim has seen the end", func() bool { _, err := os.Stat(filepath.Join(spec.Cwd, "termed")); return err == nil })
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); e.Stopped || e.Code != 3 {
		t.Errorf("%+v, want code 3, not stopped", e)
	}
}

// If orphans do not return to the shim, they are found by the token.
func TestOrphansThatDoNotComeBack(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "")
	orphan := startOther(t, "env", TokenVar+"="+spec.Token, "sleep", "60")
	eventually(t, "it is up", func() bool { return len(withToken(spec.Token)) == 1 })
	s := &shim{place: &place{}, spec: spec, id: identity{Key: spec.Key, Token: tokenDigest(spec.Token)}}
	s.endStrays()
	if runs(orphan.Process.Pid) {
		t.Error("it is left")
	}
}

func TestStopOfWhatNeverStarted(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "")
	if err := newRunner().Stop(testContext(t), spec); err != nil {
		t.Error(err)
	}
}

// What outlives the main process is stopped before the record is written.
func TestLeftoversEndWithTheCommand(t *testing.T) {
	conform.Rule(t, "3-engine tree", "what outlives the main process is ended before the record")
	for name, r := range map[string]*Runner{"cgroup": newRunner(), "no cgroup": noCgroups()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leftoversEnd(t, r)
		})
	}
}

func leftoversEnd(t *testing.T, r *Runner) {
	spec := testSpec(t, stubborn+"exit 3")
	e := wait(t, ensure(t, r, spec))
	if left := withToken(spec.Token); len(left) > 0 || runs(barePid(t, spec)) {
		t.Errorf("left: %v", left)
	}
	if e.Code != 3 || e.Stopped {
		t.Errorf("%+v, want code 3", e)
	}
	if id, _ := readIdentity(spec.PidFile); id.Cgroup != "" {
		if _, err := os.Stat(id.Cgroup); err == nil {
			t.Errorf("cgroup %s is left", id.Cgroup)
		}
	}
}

// With a cgroup, a killed shim's tree is found even if it has neither token nor parents.
func TestShimKilledTokenDropped(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `(setsid env -i sh -c 'while :; do sleep 0.05; done' & echo $! > $OUT/bare); echo up > $OUT/up; while :; do sleep 0.05; done`)
	p := ensure(t, newRunner(), spec)
	if id, _ := readIdentity(spec.PidFile); id.Cgroup == "" {
		t.Skip("kernel: no cgroup to be had here")
	}
	eventually(t, "the tree is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	bare := barePid(t, spec)
	eventually(t, "it dropped the token", func() bool {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(bare) + "/environ")
		return err == nil && !strings.Contains(string(env), spec.Token)
	})
	syscall.Kill(shimPid(t, spec), syscall.SIGKILL)
	if e := wait(t, p); !e.Lost {
		t.Errorf("%+v, want lost", e)
	}
	if runs(bare) {
		t.Error("it is left")
		syscall.Kill(bare, syscall.SIGKILL)
	}
}

// soonStopped is an endless launch, of a runner that allows little time for stops.
func soonStopped(t *testing.T) (*Runner, Spec, *Proc) {
	t.Helper()
	spec := testSpec(t, `echo up > up; while :; do sleep 0.05; done`)
	spec.KillAfter = 50 * time.Millisecond
	r := newRunner()
	r.stopMargin = 200 * time.Millisecond
	p := ensure(t, r, spec)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	return r, spec, p
}

// A shim that does not react to TERM is killed.
func TestStopOfAStuckShim(t *testing.T) {
	t.Parallel()
	_, spec, p := soonStopped(t)
	done, stuck := make(chan struct{}), sync.WaitGroup{}
	stuck.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				syscall.Kill(p.id.Pid, syscall.SIGSTOP)
				if !runs(p.id.Pid) {
					return
				}
			}
		}
	})
	err := p.Stop(testContext(t))
	close(done)
	stuck.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if left := withToken(spec.Token); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	wait(t, p)
}

// A shim suspended after it reported the end, before it exits, delays neither waiters for the
// launch nor the Runner's end.
func TestAShimThatDoesNotGo(t *testing.T) {
	t.Parallel()
	r := newRunner()
	r.warm, r.stopMargin = 0, 200*time.Millisecond
	spec := testSpec(t, `while [ ! -e go ]; do sleep 0.05; done`)
	p := ensure(t, r, spec)
	l := r.ongoing(p.id.file)
	if l == nil {
		t.Fatal("the launch is not under way")
	}
	if err := syscall.Kill(p.id.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	rested := make(chan struct{})
	go func() { r.rest(l.host); close(rested) }() // as after its report
	select {
	case <-rested:
	case <-time.After(waitFor):
		t.Error("it waits for the shim")
	}
	eventually(t, "it is killed", func() bool { return !runs(p.id.Pid) })
	r.Sweep(spec.Token)
}

// A shim suspended after the end was recorded, before it reports, delays nobody: the record counts.
func TestStopOfAShimThatDoesNotTell(t *testing.T) {
	t.Parallel()
	r, spec, p := soonStopped(t)
	if err := syscall.Kill(p.id.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(spec.PidFile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"ended":{"code":7}}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	err = p.Stop(testContext(t))
	r.Sweep(spec.Token) // the tree, which the shim would have ended before writing that
	if err != nil {
		syscall.Kill(p.id.Pid, syscall.SIGKILL)
		t.Fatal(err)
	}
	if runs(p.id.Pid) {
		t.Error("the shim is left")
	}
	if e := wait(t, p); e.Code != 7 || e.Lost {
		t.Errorf("%+v, want what the record tells", e)
	}
}

func TestGrandchildHoldsStdout(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `setsid sleep 60 & echo done`)
	before := time.Now()
	wait(t, ensure(t, newRunner(), spec))
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "done\n" {
		t.Errorf("stdout %q", got)
	}
}

func TestShimKilled(t *testing.T) {
	for name, r := range map[string]*Runner{"cgroup": newRunner(), "no cgroup": noCgroups()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shimKilled(t, r)
		})
	}
}

func shimKilled(t *testing.T, r *Runner) {
	forged := `echo '{"v":1,"key":"run-1","code":0}' > attempt/exit.json; `
	spec := testSpec(t, `echo before; `+forged+stubborn+"while :; do sleep 0.05; done")
	p := ensure(t, r, spec)
	eventually(t, "the tree is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	// Output that the shim has not read yet is lost with it.
	eventually(t, "its output is kept", fileHas(filepath.Join(spec.Dir, "stdout"), "before\n"))
	id, _ := readIdentity(spec.PidFile)
	bare := barePid(t, spec)
	if err := syscall.Kill(shimPid(t, spec), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e := wait(t, p)
	if !e.Lost || e.Code != -1 {
		t.Errorf("%+v, want lost", e)
	}
	if left := withToken(spec.Token); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if runs(bare) {
		t.Error("what dropped its environment is left")
		syscall.Kill(bare, syscall.SIGKILL)
	}
	if id.Cgroup != "" {
		if _, err := os.Stat(id.Cgroup); err == nil {
			t.Errorf("cgroup %s is left", id.Cgroup)
		}
	}
	if again := wait(t, ensure(t, newRunner(), spec)); again != e {
		t.Errorf("again: %+v, want %+v", again, e)
	}
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "before\n" {
		t.Errorf("stdout %q", got)
	}
}

func TestStopOfAHeldShim(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `echo up > up; while :; do sleep 0.05; done`)
	p := ensure(t, newRunner(), spec)
	eventually(t, "it is up", fileHas(filepath.Join(spec.Cwd, "up"), "up"))
	if err := syscall.Kill(shimPid(t, spec), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := newRunner().Stop(testContext(t), spec); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); !e.Stopped {
		t.Errorf("%+v, want stopped", e)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "")
	other := startOther(t, "sleep", "60")
	cmd := startOther(t, "env", "SLUICE_TOKEN="+spec.Token, "sh", "-c", "sleep 60 & env -i sleep 60 & wait")
	eventually(t, "they are up", func() bool { return len(withToken(spec.Token)) == 2 && len(treeOf(t, cmd.Process.Pid)) == 2 })
	if n := newRunner().Sweep(spec.Token); n != 3 {
		t.Errorf("swept %d, want 3", n)
	}
	if !runs(other.Process.Pid) {
		t.Error("a foreign process was swept")
	}
	if n := newRunner().Sweep(""); n != 0 {
		t.Errorf("swept %d without a token", n)
	}
}

func treeOf(t *testing.T, pid int) []proc {
	t.Helper()
	procs, err := table()
	if err != nil {
		t.Fatal(err)
	}
	return below(procs, pid)
}
