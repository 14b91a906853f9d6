//go:build linux

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sluice/tools/conform"
)

// TestShapes runs the workflows of examples/shapes with their stand-ins, each the ordinary way and a failing one, and holds the
// order of what happened against the workflow's shape.
func TestShapes(t *testing.T) {
	for name, rule := range map[string][2]string{
		"fix-issue":             {"13-law shape reviewers", "ten are launched by the fix; one that fails is joined, named and told to who sums up"},
		"plan-implement-verify": {"13-law shape verify", "back to the implementation with the words, and after three to the plan, with full tries"},
		"replan":                {"13-law shape replan", "a fix comes back to the review, a replan to the plan, and neither undoes what was explored"},
		"questionnaire":         {"13-law shape questionnaire", "a form's answers reach conditions and prompts; a wrong one decides nothing"},
		"fan-out":               {"13-law shape fan-out", "three at a time, tried twice, the answers collected; more than half failed end the run"},
		"nested":                {"13-law shape nested", "vars go down two levels, results come up; a part that fails has the list written anew"},
		"improve":               {"13-law shape improver", "it stops when nothing is left, after its rounds and by a file; a round that fails ends nothing"},
	} {
		conform.Part(t, name, rule[0], rule[1])
	}
	specs, err := filepath.Glob("../examples/shapes/.workflow/specs/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/shapes/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		name := strings.TrimSuffix(filepath.Base(spec), ".yaml")
		if !strings.HasPrefix(name, "nested-") && !slices.Contains(scripts, filepath.Join("testdata/shapes", name+".txtar")) {
			t.Errorf("%s is run by no test", spec)
		}
	}
	if len(scripts) != 12 {
		t.Errorf("%d shapes, and not twelve", len(scripts))
	}
	all := commands()
	all["shape"] = cmdShape
	bin := binDir(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/shapes", Cmds: all, RequireUniqueNames: true, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error { return setUp(env, bin) },
	})
}

// cmdShape makes a repo of examples/shapes and goes there: it is formatted, and only its joins
// without work are noted.
func cmdShape(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "shape NAME")
	ts.Check(os.MkdirAll(ts.MkAbs("repo"), 0o755))
	ts.Check(ts.Exec("cp", "-R", filepath.Join(ts.Getenv("ROOT"), "examples/shapes")+"/.", ts.MkAbs("repo")))
	cmdRepo(ts, false, nil)
	ts.Check(ts.Exec("sluice", "fmt", "--check"))
	ts.Check(ts.Exec("sluice", "validate"))
	noted := regexp.MustCompile(`(?m)^note .*$`)
	for _, line := range noted.FindAllString(ts.ReadFile("stdout")+ts.ReadFile("stderr"), -1) {
		if !strings.Contains(line, "has no work: it only says where the run goes on") {
			ts.Fatalf("%s", line)
		}
	}
	ts.Check(ts.Exec("sluice", "graph", args[0]))
}
