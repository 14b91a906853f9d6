package settings

import (
	"testing"
	"time"
)

// TestFilesAreReadOnceWhole: a change counts once the files have settled, and an edit while they
// are read is a change of its own.
func TestFilesAreReadOnceWhole(t *testing.T) {
	w := newWorld(t)
	f := &Files{Paths: [2]string{"", ProjectFile(w.dir)}}
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	is := func(after time.Duration, wantChanged, wantSoon bool) {
		t.Helper()
		if changed, soon := f.Changed(Pass{}, start.Add(after)); changed != wantChanged || soon != wantSoon {
			t.Errorf("after %s: changed %v, soon %v", after, changed, soon)
		}
	}
	is(0, false, false)
	w.write(".workflow/config.yaml", "grace: 1s\n")
	is(0, false, true)
	is(Settle/2, false, true)
	w.write(".workflow/config.yaml", "grace: 1s\nlinger: 1s\n")
	is(Settle, false, true)
	at := f.Now()
	is(2*Settle, true, false)
	w.write(".workflow/config.yaml", "grace: 1s\nlinger: 1s\nsettle: 1s\n")
	f.WereRead(at)
	is(3*Settle, false, true)
	f.WereRead(f.Now())
	is(4*Settle, false, false)
}
