package gates

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/layout"
	"sluice/internal/text"
)

// Limits of file searches.
const (
	MaxFound    = 1000    // files found by one list of patterns
	maxPatterns = 200     // patterns in a list
	maxLooked   = 200_000 // names visited per pattern
	maxPath     = 4096    // bytes
)

// errLeaves reports a path that leads out of the repo.
var errLeaves = errors.New("leads out of the repo")

// ground is where paths of the spec are looked up. Both folders are real paths.
type ground struct {
	root, worktree string
	shown          string // the worktree's name for people; "" = itself
}

// newGround takes the repo's root and the step's worktree ("" = the root).
func newGround(root, worktree string) (ground, error) {
	r, err := filepath.EvalSymlinks(root)
	if err != nil {
		return ground{}, fmt.Errorf("the repo's root: %w", err)
	}
	w := r
	if worktree != "" {
		if !filepath.IsAbs(worktree) {
			worktree = filepath.Join(r, worktree)
		}
		if w, err = filepath.EvalSymlinks(worktree); err != nil {
			return ground{}, fmt.Errorf("the worktree: %w", err)
		}
	}
	return ground{root: r, worktree: w}, nil
}

// place describes to people where a path was looked for.
func (g ground) place(base string) string {
	if g.shown != "" && base == g.worktree {
		base = g.shown
	}
	if base == g.root {
		return "the root of the repo"
	}
	if rel, inside := layout.Rel(g.root, base); inside {
		return rel + "/"
	}
	return base
}

// base returns the folder that a step's path is relative to.
func (g ground) base(p string) string {
	if layout.IsState(p) {
		return g.root
	}
	return g.worktree
}

// stat stats p below base. It follows links that stay in the root or the worktree.
func (g ground) stat(base, p string) (fs.FileInfo, error) {
	if err := checkPath(p); err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(filepath.Join(base, filepath.FromSlash(p)))
	if err != nil {
		return nil, g.dangling(base, p, err)
	}
	if !layout.Inside(g.root, real) && !layout.Inside(g.worktree, real) {
		return nil, fmt.Errorf("%s: %w through a link", text.RevealLine(p, maxLabel*2), errLeaves)
	}
	return os.Lstat(real)
}

// dangling reports a dangling link out of the repo as leading out rather than as missing, so that
// it does not reveal whether its target exists.
func (g ground) dangling(base, p string, err error) error {
	target, linkErr := os.Readlink(filepath.Join(base, filepath.FromSlash(p)))
	if linkErr == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(base, filepath.Dir(filepath.FromSlash(p)), target)
		}
		if !layout.Inside(g.root, target) && !layout.Inside(g.worktree, target) {
			return fmt.Errorf("%s: %w through a link", text.RevealLine(p, maxLabel*2), errLeaves)
		}
	}
	return err
}

func checkPath(p string) error {
	switch {
	case p == "" || len(p) > maxPath || strings.ContainsRune(p, 0):
		return fmt.Errorf("%q: no path: name a file of the repo", text.RevealLine(p, maxLabel))
	case !filepath.IsLocal(filepath.FromSlash(p)):
		return fmt.Errorf("%s: %w: name a file below its root", text.RevealLine(p, maxLabel*2), errLeaves)
	}
	return nil
}

// Expand finds the files that a step's inputs name: paths, or globs with *, ?, […] and **. It
// searches the worktree ("" = the root), then the root; for .workflow/ only the root. found has
// paths relative to the worktree, sorted within each pattern, without duplicates; missing has the
// plain paths that do not exist. A glob may match nothing. A pattern that leaves the repo, also by
// a link, and more than MaxFound files are errors.
func Expand(root, worktree string, patterns []string) (found, missing []string, err error) {
	g, err := newGround(root, worktree)
	if err != nil {
		return nil, nil, err
	}
	if len(patterns) > maxPatterns {
		return nil, nil, fmt.Errorf("inputs: more than %d: name fewer", maxPatterns)
	}
	seen := map[string]bool{}
	for _, pattern := range patterns {
		names, plain, err := g.expand(pattern)
		if err != nil {
			return nil, nil, fmt.Errorf("input %w", err)
		}
		if plain && len(names) == 0 {
			missing = append(missing, pattern)
		}
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				found = append(found, n)
			}
		}
		if len(found) > MaxFound {
			return nil, nil, fmt.Errorf("inputs: more than %d files: name fewer", MaxFound)
		}
	}
	return found, missing, nil
}

