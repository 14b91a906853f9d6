package tree

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/tools/conform"
)

func TestWhatCannotBeTaken(t *testing.T) {
	conform.Rule(t, "9-one-tree refused", "each is refused with its reason, and nothing is kept")
	for name, c := range map[string]struct {
		work func(r *repo)
		why  string
	}{
		"nested repo":  {func(r *repo) { r.try(os.Mkdir(filepath.Join(r.dir, "n"), 0o755)); r.run("init", "-q", "n") }, "git repository of its own"},
		"ignored repo": {func(r *repo) { r.run("init", "-q", "build/deep/n") }, "git repository of its own"},
		"file .git":    {func(r *repo) { r.write("n/.git", "gitdir: /tmp/evil\n") }, "git repository of its own"},
		"capital .GIT": {func(r *repo) { r.write("n/.GIT/config", "x") }, "git repository of its own"},
		"bare":         {func(r *repo) { r.write("e/HEAD", "x"); r.write("e/objects/x", ""); r.write("e/refs/x", "") }, "looks like a git folder"},
		"twins":        {func(r *repo) { r.write("A.TXT", "x") }, "differs only in upper and lower case"},
		"unicode":      {func(r *repo) { r.write("\u00e9", "x"); r.write("e\u0301", "y") }, "differs only in upper and lower case"},
		"pipe":         {func(r *repo) { r.try(syscall.Mkfifo(filepath.Join(r.dir, "p"), 0o644)) }, "not a regular file"},
		"socket": {func(r *repo) {
			l, err := net.Listen("unix", filepath.Join(r.dir, "s"))
			r.try(err)
			r.Cleanup(func() { l.Close() })
		}, "not a regular file"},
		"deep": {deep, "cannot be read"},
		"submodule": {func(r *repo) {
			r.run("update-index", "--add", "--cacheinfo", "160000,"+r.run("rev-parse", "HEAD")+",m")
			r.run("commit", "-qm", "m")
			r.try(os.Mkdir(filepath.Join(r.dir, "m"), 0o755))
		}, "submodule"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			o, known := r.begin()
			c.work(r)
			_, err := r.take(o, known)
			var no *Refused
			if !errors.As(err, &no) || !strings.Contains(no.Why, c.why) {
				t.Fatalf("taken with %v; want it refused: %s", err, c.why)
			}
			if len(no.Why) > 2000 {
				t.Errorf("the reason has %d bytes", len(no.Why))
			}
			if out, err := exec.Command("git", "-C", r.dir, "rev-parse", "--verify", "-q", "refs/sluice/taken/w-1/X-1.1").Output(); err == nil {
				t.Errorf("something was kept: %s", out)
			}
		})
	}
}

// deep creates a path of 8 kB, longer than any system call accepts.
func deep(r *repo) {
	r.Helper()
	name := strings.Repeat("d", 200)
	fd, err := syscall.Open(r.dir, syscall.O_DIRECTORY, 0)
	r.try(err)
	for range 41 {
		r.try(syscall.Mkdirat(fd, name, 0o755))
		next, err := syscall.Openat(fd, name, syscall.O_DIRECTORY, 0)
		r.try(err)
		r.try(syscall.Close(fd))
		fd = next
	}
	r.try(syscall.Close(fd))
	r.Cleanup(func() { _ = exec.Command("rm", "-rf", filepath.Join(r.dir, name)).Run() })
}

// What was odd before the run is not the step's fault; nor is an ignored socket.
func TestOddBeforeTheRun(t *testing.T) {
	r := newRepo(t)
	r.run("init", "-q", "vendored")
	r.run("-C", "vendored", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
	o, known := r.begin()
	r.write("a.txt", "work")
	r.try(syscall.Mkfifo(filepath.Join(r.dir, "x.log"), 0o644))
	got, err := r.take(o, known)
	r.try(err)
	if strings.Contains(r.listing(got.Commit), "vendored") {
		t.Error("a repository that lay in the folder is in the tree")
	}
}
