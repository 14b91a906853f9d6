//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is the table's head: what the figures were measured on.
type machine struct {
	cpu, kernel, goVersion, commit, load string
	disk, burst                          string // folder (file system)
	stamp                                string // what the measured command is
}

// Magic numbers of file systems that a bench is likely to lie on; the kernel's <linux/magic.h> has them all.
const (
	magicExt     = 0xef53
	magicTmpfs   = 0x01021994
	magicXfs     = 0x58465342
	magicBtrfs   = 0x9123683e
	magicOverlay = 0x794c7630
	magicZfs     = 0x2fc12fc1
)

// fileSystem names the file system that a folder lies on.
func fileSystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "unknown"
	}
	switch int64(st.Type) {
	case magicExt:
		return "ext4"
	case magicTmpfs:
		return "tmpfs"
	case magicXfs:
		return "xfs"
	case magicBtrfs:
		return "btrfs"
	case magicOverlay:
		return "overlay"
	case magicZfs:
		return "zfs"
	}
	return fmt.Sprintf("%#x", st.Type)
}

func newMachine(root, disk, burst string) *machine {
	m := &machine{goVersion: runtime.Version(), cpu: cpuModel(), load: "unknown", kernel: "unknown", commit: "unknown",
		disk: disk + " (" + fileSystem(disk) + ")", burst: burst + " (" + fileSystem(burst) + ")"}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.kernel = unix.ByteSliceToString(u.Release[:])
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	cmd := exec.Command("git", "describe", "--always", "--dirty")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		m.commit = strings.TrimSpace(string(out))
	}
	return m
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.SplitSeq(string(b), "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

func (m *machine) lines() []string {
	return []string{
		fmt.Sprintf("sluice %s, %s, %d cores (%s), Linux %s", m.commit, m.goVersion, runtime.NumCPU(), m.cpu, m.kernel),
		"load average before: " + m.load,
		"repo and state in " + m.disk + "; bursts in " + m.burst + "; the measured command is " + m.stamp,
	}
}
