package importer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// reads is what each reader holds for any bytes: an error or a plan, soon, twice the same; a spec that
// is YAML, and no shell text with a value in it.
func reads(f *testing.F, format, ext string) {
	for _, file := range originals() {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(bomb()))
	f.Fuzz(func(t *testing.T, src []byte) {
		file := filepath.Join(t.TempDir(), "w"+ext)
		if err := os.WriteFile(file, src, 0o644); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p, err := Read(file, format)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		if (p == nil) == (err == nil) {
			t.Fatalf("plan %v, error %v", p, err)
		}
		if p == nil {
			return
		}
		q, err := Read(file, format)
		if err != nil || len(q.files) != len(p.files) {
			t.Fatalf("a second read differs: %v", err)
		}
		for i, x := range p.files {
			if x.path != q.files[i].path || string(x.data) != string(q.files[i].data) {
				t.Errorf("%s: a second read differs", x.path)
			}
			if !filepath.IsLocal(x.path) || !strings.HasPrefix(x.path, ".workflow/") {
				t.Errorf("it would write %s", x.path)
			}
			if !strings.HasPrefix(x.path, ".workflow/specs/") {
				continue
			}
			var doc any
			if err := yaml.Unmarshal(x.data, &doc); err != nil {
				t.Errorf("%s is no YAML: %v\n%s", x.path, err, x.data)
			}
		}
		for _, x := range p.Report.Faults {
			if strings.Contains(x.Message, "has no place in a shell command") {
				t.Errorf("%s:%d: %s", x.File, x.Line, x.Message)
			}
		}
	})
}

func FuzzArchon(f *testing.F)    { reads(f, "archon", ".yaml") }
func FuzzTakt(f *testing.F)      { reads(f, "takt", ".yaml") }
func FuzzConductor(f *testing.F) { reads(f, "conductor", ".yaml") }
func FuzzGhaw(f *testing.F)      { reads(f, "gh-aw", ".md") }
func FuzzSymphony(f *testing.F)  { reads(f, "symphony", ".md") }

// FuzzFit: any shell text is read soon, and what is fit has no value outside of double quotes that a
// second look would still quote.
func FuzzFit(f *testing.F) {
	for _, s := range []string{`a $ARGUMENTS`, `x=$(grep $ARGUMENTS "$(cat $ARGUMENTS)")`, "cat <<EOF\n$ARGUMENTS $(a)\nEOF\n", "`", `"$(`, `${a`, `$((`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		outside := []string{"ARGUMENTS"}
		a := fit(s, outside, testRefs)
		if a.why != "" {
			return
		}
		if b := fit(a.text, append(outside, "SCAN_OUTPUT"), noRefs); b.why == "" && b.text != a.text {
			t.Errorf("%q became %q, and that %q", s, a.text, b.text)
		}
	})
}
