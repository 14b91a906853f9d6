//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	checkRounds = 20
	// A figure has changed if its middle one has by checkLeast, in the same direction in checkMost of the rounds.
	checkLeast = 0.05
	checkMost  = 0.75
	// checkFewest is of how many rounds there is a verdict.
	checkFewest = 5
	// rowInside is measured inside this program: it is the same for both.
	rowInside = 12
)

// side is one of the two that are compared.
type side struct {
	name string // a commit; "" = the files of this folder
	root string // its files
	bin  string // its binaries
}

func (s side) String() string {
	if s.name == "" {
		return "this folder"
	}
	return s.name
}

// sidesOf reads OLD or OLD..NEW.
func sidesOf(text string) (out [2]side) {
	old, now, _ := strings.Cut(text, "..")
	return [2]side{{name: old}, {name: now}}
}

// check measures the rows with the binaries of two commits in turns, in each round the other one first, and prints a verdict
// for each figure.
func check(ctx context.Context, o options, out, progress io.Writer) error {
	if slices.Contains(o.rows, rowInside) || len(o.rows) == 0 {
		return fmt.Errorf("-check needs -rows, without row %d: that one is measured inside this program", rowInside)
	}
	work, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	sides := sidesOf(o.check)
	for i := range sides {
		leave, e := sides[i].prepare(ctx, filepath.Join(work, strconv.Itoa(i)), progress)
		defer leave()
		if e != nil {
			return e
		}
	}
	o.over = work
	pairs, err := inTurns(ctx, o, sides, progress)
	table := [][]string{{"row", "figure", sides[0].String(), sides[1].String(), "ratio", "verdict"}}
	for _, p := range pairs {
		table = append(table, p.line())
	}
	fmt.Fprintf(out, "the middle one of %d rounds, in turns; a verdict is a change of %.0f %% or more, in the same direction in "+
		"%.0f %% of the rounds\n\n", o.rounds, 100*checkLeast, 100*checkMost)
	printColumns(out, table)
	return err
}

// inTurns measures both sides in each round. The figures of rows that worked are given beside an error.
func inTurns(ctx context.Context, o options, sides [2]side, progress io.Writer) (pairs []*pair, err error) {
	all := map[string]*pair{}
	for round := range o.rounds {
		for k := range sides {
			i := (k + round) % len(sides)
			fmt.Fprintf(progress, "round %d of %d, %s\n", round+1, o.rounds, sides[i])
			of := o
			of.root, of.bin = sides[i].root, sides[i].bin
			figures, _, e := measureAll(ctx, of, progress)
			if err = errors.Join(err, e); ctx.Err() != nil {
				return pairs, err
			}
			for _, f := range figures {
				key := fmt.Sprintf("%d|%s", f.row, f.what)
				if all[key] == nil {
					all[key] = &pair{figure: f}
					pairs = append(pairs, all[key])
				}
				all[key].got[i] = append(all[key].got[i], f.got)
			}
		}
	}
	return pairs, err
}

// prepare checks the commit out and builds its binaries. The caller calls leave, also after an error.
func (s *side) prepare(ctx context.Context, dir string, progress io.Writer) (leave func(), err error) {
	leave = func() {}
	if s.name != "" {
		s.root = filepath.Join(dir, "tree")
		if _, err := command(ctx, "", "git", "worktree", "add", "--detach", s.root, s.name); err != nil {
			return leave, err
		}
		leave = func() { // also when ctx has ended
			if _, err := command(context.Background(), "", "git", "worktree", "remove", "--force", s.root); err != nil {
				fmt.Fprintln(progress, "bench:", err)
			}
		}
	}
	b, err := newBench(ctx, options{root: s.root}, progress)
	defer b.close()
	if err == nil {
		s.root, s.bin = b.root, filepath.Join(dir, "bin")
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.CopyFS(s.bin, os.DirFS(filepath.Dir(b.sluice)))
	}
	return leave, err
}

// pair are a figure's measurements of both sides, as texts, a round each.
type pair struct {
	figure
	got [2][]string
}

// line is the pair's row of the table.
func (p *pair) line() []string {
	out := []string{strconv.Itoa(p.row), p.what, middle(p.got[0]), middle(p.got[1])}
	ratio, v := compare(p.got[0], p.got[1])
	if ratio == 0 {
		return append(out, "", v)
	}
	return append(out, fmt.Sprintf("%.2fx", ratio), v)
}

// value is the number at the beginning of a measurement; false if there is none.
func value(text string) (float64, bool) {
	number, _, _ := strings.Cut(strings.TrimSuffix(text, "/s"), " ")
	v, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	return v, err == nil
}

// middle returns the measurement in the middle, the lower of two; "-" if there is none.
func middle(texts []string) string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(t string) bool { _, ok := value(t); return !ok })
	if len(texts) == 0 {
		return "-"
	}
	slices.SortFunc(texts, func(a, b string) int {
		x, _ := value(a)
		y, _ := value(b)
		return cmp.Compare(x, y)
	})
	return texts[(len(texts)-1)/2]
}

// compare returns how many times as much the second side takes, in the middle of the rounds, and what follows. Of what is
// done in a second, more is better.
func compare(old, now []string) (ratio float64, v string) {
	var ratios []float64
	for i := range min(len(old), len(now)) {
		a, ok := value(old[i])
		b, also := value(now[i])
		if !ok || !also || a <= 0 || b <= 0 {
			continue
		}
		if strings.HasSuffix(old[i], "/s") {
			a, b = b, a
		}
		ratios = append(ratios, b/a)
	}
	if len(ratios) == 0 {
		return 0, string(notShown)
	}
	slices.Sort(ratios)
	n := len(ratios)
	ratio = (ratios[(n-1)/2] + ratios[n/2]) / 2
	share := func(more bool) float64 {
		k := 0
		for _, r := range ratios {
			if r > 1 == more && r != 1 {
				k++
			}
		}
		return float64(k) / float64(n)
	}
	switch {
	case n < checkFewest:
		return ratio, "too few rounds"
	case ratio >= 1+checkLeast && share(true) >= checkMost:
		return ratio, "WORSE"
	case ratio <= 1/(1+checkLeast) && share(false) >= checkMost:
		return ratio, "better"
	}
	return ratio, "the same"
}
