package deploy_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/deploy"
	"sluice/tools/conform"
)

// line returns the values of a key in a unit.
func line(unit, key string) []string {
	var out []string
	for l := range strings.Lines(unit) {
		if value, ok := strings.CutPrefix(strings.TrimSuffix(l, "\n"), key+"="); ok {
			out = append(out, value)
		}
	}
	return out
}

// What the library's own template gets wrong is right in ours: one line each.
func TestUnitsSayWhatTheyMust(t *testing.T) {
	t.Parallel()
	v := deploy.Values{Program: "/usr/bin/sluice", EnvFile: "/etc/sluice/service.env", Home: "/home/ann"}
	user, err := deploy.UserUnit(v)
	if err != nil {
		t.Fatal(err)
	}
	system, err := deploy.SystemUnit(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{user, system} {
		if word := regexp.MustCompile(`@[A-Z]+@`).FindString(unit); word != "" {
			t.Errorf("%s was not filled in", word)
		}
		for key, want := range map[string]string{
			"Type": "notify", "Restart": "on-failure", "RestartSec": "1", "KillMode": "process", "OOMPolicy": "continue", "Delegate": "yes",
			"NoNewPrivileges": "yes", "RestartPreventExitStatus": "78", "StartLimitIntervalSec": "60", "StartLimitBurst": "10",
			"EnvironmentFile": "-/etc/sluice/service.env", "ExecStart": `:"/usr/bin/sluice" daemon`,
		} {
			if got := line(unit, key); !slices.Equal(got, []string{want}) {
				t.Errorf("%s=%q, want %q", key, got, want)
			}
		}
	}
	if got := line(user, "WantedBy"); !slices.Equal(got, []string{"default.target"}) {
		t.Errorf("user: WantedBy=%q", got)
	}
	if got := line(system, "After"); !slices.Equal(got, []string{"network-online.target dbus.service"}) {
		t.Errorf("system: After=%q", got)
	}
	if got := line(system, "WantedBy"); !slices.Equal(got, []string{"multi-user.target"}) {
		t.Errorf("system: WantedBy=%q", got)
	}
	if got := line(system, "User"); !slices.Equal(got, []string{"sluice", "found"}) { // the second is our own note
		t.Errorf("system: User=%q", got)
	}
	// What would keep the sandbox from working, or take /tmp from under agents at a restart.
	for _, key := range []string{"ProtectKernelTunables", "ProtectControlGroups", "ProtectKernelLogs", "ProcSubset", "PrivateTmp", "RestrictNamespaces", "MemoryDenyWriteExecute", "PrivateUsers"} {
		if got := append(line(user, key), line(system, key)...); got != nil {
			t.Errorf("%s=%q", key, got)
		}
	}
}

// Paths go into a unit with the escapes of their place, and one that would begin a line of its own is refused.
func TestPathsInUnits(t *testing.T) {
	t.Parallel()
	unit, err := deploy.UserUnit(deploy.Values{Program: `/a b/100%/"q"\$HOME/sluice`, EnvFile: "/c d/50%/service.env", Home: "/h %i x"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"ExecStart": `:"/a b/100%%/\"q\"\\$HOME/sluice" daemon`, "EnvironmentFile": "-/c d/50%%/service.env", "WorkingDirectory": "/h %%i x",
	} {
		if got := line(unit, key); !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%q, want %q", key, got, want)
		}
	}
	for _, bad := range []string{"/a\nExecStartPre=/bin/evil", "/a\x00", "/a ", `/a\`, "/\xff"} {
		for _, v := range []deploy.Values{{Program: bad}, {EnvFile: bad}, {Home: bad}} {
			if _, err := deploy.UserUnit(v); !errors.Is(err, deploy.ErrPath) {
				t.Errorf("%+v: %v", v, err)
			}
		}
	}
}

// The environment's file takes what is found now and leaves what a person wrote.
func TestEnvFile(t *testing.T) {
	t.Parallel()
	first := deploy.EnvFile("", map[string]string{"PATH": `/a b:/$x`, "Q": "`\"\\", "BAD": "two\nlines"})
	for _, want := range []string{"PATH=\"/a b:/\\$x\"\n", "Q=\"\\`\\\"\\\\\"\n"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	if strings.Contains(first, "BAD") {
		t.Error("a value of two lines was written")
	}
	own := first + "\n# mine\nANTHROPIC_API_KEY=k\nPATH=/old\n"
	second := deploy.EnvFile(own, map[string]string{"PATH": "/new"})
	for _, want := range []string{"PATH=\"/new\"\n", "# mine\nANTHROPIC_API_KEY=k\n", "Q="} {
		if !strings.Contains(second, want) {
			t.Errorf("%q is not in\n%s", want, second)
		}
	}
	if strings.Contains(second, "/old") || strings.Contains(second, "/a b") {
		t.Errorf("an older PATH stands on:\n%s", second)
	}
	if third := deploy.EnvFile(second, map[string]string{"PATH": "/new"}); third != second {
		t.Errorf("the same again is another file:\n%s\n%s", second, third)
	}
}

// The property list is read by Python's plistlib, which refuses what is no property list. launchd itself was never asked.
func TestPlist(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs: python3 (apt-get install python3-minimal)")
	}
	text, err := deploy.Plist(deploy.Values{Program: `/a b/<&>"'/sluice`, Home: "/Users/ann & ben", Logs: "/Users/ann & ben/Library/Logs/sluice", Env: []string{"PATH=/x<y>:/z", "EMPTY=", "E=a=b"}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sluice.plist")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "-c", "import plistlib,json,sys; print(json.dumps(plistlib.load(open(sys.argv[1],'rb'))))", file).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "No module named") {
			t.Skipf("needs: python3 with plistlib (apt-get install libpython3-stdlib): %s", out)
		}
		t.Fatalf("%v: %s\n%s", err, out, text)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"Label": "sluice", "ProgramArguments": []any{`/a b/<&>"'/sluice`, "daemon"}, "WorkingDirectory": "/Users/ann & ben",
		"EnvironmentVariables": map[string]any{"PATH": "/x<y>:/z", "EMPTY": "", "E": "a=b"},
		"RunAtLoad":            true, "KeepAlive": map[string]any{"SuccessfulExit": false}, "ThrottleInterval": 1.0, "ExitTimeOut": 30.0,
		"ProcessType": "Standard", "AbandonProcessGroup": true, "Umask": 63.0,
		"StandardOutPath": "/Users/ann & ben/Library/Logs/sluice/sluice.log", "StandardErrorPath": "/Users/ann & ben/Library/Logs/sluice/sluice.log",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// A unit for one command keeps the rest of what it is made of.
func TestOnce(t *testing.T) {
	conform.Rule(t, "field asks 11", "doctor --as-service runs in the unit that is installed: its environment, its PATH, its bounds")
	t.Parallel()
	unit, err := deploy.UserUnit(deploy.Values{Program: "/usr/bin/sluice", EnvFile: "/e", Home: "/h"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := deploy.Once(unit, []string{"/usr/bin/sluice", "doctor", "-C", `/a "b" 5%`}, "/run/out")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, unit) {
		t.Error("the unit itself is not in it")
	}
	if cmds := line(got, "ExecStart"); !slices.Equal(cmds, []string{`:"/usr/bin/sluice" daemon`, "", `:"/usr/bin/sluice" "doctor" "-C" "/a \"b\" 5%%"`}) {
		t.Errorf("ExecStart=%q", cmds)
	}
	if _, err := deploy.Once(unit, []string{"/usr/bin/sluice", "x\ny"}, "/run/out"); !errors.Is(err, deploy.ErrPath) {
		t.Errorf("an argument of two lines: %v", err)
	}
}
