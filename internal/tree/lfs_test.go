package tree

import (
	"strings"
	"testing"
)

// TestNamesLFS: a file counts as a pointer if Git LFS itself would read it as one, however it is
// written; a text about pointers, which must not require git-lfs, does not.
func TestNamesLFS(t *testing.T) {
	const v1, size = "version https://git-lfs.github.com/spec/v1\n", "size 12345\n"
	oid := "oid sha256:" + strings.Repeat("4d", 32) + "\n"
	for name, c := range map[string]struct {
		text string
		is   bool
	}{
		"a pointer":             {v1 + oid + size, true},
		"of an extension":       {v1 + "ext-0-foo sha256:" + strings.Repeat("ab", 32) + "\n" + oid + size, true},
		"without its last end":  {v1 + oid + "size 0", true},
		"with ends of Windows":  {strings.ReplaceAll(v1+oid+size, "\n", "\r\n"), true},
		"with blanks around":    {"\n " + v1 + "\n" + oid + size + "\n\n", true},
		"of hawser":             {"version https://hawser.github.com/spec/v1\n" + oid + size, true},
		"of git-media":          {"version http://git-media.io/v/2\n" + oid + size, true},
		"of a later spec":       {"version https://git-lfs.github.com/spec/v2\nhash sha3\n", true},
		"nearly too long":       {v1 + oid + size + strings.Repeat("\n", 1023-len(v1+oid+size)), true},
		"too long":              {v1 + oid + size + strings.Repeat("\n", 1024-len(v1+oid+size)), false},
		"told of":               {"A pointer begins so:\n" + v1 + oid + size, false},
		"its first line":        {v1, false},
		"and more":              {v1 + oid + size + "more of it\n", false},
		"in another order":      {v1 + size + oid, false},
		"of another digest":     {v1 + "oid md5:" + strings.Repeat("4d", 16) + "\n" + size, false},
		"of a cut digest":       {v1 + "oid sha256:4d\n" + size, false},
		"of no size":            {v1 + oid + "size many\n", false},
		"of less than nothing":  {v1 + oid + "size -1\n", false},
		"as attributes have it": {"*.bin filter=lfs diff=lfs merge=lfs -text\n", false},
		"after a large file":    {strings.Repeat("x", 5000), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			base := r.run("rev-parse", "HEAD")
			r.write("b.txt", "another that is long enough to be a pointer and is none\n"+name)
			r.write("c.bin", c.text)
			r.run("add", "-A")
			r.run("commit", "-qm", "work")
			r.run("rm", "-q", "c.bin") // it stays in the history
			r.run("commit", "-qm", "removed again")
			is, err := r.git.AnySmall(t.Context(), base, r.run("rev-parse", "HEAD"), maxPointer, isPointer)
			if err != nil || is != c.is {
				t.Errorf("%v %v", is, err)
			}
		})
	}
}
