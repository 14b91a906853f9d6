package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/git"
)

// launched is a repo with one commit, and a private folder for its main checkout.
type launched struct {
	t    *testing.T
	top  string
	repo *git.Repo
	p    Private
}

func newPlace(t *testing.T, format string) *launched {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &launched{t: t, top: filepath.Join(dir, "repo")}
	if err := os.Mkdir(s.top, 0o755); err != nil {
		t.Fatal(err)
	}
	s.git("init", "-q", "-b", "main", "--object-format="+format)
	s.put("a.txt", "one\n")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "first")
	s.open(dir)
	return s
}

func (s *launched) open(dir string) {
	s.t.Helper()
	repo, err := git.OpenWith(s.t.Context(), s.top, git.Options{Scratch: filepath.Join(dir, "scratch")})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { repo.Close() })
	s.repo = repo
	s.p = Private{Order: Order{Run: "w-1", Step: "A", N: 1}, Dir: filepath.Join(dir, "own"), Top: s.top}
}

// make creates the private folder for the checkout's current state.
func (s *launched) make() {
	s.t.Helper()
	now, err := s.repo.NamedBy(s.t.Context(), s.top)
	if err != nil {
		s.t.Fatal(err)
	}
	s.p.Base, s.p.Branch = now.Head, now.Branch
	if s.p, err = MakePrivate(s.t.Context(), s.repo, s.p, now, "", func(_ int, store string) string { return store }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *launched) put(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(s.top, name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.top, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// git runs git as a person does.
func (s *launched) git(args ...string) string { return s.run(nil, "", args...) }

// own runs git as an agent does, in the private folder.
func (s *launched) own(args ...string) string {
	return s.run([]string{"GIT_DIR=" + s.p.Dir, "GIT_WORK_TREE=" + s.top}, "", args...)
}

// object writes a raw object into the private folder.
func (s *launched) object(kind, body string) string {
	return s.run([]string{"GIT_DIR=" + s.p.Dir}, body, "hash-object", "-w", "--literally", "-t", kind, "--stdin")
}

func (s *launched) run(env []string, stdin string, args ...string) string {
	s.t.Helper()
	out, err := s.try(env, stdin, args...)
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (s *launched) try(env []string, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = s.top, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org",
		"GIT_COMMITTER_NAME=Con", "GIT_COMMITTER_EMAIL=con@example.org", "GIT_ALLOW_PROTOCOL=file")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// inside is a git over the private folder without a sandbox.
func (s *launched) inside(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_DIR="+s.p.Dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	var bad bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &bad
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &git.CommandError{Command: args[0], Code: exit.ExitCode(), Stderr: strings.TrimSpace(bad.String())}
	}
	return err
}

// objects lists the files of the repo's object store.
func (s *launched) objects() string {
	s.t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(s.top, ".git/objects"), func(path string, d os.DirEntry, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(out, "\n") + "\n" + s.git("for-each-ref")
}

func (s *launched) receive(most int64) (string, string) {
	s.t.Helper()
	r, err := receive(s.t.Context(), s.repo, s.p, s.inside, most)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Tip, r.Refused + r.Aside
}

func TestReceive(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newPlace(t, format)
			s.git("tag", "-a", "-m", "x", "v1")
			s.make()
			before := s.objects()
			if tip, refused := s.receive(MaxPack); tip != s.p.Base || refused != "" {
				t.Fatalf("nothing was done: %s %s", tip, refused)
			}
			s.put("b/c.txt", "two\n")
			s.own("add", "-A")
			s.own("commit", "-q", "-m", "second")
			s.own("switch", "-q", "-c", "other")
			s.own("commit", "-q", "--allow-empty", "-m", "third")
			want := s.own("rev-parse", "HEAD")
			if got := s.objects(); got != before {
				t.Fatalf("the repo was changed:\n%s", got)
			}
			tip, refused := s.receive(MaxPack)
			if tip != want || refused != "" {
				t.Fatalf("got %s %q, want %s", tip, refused, want)
			}
			if got := s.git("rev-parse", "refs/sluice/tip/w-1/A.1"); got != want {
				t.Errorf("it is kept as %s", got)
			}
			if got := s.git("log", "--format=%s", want); got != "third\nsecond\nfirst" {
				t.Errorf("its history is %q", got)
			}
			s.git("fsck", "--strict", "--no-dangling")
			if left, _ := filepath.Glob(filepath.Join(s.top, ".git/objects/tmp_*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if again, _ := s.receive(MaxPack); again != want {
				t.Errorf("a second time: %s", again)
			}
			if moved, why, err := (Advance{Branch: s.p.Branch, From: s.p.Base, To: tip, Top: s.top}).Do(t.Context(), s.repo); !moved || err != nil {
				t.Fatal(why, err)
			}
			if got := s.git("status", "--porcelain"); got != "" || s.git("rev-parse", "main") != want {
				t.Errorf("the branch is at %s, and the checkout %q", s.git("rev-parse", "main"), got)
			}
		})
	}
}

// TestReceiveRefuses: what no git would create, or what leads out of the tree, is refused
// completely.
func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	raw := func(sha string) string {
		var b []byte
		for i := 0; i+1 < len(sha); i += 2 {
			hex := strings.IndexByte("0123456789abcdef", sha[i])<<4 | strings.IndexByte("0123456789abcdef", sha[i+1])
			b = append(b, byte(hex))
		}
		return string(b)
	}
	// commit commits a raw tree on the base, and moves HEAD to it.
	commit := func(s *launched, tree string) {
		c := "tree " + s.object("tree", tree) + "\nparent " + s.p.Base + "\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\n"
		s.own("update-ref", "HEAD", s.object("commit", c))
	}
	entry := func(mode, name string) func(s *launched) {
		return func(s *launched) { commit(s, mode+" "+name+"\x00"+raw(s.object("blob", "x"))) }
	}
	folder := func(name string) func(s *launched) {
		return func(s *launched) {
			commit(s, "40000 "+name+"\x00"+raw(s.object("tree", "100644 config\x00"+raw(s.object("blob", "x")))))
		}
	}
	cases := []struct {
		name, want string
		make       func(s *launched)
	}{
		{".git", "hasDotgit", folder(".git")},
		{".GIT", "hasDotgit", folder(".GIT")},
		{"a short name of Windows", "hasDotgit", folder("git~1")},
		{"invisible characters", "hasDotgit", folder(".g\u200cit")},
		{"parent folder", "hasDotdot", folder("..")},
		{"this folder", "hasDot", folder(".")},
		{"path in a name", "fullPathname", entry("100644", "a/b")},
		{"empty name", "", entry("100644", "")},
		{"bad mode", "badFilemode", entry("100600", "a")},
		{"settings of submodules that nobody can read", "gitmodulesParse", func(s *launched) {
			commit(s, "100644 .gitmodules\x00"+raw(s.object("blob", "[submodule \"x")))
		}},
		{"zero-padded mode", "zeroPaddedFilemode", entry("0100644", "a")},
		{"two entries of one name", "duplicateEntries", func(s *launched) {
			b := raw(s.object("blob", "x"))
			commit(s, "100644 a\x00"+b+"100644 a\x00"+b)
		}},
		{"entries out of order", "treeNotSorted", func(s *launched) {
			b := raw(s.object("blob", "x"))
			commit(s, "100644 b\x00"+b+"100644 a\x00"+b)
		}},
		{"missing file", "", func(s *launched) { commit(s, "100644 a\x00"+raw(strings.Repeat("ab", 20))) }},
		{"missing folder", "", func(s *launched) { commit(s, "40000 a\x00"+raw(strings.Repeat("ab", 20))) }},
		{"missing e-mail", "missingEmail", func(s *launched) {
			c := "tree " + s.own("rev-parse", "HEAD^{tree}") + "\nparent " + s.p.Base + "\nauthor A 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\n"
			s.own("update-ref", "HEAD", s.object("commit", c))
		}},
		{"no author", "missingAuthor", func(s *launched) {
			c := "tree " + s.own("rev-parse", "HEAD^{tree}") + "\nparent " + s.p.Base + "\ncommitter A <a@x> 1 +0000\n\nx\n"
			s.own("update-ref", "HEAD", s.object("commit", c))
		}},
		{"submodule that runs", "gitmodulesUrl", func(s *launched) {
			b := s.object("blob", "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch\n")
			commit(s, "100644 .gitmodules\x00"+raw(b))
		}},
		{".gitmodules that is a link", "gitmodulesSymlink", entry("120000", ".gitmodules")},
		{"new submodule", "submodule", func(s *launched) { commit(s, "160000 sub\x00"+raw(s.p.Base)) }},
		{"not built on the base", "not built on", func(s *launched) {
			s.own("checkout", "-q", "--orphan", "new")
			s.own("commit", "-q", "-m", "an end of its own")
		}},
		{"HEAD at nothing", "names no commit", func(s *launched) { s.own("symbolic-ref", "HEAD", "refs/heads/none") }},
		{"HEAD at a file", "names no commit", func(s *launched) {
			if err := os.WriteFile(filepath.Join(s.p.Dir, "HEAD"), []byte(s.object("blob", "x")+"\n"), 0o600); err != nil {
				s.t.Fatal(err)
			}
		}},
		{"parent that is missing", "", func(s *launched) {
			c := "tree " + s.own("rev-parse", "HEAD^{tree}") + "\nparent " + s.p.Base + "\nparent " + strings.Repeat("ab", 20) + "\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\n"
			s.own("update-ref", "HEAD", s.object("commit", c))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newPlace(t, "sha1")
			s.make()
			c.make(s)
			before := s.objects()
			tip, refused := s.receive(MaxPack)
			if tip != s.p.Base || refused == "" || !strings.Contains(refused, c.want) {
				t.Errorf("tip %s, base %s, refused: %q", tip, s.p.Base, refused)
			}
			if got := s.objects(); got != before {
				t.Errorf("it left:\n%s\nbefore:\n%s", got, before)
			}
		})
	}
}

// TestBeside: commits on a branch that is not HEAD's are not taken, and are seen.
func TestBeside(t *testing.T) {
	t.Parallel()
	s := newPlace(t, "sha1")
	s.make()
	s.own("branch", "empty")
	s.own("checkout", "-q", "-b", "elsewhere")
	s.own("commit", "-q", "--allow-empty", "-m", "work")
	s.own("checkout", "-q", "main")
	if tip, refused := s.receive(MaxPack); tip != s.p.Base || refused != "" {
		t.Errorf("%s %q", tip, refused)
	}
	if refs, err := s.p.Beside(t.Context(), s.repo); err != nil || len(refs) != 1 || refs[0] != "refs/heads/elsewhere" {
		t.Errorf("%v %v", refs, err)
	}
	s.own("merge", "-q", "elsewhere")
	if _, refused := s.receive(MaxPack); refused != "" {
		t.Error(refused)
	}
	if refs, err := s.p.Beside(t.Context(), s.repo); err != nil || len(refs) != 0 {
		t.Errorf("%v %v", refs, err)
	}
}

// TestBesideBounds: of more refs than are looked at, it is not known that there are none.
func TestBesideBounds(t *testing.T) {
	t.Parallel()
	s := newPlace(t, "sha1")
	s.make()
	for i := range maxBeside + 1 {
		dir := filepath.Join(s.p.Dir, "refs", "heads", fmt.Sprint("d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if refs, err := s.p.Beside(t.Context(), s.repo); err == nil {
		t.Errorf("%v", refs)
	}
}

// TestReceiveBounds: what is too large, or incomplete, is refused completely; the machine's faults
// are errors.
func TestReceiveBounds(t *testing.T) {
	t.Parallel()
	s := newPlace(t, "sha1")
	s.make()
	big := make([]byte, 1<<20)
	for i, x := 0, uint32(1); i < len(big); i++ {
		x = x*1664525 + 1013904223
		big[i] = byte(x >> 24)
	}
	s.put("big", string(big))
	s.own("add", "-A")
	s.own("commit", "-q", "-m", "big")
	before := s.objects()
	if tip, refused := s.receive(1 << 16); tip != s.p.Base || !strings.Contains(refused, "its commits are more than 64 KiB: leave large files out of them") {
		t.Errorf("too large: %s %q", tip, refused)
	}
	cut := func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
		var all bytes.Buffer
		if err := s.inside(ctx, args, stdin, &all); err != nil || args[0] != "pack-objects" {
			_, werr := stdout.Write(all.Bytes())
			return errors.Join(err, werr)
		}
		_, err := stdout.Write(all.Bytes()[:all.Len()/2])
		return err
	}
	if r, err := Receive(t.Context(), s.repo, s.p, cut); err != nil || r.Tip != s.p.Base || !strings.Contains(r.Refused, "git refuses its commits") {
		t.Errorf("cut short: %+v %v", r, err)
	}
	if got := s.objects(); got != before {
		t.Errorf("left of what was refused:\n%s", got)
	}
	packs := 0
	once := func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
		if args[0] == "pack-objects" {
			if packs++; packs == 1 {
				return cut(ctx, args, stdin, stdout)
			}
		}
		return s.inside(ctx, args, stdin, stdout)
	}
	if r, err := Receive(t.Context(), s.repo, s.p, once); err != nil || r.Refused != "" || r.Tip == s.p.Base {
		t.Errorf("cut short once, as by a disk: %+v %v", r, err)
	}
	before = s.objects()
	broken := errors.New("no sandbox")
	none := func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
		if args[0] == "pack-objects" {
			return broken
		}
		return s.inside(ctx, args, stdin, stdout)
	}
	if r, err := Receive(t.Context(), s.repo, s.p, none); !errors.Is(err, broken) || r.Refused != "" {
		t.Errorf("without a sandbox: %+v %v", r, err)
	}
	if got := s.objects(); got != before {
		t.Errorf("left:\n%s", got)
	}
}

