//go:build linux || darwin

package agents

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestNotStarted(t *testing.T) {
	cases := []struct {
		name   string
		change func(t *testing.T, s *Spec)
		want   []string
	}{
		{"no such command", func(t *testing.T, s *Spec) { s.Argv = []string{"no-such-agent"} }, []string{"no-such-agent", "not found in PATH", "install it"}},
		{"no such path", func(t *testing.T, s *Spec) { s.Argv = []string{"./agent.sh"} }, []string{"agent.sh", "no such file", "install it"}},
		{"not executable", func(t *testing.T, s *Spec) {
			os.WriteFile(filepath.Join(s.Cwd, "agent.sh"), []byte("#!/bin/sh\n"), 0o600)
			s.Argv = []string{"./agent.sh"}
		}, []string{"agent.sh", "chmod +x"}},
		{"a folder", func(t *testing.T, s *Spec) { s.Argv = []string{"/usr"} }, []string{"/usr", "not a file"}},
		{"no interpreter", func(t *testing.T, s *Spec) {
			os.WriteFile(filepath.Join(s.Cwd, "agent.sh"), []byte("#!/no/such/shell\n"), 0o700)
			s.Argv = []string{"./agent.sh"}
		}, []string{"agent.sh", "interpreter"}},
		{"no first line", func(t *testing.T, s *Spec) {
			os.WriteFile(filepath.Join(s.Cwd, "agent.sh"), []byte("echo\n"), 0o700)
			s.Argv = []string{"./agent.sh"}
		}, []string{"agent.sh", "#!/bin/sh"}},
		{"no folder", func(t *testing.T, s *Spec) { s.Cwd += "/gone" }, []string{"/gone", "no such file"}},
		{"cwd is a file", func(t *testing.T, s *Spec) { s.Cwd = "/etc/passwd" }, []string{"/etc/passwd", "not a folder"}},
		{"no stdin file", func(t *testing.T, s *Spec) { s.Stdin = s.Cwd + "/prompt.md" }, []string{"prompt.md", "no such file"}},
		{"stdin is a folder", func(t *testing.T, s *Spec) { s.Stdin = "/etc" }, []string{"/etc", "regular file"}},
		{"stdin is a pipe", func(t *testing.T, s *Spec) {
			s.Stdin = s.Cwd + "/fifo"
			syscall.Mkfifo(s.Stdin, 0o600)
		}, []string{"fifo", "regular file"}},
		{"relative PATH", func(t *testing.T, s *Spec) {
			os.WriteFile(filepath.Join(s.Cwd, "agent"), []byte("#!/bin/sh\n"), 0o700)
			s.Argv, s.Env = []string{"agent"}, []string{"PATH=.::bin"}
		}, []string{"agent", "not found in PATH=.::bin"}},
		{"too large", func(t *testing.T, s *Spec) { s.Argv = append(s.Argv, strings.Repeat("x", 1<<20)) }, []string{"too large"}},
	}
	notItsCommand := map[string]bool{"no folder": true, "cwd is a file": true, "no stdin file": true, "stdin is a folder": true, "stdin is a pipe": true, "too large": true}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := testSpec(t, "")
			c.change(t, &spec)
			e := wait(t, ensure(t, newRunner(), spec))
			if e.Code != -1 || e.NotStarted == "" {
				t.Fatalf("%+v, want not started", e)
			}
			if e.NoCommand == notItsCommand[c.name] {
				t.Errorf("its command is what it could not start for: %v", e.NoCommand)
			}
			for _, want := range c.want {
				if !strings.Contains(e.NotStarted, want) {
					t.Errorf("%q does not say %q", e.NotStarted, want)
				}
			}
			if again := wait(t, ensure(t, newRunner(), spec)); again != e {
				t.Errorf("again: %+v, want %+v", again, e)
			}
		})
	}
}

// The command has exactly the spec's environment and folder.
func TestEnvironmentIsWhole(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "")
	spec.Argv = []string{"env"}
	wait(t, ensure(t, newRunner(), spec))
	want := strings.Join(append(spec.Env, "PWD="+spec.Cwd), "\n") + "\n"
	if got := content(t, filepath.Join(spec.Dir, "stdout")); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	again := testSpec(t, "")
	again.Argv, again.Env = []string{"env"}, append(again.Env, "PWD=/elsewhere")
	wait(t, ensure(t, newRunner(), again))
	if got := content(t, filepath.Join(again.Dir, "stdout")); strings.Count(got, "PWD=") != 1 {
		t.Errorf("PWD is there twice:\n%s", got)
	}
}

