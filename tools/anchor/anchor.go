// Package anchor finds a piece of a package's text by the declaration that contains it, so that tables of edits survive
// moves between files. Tests alone use it.
package anchor

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Edit replaces Old, which occurs exactly once in the declaration Decl, by New. Decl is "name" of a function, type, constant
// or variable, or "Type.Method".
type Edit struct{ Decl, Old, New string }

// Apply returns the files of the package in dir that the edits change, by base name. It fails where a declaration is not
// found exactly once, and where an edit's text is not found exactly once in it.
func Apply(dir string, edits []Edit) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range edits {
		found := 0
		for _, name := range names {
			base := filepath.Base(name)
			if strings.HasSuffix(base, "_test.go") {
				continue
			}
			src, ok := out[base]
			if !ok {
				if src, err = os.ReadFile(name); err != nil {
					return nil, err
				}
			}
			spans, err := find(src, e.Decl)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, s := range spans {
				found++
				if n := bytes.Count(src[s.from:s.to], []byte(e.Old)); n != 1 {
					return nil, fmt.Errorf("%q occurs %d times in %s of %s, want once: correct the table", e.Old, n, e.Decl, base)
				}
				changed := bytes.Replace(src[s.from:s.to], []byte(e.Old), []byte(e.New), 1)
				out[base] = bytes.Join([][]byte{src[:s.from], changed, src[s.to:]}, nil)
			}
		}
		if found != 1 {
			return nil, fmt.Errorf("%s is declared %d times in %s, want once: correct the table", e.Decl, found, dir)
		}
	}
	return out, nil
}

type span struct{ from, to int }

// find returns where the declaration stands in a file's text, with its comment.
func find(src []byte, decl string) (out []span, err error) {
	last := decl[strings.LastIndex(decl, ".")+1:]
	if !bytes.Contains(src, []byte(last)) {
		return nil, nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	add := func(n ast.Node) {
		out = append(out, span{fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if nameOf(d) == decl {
				add(d)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.Name == decl {
						add(s)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.Name == decl {
							add(s)
						}
					}
				}
			}
		}
	}
	return out, nil
}

func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	return Receiver(d) + "." + d.Name.Name
}

// Receiver returns the name of the type that a method is of.
func Receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	switch x := t.(type) {
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	return t.(*ast.Ident).Name
}
