package specs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDocuments: each whole workflow in the documents can be used as it is.
func TestDocuments(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(workflow:.*?)```")
	id, seen := regexp.MustCompile(`id: ([a-z-]+)`), 0
	for _, page := range append(pages, "../README.md") {
		src, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllSubmatch(src, -1) {
			if !regexp.MustCompile(`(?m)^steps:`).Match(b[1]) {
				continue // a part of one
			}
			seen++
			if _, faults := Load(string(id.FindSubmatch(b[1])[1])+".yaml", b[1]); len(faults) > 0 {
				t.Errorf("%s: %v", page, faults)
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d workflows: is the search right?", seen)
	}
}
