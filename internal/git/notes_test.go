package git

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	ctx := context.Background()
	if notes, err := r.Notes(ctx, "sluice"); err != nil || len(notes) != 0 {
		t.Fatalf("notes where there are none: %v %v", notes, err)
	}
	first := s.git("rev-parse", "HEAD")
	for _, text := range []string{"one\n", "two\n"} {
		if at, err := r.AddNote(ctx, "sluice", []byte(text)); err != nil || at != first {
			t.Fatalf("%s: %v", at, err)
		}
	}
	if got := s.git("notes", "--ref", "sluice", "show", first); got != "one\n\ntwo" {
		t.Errorf("git shows %q", got)
	}
	s.git("commit", "-q", "--allow-empty", "-m", "second")
	// Others' notes there stay, also if git spread them over folders.
	s.git("notes", "--ref", "sluice", "add", "-m", "by hand")
	fan := s.git("rev-parse", "HEAD")
	s.git("commit", "-q", "--allow-empty", "-m", "third")
	third, err := r.AddNote(ctx, "sluice", []byte("three\n"))
	if err != nil {
		t.Fatal(err)
	}
	notes, err := r.Notes(ctx, "sluice")
	if err != nil || len(notes) != 3 || string(notes[first]) != "one\n\ntwo\n" || string(notes[fan]) != "by hand\n" || string(notes[third]) != "three\n" {
		t.Errorf("%q %v", notes, err)
	}
	if got := s.git("notes", "--ref", "sluice", "show", fan); got != "by hand" {
		t.Errorf("git shows %q", got)
	}
	if n := s.git("rev-list", "--count", "refs/notes/sluice"); n != "4" {
		t.Errorf("%s commits: what was there before has to stay in the ref's past", n)
	}
	if _, err := r.AddNote(ctx, "../heads/main", []byte("x")); err == nil {
		t.Error("a name that leads out of refs/notes was taken")
	}
	if _, err := r.AddNote(ctx, "sluice", []byte(strings.Repeat("x", maxNoteBytes+1))); err == nil {
		t.Error("a note without bound was taken")
	}
}

// Notes that git spread over folders, as it does for many, are read and kept.
func TestNotesSpread(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	head := s.git("rev-parse", "HEAD")
	blob := s.git("hash-object", "-w", "a.txt")
	s.git("update-index", "--add", "--cacheinfo", "100644,"+blob+","+strings.Repeat("ab", 1)+"/"+strings.Repeat("c", 38))
	s.git("rm", "-q", "--cached", "a.txt")
	tree := s.git("write-tree")
	s.git("update-ref", "refs/notes/sluice", s.git("commit-tree", "-m", "spread", tree))
	if _, err := r.AddNote(context.Background(), "sluice", []byte("x\n")); err != nil {
		t.Fatal(err)
	}
	notes, err := r.Notes(context.Background(), "sluice")
	if err != nil || string(notes["ab"+strings.Repeat("c", 38)]) != "one\n" || string(notes[head]) != "x\n" {
		t.Errorf("%q %v", notes, err)
	}
}

func TestNoteWithoutCommit(t *testing.T) {
	s := newSandbox(t)
	s.git("update-ref", "-d", "HEAD")
	if _, err := s.open().AddNote(context.Background(), "sluice", []byte("x")); !errors.Is(err, ErrNoCommit) {
		t.Errorf("%v", err)
	}
}
