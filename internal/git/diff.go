package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/internal/atomicfile"
)

// maxNewFileBytes limits the size of a new file shown in a diff; a larger one is only named.
const maxNewFileBytes = 1 << 20

// Diff returns the differences between the commit base ("" = HEAD) and the files of the worktree as
// a readable patch: committed since, uncommitted, and new files that are not ignored. It returns at
// most maxBytes; cut reports that there is more. No filter or diff driver runs, and neither an
// attribute nor a NUL hides content.
func (r *Repo) Diff(ctx context.Context, worktree, base string, maxBytes int64,
	look Look) (text []byte, cut bool, err error) {
	t, err := r.openTree(ctx, worktree, base)
	if err != nil {
		return nil, false, fmt.Errorf("diff of %s: %w", worktree, err)
	}
	defer t.unlock()
	args := look.patch([]string{"diff-index", "--ignore-submodules=dirty"}, t.base)
	text, err = r.run(ctx, call{args: args, env: t.env, dir: t.top, limit: maxBytes + 1, timeout: treeTime})
	if err != nil && !errors.Is(err, ErrOutput) {
		return nil, false, fmt.Errorf("diff of %s: %w", worktree, err)
	}
	if err == nil {
		names, err := t.untracked(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("diff of %s: %w", worktree, err)
		}
		b := bytes.NewBuffer(text)
		for _, name := range names {
			if int64(b.Len()) > maxBytes {
				break
			}
			if !look.at(name) {
				continue
			}
			if err := newFile(b, t.top, name); err != nil {
				return nil, false, fmt.Errorf("diff of %s: %w", worktree, err)
			}
		}
		text = b.Bytes()
	}
	if int64(len(text)) > maxBytes {
		return text[:maxBytes], true, nil
	}
	return text, err != nil, nil
}

// Look is what a patch shows of the differences.
type Look struct {
	Paths []string // only these files and folders, from the top; none = all
	Bare  bool     // no lines around a change
}

// patch returns the arguments by which a comparison of commits prints the patch, without any filter or driver.
func (l Look) patch(comparison []string, commits ...string) []string {
	args := append(comparison, "-p", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv", "--text",
		"--src-prefix=a/", "--dst-prefix=b/")
	if l.Bare {
		args = append(args, "--unified=0")
	}
	return slices.Concat(args, commits, []string{"--"}, l.Paths)
}

// at reports whether the file is shown.
func (l Look) at(name string) bool {
	return len(l.Paths) == 0 || slices.Contains(l.Paths, ".") || Within(l.Paths, name)
}

// Within reports whether a file is one of the files and folders, or is in one.
func Within(paths []string, file string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return file == p || strings.HasPrefix(file, p+"/") })
}

// newFile writes a file that is in no tree as a patch that creates it.
func newFile(b *bytes.Buffer, top, name string) error {
	data, st, err := atomicfile.OpenRegular(top, filepath.FromSlash(name), maxNewFileBytes)
	mode, shown := "100644", quoted(name)
	fmt.Fprintf(b, "diff --git %s %s\n", quoted("a/"+name), quoted("b/"+name))
	switch {
	case errors.Is(err, atomicfile.ErrTooLarge):
		fmt.Fprintf(b, "new file mode %s\n%s: %d bytes, not shown\n", mode, shown, st.Size)
		return nil
	case errors.Is(err, atomicfile.ErrNotRegular) && st.Mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(filepath.Join(top, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		mode, data = "120000", []byte(target)
	case errors.Is(err, atomicfile.ErrNotRegular):
		fmt.Fprintf(b, "%s: %s\n", shown, st.Mode.Type())
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		fmt.Fprintf(b, "%s: cannot be read\n", shown)
		return nil
	case err != nil:
		return err
	case st.Mode&0o111 != 0:
		mode = "100755"
	}
	fmt.Fprintf(b, "new file mode %s\n", mode)
	if len(data) == 0 {
		return nil
	}
	lines := bytes.Count(data, []byte("\n"))
	ended := data[len(data)-1] == '\n'
	if !ended {
		lines++
	}
	fmt.Fprintf(b, "--- /dev/null\n+++ %s\n@@ -0,0 +1,%d @@\n", quoted("b/"+name), lines)
	for line := range bytes.Lines(data) {
		b.WriteByte('+')
		b.Write(line)
	}
	if !ended {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return nil
}

// quoted writes a name as git does: in quotes if any byte is ambiguous.
func quoted(name string) string {
	const short = "\a\b\t\n\v\f\r\"\\"
	var b strings.Builder
	for _, c := range []byte(name) {
		at := strings.IndexByte(short, c)
		switch {
		case at >= 0:
			b.WriteString(`\` + string(`abtnvfr"\`[at]))
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(name) {
		return name
	}
	return `"` + b.String() + `"`
}
