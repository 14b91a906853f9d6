//go:build linux

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/workspace"
	"sluice/tools/conform"
)

// The signals folder is removed, renamed, replaced by something else: the daemon creates it again
// or reports what is wrong, and goes on.
func TestWatchFolderGone(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "an inbox that is removed, renamed away or replaced is watched again")
	t.Parallel()
	w := newInbox(t, watchSettings)
	w.served()
	away := filepath.Join(w.work, "away")
	for _, c := range []struct {
		name     string
		undo     bool // it does not come back by itself
		degraded []string
		do       func()
	}{
		{name: "removed", do: func() { w.gone(w.inbox()) }},
		{name: "the folder above renamed away", do: func() {
			w.must(os.Rename(filepath.Dir(w.inbox()), away+"1"), os.CopyFS(filepath.Join(filepath.Dir(w.inbox()), "specs"), os.DirFS(filepath.Join(away+"1", "specs"))))
		}},
		{name: "renamed away", do: func() { w.must(os.Rename(w.inbox(), away)) }},
		{name: "renamed away and made again", do: func() { w.must(os.Rename(w.inbox(), away+"2"), os.MkdirAll(w.inbox(), 0o755)) }},
		{name: "replaced by another in one step", do: func() {
			w.must(os.Mkdir(away+"3", 0o755))
			w.swap(away + "3")
		}},
		{name: "a file in its place", undo: true, degraded: []string{"signals", "not a folder"}, do: func() {
			w.must(os.WriteFile(away+"4", []byte("{}"), 0o644))
			w.swap(away + "4")
		}},
		{name: "a link in its place", undo: true, degraded: []string{"signals", "not a folder"}, do: func() {
			w.must(os.Mkdir(away+"5", 0o755), os.WriteFile(filepath.Join(away+"5", sentinel), []byte(`{"status": "failed"}`), 0o644))
			w.must(os.Symlink(away+"5", away+"6"))
			w.swap(away + "6")
		}},
	} {
		run := w.offered()
		c.do()
		if c.degraded != nil {
			w.degraded(c.degraded...)
		}
		if c.undo {
			w.must(os.Remove(w.inbox()))
		}
		eventually(t, c.name+": the folder is there again", func() bool { return workspace.IsDir(w.inbox()) })
		w.drop(sentinel, `{"status": "done"}`)
		w.passes(c.name, run)
		w.well()
	}
}

// gone removes a folder in which the daemon may be making another.
func (w *inboxBox) gone(dir string) {
	w.t.Helper()
	eventually(w.t, dir+" can be removed", func() bool { return os.RemoveAll(dir) == nil })
}

// swap puts something in the place of the inbox, in one step.
func (w *inboxBox) swap(path string) {
	w.t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, w.inbox(), unix.RENAME_EXCHANGE); err != nil {
		w.t.Skipf("kernel: no exchange of two names on this file system: %v", err)
	}
}

// mount mounts, or skips the test where the kernel does not let it.
func mount(t *testing.T, source, at, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, at, kind, flags, data); err != nil {
		t.Skipf("kernel: no mount of a %s to be had: %v", kind, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) }) // the test may have done so
}

