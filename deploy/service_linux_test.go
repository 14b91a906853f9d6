package deploy_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// backMost is how long after a crash the daemon may be away, by the manager's own clock. The unit waits one second; the rest
// is for a loaded machine.
const backMost = 10_000 // ms

// exposureMost is what systemd-analyze security may say of the machine's unit.
const exposureMost = 5.0

// A real systemd has the service: from install to a reboot and what comes after it, as a user's own, as the machine's and as
// a Debian package. What is shown stands in the scripts, a line "ok NAME" each.
func TestServiceUnderSystemd(t *testing.T) {
	t.Parallel()
	var making sync.WaitGroup
	making.Go(func() { _, _ = theRelease.get() }) // while the image is made; what it gives is asked for below
	t.Cleanup(making.Wait)
	m := newMachine(t)
	dir := theRelease.of(t)
	unpack(t, m, dir)

	first := m.boot("first")
	for _, name := range []string{"back-ms", "system-back-ms"} {
		if ms, err := strconv.Atoi(first[name]); err != nil || ms <= 0 || ms > backMost {
			t.Errorf("%s: after kill -9 the daemon was back in %q ms", name, first[name])
		}
	}
	if x, err := strconv.ParseFloat(first["exposure"], 64); err != nil || x > exposureMost {
		t.Errorf("systemd-analyze security gives the machine's unit %q, more than %v", first["exposure"], exposureMost)
	}
	m.boot("second")
}

// theRelease is made once for all tests.
var theRelease release

type release struct {
	once sync.Once
	dir  string
	err  error
}

func (r *release) get() (string, error) {
	r.once.Do(func() {
		var top string
		if top, r.err = os.MkdirTemp("", "sluice-dist-"); r.err == nil {
			r.dir = filepath.Join(top, "dist")
			r.err = dist(r.dir)
		}
	})
	return r.dir, r.err
}

// of returns the folder of the release.
func (r *release) of(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs: dpkg-deb (apt-get install dpkg)")
	}
	dir, err := r.get()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if theRelease.dir != "" {
		os.RemoveAll(filepath.Dir(theRelease.dir))
	}
	os.Exit(code)
}

// dist makes a release for this machine alone, as make dist does.
func dist(dir string) error {
	cmd := exec.Command("go", "run", "./deploy/dist", "-out", dir, "-version", "v1.2.3", "-only", "linux/"+runtime.GOARCH)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1800000000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(err.Error() + ": " + string(out))
	}
	return nil
}

// unpack puts the archive's binary and the package into the machine.
func unpack(t *testing.T, m *machine, dir string) {
	t.Helper()
	archive := filepath.Join(dir, "sluice_v1.2.3_linux_"+runtime.GOARCH+".tar.gz")
	out, err := exec.Command("tar", "-xzf", archive, "-O", strings.TrimSuffix(filepath.Base(archive), ".tar.gz")+"/sluice").Output()
	if err != nil {
		t.Fatalf("%s: %v", archive, err)
	}
	m.put("out/sluice", string(out))
	m.copy(filepath.Join(dir, "sluice_1.2.3_"+runtime.GOARCH+".deb"), "out/sluice.deb")
}

// The same commit gives the same bytes, and the checksums are those of the files.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	one, two := theRelease.of(t), filepath.Join(t.TempDir(), "dist")
	if err := dist(two); err != nil {
		t.Fatal(err)
	}
	var sums [2][]byte
	for i, dir := range []string{one, two} {
		var err error
		check := exec.Command("sha256sum", "-c", "SHA256SUMS")
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Fatalf("sha256sum: %v: %s", err, out)
		}
		if sums[i], err = os.ReadFile(filepath.Join(dir, "SHA256SUMS")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Errorf("two builds differ:\n%s\n%s", sums[0], sums[1])
	}
	if n := bytes.Count(sums[0], []byte("\n")); n != 2 {
		t.Errorf("%d files in SHA256SUMS, want an archive and a package:\n%s", n, sums[0])
	}
}
