//go:build linux || darwin

package inbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/tools/conform"
	"sluice/watcher"
)

// TestALookReadsWhatTheHintsAreAbout: nothing else is read, and a run's new inbox is watched from
// then on.
func TestALookReadsWhatTheHintsAreAbout(t *testing.T) {
	b := newBench(t)
	root := filepath.Join(b.root, ".workflow", "signals")
	in := job.Inboxes{Runs: []string{run1}, Trees: []string{b.path("tree")}}
	b.put("tree/.workflow/signals/w-1/T-done.json", "{}")
	b.put(".workflow/signals/A-done.json", "{}")
	b.put(".workflow/signals/w-1/B-done.json", "{}")
	for _, c := range []struct{ dir, want string }{
		{root, "A-done.json"}, {filepath.Join(root, run1), "B-done.json"}, {b.path("tree/.workflow/signals/w-1"), "T-done.json"},
		{b.path("tree/.workflow/signals"), ""}, {b.path("nowhere"), ""},
	} {
		in.Only = []job.Place{{Dir: c.dir}}
		if c.dir == root { // the run's inbox is read the first time only, as it was not watched yet
			if evs, _, err := b.x.Scan(b.ctx(), in); err != nil || len(evs) != 2 || !b.x.Watched(filepath.Join(root, run1)) {
				t.Errorf("at first: %+v %v", evs, err)
			}
		}
		evs, _, err := b.x.Scan(b.ctx(), in)
		if err != nil || len(evs) > 1 || (c.want != "") != (len(evs) == 1) {
			t.Fatalf("%s: %+v %v", c.dir, evs, err)
		}
		if c.want != "" && evs[0].(engine.FileSeen).Name != c.want {
			t.Errorf("%s: %+v", c.dir, evs[0])
		}
	}
}

// TestHintsNameTheFolder: what a hint was about is given once, with the run whose inbox it is.
func TestHintsNameTheFolder(t *testing.T) {
	b := newBench(t)
	if _, _, err := b.x.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}}); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(b.root, ".workflow", "signals", run1)
	saw := func() (found bool) {
		for _, p := range b.x.Hinted() {
			if p.Dir == own && p.Run != run1 || p.Dir == b.x.Signals() && p.Run != "" {
				t.Errorf("%+v", p)
			}
			found = found || p.Dir == own
		}
		return found
	}
	eventually(t, "the hint at a new folder", saw)
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	eventually(t, "the hint at its file", saw)
	b.x.lookAt("/x")
	if got := b.x.Hinted(); len(got) == 0 {
		t.Error("no hint")
	}
	b.x.Hint("/not/ours")
	for _, p := range b.x.Hinted() {
		if p.Dir == "/not/ours" || p.Dir == "/x" {
			t.Errorf("%+v", p)
		}
	}
}

