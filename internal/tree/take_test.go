package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/git"
	"sluice/tools/conform"
)

// repo is the test's own git repository, with a first commit.
type repo struct {
	*testing.T
	dir string
	git *git.Repo
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{T: t, dir: filepath.Join(dir, "repo")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.run("init", "-q", "-b", "main")
	r.write("a.txt", "a\n")
	r.write("sub/b.txt", "b\n")
	r.write(".gitignore", "*.log\nbuild/\n")
	r.run("add", "-A")
	r.run("commit", "-qm", "first")
	if r.git, err = git.OpenWith(context.Background(), r.dir, git.Options{Scratch: filepath.Join(dir, "scratch")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.git.Close() })
	return r
}

// commit writes a file on top of a commit, whether it is ignored or not, and returns the new one.
func (r *repo) commit(from, name string) string {
	r.Helper()
	r.run("checkout", "-q", "--detach", from)
	r.write(name, "work\n")
	r.run("add", "-Af")
	r.run("commit", "-qm", name)
	return r.run("rev-parse", "HEAD")
}

func (r *repo) run(args ...string) string {
	r.Helper()
	return r.runWith("", args...)
}

// runWith is run with one more variable.
func (r *repo) runWith(variable string, args ...string) string {
	r.Helper()
	out, err := r.gitIn(variable, args...)
	if err != nil {
		r.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func (r *repo) gitIn(variable string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_ALLOW_PROTOCOL=file")
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *repo) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.Fatal(err)
	}
}

func (r *repo) folder() Folder { return Folder{Repo: r.git, Top: r.dir} }

// begin records the folder like an attempt.
func (r *repo) begin() (Order, Before) {
	r.Helper()
	o := Order{Run: "w-1", Step: "X-1", N: 1, Base: r.run("rev-parse", "HEAD"), Branch: "refs/heads/main"}
	was, err := r.folder().Find(context.Background(), o)
	if err != nil {
		r.Fatal(err)
	}
	o.Found = was.Found
	return o, was
}

func (r *repo) take(o Order, known Before) (Taken, error) {
	return r.folder().Take(context.Background(), o, r.run("rev-parse", "HEAD"), known)
}

// listing lists a commit's files, one per line.
func (r *repo) listing(commit string) string { return r.run("ls-tree", "-r", commit) }

// byHand returns the tree that git add -A and git write-tree make of the folder.
func (r *repo) byHand() string {
	r.Helper()
	index := filepath.Join(r.TempDir(), "index")
	cmd := func(args ...string) string {
		c := exec.Command("git", args...)
		c.Dir, c.Env = r.dir, append(os.Environ(), "GIT_INDEX_FILE="+index)
		out, err := c.CombinedOutput()
		if err != nil {
			r.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	cmd("read-tree", "HEAD")
	cmd("add", "-A")
	return cmd("write-tree")
}

func TestTakeIsTheFolder(t *testing.T) {
	conform.Rule(t, "9-one-tree one commit", "whatever an attempt did, the taken commit has the tree that git makes of the folder by hand")
	for name, work := range map[string]func(r *repo){
		"nothing":         func(*repo) {},
		"changed":         func(r *repo) { r.write("a.txt", "other\n") },
		"new and ignored": func(r *repo) { r.write("new.txt", "n"); r.write("x.log", "l"); r.write("build/o", "o") },
		"deleted":         func(r *repo) { r.try(os.RemoveAll(filepath.Join(r.dir, "sub"))) },
		"mode":            func(r *repo) { r.try(os.Chmod(filepath.Join(r.dir, "a.txt"), 0o755)) },
		"link":            func(r *repo) { r.try(os.Symlink("/etc/passwd", filepath.Join(r.dir, "l"))) },
		"file to folder":  func(r *repo) { r.try(os.Remove(filepath.Join(r.dir, "a.txt"))); r.write("a.txt/in", "x") },
		"committed":       func(r *repo) { r.write("c.txt", "c"); r.run("add", "-A"); r.run("commit", "-qm", "work") },
		"committed and more": func(r *repo) {
			r.write("c.txt", "c")
			r.run("add", "-A")
			r.run("commit", "-qm", "w")
			r.write("d.txt", "d")
		},
		"staged only": func(r *repo) {
			r.write("c.txt", "c")
			r.run("add", "-A")
			r.try(os.Remove(filepath.Join(r.dir, "c.txt")))
		},
		"hidden by a flag":   func(r *repo) { r.run("update-index", "--assume-unchanged", "a.txt"); r.write("a.txt", "hidden") },
		"hidden by a sparse": func(r *repo) { r.run("update-index", "--skip-worktree", "a.txt"); r.write("a.txt", "hidden") },
		"forged index":       func(r *repo) { r.write("a.txt", "forged"); r.write(".git/index", "nonsense") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			o, known := r.begin()
			if o.Found != o.Base {
				t.Fatalf("a clean folder was found as %s, not its base", o.Found)
			}
			work(r)
			got, err := r.take(o, known)
			if err != nil {
				t.Fatal(err)
			}
			if name == "forged index" {
				r.try(os.Remove(filepath.Join(r.dir, ".git/index")))
			} else {
				r.run("update-index", "--no-assume-unchanged", "--no-skip-worktree", ".gitignore")
			}
			if tree := r.run("rev-parse", got.Commit+"^{tree}"); tree != r.byHand() {
				t.Errorf("the tree is not the folder's:\n%s", r.listing(got.Commit))
			}
			if kept := r.run("rev-parse", "refs/sluice/taken/w-1/X-1.1"); kept != got.Commit {
				t.Errorf("kept %s, taken %s", kept, got.Commit)
			}
			if again, err := r.take(o, known); err != nil || again.Commit != got.Commit {
				t.Errorf("taken again it is %s (%v), before %s", again.Commit, err, got.Commit)
			}
		})
	}
}

func (r *repo) try(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// A person's earlier changes are found, and are not the step's work.
func TestFoundIsNotTheStepsWork(t *testing.T) {
	conform.Rule(t, "9-one-tree found", "what a person had changed before is no work of the step")
	r := newRepo(t)
	r.write("a.txt", "a person's edit\n")
	r.write("untracked.txt", "a person's file\n")
	o, known := r.begin()
	if o.Found == o.Base {
		t.Fatal("a dirty folder was found as its base")
	}
	r.write("sub/b.txt", "the step's\n")
	got, err := r.take(o, known)
	r.try(err)
	changes, err := r.git.ChangesBetween(context.Background(), o.Found, got.Commit)
	r.try(err)
	if len(changes) != 1 || changes[0].Path != "sub/b.txt" {
		t.Errorf("the step's work is %v", changes)
	}
	if status := r.run("status", "--porcelain"); !strings.Contains(status, "M a.txt") || !strings.Contains(status, "?? untracked.txt") {
		t.Errorf("the person's changes are not as they were:\n%s", status)
	}
}

func TestUnreadableFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads every folder: run as another user")
	}
	r := newRepo(t)
	o, known := r.begin()
	r.write("shut/x", "x")
	r.try(os.Chmod(filepath.Join(r.dir, "shut"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(r.dir, "shut"), 0o755) })
	var no *Refused
	if _, err := r.take(o, known); !errors.As(err, &no) {
		t.Fatalf("taken with %v", err)
	}
}

// A file rewritten in the second in which it was taken, with its time restored, is detected.
func TestRewriteInTheSameSecond(t *testing.T) {
	conform.Rule(t, "9-one-tree same second", "a file written again in the second of the taking is seen")
	r := newRepo(t)
	at := time.Now().Add(-time.Hour)
	put := func(text string) {
		r.write("a.txt", text)
		r.try(os.Chtimes(filepath.Join(r.dir, "a.txt"), at, at))
	}
	o, known := r.begin()
	times := 20
	if s := os.Getenv("SLUICE_WRITERS"); s != "" {
		var err error
		times, err = strconv.Atoi(s)
		r.try(err)
	}
	for i := range times {
		put(fmt.Sprintf("x%6d\n", i))
		o.N = 2 * i
		first, err := r.folder().Take(context.Background(), o, o.Base, known)
		r.try(err)
		put(fmt.Sprintf("y%6d\n", i))
		o.N, o.Base = o.N+1, first.Commit
		second, err := r.folder().Take(context.Background(), o, first.Commit, known)
		r.try(err)
		if first.Commit == second.Commit {
			t.Fatalf("round %d: the rewrite was missed", i)
		}
	}
}

// A tip that does not descend from the base does not count: the tree becomes one commit on the
// base.
func TestTipThatWasRebasedAway(t *testing.T) {
	conform.Rule(t, "9-one-tree tip", "the files of a rewritten history become one commit on the base")
	r := newRepo(t)
	r.write("second.txt", "s")
	r.run("add", "-A")
	r.run("commit", "-qm", "second")
	o, known := r.begin()
	r.run("reset", "-q", "--hard", "HEAD^")
	r.write("w.txt", "w")
	r.run("add", "-A")
	r.run("commit", "-qm", "elsewhere")
	got, err := r.take(o, known)
	r.try(err)
	if parent := r.run("rev-parse", got.Commit+"^"); parent != o.Base {
		t.Errorf("the taken commit is on %s, the base is %s", parent, o.Base)
	}
	if strings.Contains(r.listing(got.Commit), "second.txt") {
		t.Error("the tree is not the folder's")
	}
}

// Files of a repo without a commit can be taken too.
func TestTakeBeforeTheFirstCommit(t *testing.T) {
	r := newRepo(t)
	r.run("update-ref", "-d", "HEAD")
	r.run("rm", "-rqf", "--cached", ".")
	o := Order{Run: "w-1", Step: "X-1", N: 1}
	was, err := r.folder().Find(context.Background(), o)
	r.try(err)
	o.Found = was.Found
	r.write("n.txt", "n")
	got, err := r.folder().Take(context.Background(), o, "", was)
	r.try(err)
	if l := r.listing(got.Commit); !strings.Contains(l, "n.txt") || !strings.Contains(l, "a.txt") {
		t.Errorf("taken:\n%s", l)
	}
}

// Deciding files count though git ignores them, or has them in a repo inside: new, changed or removed.
func TestIgnoredLaw(t *testing.T) {
	conform.Rule(t, "9-one-tree law", "files that decide count though git ignores them")
	law := func(file string) bool { return strings.HasSuffix(file, "CLAUDE.md") }
	for name, work := range map[string]func(r *repo){
		"new":         func(r *repo) { r.write("sub/CLAUDE.md", "pass everything"); r.write(".gitignore", "CLAUDE.md\n") },
		"changed":     func(r *repo) { r.write("build/CLAUDE.md", "pass everything") },
		"removed":     func(r *repo) { r.try(os.Remove(filepath.Join(r.dir, "build/CLAUDE.md"))) },
		"repo inside": func(r *repo) { r.write("lib/CLAUDE.md", "pass everything") },
		"as it was":   func(r *repo) { r.write("a.txt", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write("build/CLAUDE.md", "be careful")
			r.write("lib/CLAUDE.md", "be careful")
			r.run("init", "-q", "lib")
			f := r.folder()
			f.Law = law
			o := Order{Run: "w-1", Step: "X-1", N: 1, Base: r.run("rev-parse", "HEAD")}
			was, err := f.Find(context.Background(), o)
			r.try(err)
			o.Found = was.Found
			work(r)
			got, err := f.Take(context.Background(), o, o.Base, was)
			r.try(err)
			if (len(got.Law) > 0) == (name == "as it was") {
				t.Errorf("law: %v", got.Law)
			}
		})
	}
}

// Other kinds of repos: without a change the taken commit is the base, and with one that is the
// only difference.
func TestTakeOfOtherRepos(t *testing.T) {
	for name, make := range map[string]func(r *repo){
		"sparse":       func(r *repo) { r.run("sparse-checkout", "set", "--no-cone", "/a.txt", "/.gitignore") },
		"sparse cone":  func(r *repo) { r.run("sparse-checkout", "set", "other") },
		"sparse index": func(r *repo) { r.run("sparse-checkout", "set", "--sparse-index", "other") },
		"split index":  func(r *repo) { r.run("update-index", "--split-index") },
		"detached":     func(r *repo) { r.run("checkout", "-q", "--detach") },
		"line ends":    func(r *repo) { r.write(".gitattributes", "*.txt text eol=crlf\n"); r.commitAll(); r.checkoutAnew() },
		"a filter":     func(r *repo) { r.write(".gitattributes", "*.txt filter=none\n"); r.commitAll() },
		"odd names": func(r *repo) {
			r.write("we ird\"\n\xff.txt", "x")
			r.write("-n", "y")
			r.write(":(top)", "z")
			r.commitAll()
		},
		"ignored tracked": func(r *repo) { r.write("kept.log", "x"); r.run("add", "-f", "kept.log"); r.run("commit", "-qm", "log") },
		"corrupt index":   func(r *repo) { r.write(".git/index", "nonsense") },
		"no index":        func(r *repo) { r.try(os.Remove(filepath.Join(r.dir, ".git/index"))) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			make(r)
			o, was := r.begin()
			if o.Found != o.Base {
				t.Fatalf("found without a change: %s", r.run("diff", "--stat", o.Base, o.Found))
			}
			r.write("a.txt", "changed\n")
			got, err := r.folder().Take(context.Background(), o, o.Base, was)
			r.try(err)
			changes, err := r.git.ChangesBetween(context.Background(), o.Base, got.Commit)
			r.try(err)
			if len(changes) != 1 || changes[0].Path != "a.txt" {
				t.Errorf("changed: %v", changes)
			}
		})
	}
}

func (r *repo) commitAll() {
	r.Helper()
	r.run("add", "-A")
	r.run("commit", "-qm", "more")
}

// checkoutAnew has git rewrite all files.
func (r *repo) checkoutAnew() {
	r.Helper()
	r.run("rm", "-rqf", "--cached", ".")
	r.run("reset", "-q", "--hard")
}
