package watcher

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each row of FAILURES.md is there, has a test of its own and one of the whole daemon, and each
// test that it names exists.
func TestEveryFailureHasATest(t *testing.T) {
	text, err := os.ReadFile("FAILURES.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| F") {
			if len(cells) != 4 {
				t.Fatalf("%d cells: %s", len(cells), line)
			}
			rows[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSuffix(cells[3], " |")
		}
	}
	for n := 1; n <= 20; n++ {
		row := fmt.Sprint("F", n)
		if strings.Count(rows[row], ": Test") < 2 || !strings.Contains(" "+rows[row], " test: ") {
			t.Errorf("%s: %q: want a test of its own and one of the daemon", row, rows[row])
		}
		for part := range strings.SplitSeq(rows[row], "; ") {
			if script, ok := strings.CutPrefix(part, "script "); ok {
				if _, err := os.Stat(filepath.Join("../test/testdata/script", script+".txtar")); err != nil {
					t.Errorf("%s: %v", row, err)
				}
				continue
			}
			dir, names, ok := strings.Cut(part, ": ")
			if !ok {
				t.Fatalf("%s: %q", row, part)
			}
			there := testsIn(t, filepath.Join("..", dir))
			for name := range strings.SplitSeq(names, ", ") {
				if !slices.Contains(there, name) {
					t.Errorf("%s: %s has no %s", row, dir, name)
				}
			}
		}
	}
	if len(rows) != 20 {
		t.Errorf("%d rows", len(rows))
	}
}

// testsIn lists the tests of a package.
func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no tests: %v", dir, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
