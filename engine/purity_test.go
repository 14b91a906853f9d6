package engine

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// TestPurity reads the package's own source: its imports, and that it uses no clock and starts no
// goroutine.
func TestPurity(t *testing.T) {
	conform.Rule(t, "3-engine core", "the core is pure: standard library only, without os, io/fs, net, os/exec, sync, context; no time.Now, no go statement")
	forbidden := []string{"os", "io", "net", "sync", "context", "log", "syscall", "runtime", "unsafe", "plugin", "math/rand", "crypto/rand", "embed", "testing"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, name := range []string{"ids", "text"} { // what it imports is as pure
		more, err := filepath.Glob("../internal/" + name + "/*.go")
		if err != nil || len(more) < 2 {
			t.Fatalf("%s: %d files: %v", name, len(more), err)
		}
		files = append(files, more...)
	}
	writer := regexp.MustCompile(`^(apply(_\w+)?|state(_\w+)?|moves|old|index|wake)\.go$`)
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") || first == "sluice" && path != "sluice/internal/ids" && path != "sluice/internal/text" {
				t.Errorf("%s imports %s: the engine uses the standard library, internal/ids and internal/text only", name, path)
			}
			for _, no := range forbidden {
				if path == no || strings.HasPrefix(path, no+"/") {
					t.Errorf("%s imports %s: the core is pure", name, path)
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", set.Position(n.Pos()))
			case *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
				t.Errorf("%s uses a channel", set.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && impureTime(n.Sel.Name) {
					t.Errorf("%s asks the clock: time.%s", set.Position(n.Pos()), n.Sel.Name)
				}
			case *ast.GenDecl:
				packageVariables(t, set, f, n)
			case *ast.AssignStmt:
				if !writer.MatchString(name) {
					onlyApplyWrites(t, set, n)
				}
			}
			return true
		})
	}
}

// onlyApplyWrites finds decisions that write to the state themselves: to a run r, an attempt a, a
// round q, a process p. The index (index.go, wake.go) belongs to Apply too; old.go changes a snapshot
// that was just read.
func onlyApplyWrites(t *testing.T, set *token.FileSet, n *ast.AssignStmt) {
	for _, l := range n.Lhs {
		if ix, ok := l.(*ast.IndexExpr); ok {
			l = ix.X
		}
		sel, ok := l.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "r" || x.Name == "a" || x.Name == "q" || x.Name == "p") {
			t.Errorf("%s writes %s.%s: only Apply writes the state", set.Position(n.Pos()), x.Name, sel.Sel.Name)
		}
	}
}

func impureTime(name string) bool {
	switch name {
	case "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation":
		return true
	}
	return false
}

// packageVariables finds state outside of State.
func packageVariables(t *testing.T, set *token.FileSet, f *ast.File, d *ast.GenDecl) {
	if d.Tok != token.VAR {
		return
	}
	for _, top := range f.Decls {
		if top == ast.Decl(d) {
			t.Errorf("%s is a package-level variable", set.Position(d.Pos()))
		}
	}
}

// TestDeterministic plays histories and makes every decision twice, on two equal states: the same
// facts, the same effects, the same next deadline.
func TestDeterministic(t *testing.T) {
	conform.Rule(t, "3-engine core", "Decide on the same state and event gives the same facts")
	n := min(seeds(20), 500)
	for seed := uint64(1); seed <= n; seed++ {
		if seed%3 == 0 {
			continue // an adversary's history is long
		}
		_, w := history(seed, false)
		twin, again := NewState(), NewState()
		for _, l := range w.journal {
			twin.Apply(l.at, l.facts...)
			again.Apply(l.at, l.facts...)
			if twin.Clock%7 != 0 {
				continue
			}
			sameEffects(t, seed, w, twin, again)
			at := l.at.Add(1e9)
			for _, ev := range []Event{Ticked{}, Scanned{Began: at}, Woken{From: l.at, To: at.Add(3e11)}, Configured{Config: DefaultConfig()}} {
				one, two := clone(t, twin), clone(t, twin)
				a, b := Decide(one, w.spec, ev, at), Decide(two, w.spec, ev, at)
				if !reflect.DeepEqual(a, b) {
					t.Fatalf("seed %d: %s decided twice differs:\n%+v\n%+v", seed, ev.EventKind(), a, b)
				}
			}
		}
	}
}

func sameEffects(t *testing.T, seed uint64, w *sim, a, b *State) {
	t.Helper()
	if x, y := a.Owed(w.spec), b.Owed(w.spec); !reflect.DeepEqual(names(x), names(y)) {
		t.Fatalf("seed %d: effects differ: %v, %v", seed, names(x), names(y))
	}
}

func names(es []Effect) (out []string) {
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func clone(t *testing.T, s *State) *State {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := new(State)
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}
