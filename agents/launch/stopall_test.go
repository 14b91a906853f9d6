package launch

import (
	"slices"
	"testing"

	"sluice/internal/layout"
)

// TestKeysOf: a launch's corrections and criteria are found by the names of their pid files, and by their own keys.
func TestKeysOf(t *testing.T) {
	l := layout.Layout{Root: t.TempDir(), State: t.TempDir()}
	const key = "w-1/A#1.check-7"
	if keys, err := keysOf(l, key, ""); err != nil || keys != nil {
		t.Errorf("of a run without launches: %q, %v", keys, err)
	}
	want := []string{key, key + "+1", key + "/0", key + "/0-2"}
	for _, of := range append(slices.Clone(want), "w-1/A#1.check-71", "w-2/A#1.check-7") {
		if err := layout.Save(l.PIDFile(of), 1); err != nil {
			t.Fatal(err)
		}
	}
	sent := layout.Correction(key, 2)
	if err := layout.Save(l.PIDFile(sent)+layout.SentMark, 1); err != nil {
		t.Fatal(err)
	}
	keys, err := keysOf(l, key, "")
	if slices.Sort(keys); err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v", keys, err)
	}
	if keys, err := keysOf(l, key, layout.SentMark); err != nil || !slices.Equal(keys, []string{sent}) {
		t.Errorf("on workers: %q, %v", keys, err)
	}
}
