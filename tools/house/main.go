// Command house prints the measures of the project's rooms: lines, the largest file, function and type, and the calls among
// a room's files that run against their order. Tests and tools are not counted.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"sluice/tools/anchor"
)

// room is what is measured of a package.
type room struct {
	dir      string
	lines    int
	files    int
	file     most
	function most
	kind     most              // the type with the most methods
	wide     int               // the longest line
	over     [3]int            // files, functions and lines longer than their limits
	against  int               // calls among files against their order
	methods  map[string]int    // by type
	owner    map[string]string // the file of each function, and of each method as ".name"; "" = several have one
	calls    map[[2]string]int // from a file to a file
}

// Limits, and why: a room larger than a few days' reading is none that a newcomer can hold; a type with more methods than fit on a
// page has several jobs; a file or a function that does not fit on a few screens, or a line on one, is read twice.
const (
	roomLines     = 7000
	engineLines   = 9000 // its law is one subject
	typeMethods   = 40
	fileLines     = 400
	functionLines = 60
	lineColumns   = 120
	roomsAgainst  = 15 // calls against the order in all rooms that were one executor
)

// most is the largest of its kind.
type most struct {
	n    int
	name string
}

func (m *most) see(n int, name string) {
	if n > m.n {
		*m = most{n, name}
	}
}

func main() {
	rooms, err := measure()
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "room\tlines\tfiles\tlargest file\tlongest function\tmost methods\twidest line\tagainst")
	sum, against := 0, 0
	for _, r := range rooms {
		sum, against = sum+r.lines, against+r.against
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%d\t%d\n", r.dir, r.lines, r.files, r.file, r.function, r.kind, r.wide, r.against)
	}
	fmt.Fprintf(w, "together\t%d\t\t\t\t\t\t%d\n", sum, against)
	w.Flush()
}

func (m most) String() string {
	if m.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %s", m.n, m.name)
}

// measure reads all Go files of the product that git knows.
func measure() ([]*room, error) {
	out, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	by := map[string]*room{}
	parsed := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, name := range slices.Compact(strings.Fields(string(out))) { // during a merge git names a file several times
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tools/") || strings.Contains(name, "/testdata/") ||
			strings.Contains(name, "/_") { // vendored
			continue
		}
		src, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(name)
		r := by[dir]
		if r == nil {
			r = &room{dir: dir, methods: map[string]int{}, owner: map[string]string{}, calls: map[[2]string]int{}}
			by[dir] = r
		}
		r.look(fset, f, name, string(src))
		parsed[dir] = append(parsed[dir], f)
	}
	for dir, r := range by {
		for name, n := range r.methods {
			r.kind.see(n, name)
		}
		for _, f := range parsed[dir] {
			r.callsOf(fset, f)
		}
		r.against = against(r.calls)
	}
	return slices.SortedFunc(maps.Values(by), func(a, b *room) int { return cmp.Or(b.lines-a.lines, strings.Compare(a.dir, b.dir)) }), nil
}

// look measures a file and notes what it declares.
func (r *room) look(fset *token.FileSet, f *ast.File, name, src string) {
	base := path.Base(name)
	r.files++
	lines := strings.Count(src, "\n")
	r.lines += lines
	r.file.see(lines, base)
	if lines > fileLines {
		r.over[0]++
	}
	for l := range strings.Lines(src) {
		l, _, _ = strings.Cut(strings.TrimSuffix(l, "\n"), " `key:\"") // a struct tag cannot be broken
		n := utf8.RuneCountInString(l)
		if r.wide = max(r.wide, n); n > lineColumns {
			r.over[2]++
		}
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		if r.function.see(n, fn.Name.Name); n > functionLines {
			r.over[1]++
		}
		what := fn.Name.Name
		if fn.Recv != nil {
			r.methods[anchor.Receiver(fn)]++
			what = "." + what
		}
		if other, ok := r.owner[what]; ok && other != base {
			r.owner[what] = "" // of several types: whose is called is not known
			continue
		}
		r.owner[what] = base
	}
}

// callsOf counts the calls of a file to functions and methods of other files of its package, by name.
func (r *room) callsOf(fset *token.FileSet, f *ast.File) {
	from := path.Base(fset.Position(f.Pos()).Filename)
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		what := ""
		switch fn := c.Fun.(type) {
		case *ast.Ident:
			what = fn.Name
		case *ast.SelectorExpr:
			what = "." + fn.Sel.Name
		}
		if to := r.owner[what]; to != "" && to != from {
			r.calls[[2]string{from, to}]++
		}
		return true
	})
}

// against returns how many calls run against the best order found for the files: who calls most and is called least comes
// first (the heuristic of Eades, Lin and Smyth, 1993).
func against(calls map[[2]string]int) int {
	left := map[string]bool{}
	for c := range calls {
		left[c[0]], left[c[1]] = true, true
	}
	var first, last []string
	for len(left) > 0 {
		out, in := map[string]int{}, map[string]int{}
		for c, n := range calls {
			if left[c[0]] && left[c[1]] {
				out[c[0]] += n
				in[c[1]] += n
			}
		}
		names := slices.Sorted(maps.Keys(left))
		pick := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(out[a]-in[a], out[b]-in[b]) })
		if i := slices.IndexFunc(names, func(s string) bool { return out[s] == 0 }); i >= 0 {
			last = append(last, names[i])
			delete(left, names[i])
			continue
		}
		if i := slices.IndexFunc(names, func(s string) bool { return in[s] == 0 }); i >= 0 {
			pick = names[i]
		}
		first = append(first, pick)
		delete(left, pick)
	}
	slices.Reverse(last)
	place := map[string]int{}
	for i, name := range append(first, last...) {
		place[name] = i
	}
	n := 0
	for c, k := range calls {
		if place[c[0]] > place[c[1]] {
			n += k
		}
	}
	return n
}
