package tree

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/git"
	"sluice/internal/layout"
)

// Covered is what an attempt's digest is of.
type Covered struct {
	Root  []string `json:"root,omitempty"` // declared outputs in .workflow/, from the root
	Dir   string   `json:"dir"`
	Made  []string `json:"made,omitempty"` // the other declared outputs, from Dir
	Top   string   `json:"top,omitempty"`
	Files []string `json:"files,omitempty"` // changed files, from Top

	Key   string `json:"key,omitempty"` // of the check that took the work
	Found string `json:"found,omitempty"`
	Taken Taken  `json:"taken,omitzero"`
	Tree  string `json:"tree,omitempty"` // of the taken commit
	Was   string `json:"was,omitempty"`  // digest of the files above as they were in the folder when the check was over
}

// ID names what the attempt left: the commit, and behind it the digest of the files that do not ship. "" where nothing
// was taken: the folder is no git checkout.
func (c Covered) ID() string { return c.With(c.Taken.Commit) }

// With adds to the name of an object the digest of the files that do not ship.
func (c Covered) With(object string) string {
	t := c.Taken
	if object == "" || len(t.Beside)+len(t.Law)+len(t.Hidden) == 0 {
		return object
	}
	var b strings.Builder
	for _, f := range slices.Concat(t.Beside, t.Law, t.Hidden) {
		fmt.Fprintf(&b, "%s %q\n", f.Digest, f.Path)
	}
	return object + "+" + layout.HexSum([]byte(b.String()))[:16]
}

// Outside are the files below Top that are bound and in no tree.
func (c Covered) Outside() (files []string) {
	for _, f := range slices.Concat(c.Taken.Beside, c.Taken.Law, c.Taken.Hidden) {
		if !slices.Contains(c.Root, f.Path) {
			files = append(files, f.Path)
		}
	}
	return files
}

// CommitIn returns the commit that a digest names (covered.ID); "" where it names none.
func CommitIn(digest string) string {
	commit, _, _ := strings.Cut(digest, "+")
	if !git.IsName(commit) {
		return ""
	}
	return commit
}
