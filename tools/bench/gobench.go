//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// The aims of rows 4 and 5.
const (
	aimEvents  = 500_000 // a second
	aimAppends = 40_000  // a second, with 16 writers
)

// engineEvents and journalAppends run the packages' own benchmarks, which measure inside the package.
func engineEvents(ctx context.Context, b *bench) ([]figure, error) {
	rates, err := b.goBench(ctx, "./engine", "^BenchmarkDecide$", "events/s")
	if err != nil {
		return nil, err
	}
	var out []figure
	for _, r := range rates {
		out = append(out, figure{what: "engine: Decide + Apply + Owed, " + r.name, got: perSecond(r.rate), aim: ">= " + perSecond(aimEvents), met: holds(r.rate >= aimEvents)})
	}
	return out, nil
}

func journalAppends(ctx context.Context, b *bench) ([]figure, error) {
	rates, err := b.goBench(ctx, "./journal", "^BenchmarkAppend$", "appends/s")
	if err != nil {
		return nil, err
	}
	by := map[string]float64{}
	for _, r := range rates {
		by[r.name] = r.rate
	}
	many, plain := by["writers=16"], by["plain"]
	if many == 0 || plain == 0 {
		return nil, fmt.Errorf("BenchmarkAppend has no plain and writers=16: %v", by)
	}
	return []figure{{what: "journal: appends with 16 writers", got: perSecond(many), beside: perSecond(plain) + " one fdatasync each",
		ratio: many / plain, aim: ">= " + perSecond(aimAppends), met: holds(many >= aimAppends)}}, nil
}

// rate is one benchmark's metric.
type rate struct {
	name string
	rate float64
}

// goBench runs a package's benchmark and gives the metric of each of its parts.
func (b *bench) goBench(ctx context.Context, pkg, name, metric string) ([]rate, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-run", "^$", "-bench", name, "-benchtime", map[bool]string{true: "1x", false: "2s"}[b.short], pkg)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "CGO_ENABLED=0", "TMPDIR="+b.work)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %s", name, pkg, err, text)
	}
	line := regexp.MustCompile(`(?m)^Benchmark[^/\s]+/(\S+?)(?:-\d+)?\s.*?([0-9.e+]+) ` + regexp.QuoteMeta(metric))
	var out []rate
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		out = append(out, rate{m[1], n})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s of %s tells no %s: %s", name, pkg, metric, text)
	}
	return out, nil
}

// perSecond writes a rate.
func perSecond(n float64) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s + "/s"
}

// listWork measures one selection out of a long list, and one writing of its file.
func listWork(ctx context.Context, b *bench) ([]figure, error) {
	picked, err := b.goBench(ctx, "./engine", "^BenchmarkTenThousandTasks$", "ns/op")
	if err != nil {
		return nil, err
	}
	took := time.Duration(picked[0].rate)
	out := []figure{{what: fmt.Sprintf("one selection out of %d tasks", listTasks), got: ms(took), aim: "<= " + ms(aimSelection), met: holds(took <= aimSelection)}}
	wrote, err := b.goBench(ctx, "./internal/work", "^BenchmarkTenThousandTasks$", "ns/op")
	if err != nil {
		return out, err
	}
	by := map[string]time.Duration{}
	for _, r := range wrote {
		by[r.name] = time.Duration(r.rate)
	}
	if by["write"] == 0 || by["plain"] == 0 {
		return out, fmt.Errorf("BenchmarkTenThousandTasks has no write and plain: %v", by)
	}
	return append(out, figure{what: fmt.Sprintf("the file of %d tasks written", listTasks), got: ms(by["write"]), beside: ms(by["plain"]) + " the same bytes, one sync and rename",
		ratio: over(by["write"], by["plain"]), aim: "<= " + ms(aimListFile), met: holds(by["write"] <= aimListFile)}), nil
}
