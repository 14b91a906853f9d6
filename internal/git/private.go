package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

// maxSideFile limits a small file of a git folder: exclude, attributes, sparse-checkout, shallow.
const maxSideFile = 16 << 20

// Folder describes a launch's own git folder.
type Folder struct {
	Dir    string   // its path; missing or empty before
	Top    string   // the checkout that it is for
	Branch string   // full name of HEAD's branch; "" = detached
	Base   string   // HEAD's commit; "" = none yet
	Stores []string // the repo's object stores, by the paths that the folder's user sees
	Ignore []string // lines added to info/exclude
	Now    Named    // the repo's refs, from NamedBy for Top
	Spare  string   // a folder from MakeSpare to use if it exists; "" = none
}

// MakeFolder creates a git folder that borrows the repo's objects and copies all else: refs, plain
// settings, ignore rules, the index. Changes in it do not affect the repo.
func (r *Repo) MakeFolder(ctx context.Context, f Folder) error {
	if err := r.makeFolder(ctx, f); err != nil {
		return fmt.Errorf("git folder for %s: %w", f.Top, err)
	}
	return nil
}

func (r *Repo) makeFolder(ctx context.Context, f Folder) error {
	gitDir, top, err := r.gitDirOf(f.Top)
	if err != nil {
		return err
	}
	config, err := r.PlainConfig(ctx, top)
	if err != nil {
		return err
	}
	files := map[string][]byte{"config": config, "objects/info/alternates": []byte(strings.Join(f.Stores, "\n") + "\n")}
	head, refs := f.Base+"\n", f.Now.Refs
	switch {
	case f.Branch != "":
		head = "ref: " + f.Branch + "\n"
		refs = maps.Clone(refs)
		if delete(refs, f.Branch); f.Base != "" {
			refs[f.Branch] = f.Base
		}
	case f.Base == "":
		return fault.New("run git switch -c NAME", "HEAD has neither a branch nor a commit")
	}
	files["HEAD"], files["packed-refs"] = []byte(head), PackedRefs(refs)
	if err := r.sideFiles(files, gitDir, f.Ignore); err != nil {
		return err
	}
	l := laid{files: files}
	if l.index, l.of, err = statIndex(gitDir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.Dir), privateDir); err != nil {
		return err
	}
	has := r.takeSpare(f.Spare, f.Dir)
	if has.files == nil {
		if err := os.Mkdir(f.Dir, privateDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := layOut(f.Dir, has, files); err != nil {
		return err
	}
	r.likeNext(l)
	if !has.sameIndex(l) {
		if err := copyIndex(gitDir, f.Dir); err != nil {
			return err
		}
	}
	return r.matchIndex(ctx, f)
}

// sideFiles adds the other files that git reads, if they exist.
func (r *place) sideFiles(files map[string][]byte, gitDir string, ignore []string) error {
	for name, from := range map[string]string{
		"info/exclude": r.common, "info/attributes": r.common, "shallow": r.common, "info/sparse-checkout": gitDir,
	} {
		data, _, err := atomicfile.OpenRegular(from, filepath.FromSlash(name), maxSideFile)
		if err == nil {
			files[name] = data
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var b bytes.Buffer
	b.Write(files["info/exclude"])
	if n := b.Len(); n > 0 && b.Bytes()[n-1] != '\n' {
		b.WriteByte('\n')
	}
	for _, line := range ignore {
		b.WriteString(line + "\n")
	}
	files["info/exclude"] = b.Bytes()
	return nil
}

// sharedIndexes returns the files with the shared part of a split index; none if it is not split.
func sharedIndexes(gitDir string) ([]string, error) {
	return atomicfile.Glob(gitDir, "sharedindex.*")
}

// copyIndex copies a checkout's index, including the shared part of a split one.
func copyIndex(gitDir, dir string) error {
	shared, err := sharedIndexes(gitDir)
	for _, from := range append(shared, filepath.Join(gitDir, indexFile)) {
		err = errors.Join(err, copyFile(from, filepath.Join(dir, filepath.Base(from))))
	}
	return err
}

// matchIndex moves the copied index from the checkout's HEAD to the base. If it is missing or
// unreadable, it is created from the base.
func (r *Repo) matchIndex(ctx context.Context, f Folder) error {
	to, head := filepath.Join(f.Dir, indexFile), f.Now.Head
	_, err := os.Lstat(to)
	switch {
	case err == nil && head == f.Base:
		return nil
	case err == nil && r.FollowIndex(ctx, f.Dir, to, head, f.Base) == nil:
		return nil
	case f.Base == "":
		return nil
	}
	if err := ignoreGone(os.Remove(to)); err != nil {
		return err
	}
	_, err = r.shadow(ctx, call{args: []string{"read-tree", f.Base}, env: []string{"GIT_INDEX_FILE=" + to},
		timeout: treeTime})
	return err
}
