//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"
)

// aimExponent is how fast a figure may grow with the live runs: with n to the power of it.
const aimExponent = 1

// growth measures what grows with the live runs of a repo: row 1, the daemon's own memory, and `sluice status`.
func growth(ctx context.Context, b *bench) (out []figure, err error) {
	sizes := []int{10, 100, 999} // beside the measured run; a repo has at most 1,000
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

// The aims of row 23.
const (
	aimReposStart   = 2 * time.Second
	aimReposPercent = 0.2 // of a core
	aimReposMiB     = 80
)

// reposGrowth measures what grows with the repos: the daemon's start, and what it costs while nothing happens. The
// person has no settings file, as most.
func reposGrowth(ctx context.Context, b *bench) (out []figure, err error) {
	sizes := []int{10, 100, 1000}
	window, starts := 30*time.Second, b.count(3, 1)
	if b.short {
		sizes, window = []int{2, 4, 8}, time.Second
	}
	var started, cpu, memory []float64
	for _, n := range sizes {
		one, used, err := b.manyRepos(ctx, n, starts, window)
		if err != nil {
			return nil, err
		}
		started, cpu, memory = append(started, inMs(one)), append(cpu, used.percent), append(memory, used.mib)
	}
	last := len(sizes) - 1
	for _, x := range []struct {
		what, unit, form string
		got              []float64
		most             float64
	}{
		{"a start, p50", "ms", "%.0f", started, inMs(aimReposStart)},
		{"CPU of a core while nothing happens", "%", "%.3f", cpu, aimReposPercent},
		{"resident memory while nothing happens", "MiB", "%.1f", memory, aimReposMiB},
	} {
		aim := fmt.Sprintf("<= %g %s", x.most, x.unit)
		grows := exponent(sizes, x.got)
		out = append(out, figure{what: fmt.Sprintf("%s with %d repos", x.what, sizes[last]), got: fmt.Sprintf(x.form+" ", x.got[last]) + x.unit,
			beside: listed(x.got, x.form) + " " + x.unit + " with " + listed(sizes, "%d"), aim: aim, met: holds(x.got[last] <= x.most),
			notes: []string{fmt.Sprintf("exponent of the growth: %.2f", grows)}})
	}
	return out, nil
}

// manyRepos returns how long a daemon with n repos takes to serve them, and what it then costs at rest.
func (b *bench) manyRepos(ctx context.Context, n, starts int, window time.Duration) (start time.Duration, at usage, err error) {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("repo", i))
	}
	s, err := b.newSite(ctx, b.work, fmt.Sprint("row23-", n), nil, names...)
	if err != nil {
		return 0, usage{}, err
	}
	defer s.close(&err)
	s.env = append(s.env, "SLUICE_CONFIG_NOTIFY_DESKTOP=false")
	if err := os.RemoveAll(s.at("config/sluice")); err != nil {
		return 0, usage{}, err
	}
	var took samples
	for i := range starts + 1 {
		began := time.Now()
		if err := s.boot(ctx); err != nil {
			return 0, usage{}, err
		}
		if i > 0 { // the first makes the state
			took = append(took, time.Since(began))
		}
		if i < starts {
			if err := s.stop(); err != nil {
				return 0, usage{}, err
			}
		}
	}
	if err := pause(ctx, 2*window); err != nil { // it comes to rest
		return 0, usage{}, err
	}
	used, err := cost(ctx, window, s.cmd.Process.Pid)
	if err != nil {
		return 0, usage{}, err
	}
	return took.p50(), used[0], nil
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
