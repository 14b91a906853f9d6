package tidy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFilesNamedAreThere: a Go file that a comment or a document for contributors names exists: as written from the top or
// from where it is named, or, by its name alone, somewhere in the repo. In docs/, a file is a user's.
func TestFilesNamedAreThere(t *testing.T) {
	_, all := files(t)
	there := map[string]bool{} // by path, and by name
	for _, f := range all {
		there[f.path], there[path.Base(f.path)] = true, true
	}
	missing := func(at, text string) {
		for _, name := range regexp.MustCompile(`[\w./*-]*\w\.go\b`).FindAllString(text, -1) {
			if strings.ContainsAny(name, "*") || regexp.MustCompile(`^[A-Z]+\.go$|/[A-Z]+\.go$|NAME`).MatchString(name) {
				continue // stands for any
			}
			if !there[name] && !there[path.Join(path.Dir(at), name)] {
				t.Errorf("%s: %s is not there", at, name)
			}
		}
	}
	for _, f := range all {
		for _, c := range f.ast.Comments {
			missing(f.path, c.Text())
		}
	}
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "docs" || strings.HasPrefix(d.Name(), ".") && p != "../..") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(p, ".md") && d.Name() != "CHANGELOG.md" {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel("../..", p)
			missing(filepath.ToSlash(rel), string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