// TestCarryLFS: Git LFS files are there afterwards, but none whose name is another content's.
func TestCarryLFS(t *testing.T) {
	t.Parallel()
	s := newPlace(t, "sha1")
	s.make()
	if err := s.p.CarryLFS(t.Context()); err != nil {
		t.Errorf("without any: %v", err)
	}
	good := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	bad := strings.Repeat("ab", 32)
	link := strings.Repeat("cd", 32)
	dir := filepath.Join(s.p.Dir, "lfs/objects")
	for _, name := range []string{good, bad, link} {
		at := filepath.Join(dir, name[:2], name[2:4])
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(filepath.Join(at, name), []byte("x"), 0o644)
		if name == link {
			err = errors.Join(os.Remove(filepath.Join(at, name)), os.Symlink("/etc/passwd", filepath.Join(at, name)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.p.CarryLFS(t.Context()); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(s.top, ".git/lfs/objects")
	got, err := filepath.Glob(filepath.Join(to, "*/*/*"))
	if err != nil || len(got) != 1 || got[0] != filepath.Join(to, good[:2], good[2:4], good) {
		t.Errorf("carried: %q %v", got, err)
	}
}

// TestCarryLFSLink: a link in the folder brings no files of another repo, which a later launch could read.
func TestCarryLFSLink(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	name := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	at := filepath.Join(other, "objects", name[:2], name[2:4])
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, name), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"lfs": other, "lfs/objects": filepath.Join(other, "objects"),
		"lfs/objects/" + name[:2]: filepath.Join(other, "objects", name[:2])} {
		s := newPlace(t, "sha1")
		s.make()
		from := filepath.Join(s.p.Dir, filepath.FromSlash(link))
		if err := errors.Join(os.MkdirAll(filepath.Dir(from), 0o755), os.Symlink(to, from)); err != nil {
			t.Fatal(err)
		}
		if err := s.p.CarryLFS(t.Context()); err != nil {
			t.Errorf("%s: %v", link, err)
		}
		if got, _ := filepath.Glob(filepath.Join(s.top, ".git/lfs/objects/*/*/*")); got != nil {
			t.Errorf("%s: carried %q", link, got)
		}
	}
}

// TestBoundedCopy: io.Copy, by which a program's output comes, stops at the limit too.
func TestBoundedCopy(t *testing.T) {
	out := &bounded{most: 100}
	_, err := io.Copy(out, io.LimitReader(strings.NewReader(strings.Repeat("x", 1000)), 1000))
	if !errors.Is(err, git.ErrOutput) || out.kept.Len() > out.most {
		t.Errorf("%d bytes were kept: %v", out.kept.Len(), err)
	}
}
