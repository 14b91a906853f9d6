package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/journal"
)

// A new journal gets an id of its own in its first record, and keeps it. An old one stays as it is.
func TestNewJournalHasAnID(t *testing.T) {
	first := func(state string) (id string, file string) {
		l, _, err := journal.OpenRead(state, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if id, err = l.ID(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(state, journal.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return id, string(data)
	}
	serve := func(root string) *service {
		s := serveTest(t, root, newStage())
		if _, err := s.client.Do(context.Background(), engine.RunRequested{Source: "two"}, ""); err != nil {
			t.Fatal(err)
		}
		s.stop()
		return s
	}
	root := t.TempDir()
	s := serve(root)
	id, before := first(s.state)
	if !journal.IsID(id) || strings.Count(before, `"journal"`) != 1 {
		t.Fatalf("id %q in\n%s", id, before)
	}
	serve(root)
	if again, after := first(s.state); again != id || !strings.HasPrefix(after, before) || strings.Count(after, `"journal"`) != 1 {
		t.Errorf("after a restart: id %q, was %q", again, id)
	}
	if two, _ := first(serve(t.TempDir()).state); two == id {
		t.Error("two journals have one id")
	}

	// an older release wrote no id
	old := t.TempDir()
	if err := os.MkdirAll(filepath.Join(old, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, _, err := journal.Open(filepath.Join(old, "state"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Append(journal.Entry{At: time.Now(), Event: []byte(`{"kind":"configured"}`)}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if id, file := first(serve(old).state); id != "" || strings.Contains(file, `"journal"`) {
		t.Errorf("the old journal has the id %q", id)
	}
}
