//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// verdict says whether an aim is met.
type verdict string

const (
	met      verdict = "yes"
	missed   verdict = "NO"
	noAim    verdict = "-"
	notShown verdict = "?" // it could not be measured, or its floor could not
)

// figure is one line of the table.
type figure struct {
	row    int
	what   string  // what was measured
	got    string  // what came of it
	beside string  // the floor, as measured in this run
	ratio  float64 // of figure and floor; 0 = none
	aim    string
	met    verdict
	notes  []string // below the table

	signals, lost int // how many signals were sent, and how many of them were not accounted for
}

// holds returns the verdict of a condition.
func holds(ok bool) verdict {
	if ok {
		return met
	}
	return missed
}

// printTable writes the head and the figures.
func printTable(out io.Writer, m *machine, figures []figure) {
	for _, l := range m.lines() {
		fmt.Fprintln(out, l)
	}
	fmt.Fprintln(out)
	table := [][]string{{"row", "figure", "measured", "beside, in this run", "ratio", "aim", "met"}}
	for _, f := range figures {
		ratio := ""
		if f.ratio > 0 {
			ratio = fmt.Sprintf("%.2fx", f.ratio)
		}
		table = append(table, []string{fmt.Sprint(f.row), f.what, f.got, f.beside, ratio, f.aim, string(f.met)})
	}
	printColumns(out, table)
	for _, f := range figures {
		for _, n := range f.notes {
			fmt.Fprintf(out, "row %d: %s\n", f.row, n)
		}
	}
}

// printColumns writes rows of cells as a table that Markdown reads too; the first is the head.
func printColumns(out io.Writer, table [][]string) {
	wide := make([]int, len(table[0]))
	for _, r := range table {
		for i, c := range r {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	for n, r := range table {
		for i, c := range r {
			fmt.Fprintf(out, "| %s%s ", c, strings.Repeat(" ", wide[i]-utf8.RuneCountInString(c)))
		}
		fmt.Fprintln(out, "|")
		if n == 0 {
			for _, w := range wide {
				fmt.Fprint(out, "|", strings.Repeat("-", w+2))
			}
			fmt.Fprintln(out, "|")
		}
	}
}

// samples are durations of one thing measured many times.
type samples []time.Duration

// at returns the quantile q of 0 to 1: the smallest sample that at least that part of all is not above.
func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func (s samples) p50() time.Duration { return s.at(0.50) }
func (s samples) p99() time.Duration { return s.at(0.99) }

// ms writes a duration in milliseconds.
func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

// over returns a/b, and 0 where there is no b.
func over(a, b time.Duration) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// against returns the two figures of a latency beside its floor: p50 and p99, with their aims.
func against(what, floor string, got, plain samples, p50Most, p99Most float64) []figure {
	one := func(name string, a, b time.Duration, most float64) figure {
		return figure{what: what + ", " + name, got: ms(a), beside: ms(b) + " " + floor, ratio: over(a, b),
			aim: fmt.Sprintf("<= %.1fx", most), met: holds(over(a, b) <= most)}
	}
	out := []figure{one("p50", got.p50(), plain.p50(), p50Most), one("p99", got.p99(), plain.p99(), p99Most)}
	out[1].notes = []string{fmt.Sprintf("%d samples each, in turns; the worst: %s, floor %s", len(got), ms(got.at(1)), ms(plain.at(1)))}
	return out
}
