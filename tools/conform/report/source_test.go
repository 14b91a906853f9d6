package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTheTableHasWhatTheSourceClaims finds a forgotten row without running the tests. It sees a claim whose rule is
// written out in a test function; the comparison at the end of `make test` sees all.
func TestTheTableHasWhatTheSourceClaims(t *testing.T) {
	t.Chdir("../../..")
	docs, err := readRules(rulesDir)
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	_, of := rows(string(was))
	row := map[string]string{} // by the rule's key
	all := 0
	for _, d := range docs {
		for _, r := range d.rules {
			row[key(d.name, r.id)] = of[d.title+" "+cell(r.id)]
			if r.later == "" {
				all++
			}
		}
	}
	if want := fmt.Sprintf("\n%d of %d rules are held", all, all); !strings.Contains(string(was), want) {
		t.Errorf("%s does not say %q", docFile, want)
	}
	seen := 0
	err = filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && name != "." && strings.HasPrefix(e.Name(), ".") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tools/conform/") { // its own tests claim at random
			return nil
		}
		for _, c := range claimed(t, name) {
			doc, id, _ := strings.Cut(c.rule, " ")
			held := row[key(doc, id)]
			if held == "" {
				continue
			}
			if seen++; !strings.Contains(held, "`"+c.test+"`") {
				t.Errorf("%s claims %q, and %s has %q", c.test, c.rule, docFile, held)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 500 {
		t.Errorf("%d claims found", seen)
	}
}

// claimed returns the tests of a file, as the table names them, with what may be a rule that they claim: a literal as
// the second argument of a call.
func claimed(t *testing.T, name string) (out []claim) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		test := filepath.ToSlash(filepath.Dir(name)) + "." + fn.Name.Name
		ast.Inspect(fn, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			if lit, ok := call.Args[1].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				rule, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, claim{test: test, rule: rule})
			}
			return true
		})
	}
	return out
}
