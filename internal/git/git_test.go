package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sandbox is a real repo with one commit, and plain git to act on it like a person.
type sandbox struct {
	t   *testing.T
	dir string
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &sandbox{t: t, dir: filepath.Join(dir, "repo")}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.git("init", "-q", "-b", "main")
	s.write("a.txt", "one\n")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "first")
	return s
}

func (s *sandbox) git(args ...string) string { return s.gitIn(s.dir, args...) }

func (s *sandbox) gitIn(dir string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org",
		"GIT_COMMITTER_NAME=Con", "GIT_COMMITTER_EMAIL=con@example.org", "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *sandbox) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandbox) commit(message string) string {
	s.t.Helper()
	s.git("add", "-A")
	s.git("commit", "-q", "--allow-empty", "-m", message)
	return s.git("rev-parse", "HEAD")
}

func (s *sandbox) open() *Repo {
	s.t.Helper()
	r, err := Open(ctx(s.t), s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return r
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFullDiskIsTold: git's error shows a full disk, so that the call is retried later.
func TestFullDiskIsTold(t *testing.T) {
	for words, errno := range map[string]error{
		"sha1 file '/x/index.lock' write error. Out of diskspace":                   syscall.ENOSPC,
		"unable to create file x: No space left on device":                          syscall.ENOSPC,
		"unable to create 'index.lock': Read-only file system":                      syscall.EROFS,
		"fatal: bad object HEAD":                                                    nil,
		"error: unable to write file out.txt":                                       syscall.EIO,
		"cannot update ref 'x': couldn't close 'x.lock'":                            syscall.EIO,
		"fatal: Out of memory, malloc failed (tried to allocate 9 bytes)":           syscall.ENOMEM,
		"error: cannot fork() for pack-objects: Resource temporarily unavailable":   syscall.EAGAIN,
		"error: open(\"out.txt\"): Too many open files; fatal: adding files failed": syscall.EMFILE,
	} {
		var err error = fmt.Errorf("changed: %w", &CommandError{Command: "update-index", Code: 128, Stderr: words})
		for _, e := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE} {
			if errors.Is(err, e) != (e == errno) {
				t.Errorf("%q is %v: %v", words, e, errors.Is(err, e))
			}
		}
	}
	killed := exec.Command("sh", "-c", "kill -9 $$").Run()
	if err := exitError(call{args: []string{"add"}}, killed, &First{}); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("a git that was killed: %v", err)
	}
}

// TestOurOwnFolder: only for our own folder is "not a git repository" an error of the machine.
func TestOurOwnFolder(t *testing.T) {
	for dir, ours := range map[string]bool{"/x/shadow.git": true, "/x/agents.git": false} {
		failed := exec.Command("git", "rev-parse", "--git-dir")
		failed.Env = append(os.Environ(), "GIT_DIR="+dir)
		said, err := failed.CombinedOutput()
		complaint := &First{Most: len(said)}
		complaint.Write(said)
		err = exitError(call{args: []string{"add"}, env: []string{"LC_ALL=C", "GIT_DIR=" + dir}}, err, complaint)
		var cmd *CommandError
		if err == nil || errors.As(err, &cmd) == ours {
			t.Errorf("%s: %T %v", dir, err, err)
		}
	}
}

// TestOpenAsksLate: to open an ordinary repo takes no git; of others git says whether it accepts them.
func TestOpenAsksLate(t *testing.T) {
	s := newSandbox(t)
	sum := filepath.Join(t.TempDir(), "sum")
	s.git("init", "--quiet", "--object-format=sha256", sum)
	linked := filepath.Join(t.TempDir(), "linked")
	s.git("worktree", "add", "--quiet", "--detach", linked)
	for dir, want := range map[string]struct {
		format string
		gits   int64
	}{s.dir: {"sha1", 0}, linked: {"sha1", 0}, sum: {"sha256", 1}} {
		r, err := OpenWith(ctx(t), dir, Options{Scratch: t.TempDir()})
		check(t, err)
		if r.format != want.format || r.started.Load() != want.gits {
			t.Errorf("%s: %s after %d gits, want %+v", dir, r.format, r.started.Load(), want)
		}
		if err := r.keepShadow(ctx(t)); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		check(t, r.Close())
	}
	config := func(text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, ".git/config"), []byte(text), 0o600) }
	}
	for what, spoil := range map[string]func(dir string) error{
		"a HEAD that is none": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git/HEAD"), []byte("x\n"), 0o600)
		},
		"a config that is none":     config("[core\n"),
		"a setting that is none":    config("[core]\n\tbare = perhaps\n"),
		"a text without its end":    config("[user]\n\tname = \"A\n"),
		"a section without its end": config("[remote \"a]\n\turl = b\n"),
		"no repository":             func(dir string) error { return os.RemoveAll(filepath.Join(dir, ".git/refs")) },
		"a newer form":              config("[core]\n\trepositoryFormatVersion = 9\n"),
		"an unknown extension":      config("[core]\n\trepositoryformatversion=1\n[Extensions]\n\tnew = true\n"),
	} {
		dir := filepath.Join(t.TempDir(), "spoiled")
		s.git("init", "--quiet", dir)
		check(t, spoil(dir))
		r, err := Open(ctx(t), dir)
		if err == nil {
			t.Errorf("%s: it is opened", what)
			check(t, r.Close())
		} else if !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLeftoversOfAKill: what a killed process left in the scratch folder is removed at the next opening's first use.
func TestLeftoversOfAKill(t *testing.T) {
	s := newSandbox(t)
	dir := t.TempDir()
	for _, name := range []string{"rules-1", "beside-1", indexName} {
		check(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	left := []string{"rules-1/x", "beside-1/index", "list-1", "exclude-1", indexName + "/a.lock"}
	for _, name := range append(left, indexName+"/a") {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	r, err := OpenWith(ctx(t), s.dir, Options{Scratch: dir})
	check(t, err)
	defer r.Close()
	check(t, r.keepShadow(ctx(t)))
	for _, name := range left {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = os.Lstat(filepath.Join(dir, indexName, "a"))
	check(t, err)
}

// TestRoot: a whole clone has the first commit of the history, another repo lacks it, a shallow one cannot know.
func TestRoot(t *testing.T) {
	s := newSandbox(t)
	first := s.git("rev-parse", "HEAD")
	r := s.open()
	root, err := r.Root(ctx(t), s.commit("second"))
	if check(t, err); root != first {
		t.Errorf("%s, not %s", root, first)
	}
	other := &sandbox{t: t, dir: t.TempDir()}
	other.git("init", "-q")
	shallow := &sandbox{t: t, dir: t.TempDir()}
	shallow.git("clone", "-q", "--depth=1", "file://"+s.dir, ".")
	for c, lacks := range map[*sandbox]bool{s: false, other: true, shallow: false} {
		if got, err := c.open().Lacks(ctx(t), root); err != nil || got != lacks {
			t.Errorf("%s: %v, %v", c.dir, got, err)
		}
	}
}
