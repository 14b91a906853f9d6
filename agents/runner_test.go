//go:build linux || darwin

package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/tools/conform"

	"golang.org/x/sys/unix"
)

func TestExitIsRecorded(t *testing.T) {
	cases := []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{Code: 0}},
		{"echo out; echo err >&2; exit 7", Exit{Code: 7}},
		{"kill -KILL $$", Exit{Code: -1, Signal: "SIGKILL"}},
		{"kill -TERM $$", Exit{Code: -1, Signal: "SIGTERM"}},
		{"kill -HUP $$; exit 1", Exit{Code: -1, Signal: "SIGHUP"}},   // not ignored as in the shim
		{"kill -PIPE $$; exit 1", Exit{Code: -1, Signal: "SIGPIPE"}}, // nor this
		{"kill -INT $$; exit 1", Exit{Code: -1, Signal: "SIGINT"}},
		{"kill -TERM 0; exit 1", Exit{Code: -1, Signal: "SIGTERM"}}, // its own group, without the shim
	}
	for _, c := range cases {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			spec := testSpec(t, c.script)
			before := time.Now()
			p := ensure(t, newRunner(), spec)
			got := wait(t, p)
			if got.Started.Before(before) || got.Ended.Before(got.Started) || got.Ended.After(time.Now()) {
				t.Errorf("started %v, ended %v: want within the test, in this order", got.Started, got.Ended)
			}
			got.Started, got.Ended = time.Time{}, time.Time{}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if _, err := lookProc(p.id.Pid); err == nil {
				t.Error("the shim was not collected")
			}
			if again := wait(t, ensure(t, newRunner(), spec)); again.Code != c.want.Code || again.Signal != c.want.Signal {
				t.Errorf("the second ensure got %+v", again)
			}
		})
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "echo hello; echo oops >&2")
	wait(t, ensure(t, newRunner(), spec))
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != "hello\n" {
		t.Errorf("stdout is %q", got)
	}
	if got := content(t, filepath.Join(spec.Dir, "stderr")); got != "oops\n" {
		t.Errorf("stderr is %q", got)
	}
	for path, mode := range map[string]fs.FileMode{
		spec.Dir: 0o700, filepath.Dir(spec.PidFile): 0o700, spec.PidFile: 0o600,
		filepath.Join(spec.Dir, "stdout"): 0o600, filepath.Join(spec.Dir, "stderr"): 0o600, filepath.Join(spec.Dir, "exit.json"): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v: want %v", path, info.Mode().Perm(), err, mode)
		}
	}
	for _, dir := range []string{spec.Dir, filepath.Dir(spec.PidFile)} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") || strings.Contains(e.Name(), "tail") {
				t.Errorf("%s is left in %s", e.Name(), dir)
			}
		}
	}
	if strings.Contains(content(t, spec.PidFile), spec.Token) || strings.Contains(content(t, filepath.Join(spec.Dir, "exit.json")), spec.Token) {
		t.Error("a record holds the token itself")
	}
}

func TestAdoptAfterTheRunnerIsGone(t *testing.T) {
	conform.Rule(t, "3-engine adopt", "a launch is adopted when who started it is gone")
	t.Parallel()
	spec := testSpec(t, `echo start >> $OUT/starts; while [ ! -e $OUT/go ]; do sleep 0.01; done; exit 5`)
	first := ensure(t, newRunner(), spec)
	eventually(t, "the command runs", fileHas(filepath.Join(spec.Cwd, "starts"), "start"))
	second := ensure(t, newRunner(), spec)
	if first.id.Pid != second.id.Pid {
		t.Errorf("adopted pid %d, want %d", second.id.Pid, first.id.Pid)
	}
	if err := os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, p := range []*Proc{second, first} {
		if e := wait(t, p); e.Code != 5 {
			t.Errorf("wait %d: %+v, want code 5", i, e)
		}
	}
	if got := content(t, filepath.Join(spec.Cwd, "starts")); got != "start\n" {
		t.Errorf("starts: %q, want one", got)
	}
}

