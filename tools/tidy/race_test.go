package tidy

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAloneStartsNothing: the packages that .ci/gotest tests without the race detector start no
// goroutine, and neither do those of ours that they use. Those outside are no part of the program.
func TestAloneStartsNothing(t *testing.T) {
	script, err := os.ReadFile("../../.ci/gotest")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^alone="(.*)"\noutside="(.*)"$`).FindSubmatch(script)
	if m == nil {
		t.Fatal(".ci/gotest has no two lists of packages")
	}
	uses, starts := map[string][]string{}, map[string]string{}
	_, all := files(t)
	for _, f := range all {
		if f.test {
			continue
		}
		for _, i := range f.ast.Imports {
			if p, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "sluice/"); ours {
				uses[f.pkg] = append(uses[f.pkg], p)
			}
		}
		if startsGoroutine(f.ast) {
			starts[f.pkg] = f.path
		}
	}
	alone, outside := strings.Fields(string(m[1])), strings.Fields(string(m[2]))
	for pkg, used := range uses {
		for _, p := range used {
			if slices.Contains(outside, p) {
				t.Errorf(".ci/gotest tests %s without the race detector, as a package outside the program, and %s uses it", p, pkg)
			}
		}
	}
	if len(alone) < 5 {
		t.Fatalf("only %v are tested without the race detector", alone)
	}
	for _, pkg := range alone {
		todo, seen := []string{pkg}, []string{}
		for len(todo) > 0 {
			p := todo[0]
			if todo = todo[1:]; slices.Contains(seen, p) {
				continue
			}
			seen, todo = append(seen, p), append(todo, uses[p]...)
			if file := starts[p]; file != "" {
				t.Errorf(".ci/gotest tests %s without the race detector, and %s starts a goroutine", pkg, file)
			}
		}
	}
}

// startsGoroutine reports whether a file has a go statement, or a call of a method Go.
func startsGoroutine(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && s.Sel.Name == "Go"
		}
		return !found
	})
	return found
}
