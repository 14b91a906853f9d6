package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
)

// maxSideFile bounds a small file of a git folder: exclude, attributes, sparse-checkout, shallow.
const maxSideFile = 16 << 20

// Folder is what a git folder of a launch's own is made of.
type Folder struct {
	Dir    string   // where it is made; its parent is there
	Top    string   // the checkout that it is for
	Branch string   // full name of the branch that HEAD is on; "" = detached
	Base   string   // the commit that HEAD is at; "" = none yet
	Stores []string // where the object stores of the repo are seen by who uses the folder
	Ignore []string // lines that are added to info/exclude
}

// MakeFolder makes a git folder that borrows the repo's objects and has copies of all else: refs, plain settings, ignore
// rules, the index. What is done in it changes nothing in the repo. A folder that is there must be empty.
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
	now, err := r.NamedBy(ctx, top)
	if err != nil {
		return err
	}
	config, err := r.PlainConfig(ctx, top)
	if err != nil {
		return err
	}
	for _, d := range []string{"objects", "objects/info", "refs", "info"} { // git makes the others when it needs them
		if err := os.Mkdir(filepath.Join(f.Dir, filepath.FromSlash(d)), privateDir); err != nil {
			return err
		}
	}
	files := map[string][]byte{"config": config, "objects/info/alternates": []byte(strings.Join(f.Stores, "\n") + "\n")}
	head := f.Base + "\n"
	switch {
	case f.Branch != "":
		head = "ref: " + f.Branch + "\n"
		if delete(now.Refs, f.Branch); f.Base != "" {
			now.Refs[f.Branch] = f.Base
		}
	case f.Base == "":
		return errors.New("HEAD is at no branch and at no commit: run git switch -c NAME")
	}
	files["HEAD"], files["packed-refs"] = []byte(head), PackedRefs(now.Refs)
	if err := r.sideFiles(files, gitDir, f.Ignore); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(f.Dir, filepath.FromSlash(name)), data, privateOwn); err != nil {
			return err
		}
	}
	return r.copyIndex(ctx, gitDir, f, now.Head)
}

// sideFiles adds what git reads beside refs and settings, where it is there.
func (r *Repo) sideFiles(files map[string][]byte, gitDir string, ignore []string) error {
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

// copyIndex copies the checkout's index, and has it follow from the checkout's HEAD to the base. One that git cannot read,
// or that is missing, is made of the base.
func (r *Repo) copyIndex(ctx context.Context, gitDir string, f Folder, head string) error {
	to := filepath.Join(f.Dir, "index")
	shared, err := filepath.Glob(filepath.Join(gitDir, "sharedindex.*"))
	for _, from := range append(shared, filepath.Join(gitDir, "index")) {
		err = errors.Join(err, copyFile(from, filepath.Join(f.Dir, filepath.Base(from))))
	}
	if err != nil {
		return err
	}
	_, err = os.Lstat(to)
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
	_, err = r.shadow(ctx, call{args: []string{"read-tree", f.Base}, env: []string{"GIT_INDEX_FILE=" + to}, limit: smallOutput, timeout: treeTime})
	return err
}

// IgnorePath is a line of an exclude file that names one folder, from the checkout's top level.
func IgnorePath(rel string) string {
	return "/" + strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `).Replace(filepath.ToSlash(rel)) + "/"
}
