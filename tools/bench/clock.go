//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// now is the clock that the stamp reads too.
func now() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano()), err
}

// stamps is the pipe that measured commands tell their times to.
type stamps struct {
	path string
	f    *os.File
	in   *bufio.Reader
}

func newStamps(path string) (*stamps, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("pipe %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // also for writing: so it never ends
	if err != nil {
		return nil, err
	}
	return &stamps{path: path, f: f, in: bufio.NewReader(f)}, nil
}

func (s *stamps) close() { s.f.Close() }

// next waits for the next time.
func (s *stamps) next(ctx context.Context) (time.Duration, error) {
	stop := context.AfterFunc(ctx, func() { _ = s.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := s.f.SetReadDeadline(time.Now().Add(waitMost)); err != nil {
		return 0, err
	}
	line, err := s.in.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the next step's command tells its start: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return time.Duration(n), err
}

// deliver writes a file beside its place and renames it there; it gives the moment before the rename.
func deliver(path, text string) (time.Duration, error) {
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		return 0, err
	}
	at, err := now()
	if err != nil {
		return 0, err
	}
	return at, unix.Rename(tmp, path)
}

// timed delivers a file and gives how long it took from there to the first instruction of what follows it.
func (s *stamps) timed(ctx context.Context, path, text string) (time.Duration, error) {
	began, err := deliver(path, text)
	if err != nil {
		return 0, err
	}
	at, err := s.next(ctx)
	return at - began, err
}
