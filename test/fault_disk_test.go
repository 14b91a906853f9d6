//go:build linux

package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/fault"
	"sluice/journal"
	"sluice/tools/conform"
)

// namespaceVar tells this binary that it runs in a mount namespace of its own.
const namespaceVar = "SLUICE_TEST_NAMESPACE"

var skipped = regexp.MustCompile(`(?m)^ +\S+_test\.go:\d+: ((?:kernel|needs): .*)$`)

// ownMounts runs the test in its own mount namespace, and in others that options of unshare name:
// nobody else sees its mounts, which go with it. It reports whether this is that run; elsewhere the test is over when it returns.
func ownMounts(t *testing.T, more ...string) bool {
	t.Helper()
	if os.Getenv(namespaceVar) != "" {
		return true
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("needs: unshare (apt-get install util-linux)")
	}
	in := append([]string{"--mount", "--propagation", "private"}, more...)
	if out, err := exec.Command("unshare", append(in, "true")...).CombinedOutput(); err != nil {
		t.Skipf("kernel: no namespace: %s", strings.TrimSpace(string(out)))
	}
	args := append(in, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "3h")
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), namespaceVar+"=1", binDirVar+"="+binDir(t))
	out, err := cmd.CombinedOutput()
	text := string(out)
	if m := skipped.FindStringSubmatch(text); err == nil && m != nil && strings.Contains(text, "--- SKIP: "+t.Name()) {
		t.Skip(m[1])
	}
	t.Logf("in its own mount namespace:\n%s", text)
	if err != nil || !strings.Contains(text, "--- PASS: "+t.Name()) {
		t.Errorf("it ends with %v", err)
	}
	return false
}

// mountTmpfs makes a small disk of memory.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=755"); err != nil {
		t.Skipf("kernel: tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// hog takes all the room there is.
func hog(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 16, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

const (
	freedMost = 5 * time.Second // from room on the disk to work going on
	freedBusy = time.Minute     // the same beside all other tests
	quietFor  = 1500 * time.Millisecond
)

func TestDiskFull(t *testing.T) {
	conform.Rule(t, "2-files journal full disk", "the real daemon on a full disk: stalled, said so, nothing launched; going on by itself")
	t.Parallel()
	if !ownMounts(t) {
		return
	}
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		dir := mountTmpfs(t, "3m")
		x := newArena(t, seedOf(t), 2, arenaPlaces{state: dir})
		x.boot()
		x.busy()
		fill := func() { hog(t, filepath.Join(dir, "hog")) }
		said := ""
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("sluice status says:\n%s", said)
			}
		})
		eventually(t, "sluice status says stalled, and why", func() bool {
			fill() // a git that was under way gives room back when it fails
			if !x.allStalled() {
				return false
			}
			for _, r := range x.repos {
				said, _ = x.try(r, x.bin, "status")
				if !strings.Contains(said, "stalled") || !strings.Contains(said, "no space left") {
					return false
				}
			}
			return true
		})
		x.refused()
		x.quiet(fill)
		x.freed(func() error { return os.Remove(filepath.Join(dir, "hog")) })
		x.through()
	})
	t.Run("repos", func(t *testing.T) {
		t.Parallel()
		dir := mountTmpfs(t, "24m")
		x := newArena(t, seedOf(t), 2, arenaPlaces{repos: dir})
		x.boot()
		x.busy()
		hog(t, filepath.Join(dir, "hog"))
		eventually(t, "status names the trouble", func() bool {
			hog(t, filepath.Join(dir, "hog"))
			x.ask()
			return x.unwell("export: ") && x.unwell("no space left")
		})
		x.freed(func() error { return os.Remove(filepath.Join(dir, "hog")) })
		x.through()
	})
}

