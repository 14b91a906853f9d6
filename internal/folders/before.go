package folders

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"sluice/gates"
	"sluice/internal/git"
	"sluice/internal/shells"
)

// Limits on what is read of a tree and kept.
const (
	maxLinks        = 1000
	maxImporting    = 1000      // files that may import others
	maxInstructions = 256 << 10 // bytes of each
)

// lawBefore is what a tree adds to a law.
type lawBefore struct {
	links    map[string]string // each with the object that says where it leads
	imported []string          // what its instructions have agents' programs read
	unread   []string          // why they may have more read
	turn     gates.Turn
}

// before adds to a law what instructions import in a commit and what its programs start in turn there, and returns the
// commit's links.
func (x *ground) before(ctx context.Context, l *gates.Law, commit string) (out lawBefore, err error) {
	out.links = map[string]string{}
	if commit == "" {
		return out, nil
	}
	at, err := x.opt.Git.TreeOf(ctx, commit)
	if err != nil {
		return out, err
	}
	key := at + " " + l.Commands()
	if kept, ok := x.lawBefore.Get(key); ok { // all attempts of a run are compared with the same
		l.Read(kept.imported, kept.unread...)
		l.Add(kept.turn)
		return kept, nil
	}
	entries, err := x.opt.Git.Entries(ctx, commit)
	if err != nil {
		return out, err
	}
	var instructions, packages []string
	for _, e := range entries {
		switch {
		case e.Mode == git.ModeLink:
			out.links[e.Path] = e.Object
		case gates.Instructs(e.Path):
			instructions = append(instructions, e.Path)
		case path.Base(e.Path) == "package.json" && !strings.Contains(e.Path, "node_modules/"):
			packages = append(packages, e.Path)
		}
	}
	if len(instructions) > 0 || l.Commands() != "" { // else nothing leads on, in a tree of many files
		files := objectsOf(entries)
		if out.imported, out.unread, err = x.imported(ctx, files, instructions); err != nil {
			return out, err
		}
		l.Read(out.imported, out.unread...)
		out.turn, err = x.inTurn(ctx, l, files, out.links, packages)
	}
	if err == nil && len(out.links) <= maxLinks {
		x.lawBefore.Put(key, out)
	}
	return out, err
}

// objectsOf returns the objects of regular files.
func objectsOf(entries []git.Entry) map[string]string {
	files := map[string]string{}
	for _, e := range entries {
		if e.Mode != git.ModeLink && e.Mode != git.ModeSubmodule {
			files[e.Path] = e.Object
		}
	}
	return files
}

// inTurn adds to a law what its programs start in turn among the files and links of a tree.
func (x *ground) inTurn(ctx context.Context, l *gates.Law, files, links map[string]string,
	packages []string) (gates.Turn, error) {
	return l.InTurn(func(file string) (string, bool, error) {
		at, err := x.behind(ctx, links, file)
		if err != nil || files[at] == "" {
			return "", false, err
		}
		text, err := git.BlobStart(ctx, x.opt.Git, files[at], shells.MaxFile)
		return string(text), true, err
	}, packages...)
}

// imported returns what instructions among files, next, have agents' programs read, and why that may be more.
func (x *ground) imported(ctx context.Context, files map[string]string,
	next []string) (all, unread []string, err error) {
	seen := map[string]bool{}
	for ; len(next) > 0; next = next[1:] {
		file := next[0]
		if seen[file] || files[file] == "" {
			continue
		}
		if len(seen) == maxImporting {
			return all, append(unread, fmt.Sprintf("more than %d files of instructions", maxImporting)), nil
		}
		seen[file] = true
		text, err := git.BlobStart(ctx, x.opt.Git, files[file], maxInstructions)
		if err != nil {
			return nil, nil, err
		}
		if len(text) == maxInstructions && bytes.IndexByte(text, 0) < 0 { // a program, such as a hook's, imports nothing
			unread = append(unread, fmt.Sprintf("what %s imports after %d bytes", file, maxInstructions))
		}
		more := gates.Imports(file, string(text))
		all, next = append(all, more...), append(next, more...)
	}
	return all, unread, nil
}

// behind returns where a file is if links of its tree lead to it. One behind more than [gates.MaxHops] is nowhere.
func (x *ground) behind(ctx context.Context, links map[string]string, file string) (string, error) {
	for hop, i := 0, 0; i < len(file); i++ {
		end := len(file)
		if n := strings.IndexByte(file[i:], '/'); n >= 0 {
			end = i + n
		}
		if i = end; links[file[:end]] == "" {
			continue
		}
		written, err := git.BlobStart(ctx, x.opt.Git, links[file[:end]], maxLink)
		if hop++; err != nil || hop > gates.MaxHops {
			return "", err
		}
		file, i = path.Join(path.Dir(file[:end]), string(written), file[end:]), -1
	}
	return file, nil
}
