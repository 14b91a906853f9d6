//go:build linux

package main

import (
	"context"
	"fmt"
)

// aimBeats is what row 21 may take, in % of a core.
const aimBeats = 5.0

// clusterAppends runs the cluster's own benchmark: appends one after another to the file and a stream.
func clusterAppends(ctx context.Context, b *bench) (out []figure, err error) {
	by, err := b.named(ctx, "./internal/cluster", "^BenchmarkAppend$", "appends/s")
	if err != nil {
		return nil, err
	}
	for _, n := range []int{1, 3} {
		what := fmt.Sprintf("servers: %d", n)
		got, plain := by[fmt.Sprintf("servers=%d", n)], by[fmt.Sprintf("plain=%d", n)]
		if got == 0 || plain == 0 {
			return out, fmt.Errorf("BenchmarkAppend lacks parts: %v", by)
		}
		f := figure{what: "appends to file and stream, " + what, got: perSecond(got), beside: perSecond(plain) + " plain publishing",
			ratio: plain / got, met: noAim}
		f.notes = []string{fmt.Sprintf("%s: %.2f ms each; the file alone %s", what, 1000/got, perSecond(by["file"]))}
		out = append(out, f)
	}
	return out, nil
}

// workerLaunches measures launches on workers, from the order to the signed result.
func workerLaunches(ctx context.Context, b *bench) (out []figure, err error) {
	by, err := b.named(ctx, "./internal/cluster/workers", "^BenchmarkLaunch$", "launches/s")
	if err != nil {
		return nil, err
	}
	for _, n := range []int{1, 2, 4, 8} {
		got := by[fmt.Sprintf("workers=%d", n)]
		if got == 0 || by["plain"] == 0 {
			return out, fmt.Errorf("BenchmarkLaunch lacks parts: %v", by)
		}
		out = append(out, figure{what: fmt.Sprintf("launches that end at once, workers: %d", n), got: perSecond(got),
			beside: perSecond(by["plain"]) + " plain request and reply", ratio: by["plain"] / got, met: noAim})
	}
	return out, nil
}

// heartbeats measures what 1,000 workers cost a daemon that sends them nothing.
func heartbeats(ctx context.Context, b *bench) ([]figure, error) {
	by, err := b.named(ctx, "./internal/cluster/workers", "^BenchmarkHeartbeats$", "%core")
	if err != nil {
		return nil, err
	}
	return []figure{{what: "heartbeats of 1,000 workers, CPU of a core", got: percent(by["desk"]), beside: percent(by["received"]) +
		" only received", ratio: max(by["desk"], 0) / max(by["received"], 0.001), aim: "<= " + percent(aimBeats), met: holds(by["desk"] <= aimBeats)}}, nil
}

// named returns the metric of a benchmark's parts by their names.
func (b *bench) named(ctx context.Context, pkg, name, metric string) (map[string]float64, error) {
	rates, err := b.goBench(ctx, pkg, name, metric)
	by := map[string]float64{}
	for _, r := range rates {
		by[r.name] = r.rate
	}
	return by, err
}
