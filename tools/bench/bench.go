//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bench is what all rows share: the binaries, and folders that go away with it.
type bench struct {
	options
	work     string // on the disk
	burst    string // on tmpfs, where there is one
	aside    int    // sites that were measured
	sluice   string // the real binary
	stamp    string // the measured command: it writes the time of its first instruction to a pipe
	self     string // this binary: the floors are in it
	progress io.Writer
	machine  *machine
}

// tmpfsFolder is where bursts go, where it is a tmpfs.
const tmpfsFolder = "/dev/shm"

func newBench(ctx context.Context, o options, progress io.Writer) (b *bench, err error) {
	b = &bench{options: o, progress: progress}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	out, err := command(ctx, o.root, "go", "env", "GOMOD")
	if err != nil {
		return b, err
	}
	b.options.root = filepath.Dir(strings.TrimSpace(out))
	if b.self, err = os.Executable(); err != nil {
		return b, err
	}
	if b.work, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return b, err
	}
	over := os.TempDir()
	if fileSystem(tmpfsFolder) == "tmpfs" {
		over = tmpfsFolder
	}
	if b.burst, err = os.MkdirTemp(over, "sluice-bench-"); err != nil {
		return b, err
	}
	b.machine = newMachine(b.root, os.TempDir(), over)
	return b, b.build(ctx)
}

// build makes the binaries.
func (b *bench) build(ctx context.Context) error {
	if b.bin != "" {
		b.sluice, b.stamp = filepath.Join(b.bin, "sluice"), filepath.Join(b.bin, "stamp")
		return nil
	}
	b.sluice = filepath.Join(b.work, "bin", "sluice")
	if err := b.compile(ctx, b.sluice, "./cmd/sluice"); err != nil {
		return err
	}
	b.stamp = filepath.Join(b.work, "bin", "stamp")
	if _, err := command(ctx, b.root, "gcc", "-O2", "-static", "-o", b.stamp, "tools/bench/testdata/stamp.c"); err == nil {
		b.machine.stamp = "static C"
		return nil
	}
	b.machine.stamp = "Go (no static C here: its runtime's start is in every latency, figure and floor)"
	return b.compile(ctx, b.stamp, "./tools/bench/testdata/stamp")
}

// compile builds a program as sluice is shipped.
func (b *bench) compile(ctx context.Context, to, pkg string) error {
	_, err := command(ctx, b.root, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg)
	return err
}

// close removes what the bench made, or puts it where it is removed later.
func (b *bench) close() {
	for _, dir := range []string{b.work, b.burst} {
		later := dir == b.work && b.over != "" && os.Rename(dir, filepath.Join(b.over, filepath.Base(dir))) == nil
		if dir != "" && !later {
			_ = os.RemoveAll(dir)
		}
	}
}

// count returns how often to measure: tiny numbers with -short.
func (b *bench) count(long, short int) int {
	if b.short {
		return short
	}
	return long
}

// command runs a program to its end and gives its output; an error bears what it said.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s%s", filepath.Base(name), strings.Join(args, " "), err, errs.String(), out)
	}
	return string(out), nil
}

// Bounds of what is waited for.
const (
	waitMost  = 60 * time.Second
	pollEvery = 2 * time.Millisecond
	quiet     = 15 * time.Millisecond // between two samples: what the last one left to do is over
)

// eventually polls until a condition is decided, and gives its error; where it never is, one that names it.
func eventually(ctx context.Context, what string, cond func() (bool, error)) error {
	return within(ctx, waitMost, what, cond)
}

func within(ctx context.Context, most time.Duration, what string, cond func() (bool, error)) error {
	for until := time.Now().Add(most); ; {
		ok, err := cond()
		if ok {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("never within %s: %s (%v)", most, what, err)
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// pause waits, or gives ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