// The inbox is mounted over and uncovered again, is on something unmounted lazily, or on a file
// system that is replaced by another with the same numbers: none of these sends an event. Its files
// count in each case.
func TestWatchMounts(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "an inbox that is mounted over or unmounted is read as it is")
	t.Parallel()
	if !inNamespace(t, ":", "-m", "--propagation", "private") {
		return
	}
	w := newInbox(t, watchSettings)
	w.must(os.Mkdir(w.inbox(), 0o755))
	mount(t, "tmpfs", w.inbox(), "tmpfs", 0, "size=1m,mode=755")
	w.served()
	run := w.offered()
	w.must(unix.Unmount(w.inbox(), unix.MNT_DETACH))
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("lazily unmounted", run)

	run = w.offered()
	mount(t, "tmpfs", w.inbox(), "tmpfs", 0, "size=1m,mode=755")
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("mounted over", run)

	run = w.offered()
	eventually(t, "nothing of it is open", func() bool {
		err := unix.Unmount(w.inbox(), 0)
		return err == nil
	})
	mount(t, "tmpfs", w.inbox(), "tmpfs", 0, "size=1m,mode=755")
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("mounted anew", run)

	run = w.offered()
	mount(t, "tmpfs", filepath.Dir(w.inbox()), "tmpfs", 0, "size=1m,mode=755")
	eventually(t, "the folder is made below the mount", func() bool { return workspace.IsDir(w.inbox()) })
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("mounted over above it", run)
	w.must(unix.Unmount(filepath.Dir(w.inbox()), unix.MNT_DETACH))

	run = w.offered()
	eventually(t, "its folder is there", func() bool { return workspace.IsDir(filepath.Join(w.inbox(), run)) })
	other := filepath.Join(w.work, "other", "signals") // another number than a mount before it had
	w.must(os.MkdirAll(other, 0o755))
	mount(t, other, w.inbox(), "", unix.MS_BIND, "")
	w.must(unix.Mount("", w.inbox(), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	w.degraded("signals", "could not be tested")
	w.must(unix.Unmount(w.inbox(), unix.MNT_DETACH))
	w.drop(sentinel, `{"status": "done"}`)
	w.passes("read only for a while", run)
	w.well()
}

// An unreadable folder is not an empty one: the status says so, nothing is concluded from it, and
// once it is readable, its files count. The daemon runs as nobody here, as root reads everything.
func TestWatchUnreadable(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "an inbox that cannot be read is not taken for an empty one")
	if os.Geteuid() == 0 {
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("needs: setpriv (apt-get install util-linux)")
		}
	}
	t.Parallel()
	w := newInbox(t, strings.Replace(quickSettings, "ACTS", abs("testdata/act.sh"), 1))
	// While the daemon stands still, the agent says that it is done, the word is hidden, and the agent ends: without a look
	// into the folder it has ended without one.
	w.put("acts/X-1", "hold go\nsay '{\"status\": \"done\"}'\nchmod 000 .workflow/signals\n: >\"$E2E_WORK/hidden\"\n")
	w.put("repo/.workflow/specs/w.yaml", "workflow: {id: w}\nsteps:\n  - {id: X-1, agent: {type: a}, signal: {type: sentinel_file}, next_step: DONE}\n")
	w.do("git", "commit", "-qam", "by an agent")
	w.asNobody()
	w.served()
	w.do(w.bin, "start", "w")
	run := "w-1"
	there := func(name string) {
		eventually(t, name, func() bool {
			_, err := os.Lstat(filepath.Join(w.work, name))
			return err == nil
		})
	}
	there("at-go")
	w.must(w.last.Process.Signal(syscall.SIGSTOP))
	w.put("go", "")
	there("hidden")
	w.must(w.last.Process.Signal(syscall.SIGCONT))
	w.degraded("signals", "permission denied")
	// The grace and some looks pass.
	began := strings.Count(w.logText(), "could not be read")
	eventually(t, "more looks", func() bool { return strings.Count(w.logText(), "could not be read") >= began+3 })
	if out := w.do(w.bin, "status", run); !strings.Contains(out, "running") || strings.Contains(out, "attempt 2") {
		t.Errorf("concluded from what could not be read:\n%s", out)
	}
	w.must(os.Chmod(w.inbox(), 0o755))
	eventually(t, "the run ends", func() bool {
		out, _ := w.try(w.bin, "status", run)
		return strings.Contains(out, "completed")
	})
	if out := w.do(w.bin, "log", "--all", run); strings.Contains(out, "failed") {
		t.Errorf("an unreadable folder was taken for an empty one:\n%s", out)
	}
	w.well()
}

// logText is the daemon's log.
func (w *inboxBox) logText() string {
	w.t.Helper()
	data, err := os.ReadFile(w.log.Name())
	w.must(err)
	return string(data)
}

// asNobody has all that the test runs be nobody, where it is root.
func (w *inboxBox) asNobody() {
	w.t.Helper()
	const nobody = 65534
	if os.Geteuid() != 0 {
		return
	}
	bin := filepath.Join(w.work, "bin")
	w.must(os.Mkdir(bin, 0o755))
	copyFile(w.t, w.bin, filepath.Join(bin, "sluice-itself"), 0o755)
	w.bin = filepath.Join(bin, "sluice")
	w.put("bin/sluice", "#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups "+filepath.Join(bin, "sluice-itself")+" \"$@\"\n")
	w.must(os.Chmod(w.bin, 0o755), os.Chmod(filepath.Dir(w.work), 0o755))
	w.must(filepath.WalkDir(w.work, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
}
