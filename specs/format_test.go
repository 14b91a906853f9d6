package specs

import (
	"bytes"
	"os"
	"reflect"
	"testing"
)

// TestFormatKeeps: a canonical file stays as it is: the document's example, with its comments, and
// everything we ship.
func TestFormatKeeps(t *testing.T) {
	for file, src := range goodSpecs(t) {
		out, err := Format(src)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if !bytes.Equal(out, src) {
			t.Errorf("%s is changed to:\n%s", file, out)
		}
	}
}

// TestFormat: formats a file that is not canonical.
func TestFormat(t *testing.T) {
	src, err := os.ReadFile("testdata/untidy.txt")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Format(src)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/tidy.txt", out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/tidy.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out, want) {
		t.Errorf("laid out as:\n%s", out)
	}
	checkFormat(t, src)
}

// checkFormat checks Format's promises for any input: a second run changes nothing, and the spec
// stays the same.
func checkFormat(t *testing.T, src []byte) {
	t.Helper()
	out, err := Format(src)
	if err != nil {
		return
	}
	again, err := Format(out)
	if err != nil || !bytes.Equal(out, again) {
		t.Fatalf("a second time: %v\n--- first\n%s\n--- second\n%s", err, out, again)
	}
	before, faults := Load("", src)
	after, faultsAfter := Load("", out)
	if (before == nil) != (after == nil) || len(faults) != len(faultsAfter) {
		t.Fatalf("before: %v\nafter: %v\n%s", faults, faultsAfter, out)
	}
	if before != nil && !reflect.DeepEqual(describe(before), describe(after)) {
		t.Fatalf("the spec changed: %v\n%v", describe(before), describe(after))
	}
}

// FuzzFormat: for any input, the layout is final and the meaning stays.
func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src []byte) { checkFormat(t, src) })
}
