package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project lays out a small project with a register and the records of a run, and stands in it.
func project(t *testing.T, rules, records string) (dir string) {
	t.Helper()
	root := t.TempDir()
	t.Chdir(root)
	for name, text := range map[string]string{rulesDir + "/1_law.txt": rules, "run/7.jsonl": records} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("docs", 0o755); err != nil {
		t.Fatal(err)
	}
	return "run"
}

func record(rule, test, result string) string {
	return `{"doc":"law","rule":"` + rule + `","sentence":"x","package":"sluice/engine","test":"` + test + `","result":"` + result + "\"}\n"
}

func report(args ...string) (int, string) {
	var out, errs bytes.Buffer
	rc := run(args, &out, &errs)
	return rc, out.String() + errs.String()
}

const twoRules = "# law\n## all of it\nrule 1 | one\n2 | two | a later release\n"

func TestPageIsMadeAndHolds(t *testing.T) {
	dir := project(t, twoRules, record("1", "TestA/sub", "passed")+record("rule 1", "TestA/other", "passed")+record("1", "TestB", "skipped"))
	if rc, out := report(dir); rc != 0 || !strings.Contains(out, "1 of 1 rules held") {
		t.Fatalf("%d %s", rc, out)
	}
	page, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| rule 1 | one | `engine.TestA`<br>`engine.TestB` |", "| 2 | two | *a later release* |", "### all of it"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if rc, out := report("--check", dir); rc != 0 {
		t.Errorf("%d %s", rc, out)
	}
}

func TestFaultsAreTold(t *testing.T) {
	passed := record("1", "TestA", "passed")
	for name, c := range map[string]struct{ rules, records, want string }{
		"no test":     {twoRules, "", `law rule 1: no test holds it: one`},
		"failed test": {twoRules, record("1", "TestA", "failed"), `law rule 1: no test holds it: one`},
		"unknown":     {twoRules, passed + record("7", "TestC", "passed"), `engine.TestC claims "law 7": no such rule in tools/conform/rules`},
		"mark":        {twoRules, passed + record("2", "TestC", "passed"), `law 2: marked "a later release", but engine.TestC holds it`},
		"twice":       {twoRules + "1 | again\n", passed, `1_law.txt:5: law 1 stands at tools/conform/rules/1_law.txt:3 already`},
		"no sentence": {"1\n", "", `1_law.txt:1: "1": want RULE | SENTENCE`},
		"other mark":  {"1 | one | some day\n", "", "the third column says `a later release`"},
		"no record":   {twoRules, "{", "run/7.jsonl: "},
	} {
		t.Run(name, func(t *testing.T) {
			rc, out := report(project(t, c.rules, c.records))
			if rc != 1 || !strings.Contains(out, c.want) {
				t.Errorf("%d %s", rc, out)
			}
		})
	}
}

// TestSkippedAlone: a rule that only skipped tests hold is a fault where the table is made, and told where it is checked.
func TestSkippedAlone(t *testing.T) {
	const skipped = "law rule 1: held by skipped tests alone: engine.TestA, engine.TestB"
	dir := project(t, twoRules, record("1", "TestA/sub", "skipped")+record("1", "TestB", "skipped"))
	if rc, out := report(dir); rc != 1 || !strings.Contains(out, skipped) {
		t.Errorf("made: %d %s", rc, out)
	}
	if rc, out := report("--check", dir); rc != 0 || !strings.Contains(out, skipped) {
		t.Errorf("checked: %d %s", rc, out)
	}
	if err := os.WriteFile("run/8.jsonl", []byte(record("1", "TestA/more", "passed")), 0o644); err != nil {
		t.Fatal(err)
	}
	if rc, out := report(dir); rc != 0 || strings.Contains(out, "skipped") {
		t.Errorf("one that passed beside them: %d %s", rc, out)
	}
}

// TestPartIsNamed: the page names the part of a test, such as a script, and no subtests.
func TestPartIsNamed(t *testing.T) {
	dir := project(t, twoRules, strings.Replace(record("1", "TestA/sub", "passed"), `"result"`, `"part":"demo","result"`, 1))
	rc, out := report(dir)
	page, err := os.ReadFile(docFile)
	if rc != 0 || err != nil || !strings.Contains(string(page), "| rule 1 | one | `engine.TestA/demo` |") {
		t.Errorf("%d %s %v\n%s", rc, out, err, page)
	}
}

func TestOldPageIsAFault(t *testing.T) {
	dir := project(t, twoRules, record("1", "TestA", "passed"))
	if rc, out := report("--check", dir); rc != 1 || !strings.Contains(out, "make conformance") {
		t.Errorf("a page that is not there: %d %s", rc, out)
	}
	report(dir)
	if err := os.WriteFile("run/8.jsonl", []byte(record("1", "TestB", "passed")), 0o644); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(docFile)
	rc, out := report("--check", dir)
	if rc != 1 || !strings.Contains(out, "law rule 1: docs/conformance.md has \"`engine.TestA`\", this run \"`engine.TestA`<br>`engine.TestB`\"") {
		t.Errorf("a page with one test too few: %d %s", rc, out)
	}
	if after, _ := os.ReadFile(docFile); !bytes.Equal(before, after) {
		t.Error("--check wrote")
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "b"}, {"--chek", "a"}} {
		if rc, _ := report(args...); rc != 2 {
			t.Errorf("%q: %d", args, rc)
		}
	}
	t.Chdir(t.TempDir())
	if rc, out := report("."); rc != 1 || !strings.Contains(out, "module's root") {
		t.Errorf("%d %s", rc, out)
	}
}

// TestTheRegister reads the project's own.
func TestTheRegister(t *testing.T) {
	docs, err := readRules("../rules")
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) < 6 {
		t.Errorf("%d documents", len(docs))
	}
	for _, d := range docs {
		if d.title == "" || len(d.rules) == 0 || d.rules[0].heading == "" {
			t.Errorf("%s: no title, no rules or no heading", d.name)
		}
	}
}
