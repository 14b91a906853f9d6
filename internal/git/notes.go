package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sluice/internal/fault"
)

// notesRefs begins the names of refs with notes.
const notesRefs = "refs/notes/"

// Limits on notes.
const (
	maxNotes     = 10000
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
	for try := 0; ; try++ {
		err = r.addNote(ctx, ref, commit, text)
		var ce *CommandError
		if err == nil || try == noteTries || !errors.As(err, &ce) || ce.Command != "update-ref" {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("note on %.10s in %s: %w", commit, ref, err)
	}
	return commit, nil
}

// noteTries is how often AddNote retries after another process moved the ref.
const noteTries = 3

func (r *Repo) addNote(ctx context.Context, ref, commit string, text []byte) error {
	old, err := r.notesHead(ctx, ref)
	if err != nil {
		return err
	}
	entries, err := r.noteEntries(ctx, old)
	if err != nil {
		return err
	}
	var before []byte
	var rest []noteEntry
	for _, e := range entries {
		if e.commit != commit {
			rest = append(rest, e)
		} else if before, err = r.blob(ctx, e.blob); err != nil {
			return err
		}
	}
	if len(before) > 0 {
		text = slices.Concat(bytes.TrimRight(before, "\n"), []byte("\n\n"), text)
	}
	if len(text) > maxNoteBytes {
		return fault.New("commit something, and put it there", "the note has more than %d bytes", maxNoteBytes)
	}
	blob, err := r.object(ctx, call{args: []string{"hash-object", "-w", "-t", "blob", "--no-filters",
		"--stdin"}, stdin: bytes.NewReader(text)})
	if err != nil {
		return err
	}
	tree, err := r.noteTree(ctx, append(rest, noteEntry{commit: commit, blob: blob}))
	if err != nil {
		return err
	}
	args := []string{"commit-tree", "--no-gpg-sign", tree}
	if old != "" {
		args = append(args, "-p", old)
	}
	made, err := r.object(ctx, call{args: args, env: ourIdentity(), stdin: strings.NewReader("a signed checkpoint\n")})
	if err != nil {
		return err
	}
	from := old
	if from == "" {
		from = strings.Repeat("0", len(made))
	}
	_, err = r.inRepo(ctx, r.common, r.top,
		call{args: []string{"update-ref", "--no-deref", ref, made, from}, env: ourIdentity(),
			limit: smallOutput, timeout: callTime})
	return err
}

// Notes returns the notes under refs/notes/name, by commit.
func (r *Repo) Notes(ctx context.Context, name string) (map[string][]byte, error) {
	ref := notesRefs + name
	if err := checkRef(ref); err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	head, err := r.notesHead(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	entries, err := r.noteEntries(ctx, head)
	if err != nil {
		return nil, fmt.Errorf("notes: %w", err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.commit], err = r.blob(ctx, e.blob); err != nil {
			return nil, fmt.Errorf("notes: %w", err)
		}
	}
	return out, nil
}

// notesHead returns the commit of a notes ref, or "".
func (r *Repo) notesHead(ctx context.Context, ref string) (string, error) {
	tip, err := r.TipOf(ctx, ref)
	return tip.SHA, err
}

// noteEntry is a note. Its path in the tree, with or without folders, is the commit's name once
// slashes are removed.
type noteEntry struct{ commit, blob string }

func (r *Repo) noteEntries(ctx context.Context, head string) ([]noteEntry, error) {
	if head == "" {
		return nil, nil
	}
	out, err := r.shadow(ctx, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", head},
		limit: listOutput, timeout: callTime})
	if err != nil {
		return nil, err
	}
	var entries []noteEntry
	for _, line := range strings.Split(string(out), "\x00") {
		meta, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		commit := strings.ReplaceAll(path.Clean(name), "/", "")
		if !ok || len(f) != 3 || f[1] != "blob" || checkSHA(f[2]) != nil || checkSHA(commit) != nil {
			continue // not a note
		}
		if entries = append(entries, noteEntry{commit, f[2]}); len(entries) > maxNotes {
			return nil, fmt.Errorf("more than %d notes", maxNotes)
		}
	}
	return entries, nil
}

// noteTree creates the tree of notes in a single folder, which git reads too.
func (r *Repo) noteTree(ctx context.Context, entries []noteEntry) (string, error) {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "100644 blob %s\t%s\x00", e.blob, e.commit)
	}
	return r.object(ctx, call{args: []string{"mktree", "-z"}, stdin: strings.NewReader(b.String())})
}

// object creates an object and returns its name.
func (r *Repo) object(ctx context.Context, c call) (string, error) {
	c.limit, c.timeout = smallOutput, callTime
	out, err := r.shadow(ctx, c)
	if err != nil {
		return "", err
	}
	sha := strings.TrimSpace(string(out))
	return sha, checkSHA(sha)
}

// blob reads a blob of at most maxNoteBytes.
func (r *Repo) blob(ctx context.Context, sha string) ([]byte, error) {
	return r.shadow(ctx, call{args: []string{"cat-file", "blob", sha}, limit: maxNoteBytes, timeout: callTime})
}
