//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// aimBeside is how much slower a signal may be beside many waiting runs.
const aimBeside = 1.2

// waitingRuns wait for a person, and one more is measured: so many runs may be alive in one repo.
const waitingRuns = 999

// besideWaiting measures row 1 in a repo whose other runs all wait at human gates, and in one that has none, in turns.
func besideWaiting(ctx context.Context, b *bench) (out []figure, err error) {
	n := b.count(waitingRuns, 5)
	alone, err := b.newLatency(ctx, "row9-alone", "sentinel", sentinelSpec)
	if err != nil {
		return nil, err
	}
	defer alone.close(&err)
	crowd, err := b.newLatency(ctx, "row9-crowd", "sentinel", sentinelSpec)
	if err != nil {
		return nil, err
	}
	defer crowd.close(&err)
	if err := crowd.fill(ctx, n); err != nil {
		return nil, err
	}
	var few, many samples
	want := b.count(100, 3)
	for i := 0; len(many) < want; i++ {
		k := min(blockOf, want-len(many))
		for _, x := range []struct {
			l  *latency
			to *samples
		}{{alone, &few}, {crowd, &many}} {
			for range k {
				d, err := x.l.sample(ctx)
				if err != nil {
					return nil, err
				}
				*x.to = append(*x.to, d)
			}
		}
	}
	f := figure{what: fmt.Sprintf("row 1's p50 beside %d runs at human gates", n), got: ms(many.p50()), beside: ms(few.p50()) + " the same without them",
		ratio: over(many.p50(), few.p50()), aim: fmt.Sprintf("<= %.1fx", aimBeside), met: holds(over(many.p50(), few.p50()) <= aimBeside)}
	f.notes = []string{fmt.Sprintf("%d samples each, in turns; p99 %s, without them %s", len(many), ms(many.p99()), ms(few.p99()))}
	return []figure{f}, nil
}

// fill starts n runs of a workflow that waits for a person, and waits until they do.
func (l *latency) fill(ctx context.Context, n int) error {
	spec := "workflow: {id: ask}\nsteps:\n  - {id: A, run: [\"true\"], gate: G}\ngates:\n  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}\n"
	err := writeFile(filepath.Join(l.repos[0], ".workflow/specs/ask.yaml"), spec)
	for range n {
		_, e := l.run(ctx, l.repos[0], l.b.sluice, "start", "ask", "--parallel")
		if err = errors.Join(err, e); err != nil {
			return err
		}
	}
	return l.waitHumans(ctx, l.repos[0], n)
}
