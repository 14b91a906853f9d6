//go:build linux

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain: this binary is also the floors that the rows start.
func TestMain(m *testing.M) {
	if floor(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// TestEveryRowIsMeasured runs the whole bench with tiny numbers, so that it cannot rot. It asserts on no time.
func TestEveryRowIsMeasured(t *testing.T) {
	var progress bytes.Buffer
	figures, head, err := measureAll(t.Context(), options{short: true}, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	seen := map[int]bool{}
	for _, f := range figures {
		seen[f.row] = true
		if f.what == "" || f.got == "" {
			t.Errorf("row %d: nothing was measured: %+v", f.row, f)
		}
		if f.lost != 0 {
			t.Errorf("row %d: %d of %d signals are not accounted for: %v", f.row, f.lost, f.signals, f.notes)
		}
	}
	for _, r := range rows() {
		if !seen[r.n] {
			t.Errorf("row %d (%s) is not in the table", r.n, r.title)
		}
	}
	var table strings.Builder
	printTable(&table, head, figures)
	t.Log("\n" + table.String())
}

func TestQuantiles(t *testing.T) {
	var s samples
	for i := 100; i > 0; i-- {
		s = append(s, time.Duration(i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := s.at(q); got != want {
			t.Errorf("at(%v) = %d, want %d", q, got, want)
		}
	}
	if got := (samples{7}).p99(); got != 7 {
		t.Errorf("of one: %d", got)
	}
}

func TestExponent(t *testing.T) {
	sizes := []int{10, 100, 1000}
	for want, got := range map[float64][]float64{0: {7, 7, 7}, 1: {2, 20, 200}, 2: {3, 300, 30000}, 0.5: {10, 10, 100}} {
		if e := exponent(sizes, got); e < want-0.01 || e > want+0.01 {
			t.Errorf("%v: %v, want %v", got, e, want)
		}
	}
}

func TestOptions(t *testing.T) {
	if o, err := parse([]string{"-rows", "1,3", "-short"}, &bytes.Buffer{}); err != nil || len(o.rows) != 2 || !o.short {
		t.Errorf("%+v %v", o, err)
	}
	for _, args := range [][]string{{"-rows", "99"}, {"-rows", "x"}, {"more"}, {"-what"}} {
		if _, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
