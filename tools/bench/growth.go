//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// aimExponent is how fast a figure may grow with the live runs: with n to the power of it.
const aimExponent = 1

// growth measures what grows with the live runs of a repo: row 1, the daemon's own memory, and `sluice status`.
func growth(ctx context.Context, b *bench) (out []figure, err error) {
	sizes := []int{10, 100, 1000}
	if b.short {
		sizes = []int{2, 4, 8}
	}
	l, err := b.newLatency(ctx, "row22", "sentinel", sentinelSpec)
	if err != nil {
		return nil, err
	}
	defer l.close(&err)
	want, live := b.count(50, 2), 0
	var signal, status, memory []float64
	for _, n := range sizes {
		if err := l.fill(ctx, n-live); err != nil {
			return nil, err
		}
		live = n
		var signals, shown samples
		for range want {
			d, err := l.sample(ctx)
			if err != nil {
				return nil, err
			}
			signals = append(signals, d)
			began := time.Now()
			if _, err := l.run(ctx, l.repos[0], b.sluice, "status"); err != nil {
				return nil, err
			}
			shown = append(shown, time.Since(began))
		}
		var a account
		if err := a.add(l.cmd.Process.Pid); err != nil {
			return nil, err
		}
		signal, status = append(signal, inMs(signals.p50())), append(status, inMs(shown.p50()))
		memory = append(memory, float64(a.anonKiB)/1024)
	}
	for _, x := range []struct {
		what, unit string
		got        []float64
	}{{"row 1's p50", "ms", signal}, {"sluice status, p50", "ms", status}, {"anonymous memory", "MiB", memory}} {
		e := exponent(sizes, x.got)
		out = append(out, figure{what: fmt.Sprintf("%s with %s live runs: exponent of the growth", x.what, listed(sizes, "%d")),
			got: fmt.Sprintf("%.2f", e), beside: listed(x.got, "%.2f") + " " + x.unit,
			aim: fmt.Sprintf("<= %d", aimExponent), met: holds(e <= aimExponent)})
	}
	return out, nil
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func listed[T any](all []T, form string) string {
	var out []string
	for _, x := range all {
		out = append(out, fmt.Sprintf(form, x))
	}
	return strings.Join(out, ", ")
}

// exponent returns the slope of the line that fits the logarithms of figures and sizes best: 0 for what does not grow,
// 1 for what grows as the sizes do.
func exponent(sizes []int, got []float64) float64 {
	var x, y, xx, xy float64
	for i, n := range sizes {
		a, b := math.Log(float64(n)), math.Log(got[i])
		x, y, xx, xy = x+a, y+b, xx+a*a, xy+a*b
	}
	n := float64(len(sizes))
	return (n*xy - x*y) / (n*xx - x*x)
}
