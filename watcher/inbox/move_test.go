//go:build linux || darwin

package inbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/tools/conform"
)

// taken is a file that was taken in, as its move.
func (b *bench) taken(rel string) *engine.Move {
	b.t.Helper()
	data, st, err := atomicfile.OpenRegular(b.root, rel, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return &engine.Move{ID: idOf(st, layout.HexSum(data), nil), Name: filepath.Base(rel)}
}

func (b *bench) move(m *engine.Move) engine.FileMoved {
	b.t.Helper()
	ev, ok := b.x.Move(b.ctx(), job.Job{Effect: engine.Effect{Kind: engine.DoMove, Key: m.ID, Move: m}}).(engine.FileMoved)
	if !ok || ev.ID != m.ID {
		b.t.Fatalf("%+v", ev)
	}
	return ev
}

func TestMove(t *testing.T) {
	conform.Rule(t, "2-files signal 4", "the file goes to its attempt's folder; a second move is none")
	b := newBench(t)
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	m := b.taken(".workflow/signals/w-1/A-done.json")
	m.Dir, m.Run, m.To, m.As = run1, run1, "A.1", "signal.json"
	for range 2 {
		if ev := b.move(m); ev.To != ".workflow/runs/w-1/A.1/signal.json" {
			t.Errorf("moved to %q", ev.To)
		}
	}
	if b.has(".workflow/signals/w-1/A-done.json") || b.get(".workflow/runs/w-1/A.1/signal.json") != "{}" {
		t.Error("it was not moved")
	}
}

func TestMoveRejected(t *testing.T) {
	conform.Rule(t, "2-files signal 5", "what was not taken in lies in rejected/ with its reason")
	conform.Rule(t, "2-files signal 5", "to rejected/, with its reason, doubles kept")
	b := newBench(t)
	for i, name := range []string{"x", "x", "-rf\n\xff", "a;b"} {
		b.put(".workflow/signals/"+name, strings.Repeat("y", i+1))
		m := b.taken(".workflow/signals/" + name)
		m.Why = "nothing waits for it"
		to := b.move(m).To
		if !strings.HasPrefix(to, ".workflow/signals/rejected/") || b.get(to+".why") != "nothing waits for it\n" {
			t.Errorf("%q is at %q", name, to)
		}
	}
	if entries, _ := os.ReadDir(b.path(".workflow/signals/rejected")); len(entries) != 8 {
		t.Errorf("%d files, want 8", len(entries))
	}
}

// TestMoveInTheMiddle: the file was moved by a daemon that was ended before it wrote why.
func TestMoveInTheMiddle(t *testing.T) {
	conform.Rule(t, "2-files signal 4", "a move that was broken off is finished")
	conform.Rule(t, "2-files signal 4", "a crash in the move's middle")
	b := newBench(t)
	b.put(".workflow/signals/x", "y")
	m := b.taken(".workflow/signals/x")
	m.Why = "w"
	b.sh("mkdir .workflow/signals/rejected && mv .workflow/signals/x .workflow/signals/rejected/x")
	b.move(m)
	if b.get(".workflow/signals/rejected/x.why") != "w\n" {
		t.Error("nobody says why")
	}
}

// TestMoveOfAnother: a file that was replaced meanwhile is a new one, and stays.
func TestMoveOfAnother(t *testing.T) {
	b := newBench(t)
	b.put(".workflow/signals/x", "y")
	m := b.taken(".workflow/signals/x")
	b.put(".workflow/signals/x", "other")
	if ev := b.move(m); ev.To != "" || b.get(".workflow/signals/x") != "other" {
		t.Errorf("%+v", ev)
	}
	m.Name = "../../../README.md"
	if ev := b.move(m); ev.To != "" || !b.has("README.md") {
		t.Errorf("%+v", ev)
	}
}

// TestMoveTouched: times, rights and links of a file are no part of what it is.
func TestMoveTouched(t *testing.T) {
	conform.Rule(t, "2-files signal 4", "what was touched after it was taken in is moved all the same")
	b := newBench(t)
	for _, change := range []string{"touch -d 2001-01-01 x", "chmod 400 x", "chmod 000 x", "ln x .y", "touch x; chmod 600 x"} {
		b.put(".workflow/signals/x", "y")
		m := b.taken(".workflow/signals/x")
		m.Run, m.To, m.As = run1, "A.1", "signal.json"
		b.sh("cd .workflow/signals && " + change)
		if ev := b.move(m); ev.To == "" || b.has(".workflow/signals/x") {
			t.Errorf("%s: it stayed: %+v", change, ev)
		}
	}
	in := job.Inboxes{Runs: []string{run1}}
	b.put(".workflow/signals/A-done.json", "{}")
	before := b.scanned(in, 1)[0]
	b.sh("touch -d 2001-01-01 .workflow/signals/A-done.json")
	if after := b.scanned(in, 1)[0]; after.ID != before.ID {
		t.Errorf("touched it is taken for another file: %s, %s", before.ID, after.ID)
	}
	b.sh("printf '[]' > .workflow/signals/A-done.json && touch -d 2001-01-01 .workflow/signals/A-done.json")
	if after := b.scanned(in, 1)[0]; after.ID == before.ID {
		t.Errorf("with another content it is taken for the same file: %s", after.ID)
	}
}

// TestMoveWhatCannotBeRead: links, pipes and what is too large are known again too.
func TestMoveWhatCannotBeRead(t *testing.T) {
	b := newBench(t)
	b.sh("cd .workflow/signals && mkfifo fifo && ln -s nowhere link && head -c 70000 /dev/zero > large")
	for _, ev := range b.scanned(job.Inboxes{}, 3) {
		b.sh("cd .workflow/signals && touch -h " + ev.Name + " && { [ " + ev.Name + " != large ] || echo more >> large; }")
		m := &engine.Move{ID: ev.ID, Name: ev.Name, Why: ev.SentinelBad}
		if got := b.move(m); got.To == "" || b.has(".workflow/signals/"+ev.Name) {
			t.Errorf("%s stayed", ev.Name)
		}
	}
}

// TestMoveLongName: a name without room for an ending has its reason beside it all the same.
func TestMoveLongName(t *testing.T) {
	conform.Rule(t, "2-files signal 5", "the longest names have their reason beside them")
	b := newBench(t)
	for i, name := range []string{strings.Repeat("n", 251), strings.Repeat("n", 252), strings.Repeat("n", 255), strings.Repeat("n", 254) + "m", strings.Repeat("é", 127)} {
		b.put(".workflow/signals/"+name, strings.Repeat("y", i+1))
		m := b.taken(".workflow/signals/" + name)
		m.Why = "nothing waits for " + name[200:]
		to := b.move(m).To
		note := filepath.Join(filepath.Dir(to), whyName(filepath.Base(to)))
		if data, err := os.ReadFile(b.path(note)); err != nil || string(data) != m.Why+"\n" {
			t.Errorf("%d: %q %v", len(name), data, err)
		}
	}
}
