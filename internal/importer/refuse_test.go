package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/fault"
	"sluice/tools/conform"
)

const someArchon = "name: a\ndescription: b\nnodes:\n  - {id: x, prompt: hello}\n"

// bomb doubles a list many times with aliases.
func bomb() string {
	b := "name: a\na0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		b += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b + "nodes:\n  - {id: x, prompt: hello}\n"
}

// TestRefuses: what is no workflow, or a strange one, is an error with its line, and nothing is planned.
func TestRefuses(t *testing.T) {
	conform.Rule(t, "12-import refused", "an error with its line")
	t.Parallel()
	for name, c := range map[string]struct{ file, src, from, want string }{
		"empty":            {"w.yaml", "", "", "w.yaml:1: the file is empty"},
		"no known format":  {"w.yaml", "a: 1\n", "", "not a workflow of a known format: the formats are archon"},
		"a spec of ours":   {"w.yaml", "workflow: {id: w}\nsteps: [{id: a, run: x, next_step: DONE}]\n", "", "a spec of sluice already"},
		"not YAML":         {"w.yaml", "name: a\nnodes: [\n", "", "w.yaml:2: not YAML"},
		"binary":           {"w.yaml", "name: a\nx: \x00\n", "", "w.yaml:2: not a text file"},
		"not UTF-8":        {"w.yaml", "name: a\nb: \xff\xfe\n", "", "w.yaml:2: not a text file"},
		"two documents":    {"w.yaml", someArchon + "---\nmore: 1\n", "", "w.yaml:5: a second document begins here"},
		"in itself":        {"w.yaml", "name: a\nnodes: &n\n  - {id: x, prompt: y, with: *n}\n", "", "in itself"},
		"aliases":          {"w.yaml", bomb(), "", "more than 20000 YAML nodes"},
		"deep":             {"w.yaml", "name: a\nnodes: " + strings.Repeat("[", 80) + strings.Repeat("]", 80), "", "w.yaml:2: nested deeper"},
		"huge":             {"w.yaml", someArchon + "# " + strings.Repeat("x", maxSource), "", "at most 524288 are read"},
		"a tag":            {"w.yaml", "name: !!binary aGVsbG8=\nnodes: [{id: x, prompt: y}]\n", "", "w.yaml:1: the tag"},
		"a file's tag":     {"w.yaml", "name: a\nnodes: [{id: x, prompt: !file y.md}]\n", "archon", "w.yaml:2: the tag !file"},
		"a merge key":      {"w.yaml", "b: &b {x: 1}\nname: a\nnodes:\n  - {<<: *b, id: x}\n", "", "w.yaml:4: merge keys"},
		"a key twice":      {"w.yaml", "name: a\nname: b\n", "", `w.yaml:2: key "name" is given twice`},
		"an odd key":       {"w.yaml", "name: a\n[1]: b\n", "", "w.yaml:2: a key is a plain text"},
		"no such format":   {"w.yaml", someArchon, "archn", `no format "archn": one of archon, takt, conductor, gh-aw, symphony: did you mean archon`},
		"no front matter":  {"w.md", "# hello\n", "", "w.md:1: no front matter"},
		"front matter":     {"w.md", "---\non: push\na: [\n---\nhello\n", "", "w.md:3: not YAML"},
		"only a redirect":  {"w.md", "---\nredirect: other\n---\n", "", "w.md:2: this file only names another"},
		"archon, no node":  {"w.yaml", "name: a\nnodes: []\n", "archon", "nodes: expected a list"},
		"archon, no id":    {"w.yaml", "name: a\nnodes: [{id: x, prompt: y}, {prompt: z}]\n", "", "w.yaml:2: a node has no id"},
		"archon, circle":   {"w.yaml", "nodes:\n  - {id: x, prompt: y, depends_on: [z]}\n  - {id: z, prompt: y, depends_on: [x]}\n", "", "in a circle"},
		"archon, no such":  {"w.yaml", "nodes:\n  - {id: x, prompt: y, depends_on: [q]}\n", "", `w.yaml:2: node "x": depends_on "q": there is no such node`},
		"archon, two":      {"w.yaml", "nodes:\n  - {id: x, prompt: y, bash: z}\n", "", `w.yaml:2: node "x" has prompt and bash`},
		"archon, nothing":  {"w.yaml", "nodes:\n  - {id: x}\n", "", `w.yaml:2: node "x" does nothing`},
		"archon, includes": {"w.yaml", "name: w\nnodes:\n  - {id: x, include: w}\n", "", "more than 8 deep"},
		"takt, nowhere":    {"w.yaml", "initial_step: a\nsteps:\n  - name: a\n    rules: [{condition: b, next: q}]\n", "", `w.yaml:4: step "a": next "q": there is no such step`},
		"takt, no first":   {"w.yaml", "initial_step: q\nsteps:\n  - name: a\n    rules: [{condition: b, next: COMPLETE}]\n", "", `initial_step "q"`},
		"takt, fragment":   {"w.yaml", "initial_step: a\nsteps:\n  - uses: q\n    name: a\n    rules: [{condition: b, next: COMPLETE}]\n", "", `w.yaml:3: uses "q": there is no steps/q.yaml`},
		"takt, parameter":  {"w.yaml", "initial_step: a\nsteps:\n  - name: a\n    policy: {$param: q}\n    rules: [{condition: b, next: COMPLETE}]\n", "", `no value for the parameter "q"`},
		"takt, escape":     {"w.yaml", "policies: {p: ../../../etc/passwd}\ninitial_step: a\nsteps:\n  - name: a\n    policy: p\n    rules: [{condition: b, next: COMPLETE}]\n", "", `w.yaml:5: policies "p": it leads out of the workflow's own folder`},
		"conductor, route": {"w.yaml", "workflow: {name: w, entry_point: a}\nagents:\n  - {name: a, prompt: x, routes: [{to: q}]}\n", "", `w.yaml:3: "a": route to "q"`},
		"conductor, entry": {"w.yaml", "workflow: {name: w, entry_point: q}\nagents:\n  - {name: a, prompt: x}\n", "", `entry_point "q"`},
		"conductor, group": {"w.yaml", "workflow: {name: w, entry_point: g}\nagents:\n  - {name: a, prompt: x}\nparallel: [{name: g, agents: [q]}]\n", "", `group "g": agent "q"`},
		"conductor, file":  {"w.yaml", "workflow: {name: w, entry_point: a}\nagents:\n  - {name: a, prompt: !file ../../x.md}\n", "", `w.yaml:3: !file "../../x.md": it leads out`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), c.file)
			write(t, file, c.src)
			p, err := Read(file, c.from)
			if err == nil || p != nil {
				t.Fatalf("read: %v", p)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("says %q, want %q", err, c.want)
			}
		})
	}
}

