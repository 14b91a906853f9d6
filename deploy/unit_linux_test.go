package deploy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What systemd's words come to. Each row is what `systemctl show` said in a machine that was brought into that state.
func TestStates(t *testing.T) {
	now := time.Unix(10_000, 0).UTC()
	at := func(ago int) string {
		return now.Add(-time.Duration(ago) * time.Second).Format("Mon 2006-01-02 15:04:05 MST")
	}
	for name, x := range map[string]struct {
		says        map[string]string
		state, want string // want: a part of why
	}{
		"no unit":        {map[string]string{"LoadState": "not-found", "ActiveState": "inactive"}, StateAbsent, ""},
		"a bad unit":     {map[string]string{"LoadState": "bad-setting", "LoadError": "line 3"}, StateFailed, "line 3"},
		"never started":  {map[string]string{"LoadState": "loaded", "ActiveState": "inactive", "Result": "success"}, StateStopped, ""},
		"runs":           {map[string]string{"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "StateChangeTimestamp": at(5)}, StateRunning, ""},
		"reads settings": {map[string]string{"LoadState": "loaded", "ActiveState": "reloading", "StateChangeTimestamp": at(5)}, StateRunning, ""},
		"came back once": {map[string]string{"LoadState": "loaded", "ActiveState": "active", "NRestarts": "1", "StateChangeTimestamp": at(2)}, StateRunning, ""},
		"crashes often":  {map[string]string{"LoadState": "loaded", "ActiveState": "active", "NRestarts": "4", "StateChangeTimestamp": at(2)}, StateLooping, "4 times"},
		"crashed long ago": {map[string]string{"LoadState": "loaded", "ActiveState": "active", "NRestarts": "4", "StateChangeTimestamp": at(3600)},
			StateRunning, ""},
		"begins":      {map[string]string{"LoadState": "loaded", "ActiveState": "activating", "SubState": "start"}, StateStarting, ""},
		"first crash": {map[string]string{"LoadState": "loaded", "ActiveState": "activating", "SubState": "auto-restart", "ExecMainCode": "2", "ExecMainStatus": "9"}, StateStarting, "signal 9"},
		"waits to begin again": {map[string]string{"LoadState": "loaded", "ActiveState": "activating", "SubState": "auto-restart", "NRestarts": "2", "ExecMainCode": "1", "ExecMainStatus": "1"},
			StateLooping, "exit code 1; it crashed 3 times"},
		"begins once more": {map[string]string{"LoadState": "loaded", "ActiveState": "activating", "SubState": "start", "NRestarts": "5"}, StateLooping, "5 times"},
		"ends":             {map[string]string{"LoadState": "loaded", "ActiveState": "deactivating"}, StateStopping, ""},
		"given up":         {map[string]string{"LoadState": "loaded", "ActiveState": "failed", "Result": "start-limit-hit"}, StateFailed, "gave up"},
		"damaged":          {map[string]string{"LoadState": "loaded", "ActiveState": "failed", "Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "78"}, StateFailed, "journal is damaged"},
		"hung":             {map[string]string{"LoadState": "loaded", "ActiveState": "failed", "Result": "watchdog", "ExecMainCode": "2", "ExecMainStatus": "6"}, StateFailed, "watchdog"},
	} {
		st := (&Service{opt: Options{System: true}}).read(x.says, now)
		if st.State != x.state || !strings.Contains(st.Why, x.want) || x.want == "" && st.Why != "" {
			t.Errorf("%s: %q, %q; want %q, %q", name, st.State, st.Why, x.state, x.want)
		}
	}
}

func TestReadsOfShow(t *testing.T) {
	st := (&Service{opt: Options{System: true}}).read(map[string]string{"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled", "MainPID": "42", "NeedDaemonReload": "yes",
		"ExecStart": `{ path=/a b/sluice ; argv[]=/a b/sluice daemon ; ignore_errors=no }`, "FragmentPath": "/etc/systemd/system/sluice.service"}, time.Now())
	if st.Program != "/a b/sluice" || st.PID != 42 || !st.Enabled || st.Begins != "at boot" || !st.Stale {
		t.Errorf("%+v", st)
	}
	if got := begins(Status{Enabled: true}); got != "at login" {
		t.Errorf("a user's without linger begins %s", got)
	}
	if got := begins(Status{}); got != "by hand" {
		t.Errorf("one that is not enabled begins %s", got)
	}
}

// Only a stop is a wish to end the agents: not a restart, not a crash, not the end of everything.
func TestWhyBy(t *testing.T) {
	for jobs, want := range map[string]End{
		"":                                    EndCrash,
		"12 sluice.service stop running\n":    EndStop,
		"12 sluice.service restart running\n": EndCrash,
		"12 sluice.service start waiting\n":   EndCrash,
		"12 other.service stop running\n":     EndCrash,
		"12 sluice.service stop running\n1 shutdown.target start waiting\n":                            EndDown,
		"1 shutdown.target start waiting\n2 reboot.target start waiting\n12 sluice.service stop run\n": EndDown,
		"No jobs running.\n": EndCrash,
	} {
		if got := whyBy(jobs); got != want {
			t.Errorf("%q: %v, want %v", jobs, got, want)
		}
	}
}

func TestUnitGroup(t *testing.T) {
	for lines, want := range map[string]string{
		"0::/system.slice/sluice.service\n":                                                    "/system.slice/sluice.service",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/sluice.service/.control\n": "/user.slice/user-1000.slice/user@1000.service/app.slice/sluice.service",
		"4:memory:/x\n1:name=systemd:/system.slice/sluice.service\n0::/\n":                     "/system.slice/sluice.service",
		"0::/user.slice/user-1000.slice/session-3.scope\n":                                     "",
		"0::/system.slice/notsluice.service\n":                                                 "",
		"0::/system.slice/sluice.service.d/x\n":                                                "",
		"3:cpu:/system.slice/sluice.service\n":                                                 "",
	} {
		if got := unitGroup(lines); got != want {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
	}
}

// A folder that looks like a cgroup stands for one: what counts is which process gets which signal.
func TestEmpty(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	script := "trap 'echo told >> '\"$1\"'; exit' TERM\necho up > \"$1.up\"\nwhile :; do sleep 0.05; done\n"
	stubborn := "trap '' TERM\necho up > \"$1.up\"\nwhile :; do sleep 0.05; done\n"
	for name, text := range map[string]string{"agent": script, "shim": script, "stubborn": stubborn} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var pids []string
	for _, name := range []string{"agent", "shim", "stubborn"} {
		cmd := exec.Command("/bin/sh", name, filepath.Join(work, name+".told"))
		cmd.Dir = work
		if name == "shim" {
			cmd.Args[0] = os.Args[0] // as sluice runs its hosts
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		pids = append(pids, fmt.Sprint(cmd.Process.Pid))
		for until := time.Now().Add(30 * time.Second); !isThere(filepath.Join(work, name+".told.up")); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s never came up", name)
			}
		}
	}
	below := filepath.Join(dir, "sluice-abc-1")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, list := range map[string][]string{filepath.Join(dir, "cgroup.procs"): {pids[1], fmt.Sprint(os.Getpid())}, filepath.Join(below, "cgroup.procs"): {pids[0], pids[2]}} {
		if err := os.WriteFile(file, []byte(strings.Join(list, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := empty(t.Context(), []string{dir}, time.Second); err != nil {
		t.Fatal(err)
	}
	if left := processesIn([]string{dir}); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if !isThere(filepath.Join(work, "agent.told")) {
		t.Error("the agent was ended without a word")
	}
	if isThere(filepath.Join(work, "shim.told")) {
		t.Error("the host was told, and may have noted how its launch ended")
	}
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Where systemd did not start the machine there is no service, and no init script is written.
func TestNoManager(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("kernel: a machine that systemd did not start")
	}
	for _, system := range []bool{false, true} {
		if _, err := Open(Options{System: system, Home: t.TempDir(), Program: "/bin/true"}); !errors.Is(err, ErrNoManager) {
			t.Errorf("system %v: %v", system, err)
		}
	}
	if _, err := os.Stat("/etc/init.d/sluice"); err == nil {
		t.Error("an init script was written")
	}
}
