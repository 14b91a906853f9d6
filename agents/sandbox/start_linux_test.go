package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

// box returns an untested sandbox.
func box(t *testing.T) *Box {
	t.Helper()
	b, err := newBox("/usr/bin/bwrap", self(t))
	check(t, err)
	return b
}

// TestEnvironmentIsNoOption: a variable's value can neither be read by others nor be taken for an
// option.
func TestEnvironmentIsNoOption(t *testing.T) {
	conform.Rule(t, "4-trust held environment", "it is no option of the sandbox, and too much of it is refused")
	p := planOf(t)
	start, err := box(t).Wrap(p, []string{"/bin/true"}, []string{"WORD=a secret", "EMPTY="})
	check(t, err)
	if strings.Contains(strings.Join(append(start.Argv, start.Env...), " "), "secret") || !bytes.Contains(start.Options, []byte("\x00--setenv\x00WORD\x00a secret\x00--setenv\x00EMPTY\x00\x00")) {
		t.Errorf("%q %q\n%q", start.Argv, start.Env, start.Options)
	}
	for name, env := range map[string][]string{"an option in a value": {"A=x\x00--bind\x00/\x00/"}, "no name": {"=x"}, "no value": {"A"}, "too many": manyOf(4000)} {
		if start, err := box(t).Wrap(p, []string{"/bin/true"}, env); err == nil {
			t.Errorf("%s: taken: %.200q", name, start.Options)
		}
	}
}

func manyOf(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("V%d=x", i))
	}
	return out
}

// TestEnvironmentOfTheCheck: the check inside does not run with a step's variables either; only the
// command does.
func TestEnvironmentOfTheCheck(t *testing.T) {
	conform.Rule(t, "4-trust held environment", "the check inside starts without it, and the command with it")
	p := planOf(t)
	same, err := Identify("/", p.Cwd)
	check(t, err)
	p.Same = []Identity{same}
	env := append(manyOf(4000), "WORD=a secret")
	start, err := box(t).Wrap(p, []string{"/bin/true"}, env)
	check(t, err)
	if bytes.Contains(start.Options, []byte("secret")) || strings.Contains(strings.Join(start.Argv, " "), "secret") || !bytes.Contains(start.Layout, []byte("secret")) {
		t.Errorf("%q\n%q", start.Argv, start.Options)
	}
	got := held(t, p, "env; ls -l /proc/self/fd; echo it ran")
	for _, want := range []string{"PATH=" + os.Getenv("PATH") + "\n", "PWD=" + p.Cwd + "\n", "it ran\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "memfd") {
		t.Errorf("the command has a descriptor of the sandbox's:\n%s", got)
	}
}

// TestSecrets: what is hidden follows the folder's content, and the check is cheap if nothing
// changed.
func TestSecrets(t *testing.T) {
	conform.Rule(t, "4-trust seen", "what not everybody may read of the machine's settings is found, as it is now")
	top := t.TempDir()
	put := func(name string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(top, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte("x"), 0o600))
		check(t, os.Chmod(path, mode))
	}
	put("passwd", 0o644)
	put("shadow", 0o600)
	put("ssh/ssh_host_key", 0o600)
	put("ssh/ssh_config", 0o644)
	put("private/key", 0o644)
	check(t, os.Chmod(filepath.Join(top, "private"), 0o750))
	check(t, os.Symlink("shadow", filepath.Join(top, "link")))
	s := secrets{top: top}
	want := func(names ...string) {
		t.Helper()
		s.seen = time.Time{}
		found, err := s.now()
		check(t, err)
		var got []string
		for _, f := range found {
			name, _ := filepath.Rel(top, f.path)
			got = append(got, name)
			if f.dir != (name == "private") {
				t.Errorf("%s: a folder %t", name, f.dir)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, names) {
			t.Errorf("%v, want %v", got, names)
		}
	}
	check(t, os.WriteFile(filepath.Join(top, "void"), nil, 0o600))
	want("private", "shadow", "ssh/ssh_host_key")
	s.at = time.Now().Add(2 * settingsRest)
	check(t, os.WriteFile(filepath.Join(top, "void"), []byte("x"), 0o600)) // its folder does not show this
	want("private", "shadow", "ssh/ssh_host_key", "void")
	check(t, os.Remove(filepath.Join(top, "void")))
	put("ssh/another", 0o600)
	want("private", "shadow", "ssh/another", "ssh/ssh_host_key")
	check(t, os.Remove(filepath.Join(top, "shadow")))
	want("private", "ssh/another", "ssh/ssh_host_key")
	if s.at = time.Now().Add(2 * settingsRest); !s.same() {
		t.Error("it is looked through anew though nothing has changed")
	}
	put("later", 0o600)
	if s.same() {
		t.Error("that a file was made is not seen")
	}
	if s.at = time.Now().Add(-2 * settingsFor); s.same() {
		t.Error("what was found long ago is gone by")
	}
	if found, err := s.now(); err != nil || len(found) != 3 {
		t.Errorf("it is looked at again at once: %v %v", found, err)
	}
	s.top = filepath.Join(top, "none")
	s.dirs = nil
	want()
}

// TestToolchain: which folder is shown for a folder of PATH.
func TestToolchain(t *testing.T) {
	home := t.TempDir()
	for _, d := range []string{"bin", "lib", ".local/bin", ".local/lib", "conda/bin", "conda/lib", "kit/bin", "kit/share", "repo/bin", "repo/lib", "repo/.git", "a/node_modules/.bin", "tool/shims", "tool/own", "tool/lib", "pyenv/shims", "pyenv/libexec", "pyenv/.git", "go/bin", "go/pkg"} {
		check(t, os.MkdirAll(filepath.Join(home, d), 0o755))
	}
	for dir, want := range map[string]string{"bin": "bin", ".local/bin": ".local/bin", "conda/bin": "conda", "kit/bin": "kit/bin", "repo/bin": "repo/bin", "a/node_modules/.bin": "a/node_modules", "tool/shims": "tool", "pyenv/shims": "pyenv", "tool/own": "tool/own", "go/bin": "go/bin"} {
		if got := Toolchain(filepath.Join(home, dir), home); got != filepath.Join(home, want) {
			t.Errorf("%s: %s", dir, got)
		}
	}
	if got := Toolchain("/bin", home); got != "/bin" {
		t.Error(got)
	}
	if got := Toolchain(filepath.Join(home, "bin"), ""); got != home {
		t.Errorf("of nobody's home: %s", got)
	}
}
