package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/fault"
)

// notesRefs begins the names of refs with notes.
const notesRefs = "refs/notes/"

// Limits on notes.
const (
	maxNotes     = 100_000
	maxNoteBytes = 1 << 20 // per commit
)

// AddNote appends a text to the note under refs/notes/name of the main checkout's HEAD, as `git
// notes --ref name append` does, and returns the commit. It writes objects and moves that one ref;
// if another process moved it meanwhile, it retries.
func (r *Repo) AddNote(ctx context.Context, name string, text []byte) (commit string, err error) {
	ref := notesRefs + name
	if err := checkRef(ref); err != nil {
		return "", fmt.Errorf("note: %w", err)
	}
	if commit, err = r.Head(ctx, r.top); err == nil && commit == "" {
		err = ErrNoCommit
	}
	if err != nil {
		return "", fmt.Errorf("note: %w", err)
	}
	err = EditNotes(ctx, r, name, "a signed checkpoint\n", []string{commit}, func(before []byte) ([]byte, error) {
		if len(before) > 0 {
			return slices.Concat(bytes.TrimRight(before, "\n"), []byte("\n\n"), text), nil
		}
		return text, nil
	})
	if err != nil {
		return "", fmt.Errorf("note on %.10s in %s: %w", commit, ref, err)
	}
	return commit, nil
}

// noteTries is how often EditNotes retries after another process moved the ref.
const noteTries = 3

// EditNotes replaces the notes of commits under refs/notes/name, in one commit with the message, by
// what edit makes of each; before is nil for a commit without one. It writes objects and moves that
// one ref; if another process moved it meanwhile, it begins again.
func EditNotes(ctx context.Context, r *Repo, name, message string, commits []string,
	edit func(before []byte) ([]byte, error)) error {
	ref := notesRefs + name
	if err := checkRef(ref); err != nil {
		return err
	}
	if err := checkSHA(commits...); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := editNotes(ctx, r, ref, message, commits, edit)
		if cmd, ok := errors.AsType[*CommandError](err); !ok || try == noteTries || cmd.Command != "update-ref" {
			return err
		}
	}
}

func editNotes(ctx context.Context, r *Repo, ref, message string, commits []string,
	edit func(before []byte) ([]byte, error)) error {
	old, entries, err := r.noteEntries(ctx, ref)
	if err != nil {
		return err
	}
	for _, commit := range commits {
		var before []byte
		var rest []noteEntry
		for _, e := range entries {
			if e.commit != commit {
				rest = append(rest, e)
			} else if before, err = r.shadow(ctx, call{args: []string{"cat-file", "blob", e.blob},
				limit: maxNoteBytes}); err != nil {
				return err
			}
		}
		text, err := edit(before)
		if err != nil {
			return err
		}
		if len(text) >= maxNoteBytes {
			return fault.New("commit something, and put it there", "the note has more than %d bytes", maxNoteBytes)
		}
		blob, err := r.line(ctx, call{args: []string{"hash-object", "-w", "-t", "blob", "--no-filters",
			"--stdin"}, stdin: bytes.NewReader(text)})
		if err != nil {
			return err
		}
		entries = append(rest, noteEntry{commit: commit, blob: blob})
	}
	return moveNotes(ctx, r, ref, old, message, entries)
}

// moveNotes makes the entries the notes of a ref that is still at old.
func moveNotes(ctx context.Context, r *Repo, ref, old, message string, entries []noteEntry) error {
	tree, err := r.noteTree(ctx, entries)
	if err != nil {
		return err
	}
	var parents []string
	if old != "" {
		parents = []string{old}
	}
	made, err := r.commit(ctx, nil, tree, message, parents...)
	if err != nil {
		return err
	}
	from := cmp.Or(old, strings.Repeat("0", len(made)))
	c := call{args: []string{"update-ref", "--no-deref", ref, made, from}, env: ourIdentity()}
	_, err = r.inRepo(ctx, r.common, r.top, c)
	return err
}

// ErrNoteTooLong is given to the reader of a note that is too long to be read.
var ErrNoteTooLong = errors.New("the note has 1 MiB or more")

// ReadNotes hands each the notes under refs/notes/name of the commits that want names, one git for
// all. A note of 1 MiB or more is skipped and comes as ErrNoteTooLong. A commit can come twice: a
// tree can be made so that it has two notes.
func ReadNotes(ctx context.Context, r *Repo, name string, want func(commit string) bool,
	each func(commit string, text []byte, tooLong error) error) error {
	ref := notesRefs + name
	if err := checkRef(ref); err != nil {
		return fmt.Errorf("notes: %w", err)
	}
	_, entries, err := r.noteEntries(ctx, ref)
	if err != nil {
		return fmt.Errorf("notes: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e noteEntry) bool { return !want(e.commit) })
	blobs := make([]string, len(entries))
	for i, e := range entries {
		blobs[i] = e.blob
	}
	return r.eachObject(ctx, "blob", blobs, treeTime, func(i int, text []byte) error {
		if len(text) >= maxNoteBytes {
			return each(entries[i].commit, nil, ErrNoteTooLong)
		}
		return each(entries[i].commit, text, nil)
	})
}

// Notes returns the notes under refs/notes/name, by commit.
func (r *Repo) Notes(ctx context.Context, name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	all := func(string) bool { return true }
	err := ReadNotes(ctx, r, name, all, func(commit string, text []byte, tooLong error) error {
		out[commit] = text
		return tooLong
	})
	return out, err
}

// noteEntry is a note. Its path in the tree, with or without folders, is the commit's name once
// slashes are removed.
type noteEntry struct{ commit, blob string }

// noteEntries returns the commit of a notes ref, "" if there is none, with its notes.
func (r *Repo) noteEntries(ctx context.Context, ref string) (head string, entries []noteEntry, err error) {
	tip, err := r.TipOf(ctx, ref)
	if err != nil || tip.SHA == "" {
		return "", nil, err
	}
	files, err := r.Entries(ctx, tip.SHA)
	if err != nil {
		return "", nil, err
	}
	for _, f := range files {
		commit := strings.ReplaceAll(f.Path, "/", "")
		if f.Mode == ModeSubmodule || !IsName(commit) {
			continue // not a note
		}
		if entries = append(entries, noteEntry{commit, f.Object}); len(entries) > maxNotes {
			return "", nil, fmt.Errorf("more than %d notes", maxNotes)
		}
	}
	return tip.SHA, entries, nil
}

// noteTree creates the tree of notes in a single folder, which git reads too.
func (r *objects) noteTree(ctx context.Context, entries []noteEntry) (string, error) {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "100644 blob %s\t%s\x00", e.blob, e.commit)
	}
	return r.line(ctx, call{args: []string{"mktree", "-z"}, stdin: strings.NewReader(b.String())})
}