// TestMoreThanAScanReads: what was left over is told, so that the scan closes nothing, and the next
// one goes on there.
func TestMoreThanAScanReads(t *testing.T) {
	b := newBench(t)
	const files = maxPasses*watcher.MaxScanFiles + 10
	for i := range files {
		if err := os.WriteFile(b.path(fmt.Sprintf(".workflow/signals/x%05d.json", i)), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for scan := range 2 {
		evs, more, err := b.x.Scan(b.ctx(), job.Inboxes{})
		if err != nil || more != (scan == 0) {
			t.Fatalf("scan %d: %d files, more: %v, %v", scan, len(evs), more, err)
		}
		for _, ev := range evs {
			seen[ev.(engine.FileSeen).Name] = true
		}
	}
	if len(seen) != files {
		t.Errorf("%d files of %d", len(seen), files)
	}
}

// TestStraysAreLookedForWhereSomethingChanged: the folder of a run that is over, in which something
// lies, is found though the inbox was seen without one before.
func TestStraysAreLookedForWhereSomethingChanged(t *testing.T) {
	b := newBench(t)
	inbox := b.path(".workflow/signals")
	old := time.Now().Add(-time.Hour)
	see := func(live ...string) int {
		t.Helper()
		evs, _, err := b.x.Scan(b.ctx(), job.Inboxes{Runs: live})
		if err != nil {
			t.Fatal(err)
		}
		return len(evs)
	}
	see(run1)
	if err := os.Chtimes(inbox, old, old); err != nil {
		t.Fatal(err)
	}
	see(run1)
	if b.x.noStrays.Ino == 0 {
		t.Fatal("an inbox at rest is looked through each time")
	}
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	if n := see(run1); n != 1 {
		t.Errorf("%d files while the run lives", n)
	}
	if n := see(); n != 1 {
		t.Errorf("%d files of the run that is over", n)
	}
	b.put(".workflow/signals/w-7/A-done.json", "{}")
	if n := see(run1); n != 2 {
		t.Errorf("%d files after another folder came", n)
	}
}

func TestScanOrder(t *testing.T) {
	conform.Rule(t, "2-files decision", "one scan gives signals, veto, fail, pass, in this order")
	conform.Rule(t, "8-semantics 22", "signals by name, veto, fail, pass")
	b := newBench(t)
	names := []string{"A-done.json", "B-done.json", "G-veto", "G-fail.json", "G-fail.md", "G-pass.txt", "G-replan"}
	for i := range names {
		b.put(".workflow/signals/"+names[len(names)-1-i], "{}")
	}
	b.put(".workflow/signals/w-1/0-pass", "words")
	b.put(".workflow/signals/.hidden", "{}")
	b.put(".workflow/signals/rejected/old", "{}")
	in := job.Inboxes{Runs: []string{run1}, Asked: []job.Reviewed{{Run: run1, Gate: "G", Step: "A", Attempt: 1}}}
	var got []string
	for _, ev := range b.scanned(in, 8) {
		got = append(got, ev.Name)
		if (ev.Dir == run1) != (ev.Name == "0-pass") || ev.By.Via != "file" || ev.By.Trust != "file" || ev.By.Who == "" || ev.ID == "" || ev.Written.IsZero() {
			t.Errorf("%+v", ev)
		}
	}
	want := []string{"A-done.json", "B-done.json", "G-veto", "G-fail.json", "G-fail.md", "0-pass", "G-pass.txt", "G-replan"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestScanReads(t *testing.T) {
	conform.Rule(t, "2-files signal 7", "links, pipes and large files are told of and not read")
	conform.Rule(t, "2-files signal 7", "pipes, links and what is too large are not read")
	conform.Rule(t, "2-files signal 3", "tokens are looked up; doubled keys refused")
	b := newBench(t)
	token := b.x.Token("w-1/A#1.1")
	files := map[string]string{
		"A-done.json":  `{"step":"A","status":"blocked","question":"q?","options":["x"],"attempt":1,"launch":2,"token":"` + token + `","answer":{"a":1}}`,
		"B-done.json":  `{"token":"beef"}`,
		"C-done.json":  `{"token":"` + b.x.Token("w-1/A#1.1+2") + `"}`,
		"D-done.json":  `{"status":"done","Status":"failed"}`,
		"E-done.json":  `{"status":"do`,
		"F-done.json":  ``,
		"G-fail":       "make it better\n",
		"G-pass.json":  `{"feedback":"fine","round":3,"run":"w-1","by":"alice"}`,
		"G-veto":       "\xff\xfe",
		"H-done.json":  strings.Repeat("x", 65<<10),
		"not\na-name ": "x",
	}
	for name, text := range files {
		b.put(".workflow/signals/"+name, text)
	}
	b.sh("mkfifo .workflow/signals/fifo && ln -s ../../README.md .workflow/signals/link")
	got := map[string]engine.FileSeen{}
	for _, ev := range b.scanned(job.Inboxes{Tokens: map[string]string{"w-1/A#1.1": ""}}, len(files)+2) {
		got[ev.Name] = ev
	}
	a := got["A-done.json"]
	if a.TokenOf != "w-1/A#1.1" || a.Sentinel.Status != "blocked" || a.Sentinel.Question != "q?" || a.Sentinel.Attempt != 1 || a.Sentinel.Launch != 2 || string(a.Sentinel.Answer) != `{"a":1}` || a.Digest == "" {
		t.Errorf("A: %+v %+v", a, a.Sentinel)
	}
	if got["B-done.json"].TokenOf != "?" || got["C-done.json"].TokenOf != "w-1/A#1.1" || got["F-done.json"].TokenOf != "" {
		t.Errorf("tokens: %q %q", got["B-done.json"].TokenOf, got["C-done.json"].TokenOf)
	}
	for _, name := range []string{"D-done.json", "E-done.json", "H-done.json", "fifo", "link"} {
		if ev := got[name]; ev.Sentinel != nil || ev.SentinelBad == "" {
			t.Errorf("%s: %+v", name, ev)
		}
	}
	if f := got["F-done.json"]; f.Sentinel == nil || f.Sentinel.Status != "done" {
		t.Errorf("empty: %+v", f)
	}
	if h := got["G-pass.json"].Human; h == nil || h.Text != "fine" || h.Round != 3 || h.Run != run1 || h.By != "alice" {
		t.Errorf("G-pass.json: %+v", h)
	}
	if h := got["G-fail"].Human; h == nil || strings.TrimSpace(h.Text) != "make it better" {
		t.Errorf("G-fail: %+v", h)
	}
	if ev := got["G-veto"]; ev.Human != nil || ev.HumanBad == "" {
		t.Errorf("G-veto: %+v", ev)
	}
}

// TestScanWaitsForTheWhole: JSON counts when it is whole, text when it has not changed for a while.
func TestScanWaitsForTheWhole(t *testing.T) {
	conform.Rule(t, "2-files signal 2", "JSON counts when it is whole, text when it has settled")
	conform.Rule(t, "2-files signal 2", "JSON when whole, text when at rest")
	b := newBench(t)
	b.settle.Store(int64(time.Hour))
	left := false // the last scan left a person's fail
	see := func() int {
		evs, _, err := b.x.Scan(b.ctx(), job.Inboxes{})
		if err != nil {
			t.Fatal(err)
		}
		n := len(evs)
		if left = n > 0 && evs[n-1].EventKind() == (engine.Scanned{}).EventKind(); left {
			n--
		}
		return n
	}
	text := `{"status": "done"}`
	for i := range len(text) {
		b.put(".workflow/signals/A-done.json", text[:i])
		if n := see(); n != 0 {
			t.Fatalf("%q was taken for whole", text[:i])
		}
	}
	b.put(".workflow/signals/G-fail", "not yet wh")
	b.put(".workflow/signals/A-done.json", text)
	if n := see(); n != 1 || !left {
		t.Errorf("%d files, want the whole one; told of the fail that waits: %v", n, left)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(b.path(".workflow/signals/G-fail"), old, old); err != nil {
		t.Fatal(err)
	}
	if n := see(); n != 2 || left {
		t.Errorf("%d files, want the old one too; something waits: %v", n, left)
	}
}

func TestScanOfWorktrees(t *testing.T) {
	conform.Rule(t, "1-language rule 3 sentinel_file", "written below the worktree it counts too")
	b := newBench(t)
	b.put("sub/.workflow/signals/B-done.json", "{}")
	b.put("tree/.workflow/signals/w-1/A-done.json", "{}")
	in := job.Inboxes{Runs: []string{run1}, Trees: []string{b.path("tree"), "never-made", "."}}
	b.x.Expect(job.Job{Effect: engine.Effect{Run: run1}, Attempt: &engine.Attempt{Worktree: "sub", Tree: "."}})
	got := map[string]engine.FileSeen{}
	for _, ev := range b.scanned(in, 2) {
		got[ev.Name] = ev
	}
	if a := got["A-done.json"]; a.Place != b.path("tree") || a.Dir != run1 {
		t.Errorf("%+v", a)
	}
	if x := got["B-done.json"]; x.Place != "." || x.Dir != "" {
		t.Errorf("%+v", x)
	}
	x := got["B-done.json"]
	if ev := b.move(&engine.Move{ID: x.ID, Name: x.Name, Dir: x.Dir, Place: x.Place, Run: run1, To: "B.1", As: "signal.json"}); !b.has(".workflow/runs/w-1/B.1/signal.json") {
		t.Errorf("%+v", ev)
	}
}

// TestScanFailsClosed: an inbox that cannot be read is not an empty one; a folder that is gone is
// made again.
func TestScanFailsClosed(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "an inbox that cannot be read is not an empty one")
	b := newBench(t)
	b.sh("mv .workflow/signals gone")
	if _, _, err := b.x.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}}); err != nil || !b.has(".workflow/signals/w-1") {
		t.Errorf("after it was removed: %v", err)
	}
	b.sh("mv .workflow/signals/w-1 was && ln -s /tmp .workflow/signals/w-1") // a cookie may come into it
	b.put(".workflow/signals/A-done.json", "{}")
	evs, _, err := b.x.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}})
	eventually(t, "the link is told of", func() bool { // and read as nothing; all others are read
		evs, _, err = b.x.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}})
		return err != nil || len(evs) == 2
	})
	if f, ok := evs[len(evs)-1].(engine.FileSeen); err != nil || !ok || f.Name != run1 || f.Sentinel != nil || f.SentinelBad == "" {
		t.Errorf("a link in the place of a run's inbox: %+v %v", evs, err)
	}
	b.sh("rm .workflow/signals/w-1")
	if _, _, err := b.x.Scan(b.ctx(), job.Inboxes{}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	if _, _, err := b.x.Scan(ctx, job.Inboxes{}); err == nil {
		t.Error("a scan that was broken off counts as one")
	}
}