// TestStaysInItsTree: a prompt that is a link out of the original's tree, or no file, is refused.
func TestStaysInItsTree(t *testing.T) {
	conform.Rule(t, "12-import inside", "links, devices, long and binary files")
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret.md"), "the key is 42\n")
	root := filepath.Join(dir, ".archon")
	file := filepath.Join(root, "workflows", "w.yaml")
	write(t, file, "name: w\nnodes:\n  - {id: x, command: steal}\n")
	link := filepath.Join(root, "commands", "steal.md")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{filepath.Join(dir, "secret.md"), "../../secret.md", "/dev/zero"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		_, err := Read(file, "")
		var at *fault.Error
		if !errors.As(err, &at) || at.Line != 3 {
			t.Errorf("a link to %s: %v", to, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	write(t, link, strings.Repeat("long ", maxPart))
	if _, err := Read(file, ""); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("a long prompt: %v", err)
	}
	if err := os.WriteFile(link, []byte("a\nb\x00\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file, ""); err == nil || !strings.Contains(err.Error(), "line 2 is no text") {
		t.Errorf("a binary prompt: %v", err)
	}
	if _, err := Read(root, ""); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Read(filepath.Join(root, "none.yaml"), ""); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("no file: %v", err)
	}
}

// TestWrite: an import overwrites nothing, writes all or nothing, and nothing outside its folder.
func TestWrite(t *testing.T) {
	conform.Rule(t, "12-import overwrite", "a file that is there, a link, a missing folder")
	t.Parallel()
	p, err := Read(originals()["archon"], "")
	if err != nil {
		t.Fatal(err)
	}
	files := func(dir string) (n int) {
		_ = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() {
				n++
			}
			return nil
		})
		return n
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".workflow/specs/mend.yaml"), "mine\n")
	if err := p.Write(dir); err == nil || !strings.Contains(err.Error(), ".workflow/specs/mend.yaml exists already") {
		t.Errorf("over a file: %v", err)
	}
	if got := content(t, filepath.Join(dir, ".workflow/specs/mend.yaml")); got != "mine\n" || files(dir) != 1 {
		t.Errorf("it wrote: %q, %d files", got, files(dir))
	}
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, ".workflow")); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(dir); err == nil || !strings.Contains(err.Error(), ".workflow is a link") {
		t.Errorf("through a link: %v", err)
	}
	if files(outside) != 0 {
		t.Error("it wrote outside of its folder")
	}
	if err := p.Write(filepath.Join(dir, "none")); err == nil {
		t.Error("it made the folder")
	}
	dir = t.TempDir()
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	if files(dir) != len(p.files) {
		t.Errorf("%d files of %d", files(dir), len(p.files))
	}
}
