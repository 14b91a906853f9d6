package tree

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/git"
	"sluice/internal/layout"
)

// Covered is what an attempt's digest covers.
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
	Was   string `json:"was,omitempty"`  // digest of the files above in the folder after the check
}

// ID names an attempt's result: the commit and the digest of the files that do not ship. It is ""
// if nothing was taken because the folder is not a git checkout.
func (c Covered) ID() string { return c.With(c.Taken.Commit) }

// With appends to an object's name the digest of the files that do not ship.
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

// Outside returns the files below Top that are bound to answers but in no tree.
func (c Covered) Outside() (files []string) {
	for _, f := range slices.Concat(c.Taken.Beside, c.Taken.Law, c.Taken.Hidden) {
		if !slices.Contains(c.Root, f.Path) {
			files = append(files, f.Path)
		}
	}
	return files
}

// CommitIn returns the commit in a digest from Covered.ID, or "".
func CommitIn(digest string) string {
	commit, _, _ := strings.Cut(digest, "+")
	if !git.IsName(commit) {
		return ""
	}
	return commit
}
