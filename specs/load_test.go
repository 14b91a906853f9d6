package specs

import (
	"os"
	"testing"
)

func example(t *testing.T) []byte {
	t.Helper()
	src, err := os.ReadFile("testdata/phase-4-search-index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestTheDocumentsExample: document 004's annotated example loads, byte for byte.
func TestTheDocumentsExample(t *testing.T) {
	spec, faults := Load("phase-4-search-index.yaml", example(t))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if len(spec.Steps) != 2 || len(spec.Gates) != 2 || spec.Gates[1].OnPass[0] != "DONE" {
		t.Errorf("read as %+v", spec)
	}
}
