package specs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"sluice/tools/conform"
)

const brokenFile = "testdata/broken.txt"

// brokenSpec is an entry of the table: a spec and its faults.
type brokenSpec struct{ name, spec, faults string }

func brokenTable(t testing.TB) (head string, table []brokenSpec) {
	t.Helper()
	src, err := os.ReadFile(brokenFile)
	if err != nil {
		t.Fatal(err)
	}
	var into *string = &head
	for _, line := range strings.SplitAfter(string(src), "\n") {
		name, ok := strings.CutPrefix(line, "-- ")
		name, also := strings.CutSuffix(name, " --\n")
		if !ok || !also {
			*into += line
			continue
		}
		if spec, ok := strings.CutSuffix(name, ".yaml"); ok {
			table = append(table, brokenSpec{name: spec})
			into = &table[len(table)-1].spec
		} else {
			into = &table[len(table)-1].faults
		}
	}
	return head, table
}

// TestBroken: the faults of each broken spec, word for word, all at once, each with its place.
func TestBroken(t *testing.T) {
	conform.Rule(t, "12-triggers cron", "lines that never come, zones that do not exist")
	conform.Rule(t, "12-triggers data", "no value of a firing names the program, or stands in a shell text")
	conform.Rule(t, "1-language faults", "every fault at its place, with its message")
	conform.Rule(t, "1-language unknown", "unknown and doubled keys")
	conform.Rule(t, "1-language undefined", "names nothing defines, what nothing reaches or follows")
	conform.Rule(t, "1-language paths", "paths and globs that leave the repo")
	conform.Rule(t, "1-language expressions", "expressions that do not compile")
	conform.Rule(t, "1-language values.shell", "no value in a text for sh -c")
	conform.Rule(t, "1-language required", "what must be there")
	conform.Rule(t, "1-language on_timeout", "a time-out never passes")
	conform.Rule(t, "1-language file", "the file bears the workflow's id")
	conform.Rule(t, "2-files signal 6", "two meanings of one file name")
	conform.Rule(t, "8-semantics 1", "a cycle of passes is named")
	conform.Rule(t, "8-semantics 3", "a gate belongs to one step")
	conform.Rule(t, "8-semantics 4", "a step that nothing reaches")
	conform.Rule(t, "8-semantics 5", "nothing at level human goes on by itself; no ends in a list")
	conform.Rule(t, "8-semantics 6", "the when of a human gate reads vars only")
	conform.Rule(t, "004 §2 Step.id", "one id twice is a fault")
	conform.Rule(t, "004 §2 Gate.id", "one id twice is a fault")
	conform.Rule(t, "004 §5 question 1", "every fault is told at its place")
	conform.Rule(t, "style 1", "all faults at once, each with what to do")
	head, table := brokenTable(t)
	for i := range table {
		b := &table[i]
		t.Run(b.name, func(t *testing.T) {
			file := b.name + ".yaml"
			if strings.Contains(b.spec, "{id: w") || strings.Contains(b.spec, "  id: w\n") {
				file = "w.yaml"
			}
			compiled, faults := Load(file, []byte(b.spec))
			if compiled != nil || len(faults) == 0 {
				t.Fatal("a broken spec was taken")
			}
			var got strings.Builder
			for _, f := range faults {
				fmt.Fprintln(&got, f)
			}
			if *update {
				b.faults = got.String()
			}
			if got.String() != b.faults {
				t.Errorf("is told:\n%s\nnot:\n%s", got.String(), b.faults)
			}
		})
	}
	if *update {
		out := head
		for _, b := range table {
			out += fmt.Sprintf("-- %s.yaml --\n%s-- %s.faults --\n%s", b.name, b.spec, b.name, b.faults)
		}
		if err := os.WriteFile(brokenFile, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheSchemaSeesMost: the schema finds what a schema can: most broken specs fail it too.
func TestTheSchemaSeesMost(t *testing.T) {
	_, table := brokenTable(t)
	unseen := map[string]bool{ // faults between values, in expressions, in names: no schema can find these
		"empty": true, "not-yaml": true, "second-document": true, "doubled-keys": true, "doubled-ids": true, "file-bears-the-id": true,
		"names-nothing-defines": true, "rows-of-gates": true, "human-gates": true, "signals": true, "two-meanings": true,
		"retry-path-without-n": true, "expressions": true, "expressions-in-a-block": true, "counts-that-vars-give": true, "cycle": true,
		"cycle-of-needs": true, "unreached": true, "not-in-this-release": true, "schemas": true, "approvers": true, "sessions": true, "notify": true,
		"workspace-branch": true, "on-done": true, "no-pull": true, "hook-of-no-task": true, "human-answers": true, "on-vars": true, "on-program": true, "on-wrong": true, "on-nothing": true,
		"on-workers-in-a-checkout": true,
	}
	schema := compiledSchema(t)
	for _, b := range table {
		var n yaml.Node
		if yaml.Unmarshal([]byte(b.spec), &n) != nil || len(n.Content) == 0 {
			continue
		}
		if err := schema.Validate(plainNode(n.Content[0])); err == nil && !unseen[b.name] {
			t.Errorf("%s: the schema finds nothing wrong", b.name)
		}
	}
}