// A disk error makes the disk read-only for good, with its files open; a person repairs it and
// mounts it again. A disk that is read-only when the daemon starts ends it with an error: nobody
// could ask it anything.
func TestDiskReadOnly(t *testing.T) {
	t.Parallel()
	if !ownMounts(t) {
		return
	}
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		d := newLoopDisk(t)
		x := newArena(t, seedOf(t), 2, arenaPlaces{state: d.dir})
		x.boot()
		x.busy()
		d.fail()
		// A write into a block that is there already comes as far as the sync, and ends the daemon.
		ended := make(chan error, 1)
		go func() { ended <- x.last.Wait() }()
		eventually(t, "it stalls or ends", func() bool { return len(ended) > 0 || x.allStalled() || x.ask() && false })
		x.quiet(func() {})
		if len(ended) == 0 {
			_ = x.last.Process.Kill()
		}
		<-ended
		if log := tailOf(x.log.Name()); !strings.Contains(log, "stalled: ") && !strings.Contains(log, "sync failed: ") || !strings.Contains(log, "read-only") {
			t.Errorf("it says nothing of the disk:\n%s", log)
		}
		x.boot()
		if code := x.endsItself(); code != fault.ExitFailed || !strings.Contains(tailOf(x.log.Name()), "read-only: mount it writable") {
			t.Errorf("a start on a disk that is read-only ends with %d", code)
		}
		x.killAll()
		d.remount()
		x.unexport()
		x.boot()
		x.freed(func() error { return nil })
		x.through()
	})
	t.Run("repos", func(t *testing.T) {
		t.Parallel()
		d := newLoopDisk(t)
		x := newArena(t, seedOf(t), 2, arenaPlaces{repos: d.dir})
		for _, r := range x.repos { // the agents' git, whose objects are not what is tried
			if out, err := x.try(r, "git", "config", "core.fsync", "all"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		x.boot()
		x.busy()
		syscall.Sync()
		d.fail()
		eventually(t, "status names the trouble", func() bool { return x.traffic() && x.unwell("read-only") })
		x.kill()
		x.killAll()
		d.remount()
		x.boot()
		x.freed(func() error { return nil })
		x.through()
	})
}

// loopDisk is an ext4 file system in a file: it can be taken away as a power cut or a fault does.
type loopDisk struct {
	t          *testing.T
	image, dir string
}

func newLoopDisk(t *testing.T) *loopDisk {
	t.Helper()
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("needs: mkfs.ext4 (apt-get install e2fsprogs)")
	}
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &loopDisk{t: t, image: filepath.Join(real, "image"), dir: filepath.Join(real, "disk")}
	f, err := os.Create(d.image)
	if err == nil {
		err = errors.Join(f.Truncate(96<<20), f.Close(), os.Mkdir(d.dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-E", "lazy_itable_init=1", d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v\n%s", err, out)
	}
	if out, err := d.mount(); err != nil {
		t.Skipf("kernel: loop mounts: %s", strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { _ = syscall.Unmount(d.dir, syscall.MNT_DETACH) })
	return d
}

func (d *loopDisk) mount() ([]byte, error) {
	return exec.Command("mount", "-o", "loop,errors=remount-ro", d.image, d.dir).CombinedOutput()
}

// remount takes the disk out and puts it in again.
func (d *loopDisk) remount() {
	d.t.Helper()
	eventually(d.t, "the disk is not in use", func() bool { return syscall.Unmount(d.dir, 0) == nil })
	if out, err := d.mount(); err != nil {
		d.t.Fatalf("mount: %v\n%s", err, out)
	}
}

// fail has the file system find a fault: it is read-only from here on.
func (d *loopDisk) fail() {
	d.t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[1] == d.dir {
			if err := os.WriteFile(filepath.Join("/sys/fs/ext4", filepath.Base(f[0]), "trigger_fs_error"), []byte("1"), 0o200); err != nil {
				d.t.Skipf("kernel: no trigger_fs_error: %v", err)
			}
			return
		}
	}
	d.t.Fatal("the disk is not mounted")
}

// ask starts a run in every repo, even beside a live one: it is recorded, or refused. It reports
// whether one was recorded.
func (x *arena) ask() (begun bool) {
	for _, r := range x.repos {
		c := r.client()
		begun = x.start(r, c) || begun
		c.Close()
	}
	return begun
}

// traffic has a person look at every repo once.
func (x *arena) traffic() bool {
	for _, r := range x.repos {
		x.person(r, true)
	}
	return true
}

// busy lets work go on until launches have been made in every repo.
func (x *arena) busy() {
	x.t.Helper()
	eventually(x.t, "launches are made", func() bool {
		x.traffic()
		flows := map[string]bool{}
		for _, f := range x.ledger("ends") {
			flow, _, _ := strings.Cut(f[0], "-")
			flows[flow] = true
		}
		return len(flows) == len(x.repos)
	})
}

// allStalled reports whether no repo's journal can be written; one that has room left in its last page is given a start.
func (x *arena) allStalled() bool {
	all := true
	for _, r := range x.repos {
		if st, ok := x.status(r); !ok || st.Stalled == "" {
			c := r.client()
			x.start(r, c)
			c.Close()
			all = false
		}
	}
	return all
}

// refused starts a run as a person would: it fails in time, with the reason and what to do. Lists still work, and say
// that the journal cannot be written.
func (x *arena) refused() {
	x.t.Helper()
	began, r := time.Now(), x.repos[0]
	out, err := x.try(r, x.bin, "start", r.flow)
	if err == nil || !strings.Contains(out, "no space left") || !strings.Contains(out, "free some space, then repeat it") {
		x.t.Errorf("a start on a full disk: %v\n%s", err, out)
	}
	if took := time.Since(began); took > freedBusy {
		x.t.Errorf("it was refused after %s", took)
	}
	for _, list := range [][]string{{"ls", "--all"}, {"status"}, {"inbox", "--here"}, {"inbox"}} {
		out, err := x.try(r, append([]string{x.bin}, list...)...)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "so nothing is started or decided: write ") {
			x.t.Errorf("%s on a full disk: %v\n%s", list, err, out)
		}
		if list[0] != "inbox" && !strings.Contains(out, r.flow+"-") {
			x.t.Errorf("%s on a full disk lacks the runs:\n%s", list, out)
		}
	}
}

