package setup

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"sluice/specs"
)

func TestDemoSpecIsTheDocuments(t *testing.T) {
	want, err := os.ReadFile("../../specs/testdata/phase-4-search-index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(DemoSpec(), want) {
		t.Error("the demo's spec is not the example that the documents have")
	}
}

// TestInitFillsEachTemplate: what init fills in is in each template that has agents.
func TestInitFillsEachTemplate(t *testing.T) {
	for _, tpl := range specs.Templates() {
		c := Choice{Writer: "codex", Reviewer: "gemini", Test: "make test"}
		data, err := tpl.Files.(interface{ ReadFile(string) ([]byte, error) }).ReadFile("config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(c.fit("config.yaml", data)); strings.Contains(got, "agent: claude}") || !strings.Contains(got, "codex") {
			t.Errorf("%s: %s", tpl.Name, got)
		}
	}
}
