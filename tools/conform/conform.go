// Package conform is for tests only: it lets a test say which sentence of which document it holds, so that a table of
// rules and tests can be made from a test run.
//
// Where the environment variable SLUICE_CONFORM names a folder, each call leaves one JSON line there; else nothing is
// written. A line tells what the test meant to hold and how it came out, so that a rule whose test failed is not
// counted as held.
package conform

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Env names the folder the records go to; empty or unset = no records.
const Env = "SLUICE_CONFORM"

// Record is one line: the test holds this sentence.
type Record struct {
	Doc      string `json:"doc"`            // "8-semantics", "1-language", "field", …
	Rule     string `json:"rule"`           // "15", "15a", "Rules 3", "asks 4": as the document numbers it
	Sentence string `json:"sentence"`       // what is held, in words
	Package  string `json:"package"`        // import path of the test
	Test     string `json:"test"`           // its whole name, with the names of subtests
	Part     string `json:"part,omitempty"` // of the test: a script that it runs
	Result   string `json:"result"`         // passed, failed or skipped
}

// Rule records that t holds the sentence of the rule. The rule is "DOC RULE", as in "8-semantics 15". The record is
// written when the test has ended. A rule without a number or a sentence without words fails the test.
func Rule(t testing.TB, rule, sentence string) {
	t.Helper()
	record(t, "", rule, sentence)
}

// Part is Rule for what a part of the test holds, such as a script that it runs: the table names the part. The test fails
// where the part does, and then nothing of it counts.
func Part(t testing.TB, part, rule, sentence string) {
	t.Helper()
	record(t, part, rule, sentence)
}

func record(t testing.TB, part, rule, sentence string) {
	t.Helper()
	doc, number, ok := strings.Cut(rule, " ")
	if !ok || doc == "" || number == "" || strings.TrimSpace(sentence) == "" {
		t.Fatalf("conform: rule %q, sentence %q: want \"DOC RULE\" and the sentence", rule, sentence)
	}
	dir := os.Getenv(Env)
	if dir == "" {
		return
	}
	rec := Record{Doc: doc, Rule: number, Sentence: sentence, Package: caller(), Test: t.Name(), Part: part}
	t.Cleanup(func() {
		switch rec.Result = "passed"; {
		case t.Failed():
			rec.Result = "failed"
		case t.Skipped():
			rec.Result = "skipped"
		}
		if err := write(dir, rec); err != nil {
			t.Errorf("conform: record of %s: %v", rule, err)
		}
	})
}

// caller returns the import path of the test that called Rule or Part.
func caller() string {
	pc, _, _, ok := runtime.Caller(3)
	if !ok {
		return "unknown"
	}
	name := runtime.FuncForPC(pc).Name() // path/to/pkg.TestX.func1
	slash := strings.LastIndex(name, "/")
	pkg, _, _ := strings.Cut(name[slash+1:], ".")
	return strings.TrimSuffix(name[:slash+1]+pkg, "_test")
}

// write appends the record as one line in one write: several test processes share the folder, each its own file.
func write(dir string, rec Record) error {
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%d.jsonl", os.Getpid())), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
