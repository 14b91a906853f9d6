package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/tools/conform"
)

// document is one table: its rules in the order of the register.
type document struct {
	name, title string
	rules       []rule
}

// rule is one sentence. A heading stands before the rules that follow it.
type rule struct {
	heading, id, sentence, later string
}

// claims are the tests that hold each rule, by "DOC RULE" as key gives it.
type claims map[string][]claim

type claim struct {
	test, rule string
	skipped    bool // where the run was made
}

// key is a rule's name in every spelling: "8-semantics 15", "1-language rule 7" and "1-language 7", "2-files taking 4".
func key(doc, id string) string {
	first, rest, _ := strings.Cut(id, " ")
	if rest != "" && slices.Contains([]string{"rule", "rules", "ask", "asks", "signal", "taking"}, strings.ToLower(first)) {
		id = rest
	}
	return strings.ToLower(doc + " " + id)
}

// readRules reads the register. A file is N_DOC.txt: N is its place in the page.
func readRules(dir string) ([]document, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no rules in %s: run this in the module's root", dir)
	}
	slices.Sort(names)
	var docs []document
	seen := map[string]string{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		_, doc, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".txt"), "_")
		d := document{name: doc}
		heading := ""
		for i, line := range strings.Split(strings.TrimRight(string(raw), "\n"), "\n") {
			at := fmt.Sprintf("%s:%d", name, i+1)
			if h, ok := strings.CutPrefix(line, "## "); ok {
				heading = h
				continue
			}
			if h, ok := strings.CutPrefix(line, "# "); ok {
				d.title = h
				continue
			}
			r, err := readRule(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
			if before := seen[key(doc, r.id)]; before != "" {
				return nil, fmt.Errorf("%s: %s %s stands at %s already", at, doc, r.id, before)
			}
			seen[key(doc, r.id)] = at
			r.heading, heading = heading, ""
			d.rules = append(d.rules, r)
		}
		docs = append(docs, d)
	}
	return docs, nil
}

func readRule(line string) (rule, error) {
	parts := strings.Split(line, " | ")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return rule{}, fmt.Errorf("%q: want RULE | SENTENCE, or RULE | SENTENCE | a later release", line)
	}
	r := rule{id: parts[0], sentence: parts[1]}
	if len(parts) == 3 {
		if r.later = parts[2]; !strings.HasPrefix(r.later, "a later release") {
			return rule{}, fmt.Errorf("%q: the third column says `a later release`, and why", line)
		}
	}
	return r, nil
}

// readRecords reads the lines of a test run. What failed holds nothing. What was skipped holds what it holds elsewhere: the
// table is the same on every machine, and skips tells of what nothing held here.
func readRecords(dir string) (claims, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	tests := map[string]map[claim]bool{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var rec conform.Record
			if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
				_ = f.Close()
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if rec.Result == "failed" {
				continue
			}
			top, _, _ := strings.Cut(rec.Test, "/")
			if rec.Part != "" {
				top += "/" + rec.Part
			}
			k := key(rec.Doc, rec.Rule)
			if tests[k] == nil {
				tests[k] = map[claim]bool{}
			}
			c := claim{test: strings.TrimPrefix(rec.Package, "sluice/") + "." + top, rule: rec.Doc + " " + rec.Rule}
			tests[k][c] = tests[k][c] || rec.Result != "skipped"
		}
		err = lines.Err()
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	out := claims{}
	for k, set := range tests {
		for c, passed := range set {
			c.skipped = !passed
			out[k] = append(out[k], c)
		}
		slices.SortFunc(out[k], func(a, b claim) int { return strings.Compare(a.test+a.rule, b.test+b.rule) })
	}
	return out, nil
}

// of returns the tests that hold a rule, each once.
func (c claims) of(doc string, r rule) []string {
	var out []string
	for _, cl := range c[key(doc, r.id)] {
		if !slices.Contains(out, cl.test) {
			out = append(out, cl.test)
		}
	}
	return out
}

// compare returns what is wrong between the register and a run, a line each.
func compare(docs []document, c claims) []string {
	var faults []string
	known := map[string]bool{}
	for _, d := range docs {
		for _, r := range d.rules {
			known[key(d.name, r.id)] = true
			tests := c.of(d.name, r)
			switch {
			case r.later == "" && len(tests) == 0:
				faults = append(faults, fmt.Sprintf("%s %s: no test holds it: %s", d.name, r.id, r.sentence))
			case r.later != "" && len(tests) > 0:
				faults = append(faults, fmt.Sprintf("%s %s: marked %q, but %s holds it: take the mark off", d.name, r.id, r.later, tests[0]))
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c)) {
		if !known[k] {
			faults = append(faults, fmt.Sprintf("%s claims %q: no such rule in %s", c[k][0].test, c[k][0].rule, rulesDir))
		}
	}
	return faults
}

// skips returns the rules that nothing held where the run was made, as each test of theirs was skipped, a line each.
func skips(docs []document, c claims) (out []string) {
	for _, d := range docs {
		for _, r := range d.rules {
			here := c[key(d.name, r.id)]
			if len(here) > 0 && !slices.ContainsFunc(here, func(cl claim) bool { return !cl.skipped }) {
				out = append(out, fmt.Sprintf("%s %s: held by skipped tests alone: %s", d.name, r.id, strings.Join(c.of(d.name, r), ", ")))
			}
		}
	}
	return out
}

func count(docs []document, c claims) (held, all int) {
	for _, d := range docs {
		for _, r := range d.rules {
			if r.later != "" {
				continue
			}
			all++
			if len(c.of(d.name, r)) > 0 {
				held++
			}
		}
	}
	return held, all
}
