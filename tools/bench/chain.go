//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// aimStep is what a step of a chain may take.
const aimStep = 1500 * time.Microsecond

// chainSpec is a workflow of n no-op steps with auto gates between two that read the clock.
func chainSpec(n int, stamp, fifo string) string {
	var steps, gates strings.Builder
	for i := range n + 2 {
		do, next := `"true"`, fmt.Sprint("S", i+1)
		switch i {
		case 0:
			do = fmt.Sprintf("%q, %q", stamp, fifo)
		case n + 1:
			do, next = fmt.Sprintf("%q, %q", stamp, fifo), "DONE"
		}
		fmt.Fprintf(&steps, "  - {id: S%d, run: [%s], gate: G%d}\n", i, do, i)
		fmt.Fprintf(&gates, "  - {id: G%d, reviewer: {level: auto, from: step}, on_pass: {next_step: %s}}\n", i, next)
	}
	return "workflow: {id: chain}\nsteps:\n" + steps.String() + "gates:\n" + gates.String()
}

// makefile has n targets, each after the one before it.
func makefile(n int) string {
	var t strings.Builder
	fmt.Fprintf(&t, ".PHONY: all\nall: t%d\n", n-1)
	for i := range n {
		before := ""
		if i > 0 {
			before = fmt.Sprint("t", i-1)
		}
		fmt.Fprintf(&t, ".PHONY: t%d\nt%d: %s\n\t@/bin/true\n", i, i, before)
	}
	return t.String()
}

func chainOfSteps(ctx context.Context, b *bench) (out []figure, err error) {
	n := b.count(100, 5)
	fifo := filepath.Join(b.work, "row3.stamps")
	to, err := newStamps(fifo)
	if err != nil {
		return nil, err
	}
	defer to.close()
	s, err := b.newSite(ctx, b.work, "row3", map[string]string{"chain": chainSpec(n, b.stamp, fifo)}, "repo")
	if err != nil {
		return nil, err
	}
	defer s.close(&err)
	s.profiled = true
	if err := s.boot(ctx); err != nil {
		return nil, err
	}
	maker, err := exec.LookPath("make")
	if err == nil {
		err = os.WriteFile(s.at("Makefile"), []byte(makefile(n)), 0o644)
	} else {
		maker, err = "", nil
	}
	var got, floor samples
	for range b.count(7, 1) {
		var d, m time.Duration
		if d, err = oneChain(ctx, s, to, n); err == nil && maker != "" {
			m, err = oneMake(ctx, s, maker, n)
		}
		if err != nil {
			return nil, err
		}
		got, floor = append(got, d), append(floor, m)
	}
	f := figure{what: fmt.Sprintf("chain of %d no-op steps, auto gates, per step", n), got: ms(got.p50()), aim: "<= " + ms(aimStep), met: holds(got.p50() <= aimStep)}
	if maker != "" {
		f.beside, f.ratio = ms(floor.p50())+" make, nothing recorded", over(got.p50(), floor.p50())
	}
	f.notes = []string{fmt.Sprintf("the middle one of %d chains; the best %s, the worst %s", len(got), ms(got.at(0)), ms(got.at(1)))}
	return []figure{f}, nil
}

// oneChain returns a step's part of a chain's time, from the first instruction of its first command to that of its last.
func oneChain(ctx context.Context, s *site, to *stamps, n int) (time.Duration, error) {
	if _, err := s.run(ctx, s.repos[0], s.b.sluice, "start", "chain"); err != nil {
		return 0, err
	}
	first, err := to.next(ctx)
	if err != nil {
		return 0, err
	}
	last, err := to.next(ctx)
	if err != nil {
		return 0, err
	}
	return (last - first) / time.Duration(n+1), pause(ctx, 10*quiet)
}

func oneMake(ctx context.Context, s *site, maker string, n int) (time.Duration, error) {
	began := time.Now()
	_, err := s.run(ctx, s.dir, maker)
	return time.Since(began) / time.Duration(n), err
}
