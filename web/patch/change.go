package patch

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the facts of a file.
const (
	maxHead  = 10_000 // bytes of a line of its head
	maxNotes = 20
	maxNote  = 200 // bytes
	maxName  = 400 // bytes of a name in a page
)

// Change is what a diff says of a file besides its lines. Its texts are foreign.
type Change struct {
	N              int    // its number in the diff, from 1
	Path           string // "" in a diff without file names
	Old            string // its path before, if the diff names one
	Added, Removed int    // lines
	Hunks          int
	New, Deleted   bool
	Binary         bool   // git shows no lines
	OldBlob, Blob  string // abbreviated object names; all zeros = no file
	OldMode, Mode  string // as in 100644; "" = not told
	Notes          []string
	Unnoted        int // further lines of the head
}

func (c *Change) count(kind byte) {
	switch kind {
	case '+':
		c.Added++
	case '-':
		c.Removed++
	}
}

// head takes a line of the file's head. What it does not know is a note.
func (c *Change) head(line string) {
	word := func(prefix string) (string, bool) { return strings.CutPrefix(line, prefix) }
	if line == "" || hasAny(line, "--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ",
		"similarity index ", "dissimilarity index ") {
		return
	}
	if rest, ok := word("index "); ok {
		blobs, mode, has := strings.Cut(rest, " ")
		c.OldBlob, c.Blob, _ = strings.Cut(blobs, "..")
		if has && c.Mode == "" {
			c.OldMode, c.Mode = mode, mode
		}
		return
	}
	if mode, ok := word("new file mode "); ok {
		c.New, c.Mode = true, mode
		return
	}
	if mode, ok := word("deleted file mode "); ok {
		c.Deleted, c.OldMode = true, mode
		return
	}
	if mode, ok := word("old mode "); ok {
		c.OldMode = mode
		return
	}
	if mode, ok := word("new mode "); ok {
		c.Mode = mode
		return
	}
	if strings.HasPrefix(line, "Binary files ") || line == "GIT binary patch" {
		c.Binary = true
		return
	}
	if len(c.Notes) == maxNotes || c.Binary {
		c.Unnoted++
		return
	}
	c.Notes = append(c.Notes, string(clip([]byte(line), maxNote)))
}

func hasAny(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// Facts returns what people should know of the file besides its lines, each in a few words. Some of
// them are foreign text.
func (c *Change) Facts() (out []string) {
	if c.Old != "" && c.Old != c.Path && !c.New {
		out = append(out, "was "+c.Old)
	}
	switch {
	case c.New:
		out = append(out, "new "+kindOf(c.Mode))
	case c.Deleted:
		out = append(out, "deleted "+kindOf(c.OldMode))
	case c.OldMode != c.Mode:
		out = append(out, fmt.Sprintf("mode %s → %s (%s)", c.OldMode, c.Mode, kindOf(c.Mode)))
	case kindOf(c.Mode) != "file":
		out = append(out, kindOf(c.Mode))
	}
	if c.Binary {
		out = append(out, "binary: git shows no lines")
	}
	out = append(out, c.Notes...)
	if c.Unnoted > 0 {
		out = append(out, fmt.Sprintf("%d further lines of git's are not shown", c.Unnoted))
	}
	return out
}

func kindOf(mode string) string {
	switch mode {
	case "100755":
		return "executable file"
	case "120000":
		return "symbolic link"
	case "160000":
		return "submodule"
	}
	return "file"
}
