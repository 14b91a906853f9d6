//go:build linux

package main

import (
	"fmt"
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	texts := func(format string, values ...float64) (out []string) {
		for _, v := range values {
			out = append(out, fmt.Sprintf(format, v))
		}
		return out
	}
	for _, c := range []struct {
		format   string
		old, now []float64
		ratio    string
		want     string
	}{
		{"%.2f ms", []float64{10, 10, 10, 10}, []float64{12, 12, 12, 9}, "1.20", "WORSE"},
		{"%.2f ms", []float64{10, 10, 10, 10}, []float64{12, 12, 9, 9}, "1.05", "the same"},    // in half of the rounds
		{"%.2f ms", []float64{10, 20, 30, 40}, []float64{8, 16, 24, 32}, "0.80", "better"},     // each round beside its own
		{"%.1f MiB", []float64{50, 50, 50}, []float64{52, 52, 52}, "1.04", "the same"},         // too little
		{"%.0f/s", []float64{1000, 1000, 1000}, []float64{2000, 2000, 2000}, "0.50", "better"}, // more is better
		{"%.0f MB/s", []float64{100, 100}, []float64{50, 50}, "2.00", "WORSE"},
		{"not measured", nil, nil, "0.00", "?"},
	} {
		old, now := texts(c.format, c.old...), texts(c.format, c.now...)
		if _, got := compare(old, now); len(old) > 0 && got != "too few rounds" {
			t.Errorf("%d rounds: %s", len(old), got)
		}
		ratio, got := compare(slices.Repeat(old, checkFewest), slices.Repeat(now, checkFewest))
		if got != c.want || fmt.Sprintf("%.2f", ratio) != c.ratio {
			t.Errorf("%v beside %v: %.2f %s, want %s %s", c.now, c.old, ratio, got, c.ratio, c.want)
		}
	}
	if got := middle([]string{"FAILED", "10.00 ms", "9.00 ms", "1,000/s"}); got != "10.00 ms" {
		t.Errorf("in the middle: %s", got)
	}
	if got := sidesOf("a..b"); got[0].name != "a" || got[1].name != "b" {
		t.Errorf("%v", got)
	}
	if got := sidesOf("a"); got[0].name != "a" || got[1].String() != "this folder" {
		t.Errorf("%v", got)
	}
}