// The command is looked up with the spec's PATH, not the shim's.
func TestLookUp(t *testing.T) {
	t.Parallel()
	agent := "#!/bin/sh\necho $0 $1 $PWD\n"
	for argv0, want := range map[string]string{"agent": "/bin/agent", "./sub/agent": "/sub/agent", "sub/agent": "/sub/agent", "/bin/echo": "x\n"} {
		spec := testSpec(t, "")
		for _, dir := range []string{"bin", "sub"} {
			os.Mkdir(filepath.Join(spec.Cwd, dir), 0o700)
			os.WriteFile(filepath.Join(spec.Cwd, dir, "agent"), []byte(agent), 0o700)
		}
		os.Mkdir(filepath.Join(spec.Cwd, "none"), 0o700)
		os.WriteFile(filepath.Join(spec.Cwd, "none", "agent"), []byte(agent), 0o600) // not executable: skipped
		spec.Argv = []string{argv0, "x"}
		spec.Env = append(spec.Env, "PATH=/nowhere:"+spec.Cwd+"/none:"+spec.Cwd+"/bin")
		if e := wait(t, ensure(t, newRunner(), spec)); e.Code != 0 || e.NotStarted != "" {
			t.Errorf("%s: %+v", argv0, e)
			continue
		}
		got := content(t, filepath.Join(spec.Dir, "stdout"))
		if want != "x\n" {
			want = spec.Cwd + want + " x " + spec.Cwd + "\n"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", argv0, got, want)
		}
	}
}

// A daemon that dies while it sends the spec has started nothing.
func TestHalfASpec(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "")
	data, err := framed(spec)
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, whole, err := readSpec(bytes.NewReader(data[:n])); err == nil || whole {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if got, whole, err := readSpec(bytes.NewReader(data)); err != nil || !whole || got.Key != spec.Key {
		t.Errorf("whole: %+v %v", got, err)
	}
	for _, head := range [][]byte{{0, 0, 0, 0}, {255, 255, 255, 255}} {
		if _, whole, err := readSpec(bytes.NewReader(append(head, data...))); err == nil || whole {
			t.Errorf("a length of %v: no error", head)
		}
	}
}

// One that dies after sending it has started the launch, though nobody reads the answer.
func TestNobodyHearsTheShim(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "exit 5")
	spec, err := spec.checked()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{spec.Dir, filepath.Dir(spec.PidFile)} {
		os.MkdirAll(dir, 0o700)
	}
	data, _ := framed(spec)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	self, _ := os.Executable()
	command := shimCommand(self)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = []string{markVar + "=x"}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(data), w
	if err := cmd.Run(); err != nil {
		t.Errorf("shim: %v", err)
	}
	w.Close()
	if e := wait(t, ensure(t, newRunner(), spec)); e.Code != 5 {
		t.Errorf("%+v, want code 5", e)
	}
}

func TestShimArguments(t *testing.T) {
	t.Parallel()
	self, _ := os.Executable()
	for _, args := range [][]string{{shimArg}, {shimArg, "--help"}} {
		out, err := exec.Command(self, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != shimRefused || !strings.Contains(string(out), "not by hand") {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
}

func TestBadSpec(t *testing.T) {
	t.Parallel()
	r := newRunner()
	_, err := r.Ensure(testContext(t), Spec{Argv: []string{"a\x00b"}, Env: []string{"novalue"}, MaxOutput: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"key of 0 bytes", "no dir", "no pid file", "no cwd", "NUL", "NAME=value", "negative"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestBadShim(t *testing.T) {
	t.Parallel()
	for _, shim := range [][]string{nil, {"/no/such/shim"}, {"/bin/true"}, {"/bin/sh", "-c", "echo broken >&2; exit 1"}} {
		spec := testSpec(t, "touch started")
		if _, err := New(Options{Shim: shim}).Ensure(testContext(t), spec); err == nil {
			t.Errorf("shim %q: no error", shim)
		} else if len(shim) == 1 && shim[0] != "/bin/true" && !strings.Contains(err.Error(), "put it back there, or start") {
			t.Errorf("shim %q: %v", shim, err)
		} else if len(shim) == 3 && !strings.Contains(err.Error(), "broken") {
			t.Errorf("shim %q: %v", shim, err)
		}
		wait(t, ensure(t, newRunner(), spec)) // a valid one still works
		if _, err := os.Stat(filepath.Join(spec.Cwd, "started")); err != nil {
			t.Error(err)
		}
	}
}