// unwell reports whether a repo's health has the words.
func (x *arena) unwell(words string) bool {
	for _, r := range x.repos {
		if st, ok := x.status(r); ok && strings.Contains(strings.Join(st.Health, " "), words) {
			return true
		}
	}
	return false
}

// quiet sees to it that nothing is launched, once what was under way has come through. It calls
// each time before it looks.
func (x *arena) quiet(each func()) {
	x.t.Helper()
	before := len(x.ledger("launches"))
	for since := time.Now(); time.Since(since) < quietFor; time.Sleep(pollEvery) {
		each()
		if time.Since(since) < quietFor/3 {
			before = len(x.ledger("launches"))
		}
	}
	if n := len(x.ledger("launches")); n != before {
		x.t.Errorf("%d launches were made while nothing could be recorded", n-before)
	}
}

// freed returns the disk and waits until every repo takes something in again, without obstacles.
// Live runs are aborted: how long they rest after failures is not measured.
func (x *arena) freed(free func() error) {
	t := x.t
	t.Helper()
	pid := x.last.Process.Pid
	if err := free(); err != nil {
		t.Fatal(err)
	}
	since, last := time.Now(), ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(last)
		}
	})
	eventually(t, "work goes on", func() bool {
		for _, r := range x.repos {
			c := r.client()
			taken := x.start(r, c)
			c.Close()
			st, ok := x.status(r)
			last = fmt.Sprintf("%s: taken %v, status %v, stalled %q, health %q", r.root, taken, ok, st.Stalled, st.Health)
			if !taken || !ok || st.Stalled != "" || len(st.Health) > 0 {
				return false
			}
		}
		return true
	})
	took, most := time.Since(since), freedBusy
	if os.Getenv("SLUICE_TORTURE") != "" {
		most = freedMost
	}
	if t.Logf("it goes on after %v", took.Round(time.Millisecond)); took > most {
		t.Errorf("it took %v to go on", took)
	}
	if x.last.Process.Pid != pid || !syscallAlive(pid) {
		t.Error("the daemon was not the same all the time")
	}
}

// abort aborts every live run.
func (x *arena) abort() {
	for _, r := range x.repos {
		st, _ := x.status(r)
		c := r.client()
		for _, run := range st.Runs {
			if run.Live() {
				x.do(r, c, engine.AbortRequested{Run: run.ID, Why: "enough"})
			}
		}
		c.Close()
	}
}

// exported waits until the exports have all that the journals have.
func (x *arena) exported() {
	x.t.Helper()
	for _, r := range x.repos {
		var err error
		var rep journal.ExportReport
		x.t.Cleanup(func() {
			if x.t.Failed() && (err != nil || rep.Behind != 0) {
				x.t.Logf("%s: the export: %+v: %v", r.root, rep, err)
			}
		})
		eventually(x.t, "the export is complete", func() bool {
			rep, err = journal.VerifyExport(filepath.Join(r.root, daemon.ExportName(r.flow)), r.state(), daemon.KeepAudit(r.flow), journal.Options{})
			return err == nil && rep.Behind == 0
		})
	}
}

// through lets all runs come to their end, ends the daemon and looks at what is left.
func (x *arena) through() {
	x.t.Helper()
	x.abort()
	x.ask()
	x.finish()
	x.exported()
	x.alone()
	if err := x.stop(); err != nil {
		x.t.Errorf("the daemon ends with %v", err)
	}
	for _, r := range x.repos {
		if err := r.look(); err != nil {
			x.t.Error(err)
		}
	}
	x.check()
}
