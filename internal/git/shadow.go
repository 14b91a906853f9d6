package git

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/internal/atomicfile"
)

// The shadow is our own git folder, outside the repo, that borrows the repo's objects. Git run in
// it reads our configuration and never the repo's, so no filter, diff driver, hook, monitor,
// signing program or promisor remote is defined, whatever attributes and objects say. It has no
// refs: calls name objects. Its indexes, one per worktree, are ours too: an agent's index can hide
// a change (update-index --assume-unchanged).

const (
	shadowName = "shadow.git"
	indexName  = "index"
	listMark   = "list-" // begins the names of indexes of a few paths
	privateDir = 0o700
	privateOwn = 0o600
)

// shadowGit runs git in the shadow. It needs no ref of the repo.
type shadowGit struct {
	*place
	mu      sync.Mutex
	scratch string // folder of the shadow; if private, "" until first needed. Read it after keepShadow
	private bool   // we remove the scratch folder
	made    bool   // the shadow was made or repaired by this process
	locks   Locks  // of the private indexes, by worktree
}

func (r *shadowGit) shadowDir() string { return filepath.Join(r.scratch, shadowName) }

// makeShadow creates the shadow, or repairs an existing one.
func (r *shadowGit) makeShadow(ctx context.Context) error {
	if !r.plain {
		if _, err := r.accept(ctx); err != nil {
			return err
		}
	}
	dir := r.shadowDir()
	for _, d := range []string{filepath.Join(dir, "refs"), filepath.Join(dir, "objects"),
		filepath.Join(r.scratch, indexName)} {
		if err := os.MkdirAll(d, privateDir); err != nil {
			return err
		}
	}
	config, err := r.shadowConfig(ctx)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, "config"), config, privateOwn); err != nil {
		return err
	}
	for _, pattern := range []string{indexName + "/*.lock", listMark + "*", "rules-*", "beside-*", "exclude-*"} {
		left, err := atomicfile.Glob(r.scratch, pattern)
		for _, l := range left { // by a killed process: the scratch folder has one user at a time
			err = errors.Join(err, os.RemoveAll(l))
		}
		if err != nil {
			return err
		}
	}
	// HEAD last, because keepShadow looks for it.
	err = atomicfile.Write(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), privateOwn)
	r.made = err == nil
	return err
}

// keepShadow creates the shadow at first use, and again after something cleaned the temporary folder.
func (r *shadowGit) keepShadow(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scratch == "" {
		dir, err := os.MkdirTemp("", scratchPrefix)
		if err != nil {
			return err
		}
		r.scratch, r.private = dir, true
	}
	if r.made {
		if _, err := os.Lstat(filepath.Join(r.shadowDir(), "HEAD")); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return r.makeShadow(ctx)
}

const (
	scratchPrefix = "sluice-git-"
	// scratchStale is the age from which a scratch folder counts as left by a killed process.
	scratchStale = 24 * time.Hour
	maxSwept     = 100    // scratch folders that one sweep removes
	maxLooked    = 10_000 // names of the temporary folder that it looks at
)

// SweepScratch removes this user's private scratch folders in dir ("" = the temporary folder) that
// killed processes left at least a day ago.
func SweepScratch(dir string, now time.Time) error {
	dir = cmp.Or(dir, os.TempDir())
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxLooked)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	swept := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), scratchPrefix) || !e.IsDir() {
			continue
		}
		info, ierr := e.Info()
		if ierr != nil || now.Sub(info.ModTime()) < scratchStale || !mine(info) {
			continue
		}
		if swept++; swept > maxSwept {
			break
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// shadowConfig copies the settings for comparing files on this file system. They are booleans and
// fixed words, which cannot name a program.
func (r *shadowGit) shadowConfig(ctx context.Context) ([]byte, error) {
	var b bytes.Buffer
	version := 0
	if r.format != "sha1" {
		version = 1
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n", version)
	own, err := r.settings(ctx, filepath.Join(r.common, "config"))
	if err != nil {
		return nil, fmt.Errorf("settings of the repo: %w", err)
	}
	for _, s := range own { // git takes the last of a key
		switch key := strings.TrimPrefix(s.Key, "core."); key {
		case "filemode", "symlinks", "ignorecase", "precomposeunicode", "autocrlf":
			if key != s.Key && slices.Contains([]string{"true", "false", "input"}, s.Value) {
				fmt.Fprintf(&b, "\t%s = %s\n", key, s.Value)
			}
		}
	}
	b.WriteString("[index]\n\tversion = 2\n") // package index reads it
	if r.format != "sha1" {
		fmt.Fprintf(&b, "[extensions]\n\tobjectformat = %s\n", r.format)
	}
	return b.Bytes(), nil
}

// inShadow returns the environment of a call that only needs objects.
func (r *shadowGit) inShadow() []string {
	env := []string{"GIT_DIR=" + r.shadowDir(), "GIT_OBJECT_DIRECTORY=" + filepath.Join(r.common, "objects")}
	if file := r.shallow(); file != "" {
		env = append(env, "GIT_SHALLOW_FILE="+file)
	}
	return env
}

// shallow returns the file that names where the history of a shallow clone begins; "" = the clone is whole.
func (r *place) shallow() string {
	file := filepath.Join(r.common, "shallow")
	if _, err := os.Lstat(file); err != nil {
		return ""
	}
	return file
}

// inShadowTree returns the environment of a call that compares the worktree at top with objects.
func (r *shadowGit) inShadowTree(top, index string) []string {
	return append(r.inShadow(), "GIT_WORK_TREE="+top, "GIT_INDEX_FILE="+index)
}

// privateIndex returns our index of the worktree at top.
func (r *shadowGit) privateIndex(top string) string {
	sum := sha256.Sum256([]byte(top))
	return filepath.Join(r.scratch, indexName, hex.EncodeToString(sum[:8]))
}

// Forget removes the indexes of worktrees that are gone.
func (r *shadowGit) Forget() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.locks.mu.Lock() // nobody begins to use one meanwhile
	defer r.locks.mu.Unlock()
	if r.scratch == "" {
		return nil
	}
	dir := filepath.Join(r.scratch, indexName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	linked, err := r.Linked()
	if err != nil {
		return err
	}
	stays := map[string]bool{}
	for _, top := range slices.AppendSeq(append(linked, r.top, filepath.Dir(r.common)), maps.Keys(r.locks.of)) { // in use
		stays[filepath.Base(r.privateIndex(top))] = true
	}
	for _, e := range entries {
		if name, _, _ := strings.Cut(e.Name(), "."); !stays[name] {
			err = errors.Join(err, ignoreGone(os.Remove(filepath.Join(dir, e.Name()))))
		}
	}
	return err
}

// shadow runs a call in the shadow.
func (r *shadowGit) shadow(ctx context.Context, c call) ([]byte, error) {
	if err := r.intoShadow(ctx, &c); err != nil {
		return nil, err
	}
	return r.run(ctx, c)
}

// streamShadow is shadow for long output.
func (r *shadowGit) streamShadow(ctx context.Context, c call, read func(io.Reader) error) error {
	if err := r.intoShadow(ctx, &c); err != nil {
		return err
	}
	return r.stream(ctx, c, read)
}

func (r *shadowGit) intoShadow(ctx context.Context, c *call) error {
	if err := r.keepShadow(ctx); err != nil {
		return err
	}
	c.env = append(r.inShadow(), c.env...)
	return nil
}