// TestScanOfRunsThatAreOver: what is written for a run that does not live is seen, so that it can
// be refused.
func TestScanOfRunsThatAreOver(t *testing.T) {
	b := newBench(t)
	b.scanned(job.Inboxes{Runs: []string{run1}}, 0)
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	b.put(".workflow/signals/w-7/A-done.json", "{}")
	b.put(".workflow/signals/rejected/old.json", "{}")
	b.put(".workflow/signals/-odd/x.json", "{}")
	evs := b.scanned(job.Inboxes{}, 2)
	slices.SortFunc(evs, func(a, b engine.FileSeen) int { return strings.Compare(a.Dir, b.Dir) })
	if len(evs) != 2 || evs[0].Dir != run1 || evs[1].Dir != "w-7" {
		t.Fatalf("%+v", evs)
	}
	for _, ev := range evs {
		b.move(&engine.Move{ID: ev.ID, Name: ev.Name, Dir: ev.Dir, Why: "it is over"})
	}
	for until := time.Now().Add(waitFor); b.has(".workflow/signals/w-1") || b.has(".workflow/signals/w-7"); time.Sleep(10 * time.Millisecond) {
		b.scanned(job.Inboxes{}, 0)
		if time.Now().After(until) { // a test of the watch may lie in the folder for a moment
			t.Fatal("an empty folder of a run that is over stayed")
		}
	}
}

