package agents

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupPrefix = "sluice-"

// cgroupHome returns the folder of this process's own cgroup (version 2, also beside version 1), or
// "".
func cgroupHome() string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	var rel string
	for line := range strings.Lines(string(own)) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			rel = strings.TrimSpace(p)
		}
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil || rel == "" {
		return ""
	}
	defer mounts.Close()
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		// "id parent dev root mountpoint options [tags] - type source options": see proc(5)
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		inside, err := filepath.Rel(fields[3], rel)
		if err != nil || strings.HasPrefix(inside, "..") {
			continue // our group is outside what is mounted here
		}
		return filepath.Join(fields[4], inside)
	}
	return ""
}

// cgroupName returns the name prefix of a shim's cgroups. Each launch has its own cgroup, so
// killing one does not affect others.
func cgroupName(mark string) string {
	return cgroupPrefix + mark[:min(len(mark), 16)] + "-"
}

// makeCgroup creates, opens and locks a cgroup; the lock shows that it is in use. It returns "" and
// -1 if that is not allowed.
func makeCgroup(dir string) (string, int) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", -1
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		os.Remove(dir) // before Linux 5.14 a group cannot be killed as one
		return "", -1
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		os.Remove(dir)
		return "", -1
	}
	_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	return dir, fd
}

// strayAfter is the age from which an unlocked cgroup stays unlocked.
const strayAfter = time.Minute

// removeStrays removes empty, unlocked cgroups beside this process: those of killed shims.
func removeStrays(groups string) {
	if groups == "" {
		return
	}
	home, err := os.Open(groups)
	if err != nil {
		return
	}
	defer home.Close()
	names, _ := home.Readdirnames(maxGroups) // a partial list is fine
	for _, name := range names {
		if !strings.HasPrefix(name, cgroupPrefix) {
			continue
		}
		dir := filepath.Join(groups, name)
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < strayAfter {
			continue
		}
		fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			removeCgroup(dir) // fails while something lives in it
		}
		unix.Close(fd)
	}
}

// startIn makes the command start inside the cgroup.
func startIn(attr *syscall.SysProcAttr, cgroup int) {
	if cgroup >= 0 {
		attr.UseCgroupFD, attr.CgroupFD = true, cgroup
	}
}

// killCgroup kills everything in the cgroup at once, if makeCgroup made it for the shim with that
// mark.
func killCgroup(cgroup, mark string) {
	if !strings.HasPrefix(filepath.Base(cgroup), cgroupName(mark)) {
		return
	}
	if f, err := os.OpenFile(filepath.Join(cgroup, "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("1")
		f.Close()
	}
}

// populated reports whether anything lives in the cgroup. A missing or unreadable one counts as
// empty.
func populated(cgroup string) bool {
	if cgroup == "" {
		return false
	}
	data, err := os.ReadFile(filepath.Join(cgroup, "cgroup.events"))
	return err == nil && bytes.Contains(data, []byte("populated 1"))
}

// removeCgroup removes the cgroup with the groups that the command created in it.
func removeCgroup(cgroup string) {
	if cgroup == "" {
		return
	}
	var dirs []string
	_ = filepath.WalkDir(cgroup, func(path string, d fs.DirEntry, err error) error {
		if err != nil || len(dirs) > maxGroups {
			return errors.Join(err, fs.SkipAll)
		}
		if d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = unix.Rmdir(dirs[i])
	}
}

const maxGroups = 10_000