// The launch is not a child of the one that adopts it.
func TestAdoptFromAnotherProcess(t *testing.T) {
	conform.Rule(t, "3-engine adopt", "another process adopts it")
	t.Parallel()
	spec := testSpec(t, "")
	script := fmt.Sprintf(`echo start >> %[1]s/starts; while [ ! -e %[1]s/go ]; do sleep 0.01; done; exit 6`, spec.Cwd)
	self, _ := os.Executable()
	daemon := startOther(t, self, "ensure", spec.Key, spec.Dir, spec.PidFile, spec.Token, script)
	eventually(t, "the command runs", fileHas(filepath.Join(spec.Cwd, "starts"), "start"))
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	daemon.Wait()
	p := ensure(t, newRunner(), spec)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait with an ended context: %v", err)
	}
	os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600)
	if e := wait(t, p); e.Code != 6 || e.Lost {
		t.Errorf("%+v, want code 6", e)
	}
	if got := content(t, filepath.Join(spec.Cwd, "starts")); got != "start\n" {
		t.Errorf("starts: %q, want one", got)
	}
}

func TestRaceStartsOnce(t *testing.T) {
	conform.Rule(t, "3-engine keys", "a launch is started once, whoever asks")
	conform.Rule(t, "field ask 2", "no double launch")
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	spec := testSpec(t, `echo start >> starts`)
	for i := range rounds {
		s := spec
		s.Key = fmt.Sprintf("race-%d-%s", i, spec.Token)
		s.Cwd = filepath.Join(spec.Cwd, strconv.Itoa(i))
		s.Dir, s.PidFile = filepath.Join(s.Cwd, "dir"), filepath.Join(s.Cwd, "pid")
		if err := os.Mkdir(s.Cwd, 0o700); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		var pids [2]int
		for n := range pids {
			both.Go(func() {
				p, err := newRunner().Ensure(testContext(t), s)
				if err != nil {
					t.Errorf("round %d: %v", i, err)
					return
				}
				if e, err := p.Wait(testContext(t)); err != nil || e.Code != 0 || e.NotStarted != "" || e.Lost {
					t.Errorf("round %d: %+v, %v", i, e, err)
				}
				pids[n] = p.id.Pid
			})
		}
		both.Wait()
		if got := content(t, filepath.Join(s.Cwd, "starts")); got != "start\n" || pids[0] != pids[1] {
			t.Fatalf("round %d: starts %q, pids %v: want one", i, got, pids)
		}
		id, err := readIdentity(s.PidFile)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "its cgroup is removed", func() bool {
			_, err := os.Lstat(id.Cgroup)
			return id.Cgroup == "" || errors.Is(err, fs.ErrNotExist)
		})
	}
}

func TestEndedLaunchIsNotStartedAgain(t *testing.T) {
	conform.Rule(t, "3-engine keys", "what has ended is not started again")
	t.Parallel()
	spec := testSpec(t, `echo start >> starts; exit 4`)
	wait(t, ensure(t, newRunner(), spec))
	wait(t, ensure(t, newRunner(), spec))
	if err := os.Remove(spec.PidFile); err != nil { // only its record remains
		t.Fatal(err)
	}
	if e := wait(t, ensure(t, newRunner(), spec)); e.Code != 4 {
		t.Errorf("%+v, want code 4", e)
	}
	if got := content(t, filepath.Join(spec.Cwd, "starts")); got != "start\n" {
		t.Errorf("starts: %q, want one", got)
	}
	spec.Token = "another"
	if _, err := newRunner().Adopt(spec.PidFile, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("adopt without a pid file: %v, want fs.ErrNotExist", err)
	}
}

func TestPidFileOfAnotherLaunch(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "exit 0")
	wait(t, ensure(t, newRunner(), spec))
	for _, change := range []func(*Spec){func(s *Spec) { s.Key += "x" }, func(s *Spec) { s.Token += "x" }} {
		other := spec
		change(&other)
		if _, err := newRunner().Ensure(testContext(t), other); err == nil || !strings.Contains(err.Error(), "another") {
			t.Errorf("ensure with another's pid file: %v", err)
		}
	}
}

// A record that the command itself leaves does not count while its shim lives, and the shim's
// replaces it.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `echo '{"v":1,"key":"x","code":0}' > attempt/exit.json; touch forged; while [ ! -e go ]; do sleep 0.01; done; exit 3`)
	p := ensure(t, newRunner(), spec)
	eventually(t, "the record is forged", func() bool { _, err := os.Stat(filepath.Join(spec.Cwd, "forged")); return err == nil })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if e, err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait took the forged record: %+v, %v", e, err)
	}
	os.WriteFile(filepath.Join(spec.Cwd, "go"), nil, 0o600)
	if e := wait(t, p); e.Code != 3 {
		t.Errorf("%+v, want code 3", e)
	}
}

func TestFolderRemovedByTheCommand(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, `rm -rf attempt; exit 9`)
	if e := wait(t, ensure(t, newRunner(), spec)); e.Code != 9 || e.Lost {
		t.Errorf("%+v, want code 9", e)
	}
}

func TestTornPidFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"v":9}`, strings.Repeat("x", maxRecordBytes+1)} {
		spec := testSpec(t, "touch started")
		os.MkdirAll(filepath.Dir(spec.PidFile), 0o700)
		os.WriteFile(spec.PidFile, []byte(text), 0o600)
		if _, err := newRunner().Ensure(testContext(t), spec); err == nil {
			t.Errorf("pid file %.10q: no error", text)
		}
		left := startOther(t, "env", "SLUICE_TOKEN="+spec.Token, "sleep", "60")
		eventually(t, "it carries the token", func() bool { return len(withToken(spec.Token)) == 1 })
		if err := newRunner().Stop(testContext(t), spec); (err == nil) == (len(text) > maxRecordBytes) {
			t.Errorf("pid file %.10q: stop: %v", text, err)
		} else if err == nil && runs(left.Process.Pid) {
			t.Errorf("pid file %.10q: what carries its token is left", text)
		}
		os.Remove(spec.PidFile)
		if _, err := os.Stat(filepath.Join(spec.Cwd, "started")); err == nil {
			t.Error("it was started")
		}
	}
}

// A pid file names a live process that is not its shim: nobody signals it, and the launch counts as
// lost.
func TestRecycledPid(t *testing.T) {
	conform.Rule(t, "3-engine identity", "a live process that is not its shim is not signalled")
	conform.Rule(t, "field ask 2", "a pid used again is not taken for ours")
	t.Parallel()
	launch := testSpec(t, "")
	mark := markVar + "=abc"
	other, stranger := startOther(t, "env", mark, "sleep", "60"), startOther(t, "sleep", "60")
	eventually(t, "they are up", func() bool {
		return fileHas("/proc/"+strconv.Itoa(other.Process.Pid)+"/environ", mark)() && fileHas("/proc/"+strconv.Itoa(stranger.Process.Pid)+"/comm", "sleep")()
	})
	self, err := lookProc(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(*identity){
		"start time": func(id *identity) { id.Start += "1" },
		"boot id":    func(id *identity) { id.Boot = "another" },
		"mark": func(id *identity) { // everything matches except the shim's mark
			p, _ := lookProc(stranger.Process.Pid)
			id.Pid, id.Start = p.pid, p.start
		},
	}
	for name, change := range cases {
		spec := launch
		spec.Dir += name
		spec.PidFile += name
		id := identity{Version: recordVersion, Name: recordName(spec.PidFile), Key: spec.Key, Pid: self.pid, Start: self.start, Boot: boot, Mark: "abc",
			Token: tokenDigest(spec.Token), Dir: spec.Dir, KillAfter: time.Second, Launched: time.Now()}
		change(&id)
		data, _ := json.Marshal(id)
		os.MkdirAll(filepath.Dir(spec.PidFile), 0o700)
		os.WriteFile(spec.PidFile, data, 0o600)
		if err := newRunner().Stop(testContext(t), spec); err != nil {
			t.Errorf("%s: stop: %v", name, err)
		}
		if e := wait(t, ensure(t, newRunner(), spec)); !e.Lost {
			t.Errorf("%s: %+v, want lost", name, e)
		}
		if !runs(other.Process.Pid) || !runs(stranger.Process.Pid) {
			t.Fatalf("%s: a foreign process was signalled", name)
		}
	}
}

// Nothing wakes while a command works: Wait hears of the end, and does not look for it.
func TestWaitDoesNotPoll(t *testing.T) {
	spec := testSpec(t, `read line < go`)
	fifo := filepath.Join(spec.Cwd, "go")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := ensure(t, newRunner(), spec)
	done := make(chan error, 1)
	go func() {
		_, err := p.Wait(testContext(t))
		done <- err
	}()
	opened, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns once the command reads
	if err != nil {
		t.Fatal(err)
	}
	const most = 20 // three at rest; a look every 50 ms makes 40 and more
	fewest := int64(most)
	for range 3 {
		before := switches(t)
		time.Sleep(2 * time.Second) // what is counted is what happens in this time
		if fewest = min(fewest, switches(t)-before); fewest < most {
			break
		}
	}
	t.Logf("the process gave up its processor %d times in 2 s of waiting", fewest)
	if fewest >= most {
		t.Errorf("the process gave up its processor %d times or more in 2 s of waiting", fewest)
	}
	opened.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// switches returns how often the threads of this process gave up a processor to wait.
func switches(t *testing.T) int64 {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return int64(used.Nvcsw)
}