func TestHintsOfAFile(t *testing.T) {
	b := newBench(t)
	eventually(t, "the first hint", func() bool { return len(b.x.Hints()) > 0 })
	for len(b.x.Hints()) > 0 {
		<-b.x.Hints()
	}
	b.put(".workflow/signals/x", "y")
	eventually(t, "a hint", func() bool { return len(b.x.Hints()) > 0 })
}

// TestFloodOfAnInbox: of a launch's own inbox so many files are handed on, its own signal always;
// the rest is removed and counted once, and no link is followed in doing so.
func TestFloodOfAnInbox(t *testing.T) {
	conform.Rule(t, "2-files refused", "beyond the limit a file is removed and counted, once the launch is over; no link is followed")
	b := newBench(t)
	const key = "w-1/A#1.1"
	dir := b.x.PIDFile(key) + layout.InboxMark
	if err := os.MkdirAll(filepath.Join(dir, run1), 0o700); err != nil {
		t.Fatal(err)
	}
	b.x.OpenOwn(key)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const flood = 3 * engine.KeepRefused
	for i := range flood {
		write(filepath.Join(dir, run1, fmt.Sprintf("junk-%d.json", i)), "{}")
	}
	write(filepath.Join(dir, "A-done.json"), `{"status":"done"}`)
	in := job.Inboxes{Runs: []string{run1}, Tokens: map[string]string{key: ""}, Words: map[string]string{key: "A-done.json"}, Refused: map[string]int{key: 10}}
	seen := b.scanned(in, engine.KeepRefused-10+1)
	if n := len(seen); n != engine.KeepRefused-10+1 {
		t.Errorf("%d files were handed on", n)
	}
	if !slices.ContainsFunc(seen, func(f engine.FileSeen) bool { return f.Name == "A-done.json" && f.Of == key }) {
		t.Error("its own signal was not handed on")
	}
	left, err := os.ReadDir(filepath.Join(dir, run1))
	if err != nil || len(left) != engine.KeepRefused-10 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	in.Refused[key] = engine.MostRefused
	if _, _, err := b.x.Scan(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if holdsFile(dir) || holdsFile(filepath.Join(dir, run1)) {
		t.Error("something is left of who has used up all")
	}
	outside := b.path("mine.txt")
	write(outside, "mine")
	if err := os.Remove(filepath.Join(dir, run1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.root, filepath.Join(dir, run1)); err != nil {
		t.Fatal(err)
	}
	b.x.drop(box{path: filepath.Join(dir, run1), dir: run1, of: key}, "mine.txt")
	if !b.has("mine.txt") {
		t.Error("a link was followed out")
	}
	b.x.CloseOwn(key)
	var last []engine.Event
	for range 3 {
		evs, _, err := b.x.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		last = append(last, evs...)
	}
	if len(last) != 1 || last[0] != (engine.FilesDropped{Of: key, N: flood + 2}) { // its signal and the link among them
		t.Errorf("at its end: %+v", last)
	}
}
