//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The aims of row 10.
const (
	aimVersion = 6 * time.Millisecond
	aimServing = 50 * time.Millisecond
)

// starts measures how long a start takes: of a command that only speaks, and of the daemon.
func starts(ctx context.Context, b *bench) (out []figure, err error) {
	trivial := filepath.Join(b.work, "bin", "trivial")
	if err := b.compile(ctx, trivial, "./tools/bench/testdata/trivial"); err != nil {
		return nil, err
	}
	s, err := b.newSite(ctx, b.work, "row10", nil, "repo")
	if err != nil {
		return nil, err
	}
	defer s.close(&err)
	var version, least, serving samples
	for range b.count(60, 3) {
		for _, x := range []struct {
			program string
			to      *samples
		}{{b.sluice, &version}, {trivial, &least}} {
			began := time.Now()
			if _, err := s.run(ctx, s.dir, x.program, "version"); err != nil {
				return nil, err
			}
			*x.to = append(*x.to, time.Since(began))
		}
	}
	inbox := filepath.Join(s.repos[0], ".workflow", "signals")
	if err := os.MkdirAll(inbox, 0o755); err != nil {
		return nil, err
	}
	for i := range b.count(20, 2) {
		d, err := s.untilWatching(ctx, inbox)
		if err = errors.Join(err, s.stop()); err != nil {
			return nil, err
		}
		if i > 0 { // the first lays out the state
			serving = append(serving, d)
		}
	}
	v := figure{what: "sluice version, p50", got: ms(version.p50()), beside: ms(least.p50()) + " a trivial Go binary", ratio: over(version.p50(), least.p50()),
		aim: "<= " + ms(aimVersion), met: holds(version.p50() <= aimVersion)}
	v.notes = []string{fmt.Sprintf("%d starts each, in turns; p99 %s, floor %s", len(version), ms(version.p99()), ms(least.p99()))}
	d := figure{what: "daemon from exec to watching, p50", got: ms(serving.p50()), beside: ms(least.p50()) + " a trivial Go binary", ratio: over(serving.p50(), least.p50()),
		aim: "<= " + ms(aimServing), met: holds(serving.p50() <= aimServing)}
	d.notes = []string{fmt.Sprintf("%d starts; the worst %s; watching = READY=1 was sent and the kernel watches the inbox", len(serving), ms(serving.at(1)))}
	return []figure{v, d}, nil
}

// untilWatching starts the daemon and waits until it has told its manager that it is ready, and the kernel has a watch on
// the inbox.
func (s *site) untilWatching(ctx context.Context, inbox string) (time.Duration, error) {
	name := s.at("run/notify")
	_ = os.Remove(name)
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	began := time.Now()
	s.manager = name
	if err := s.exec(); err != nil {
		return 0, err
	}
	if err := l.SetReadDeadline(time.Now().Add(waitMost)); err != nil {
		return 0, err
	}
	for buf := make([]byte, 4096); ; {
		n, err := l.Read(buf)
		if err != nil {
			return 0, fmt.Errorf("the daemon says READY=1: %w", err)
		}
		if strings.HasPrefix(string(buf[:n]), "READY=1") {
			break
		}
	}
	err = eventually(ctx, "the kernel watches the inbox", func() (bool, error) { return watched(s.cmd.Process.Pid, inbox) })
	return time.Since(began), err
}

// watched reports whether a process has an inotify watch on a folder.
func watched(pid int, dir string) (bool, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	want := "ino:" + strconv.FormatUint(st.Sys().(*syscall.Stat_t).Ino, 16) + " "
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return false, err
	}
	for _, f := range infos {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), "inotify wd:") && strings.Contains(string(b), want) {
			return true, nil
		}
	}
	return false, nil
}
