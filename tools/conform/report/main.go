// Command report makes docs/conformance.md: which test holds which sentence of which document.
//
//	go run ./tools/conform/report [--check] DIR
//
// DIR has the lines that a test run left (see package conform). The register of all sentences is
// tools/conform/rules/*.txt: a line `RULE | SENTENCE`, with a third column where a later release is to hold it.
// It runs in the module's root. With --check nothing is written: exit 1 and a line for each rule that no test holds,
// each test that claims a rule nobody knows, and each difference to the table as it is. A rule whose tests were all skipped is
// told; it is a fault where the table is made.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

// Where things lie, below the module's root.
const (
	rulesDir = "tools/conform/rules"
	docFile  = "docs/conformance.md"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "compare, write nothing")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		_, _ = fmt.Fprintln(stderr, "usage: report [--check] DIR")
		return 2
	}
	docs, err := readRules(rulesDir)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "conformance:", err)
		return 1
	}
	claims, err := readRecords(flags.Arg(0))
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "conformance:", err)
		return 1
	}
	faults := compare(docs, claims)
	if *check {
		was, err := os.ReadFile(docFile)
		if err != nil {
			faults = append(faults, err.Error()+": run `make conformance`")
		} else if string(was) != page(docs, claims) {
			faults = append(faults, differences(string(was), page(docs, claims))...)
		}
	} else if err := os.WriteFile(docFile, []byte(page(docs, claims)), 0o644); err != nil {
		faults = append(faults, err.Error())
	}
	missed := skips(docs, claims)
	if !*check { // the table is made where every test can run
		faults, missed = append(faults, missed...), nil
	}
	for _, f := range append(missed, faults...) {
		_, _ = fmt.Fprintln(stdout, "conformance:", f)
	}
	held, all := count(docs, claims)
	_, _ = fmt.Fprintf(stdout, "conformance: %d of %d rules held by tests\n", held, all)
	if len(faults) > 0 {
		return 1
	}
	return 0
}
