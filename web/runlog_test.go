package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/workspace"
)

// long is a repo with a long journal: each run has a record a second and ends after its last one.
type long struct {
	workspace.Viewer
	began time.Time
	facts []daemon.Line // a record each
	of    []string      // their runs
	runs  map[string]*daemon.RunStatus
	read  int // records that were read
}

func newLong() *long {
	return &long{began: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), runs: map[string]*daemon.RunStatus{}}
}

// does records n facts of a run, the first of which begins it.
func (l *long) does(run string, n int) {
	for range n {
		seq := int64(len(l.facts) + 1)
		at := l.began.Add(time.Duration(seq) * time.Second)
		kind := "note_taken"
		if l.runs[run] == nil {
			l.runs[run] = &daemon.RunStatus{ID: run, Phase: engine.RunRunning, Started: at}
			kind = "run_started"
		}
		l.add(seq, at, run, kind)
	}
}

func (l *long) ends(run string) {
	seq := int64(len(l.facts) + 1)
	at := l.began.Add(time.Duration(seq) * time.Second)
	l.runs[run].Phase, l.runs[run].Ended = engine.RunCompleted, at
	l.add(seq, at, run, "run_ended")
}

func (l *long) add(seq int64, at time.Time, run, kind string) {
	raw := fmt.Appendf(nil, `{"kind":%q,"run":%q,"text":"note %d","phase":"completed"}`, kind, run, seq)
	l.of = append(l.of, run)
	l.facts = append(l.facts, daemon.Line{Seq: seq, At: at, Fact: raw})
}

func (l *long) Status(_ context.Context, run string) (daemon.Status, error) {
	return daemon.Status{Seq: int64(len(l.facts)), Runs: []daemon.RunStatus{*l.runs[run]}}, nil
}

func (l *long) Facts(_ context.Context, run string, from int64, _ bool, fn func(daemon.Line) error) error {
	for i := max(from, 1) - 1; i < int64(len(l.facts)); i++ {
		l.read++
		if run != "" && l.of[i] != run {
			continue
		}
		if err := fn(l.facts[i]); err != nil {
			return err
		}
	}
	return nil
}

// TestFirstLookAtARun reads a part of a long journal: its end, or what was recorded in the time of the
// run. Later looks read what is new.
func TestFirstLookAtARun(t *testing.T) {
	l := newLong()
	l.does("first", 40)
	l.ends("first")
	l.does("old", 300)
	for range 60 {
		l.does("much", 5_000)
	}
	l.does("old", 3)
	l.does("new", 10)
	at := repo{"shop", &workspace.Workspace{Root: "/shop"}}
	p := newRepos(nil)
	look := func(run string, lines, left int, older bool, last string, most int) {
		t.Helper()
		l.read = 0
		got, n, more, err := p.log(t.Context(), at, l, run)
		if err != nil || len(got) != lines || n != left || more != older || l.read > most ||
			lines > 0 && !strings.Contains(got[lines-1].Text, last) {
			t.Errorf("%s: %d lines, %d left, older %v, %d records are read: %+v %v", run, len(got), n, more, l.read,
				got[max(0, len(got)-1):], err)
		}
	}
	look("new", 10, 0, false, "note", logFirst)
	look("new", 10, 0, false, "note", 0)
	l.does("new", 1)
	look("new", 11, 0, false, "note", 1)
	look("much", logLines, logFirst-14-logLines, true, "note", logFirst)
	look("first", 41, 0, false, "", logFirst+500)
	look("old", 3, 0, true, "note", logFirst+logRecords+100)
}

// TestLinesOfTasks: what a run of a task did is not said of the run above it.
func TestLinesOfTasks(t *testing.T) {
	l := newLong()
	l.does("p-1", 1)
	for _, kind := range []string{"run_started", "run_ended"} {
		l.add(int64(len(l.facts)+1), l.began, "p-1.T1.1", kind)
		l.of[len(l.of)-1] = "p-1" // who asks for the run gets these too
	}
	page := runPage{runItem: runItem{Repo: "shop"}}
	var err error
	page.Lines, _, _, err = newRepos(nil).log(t.Context(), repo{"shop", &workspace.Workspace{Root: "/shop"}}, l, "p-1")
	page.link(*l.runs["p-1"])
	last := page.Lines[len(page.Lines)-1]
	if err != nil || last.Subject != "T1.1" || last.Text != "run completed" || last.URL != "/r/shop/p-1.T1.1" {
		t.Errorf("%+v %v", page.Lines, err)
	}
}
