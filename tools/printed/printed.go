// Package printed is for tests only: it keeps the parts of documents that are made from the code.
// Such a part is between two marks:
//
//	<!-- NAME: make generate -->
//	<!-- end of NAME -->
package printed

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is generated anew")

// Check fails the test unless the part of the document is want. With -update it writes the part.
// The name of the test has to end with "AreDocumented": `make generate` runs those.
func Check(t *testing.T, file, name, want string) {
	t.Helper()
	if !strings.HasSuffix(t.Name(), "AreDocumented") {
		t.Errorf("`make generate` does not run %s", t.Name())
	}
	first, last := "<!-- "+name+": make generate -->\n", "<!-- end of "+name+" -->\n"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), first)
	got, after, ok2 := strings.Cut(rest, last)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the %s: %s%s", file, name, first, last)
	}
	if want = "\n" + strings.TrimSpace(want) + "\n\n"; got == want {
		return
	}
	if !*update {
		t.Errorf("%s differs from the code in its %s: run `make generate`", file, name)
		return
	}
	if err := os.WriteFile(file, []byte(before+first+want+last+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Table is a table of Markdown. A bar within a cell is escaped.
func Table(heads []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + strings.ReplaceAll(c, "|", `\|`) + " |")
		}
		b.WriteString("\n")
	}
	line(heads)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
