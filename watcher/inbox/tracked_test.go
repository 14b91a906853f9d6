//go:build linux || darwin

package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// TestTrackedFilesAreNobodysWord: what git tracks says nothing, and while that is not known the file
// waits. A held launch's own inbox is in no checkout.
func TestTrackedFilesAreNobodysWord(t *testing.T) {
	b := newBench(t)
	b.put(".git/HEAD", "")
	b.x.Top = b.root
	tree := b.path("tree")
	b.x.opt.Tracked = func(_ context.Context, top, file string) (bool, error) {
		want := b.root
		if strings.HasPrefix(file, tree+"/") {
			want = tree
		}
		if top != want {
			t.Errorf("%s in the checkout at %s", file, top)
		}
		switch base := filepath.Base(file); base[0] {
		case 'T':
			return true, nil
		case 'U':
			return false, errors.New("nobody knows")
		}
		return false, nil
	}
	own := b.x.PIDFile("w-1/A#1.1") + layout.InboxMark
	if err := os.MkdirAll(filepath.Join(own, run1), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "T-done.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.x.OpenOwn("w-1/A#1.1")
	for _, name := range []string{"T-pass.json", "U-pass.json", "V-pass.json", "w-1/T-fail.json"} {
		b.put(".workflow/signals/"+name, `{"feedback": "x"}`)
	}
	for _, name := range []string{"T-done.json", "V-done.json"} {
		b.put("tree/.workflow/signals/w-1/"+name, "{}")
	}
	in := job.Inboxes{Runs: []string{run1}, Trees: []string{tree}}
	seen := b.scanned(in, 6)
	if len(seen) != 6 {
		t.Errorf("%d files: %+v", len(seen), seen)
	}
	for _, ev := range seen {
		tracked := ev.Name[0] == 'T' && ev.Of == ""
		said := ev.Human != nil || ev.Sentinel != nil
		why := strings.Contains(ev.HumanBad, "git rm --cached") && strings.Contains(ev.SentinelBad, "git tracks it")
		if said == tracked || why != tracked {
			t.Errorf("%+v", ev)
		}
	}
	if all := strings.Join(b.x.Notes.All(), "\n"); !strings.Contains(all, "U-pass.json: nobody knows") {
		t.Errorf("what waits is not told of: %s", all)
	}
	b.x.opt.Tracked = func(context.Context, string, string) (bool, error) { return false, nil }
	for len(b.x.Hints()) > 0 {
		<-b.x.Hints()
	}
	b.x.Hinted()
	eventually(t, "it is looked at again", func() bool { return len(b.x.Hints()) > 0 })
	for _, ev := range b.scanned(in, 7) {
		if ev.Human == nil && ev.Sentinel == nil {
			t.Errorf("%+v", ev)
		}
	}
	if all := b.x.Notes.All(); len(all) > 0 {
		t.Errorf("%v", all)
	}
}

// TestManyWaitingFilesAreFewNotes: of a flood of waiting files a few are noted, which leaves room for other faults.
func TestManyWaitingFilesAreFewNotes(t *testing.T) {
	b := newBench(t)
	b.put(".git/HEAD", "")
	b.x.Top = b.root
	known := errors.New("nobody knows")
	b.x.opt.Tracked = func(context.Context, string, string) (bool, error) { return false, known }
	const many = 150
	for i := range many {
		b.put(fmt.Sprintf(".workflow/signals/w-1/%03d-pass.json", i), "{}")
	}
	in := job.Inboxes{Runs: []string{run1}}
	for range 3 {
		b.scanned(in, 0)
	}
	if all := b.x.Notes.All(); len(all) != waitNotesMost || !strings.Contains(all[0], "000-pass.json: nobody knows") {
		t.Errorf("%q", all)
	}
	known = nil
	b.scanned(in, many)
	if all := b.x.Notes.All(); len(all) > 0 {
		t.Errorf("%q", all)
	}
}

// TestSignedAnswersMayBeTracked: a signature counts whoever brings it.
func TestSignedAnswersMayBeTracked(t *testing.T) {
	b := newBench(t)
	b.x.Top = b.root
	b.x.opt.Tracked = func(context.Context, string, string) (bool, error) { return true, nil }
	s := scan{x: b.x}
	for _, c := range []struct {
		say *engine.HumanSay
		no  bool
	}{{nil, true}, {&engine.HumanSay{}, true}, {&engine.HumanSay{Proven: engine.Proven{Unproven: "bad"}}, true},
		{&engine.HumanSay{Proven: engine.Proven{Signed: &engine.Signed{}}}, false}} {
		why, err := s.tracked(t.Context(), box{path: b.x.Signals()}, engine.FileSeen{Name: "G-pass.json", Human: c.say})
		if err != nil || (why != "") != c.no {
			t.Errorf("%+v: %q %v", c.say, why, err)
		}
	}
}
