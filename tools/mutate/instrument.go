package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
)

const support = "sluice/tools/mutate/mutant"

// condition is a place in the code that can be flipped; its number is its index.
type condition struct {
	pos string // file:line, relative to where mutate runs
	pkg string // import path
}

// instrument writes a copy of each package's files in which conditions are wrapped, and the overlay that names them.
func instrument(pkgs []pkg, dir string) (all []condition, overlay string, err error) {
	replace := map[string]string{}
	for _, p := range pkgs {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			src, err := os.ReadFile(path)
			if err != nil {
				return nil, "", err
			}
			out, found, err := wrap(path, src, len(all))
			if err != nil {
				return nil, "", err
			}
			if len(found) == 0 {
				continue
			}
			rel, err := filepath.Rel(rootOf(pkgs), path)
			if err != nil {
				return nil, "", err
			}
			for _, line := range found {
				all = append(all, condition{fmt.Sprintf("%s:%d", rel, line), p.ImportPath})
			}
			replace[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), name))
			if err := os.WriteFile(replace[path], out, 0o644); err != nil {
				return nil, "", err
			}
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return all, overlay, os.WriteFile(overlay, raw, 0o644)
}

// wrap returns the file with its conditions wrapped, numbered from first, and the line of each. Lines stay as they are.
func wrap(path string, src []byte, first int) ([]byte, []int, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	type edit struct {
		at   int
		text string
	}
	var edits []edit
	var lines []int
	add := func(f string, e ast.Expr) {
		edits = append(edits, edit{fset.Position(e.Pos()).Offset, fmt.Sprintf("mutant__.%s(%d, ", f, first+len(lines))},
			edit{fset.Position(e.End()).Offset, ")"})
		lines = append(lines, fset.Position(e.Pos()).Line)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			add("If", n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				add("For", n.Cond)
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					if n.Tag == nil {
						add("If", e)
					}
				}
			}
		case *ast.ReturnStmt:
			for _, e := range n.Results {
				if truth(e) {
					add("If", e)
				}
			}
		}
		return true
	})
	if len(lines) == 0 {
		return src, nil, nil
	}
	edits = append(edits, edit{fset.Position(file.Name.End()).Offset, "; import mutant__ \"" + support + "\""})
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.at]...), e.text...)
		at = e.at
	}
	return append(out, src[at:]...), lines, nil
}

// truth: by its form alone the expression is a truth value.
func truth(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		}
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	}
	return false
}