func isGlob(p string) bool { return strings.ContainsAny(p, "*?[") }

// expand finds what one pattern names, relative to the worktree; plain means a path, not a glob.
func (g ground) expand(pattern string) (names []string, plain bool, err error) {
	if err := checkPath(pattern); err != nil {
		return nil, false, err
	}
	pattern = path.Clean(filepath.ToSlash(pattern)) // a * before a .. is none
	bases := []string{g.worktree, g.root}
	if layout.IsState(pattern) || g.worktree == g.root {
		bases = bases[1:]
	}
	plain = true
	for _, base := range bases {
		info, err := g.stat(base, pattern)
		if errors.Is(err, errLeaves) {
			return nil, plain, err
		}
		if err == nil && (info.Mode().IsRegular() || info.IsDir()) {
			return []string{g.fromWorktree(base, pattern)}, plain, nil
		}
	}
	if !isGlob(pattern) {
		return nil, plain, nil
	}
	for _, base := range bases {
		matches, err := g.glob(base, pattern)
		if err != nil {
			return nil, false, err
		}
		if len(matches) > 0 {
			slices.Sort(matches)
			for _, m := range matches {
				names = append(names, g.fromWorktree(base, m))
			}
			return names, false, nil
		}
	}
	return nil, false, nil
}

func (g ground) fromWorktree(base, p string) string {
	rel, err := filepath.Rel(g.worktree, filepath.Join(base, filepath.FromSlash(p)))
	if err != nil {
		return filepath.Join(base, p)
	}
	return filepath.ToSlash(rel)
}

// glob walks the folder before the pattern's first wildcard. It does not enter links to folders.
func (g ground) glob(base, pattern string) ([]string, error) {
	parts := strings.Split(pattern, "/")
	fixed := slices.IndexFunc(parts, isGlob)
	start := path.Join(parts[:fixed]...)
	if info, err := g.stat(base, cmp.Or(start, ".")); err != nil || !info.IsDir() {
		if errors.Is(err, errLeaves) {
			return nil, err
		}
		return nil, nil
	}
	for _, part := range parts[fixed:] {
		if _, err := path.Match(part, ""); err != nil {
			return nil, fmt.Errorf("%s: a broken glob: close its [", text.RevealLine(pattern, maxLabel))
		}
	}
	top, err := filepath.EvalSymlinks(filepath.Join(base, filepath.FromSlash(start)))
	if err != nil {
		return nil, nil // removed in the meantime
	}
	var found []string
	looked := 0
	err = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return fmt.Errorf("%s: more than %d files to look at: name a folder before the *",
				text.RevealLine(pattern, maxLabel), maxLooked)
		}
		if err != nil || p == top {
			return nil // what cannot be read counts as missing
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		names := strings.Split(filepath.ToSlash(rel), "/")
		if d.IsDir() && len(names) >= len(parts[fixed:]) && !slices.Contains(parts[fixed:], "**") {
			return fs.SkipDir // a folder as deep as the pattern: nothing in it can match
		}
		if !matched(parts[fixed:], names)[len(names)] {
			return nil
		}
		full := path.Join(start, filepath.ToSlash(rel))
		info, err := g.stat(base, full)
		if errors.Is(err, errLeaves) {
			return err
		}
		if err == nil && info.Mode().IsRegular() {
			found = append(found, full)
		}
		if len(found) > MaxFound {
			return fmt.Errorf("%s: more than %d files: narrow it", text.RevealLine(pattern, maxLabel), MaxFound)
		}
		return nil
	})
	return found, err
}
