package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is a Debian of its own with systemd as its first process, in a container.
type machine struct {
	t    *testing.T
	root string
}

// What the image is made of; the cache goes by it.
const (
	suite    = "bookworm"
	packages = "systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,procps,git,bubblewrap"
)

// How long things may take, on a machine that is slow and busy.
const (
	imageMost = 30 * time.Minute
	bootMost  = 10 * time.Minute
)

// newMachine makes one, of the cached image.
func newMachine(t *testing.T) *machine {
	t.Helper()
	for prog, pkg := range map[string]string{"mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container"} {
		if _, err := exec.LookPath(prog); err != nil {
			t.Skipf("needs: %s (apt-get install %s)", prog, pkg)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("kernel: root, for a container with a systemd of its own")
	}
	image := makeImage(t)
	if out, err := nspawn(t.Context(), image, "true").CombinedOutput(); err != nil {
		t.Skipf("kernel: a container of systemd-nspawn: %v: %s", err, strings.TrimSpace(string(out)))
	}
	m := &machine{t: t, root: filepath.Join(t.TempDir(), "root")}
	if out, err := exec.Command("cp", "-a", image, m.root).CombinedOutput(); err != nil {
		t.Fatalf("the image cannot be copied: %v: %s", err, out)
	}
	m.run("useradd", "--create-home", "--shell", "/bin/bash", "ann")
	m.put("var/lib/systemd/linger/ann", "")
	m.put("etc/systemd/system/t.service", "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/bin/bash /out/now.sh\nExecStopPost=systemctl poweroff --no-block\n")
	m.put("etc/systemd/system/graphical.target.wants/.keep", "")
	if err := os.Symlink("../t.service", filepath.Join(m.root, "etc/systemd/system/graphical.target.wants/t.service")); err != nil {
		t.Fatal(err)
	}
	m.copy("testdata/common.sh", "out/common.sh")
	return m
}

// makeImage returns the folder of the image; it is made once and kept.
func makeImage(t *testing.T) string {
	t.Helper()
	cache, err := filepath.Abs("../.cache")
	if err == nil {
		err = os.MkdirAll(cache, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(cache, "machine.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(suite + packages))
	image := filepath.Join(cache, "machine-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(image); err == nil {
		return image
	}
	making := image + ".making"
	if err := os.RemoveAll(making); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), imageMost)
	defer cancel()
	out, err := exec.CommandContext(ctx, "mmdebstrap", "--variant=minbase", "--include="+packages, suite, making).CombinedOutput()
	if err != nil {
		t.Skipf("needs: an image of Debian (mmdebstrap and an archive that it reaches): %v: %s", err, tail(out))
	}
	if err := os.RemoveAll(filepath.Join(making, "var/cache/apt/archives")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(making, image); err != nil {
		t.Fatal(err)
	}
	return image
}

// nspawn is a command in a container.
func nspawn(ctx context.Context, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "systemd-nspawn", append([]string{"--quiet", "--register=no", "--keep-unit", "-D", root}, args...)...)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "LC_ALL=C")
	cmd.WaitDelay = time.Second
	return cmd
}

func (m *machine) put(name, text string) {
	m.t.Helper()
	file := filepath.Join(m.root, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o755)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) copy(from, to string) {
	m.t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		m.t.Fatal(err)
	}
	m.put(to, string(raw))
}

// run runs a command in the machine while it is off.
func (m *machine) run(args ...string) {
	m.t.Helper()
	if out, err := exec.Command("chroot", append([]string{m.root}, args...)...).CombinedOutput(); err != nil {
		m.t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// apart gives the command a cgroup of its own: machines side by side would share those of their units.
func (m *machine) apart(cmd *exec.Cmd) {
	m.t.Helper()
	for _, top := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		var fs syscall.Statfs_t
		if syscall.Statfs(top, &fs) != nil || fs.Type != cgroup2Magic {
			continue
		}
		dir, err := os.MkdirTemp(top, "machine-")
		if err != nil {
			m.t.Skipf("kernel: a cgroup of its own for a machine: %v", err)
		}
		f, err := os.Open(dir)
		if err != nil {
			m.t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
		m.t.Cleanup(func() {
			f.Close()
			for range 3 { // the deepest first
				below, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
				here, _ := filepath.Glob(filepath.Join(dir, "*"))
				for _, d := range append(append(below, here...), dir) {
					_ = syscall.Rmdir(d)
				}
			}
		})
		return
	}
}

// cgroup2Magic is what statfs says of the second version of cgroups.
const cgroup2Magic = 0x63677270

// boot starts the machine, has it run a script and waits until it is off. It gives what the script said.
func (m *machine) boot(name string) map[string]string {
	m.t.Helper()
	m.copy("testdata/"+name+".sh", "out/now.sh")
	ctx, cancel := context.WithTimeout(m.t.Context(), bootMost)
	defer cancel()
	began := time.Now()
	cmd := nspawn(ctx, m.root, "-b")
	m.apart(cmd)
	out, err := cmd.CombinedOutput()
	said, rerr := os.ReadFile(filepath.Join(m.root, "out", name+".log"))
	if err := errors.Join(err, rerr); err != nil {
		m.t.Fatalf("boot %s: %v\n%s\n%s", name, err, tail(said), tail(out))
	}
	m.t.Logf("%s boot: %.1f s, power off included", name, time.Since(began).Seconds())
	shown := map[string]string{}
	bad := false
	lines := bufio.NewScanner(bytes.NewReader(said))
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		what, value, _ := strings.Cut(rest, " ")
		switch word {
		case "ok":
			shown[what] = "ok"
		case "figure":
			shown[what] = value
			m.t.Logf("%s: %s", what, value)
		case "not":
			bad = true
			m.t.Errorf("%s: %s", name, rest)
		}
	}
	if shown["end"] == "" {
		bad = true
		m.t.Errorf("%s: the script did not come to its end", name)
	}
	if bad {
		m.t.Logf("what was said:\n%s", said)
	}
	return shown
}

// tail is the end of what a program said.
func tail(b []byte) string {
	const most = 3000
	return string(b[max(0, len(b)-most):])
}
