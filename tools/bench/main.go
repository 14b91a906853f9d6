//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if floor(os.Args[1:]) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// row is one line of issue and table: what it measures, and how.
type row struct {
	n       int
	title   string
	measure func(context.Context, *bench) ([]figure, error)
}

// rows are all of them, in the table's order.
func rows() []row {
	return []row{
		{1, "sentinel renamed into place -> next step's first instruction", sentinelToStep},
		{2, "human's pass file -> next step's first instruction", passToStep},
		{3, "a chain of no-op steps with auto gates", chainOfSteps},
		{4, "engine: Decide + Apply + Owed", engineEvents},
		{5, "journal: appends with 16 writers", journalAppends},
		{6, "start on a long journal", longHistory},
		{7, "a burst of signals", burstOfSignals},
		{8, "idle", idle},
		{9, "one more signal beside many waiting runs", besideWaiting},
		{10, "sluice version; daemon from exec to watching", starts},
		{11, "what the sandbox adds to a launch", heldLaunches},
		{12, "an agent's events", streamReader},
		{13, "many agents streaming", streaming},
		{14, "a run of a long list", longList},
		{15, "a selection out of a long list, and its file", listWork},
		{16, "taking the work of an attempt", takingWork},
		{17, "row 2 while the page is looked at", viewed},
		{18, "the page's first answer", paint},
		{19, "cluster: appends", clusterAppends},
		{20, "cluster: launches on workers", workerLaunches},
		{21, "cluster: heartbeats of 1,000 workers", heartbeats},
		{22, "growth with the live runs", growth},
		{23, "growth with the repos", reposGrowth},
	}
}

// options are what the command line says.
type options struct {
	rows    []int // empty = all
	short   bool
	profile string // folder for the daemon's profiles; "" = none
	check   string // two commits to compare, OLD or OLD..NEW; "" = none
	rounds  int    // of such a comparison
	root    string // the files that are built and measured; "" = those of this folder
	bin     string // a folder with their binaries; "" = they are built
	over    string // where what was measured is put, instead of being removed; "" = nowhere
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(errs)
	list := fs.String("rows", "", "which `rows`, as 1,3 (all)")
	fs.BoolVar(&o.short, "short", false, "every row once with tiny numbers")
	fs.StringVar(&o.profile, "profile", "", "put the daemon's CPU and memory profiles in rows 1, 2, 3, 7, 9, 14, 17 and 18 into this `folder`")
	fs.StringVar(&o.check, "check", "", "compare the `commits` OLD..NEW in turns; without ..NEW, OLD and the files of this folder")
	fs.IntVar(&o.rounds, "rounds", checkRounds, "how many `rounds` a comparison has")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("%q: no arguments are known: see -help", fs.Arg(0))
	}
	for _, s := range strings.FieldsFunc(*list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(s)
		if err != nil || !slices.ContainsFunc(rows(), func(r row) bool { return r.n == n }) {
			return o, fmt.Errorf("-rows %s: no such row: they are 1 to %d", s, rows()[len(rows())-1].n)
		}
		o.rows = append(o.rows, n)
	}
	return o, nil
}

// run measures the rows and prints the table. The table says which rows failed, and so does the error.
func run(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	if o.check != "" {
		return check(ctx, o, out, errs)
	}
	figures, head, err := measureAll(ctx, o, errs)
	if head != nil {
		printTable(out, head, figures)
	}
	return err
}

// measureAll measures what the options ask for. The figures of rows that worked are given beside an error.
func measureAll(ctx context.Context, o options, progress io.Writer) ([]figure, *machine, error) {
	b, err := newBench(ctx, o, progress)
	if err != nil {
		return nil, nil, err
	}
	defer b.close()
	var all []figure
	var failed []error
	for _, r := range rows() {
		if len(o.rows) > 0 && !slices.Contains(o.rows, r.n) {
			continue
		}
		fmt.Fprintf(progress, "row %d: %s …\n", r.n, r.title)
		got, err := r.measure(ctx, b)
		for i := range got {
			got[i].row = r.n
		}
		all = append(all, got...)
		if err != nil {
			err = fmt.Errorf("row %d: %w", r.n, err)
			failed = append(failed, err)
			all = append(all, figure{row: r.n, what: r.title, got: "FAILED", notes: []string{err.Error()}})
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, b.machine, errors.Join(failed...)
}
