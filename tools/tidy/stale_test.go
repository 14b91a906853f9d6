package tidy

import (
	"path"
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
	named, any := regexp.MustCompile(`[\w./*-]*\w\.go\b`), regexp.MustCompile(`\*|^[A-Z]+\.go$|/[A-Z]+\.go$|NAME`)
	missing := func(at, text string) {
		for _, name := range named.FindAllString(text, -1) {
			if any.MatchString(name) {
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
	each(t, ".md", func(rel string, text []byte) {
		if rel != "CHANGELOG.md" && !strings.HasPrefix(rel, "docs/") {
			missing(rel, string(text))
		}
	})
}
