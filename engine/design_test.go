package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// corePath is how many lines one can read in an hour.
const corePath = 1200

// TestDesignCounts: the figures of DESIGN.md are those of the code, and its core path can be read
// in an hour.
func TestDesignCounts(t *testing.T) {
	conform.Rule(t, "3-engine core path", "DESIGN.md names a core path of at most 1,200 lines; its figures are those of the code")
	raw, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	of, all := declarations(t)
	said := regexp.MustCompile(`About ([\d,]+) lines without the tests`).FindSubmatch(raw)
	if said == nil {
		t.Fatal("DESIGN.md does not say how many lines there are")
	}
	if n, _ := strconv.Atoi(strings.ReplaceAll(string(said[1]), ",", "")); n < all*95/100 || n > all*105/100 {
		t.Errorf("DESIGN.md says about %d lines; there are %d", n, all)
	}
	_, path, _ := strings.Cut(string(raw), "**The core path**")
	path, _, _ = strings.Cut(path, "| file | has |")
	sum, rows := 0, 0
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+\\.go)` \\| (.*) \\| (\\d+) \\|$").FindAllStringSubmatch(path, -1) {
		rows++
		n := 0
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			lines := of[row[1]+" "+name[1]]
			if lines == 0 {
				t.Errorf("the core path names %s of %s, which is not there", name[1], row[1])
			}
			n += lines
		}
		if listed, _ := strconv.Atoi(row[3]); n < listed*9/10-3 || n > listed*11/10+3 {
			t.Errorf("the core path says %d lines of %s; there are %d", listed, row[1], n)
		}
		sum += n
	}
	if rows < 8 || sum > corePath {
		t.Errorf("the core path has %d files and %d lines: want at most %d", rows, sum, corePath)
	}
}

// declarations returns the lines of each function, by "FILE NAME", with the comment above it; and
// those of all files.
func declarations(t *testing.T) (of map[string]int, all int) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	of = map[string]int{}
	for _, file := range names {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all += set.File(f.Pos()).LineCount() - 1
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name, from := fn.Name.Name, fn.Pos()
			if fn.Recv != nil {
				on := fn.Recv.List[0].Type
				if star, ok := on.(*ast.StarExpr); ok {
					on = star.X
				}
				name = on.(*ast.Ident).Name + "." + name
			}
			if fn.Doc != nil {
				from = fn.Doc.Pos()
			}
			of[file+" "+name] = set.Position(fn.End()).Line - set.Position(from).Line + 1
		}
	}
	return of, all
}
