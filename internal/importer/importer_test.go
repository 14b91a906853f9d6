package importer

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"sluice/tools/conform"
)

var update = flag.Bool("update", false, "write the golden files anew")

// originals are workflows of each format, written for these tests.
func originals() map[string]string {
	return map[string]string{
		"archon":    "testdata/archon/.archon/workflows/mend.yaml",
		"takt":      "testdata/takt/.takt/workflows/build.yaml",
		"conductor": "testdata/conductor/answer.yaml",
		"gh-aw":     "testdata/gh-aw/.github/workflows/triage.md",
		"symphony":  "testdata/symphony/WORKFLOW.md",
	}
}

// TestImports: what each format's original becomes, file by file, and what is said of it.
func TestImports(t *testing.T) {
	conform.Rule(t, "12-import formats", "a spec of each format, with a comment where it says less")
	t.Parallel()
	for format, file := range originals() {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p, err := Read(file, "")
			if err != nil {
				t.Fatal(err)
			}
			if p.Report.Format != format {
				t.Errorf("read as %s", p.Report.Format)
			}
			for _, f := range p.Report.Faults {
				t.Errorf("%s:%d: %s", f.File, f.Line, f.Message)
			}
			golden := filepath.Join("testdata", "want", format)
			if *update {
				if err := os.RemoveAll(golden); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(golden, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := p.Write(golden); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(golden, "report.txt"), strings.Join(p.Report.Lines(), "\n")+"\n")
			}
			var there []string
			for _, f := range p.files {
				there = append(there, f.path)
				if want := content(t, filepath.Join(golden, f.path)); string(f.data) != want {
					t.Errorf("%s differs: go test ./internal/importer -update\n%s", f.path, f.data)
				}
			}
			if got := strings.Join(p.Report.Lines(), "\n") + "\n"; got != content(t, filepath.Join(golden, "report.txt")) {
				t.Errorf("the report differs:\n%s", got)
			}
			err = filepath.WalkDir(golden, func(path string, d fs.DirEntry, err error) error {
				rel, _ := filepath.Rel(golden, path)
				if err == nil && !d.IsDir() && rel != "report.txt" && !slices.Contains(there, filepath.ToSlash(rel)) {
					t.Errorf("%s is not made any more", rel)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReadTwice: the same original becomes the same files.
func TestReadTwice(t *testing.T) {
	conform.Rule(t, "12-import same", "two reads give the same files")
	t.Parallel()
	for format, file := range originals() {
		a, err := Read(file, format)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Read(file, format)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(a.files, b.files, func(x, y fileOf) bool { return x.path == y.path && string(x.data) == string(y.data) }) {
			t.Errorf("%s: two reads differ", format)
		}
	}
}

// TestNothingPermits: no spec has a key that widens what an agent may do, whatever the original says.
func TestNothingPermits(t *testing.T) {
	conform.Rule(t, "12-import permissions", "no key that permits")
	t.Parallel()
	for format, file := range originals() {
		p, err := Read(file, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.files {
			if !strings.HasPrefix(f.path, ".workflow/specs/") && !strings.HasPrefix(f.path, ".workflow/prompts/") &&
				!strings.HasPrefix(f.path, ".workflow/scripts/") && !strings.HasPrefix(f.path, ".workflow/stubs/") {
				t.Errorf("%s: %s is neither a spec, a prompt, a script nor a stub", format, f.path)
			}
			if !strings.HasPrefix(f.path, ".workflow/specs/") {
				continue
			}
			var doc any
			if err := yaml.Unmarshal(f.data, &doc); err != nil {
				t.Fatal(err)
			}
			walk(doc, func(key string) {
				switch key {
				case "sandbox", "network", "permissions", "tools", "allowed_tools", "on_done", "approval_policy":
					t.Errorf("%s: %s has the key %s", format, f.path, key)
				}
			})
		}
	}
}

func walk(v any, see func(key string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			see(k)
			walk(x, see)
		}
	case []any:
		for _, x := range v {
			walk(x, see)
		}
	}
}

// TestEveryKeyIsCounted: each key of an original is in the report, once.
func TestEveryKeyIsCounted(t *testing.T) {
	conform.Rule(t, "12-import report", "each key is counted, and has its reason")
	t.Parallel()
	for format, file := range originals() {
		p, err := Read(file, "")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[Construct]bool{}
		for _, c := range p.Report.Constructs {
			where := Construct{File: c.File, Line: c.Line, Name: c.Name, Of: c.Of}
			if seen[where] && !strings.Contains(c.Name, "[]") && !strings.Contains(c.Name, "inputs.") {
				t.Errorf("%s: %v is counted twice", format, where)
			}
			seen[where] = true
			if c.As != Taken && c.Note == "" {
				t.Errorf("%s: %v is not taken over, and nothing says why", format, where)
			}
			if c.Note == "the importer does not know this key" {
				t.Errorf("%s: %v is in no table", format, where)
			}
		}
		if c := p.Report.Counts; c.Taken == 0 || c.Taken+c.Approximated+c.Left != len(p.Report.Constructs) {
			t.Errorf("%s: counts %v of %d", format, c, len(p.Report.Constructs))
		}
	}
}

type fileOf = file

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func write(t *testing.T, path, words string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(words), 0o644); err != nil {
		t.Fatal(err)
	}
}
