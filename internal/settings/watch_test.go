package settings

import (
	"os"
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

// TestFilesThatAreAway: some editors remove a file and write it again. What is missing for a moment does not
// count, not even the first time: without the file, all settings would be the defaults.
func TestFilesThatAreAway(t *testing.T) {
	w := newWorld(t)
	w.write(".workflow/config.yaml", "grace: 1s\n")
	f := &Files{Paths: [2]string{"", ProjectFile(w.dir)}}
	f.WereRead(f.Now())
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	if err := os.Remove(f.Paths[1]); err != nil {
		t.Fatal(err)
	}
	if changed, soon := f.Changed(Pass{}, start); changed || !soon {
		t.Errorf("missing for a moment: changed %v, soon %v", changed, soon)
	}
	w.write(".workflow/config.yaml", "grace: 1s\n")
	if changed, _ := f.Changed(Pass{}, start.Add(Settle)); changed {
		t.Error("there again for a moment: changed")
	}
	if changed, _ := f.Changed(Pass{}, start.Add(2*Settle)); !changed {
		t.Error("there again: not changed")
	}
}

// TestFilesThatNeverRest: changing one file again and again does not keep the other from being read.
func TestFilesThatNeverRest(t *testing.T) {
	w := newWorld(t)
	f := &Files{Paths: [2]string{"", ProjectFile(w.dir)}}
	start, text := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), ""
	for range 2 {
		for after := time.Duration(0); ; after += Settle / 2 {
			text += "#"
			w.write(".workflow/config.yaml", text)
			changed, soon := f.Changed(Pass{}, start.Add(after))
			if want := after >= SettleMost; changed != want || soon == want {
				t.Fatalf("after %s: changed %v, soon %v", after, changed, soon)
			}
			if changed {
				break
			}
		}
		f.WereRead(f.Now())
		start = start.Add(time.Hour)
	}
}

// TestStirred: only the named files are looked at, and a change that is not complete is not forgotten.
func TestStirred(t *testing.T) {
	w := newWorld(t)
	f := &Files{Paths: [2]string{w.dir + "/own.yaml", ProjectFile(w.dir)}}
	w.write(".workflow/config.yaml", "grace: 1s\n")
	stirred := func(what string, want bool, files ...bool) {
		t.Helper()
		pass := Pass{}
		if got := f.Stirred(pass, [2]bool(files)); got != want {
			t.Errorf("%s: %t", what, got)
		}
		for i, look := range files {
			if _, looked := pass[f.Paths[i]]; looked != look {
				t.Errorf("%s: file %d was looked at: %t", what, i, looked)
			}
		}
	}
	stirred("the other has changed", false, true, false)
	stirred("it has changed", true, false, true)
	now := time.Now()
	if changed, soon := f.Changed(Pass{}, now); changed || !soon {
		t.Fatal("it is complete at once")
	}
	stirred("a look found a change", true, false, false)
	f.WereRead(f.Now())
	stirred("all is read", false, true, true)
}
