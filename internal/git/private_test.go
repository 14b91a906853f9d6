package git

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamedBy: reading the files returns what git itself reports.
func TestNamedBy(t *testing.T) {
	s := newSandbox(t)
	s.git("branch", "a/b")
	s.git("tag", "-a", "-m", "x", "v1")
	s.git("update-ref", "refs/sluice/salvage/x", "HEAD")
	s.git("pack-refs", "--all")
	second := s.commit("second")
	s.git("symbolic-ref", "refs/remotes/o/HEAD", "refs/heads/a/b")
	s.git("update-ref", "refs/bisect/bad", "HEAD")
	s.git("worktree", "add", "-q", "--detach", filepath.Join(filepath.Dir(s.dir), "wt"), "HEAD~1")
	s.git("branch", "gone")
	s.git("branch", "-D", "gone")
	s.write(".git/refs/heads/broken", "not a name\n")
	r := s.open()
	for _, top := range []string{s.dir, filepath.Join(filepath.Dir(s.dir), "wt")} {
		got, err := r.NamedBy(ctx(t), top)
		if err != nil {
			t.Fatal(err)
		}
		refs, err := r.askRefs(ctx(t), allRefs)
		if err != nil {
			t.Fatal(err)
		}
		want := Named{Refs: refs}
		if want.Branch, want.Head, err = r.askHead(ctx(t), top); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got.Refs, want.Refs) || got.Branch != want.Branch || got.Head != want.Head {
			t.Errorf("%s:\n%+v\nand by git\n%+v", top, got, want)
		}
		if len(got.Refs) != 4 || got.Refs["refs/heads/main"] != second || got.Refs["refs/remotes/o/HEAD"] != got.Refs["refs/heads/a/b"] {
			t.Errorf("%+v", got.Refs)
		}
	}
}

// TestPlainConfig: what names a program, a file or a secret is omitted; the rest stays.
func TestPlainConfig(t *testing.T) {
	e := newEvil(t)
	e.git("config", "remote.origin.url", "https://user:secret@example.org/x.git")
	e.git("config", "remote.ssh.url", "ssh://git@example.org/x.git")
	e.git("config", "remote.bad.url", "ext::touch /tmp/x")
	e.git("config", "branch.a.b.merge", `refs/heads/q"u\o`)
	e.git("config", "http.extraHeader", "Authorization: secret")
	e.git("config", "core.autocrlf", "input")
	e.git("config", "user.name", "Ann")
	e.arm()
	r := e.open()
	for range 2 { // the second time from the cache
		text, err := r.PlainConfig(ctx(t), e.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{e.script, "secret", "ext::", "include", "alias", "hooks", "filter", "gpg"} {
			if strings.Contains(strings.ToLower(string(text)), strings.ToLower(bad)) {
				t.Errorf("it has %q:\n%s", bad, text)
			}
		}
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{"remote.origin.url": "https://example.org/x.git", "remote.ssh.url": "ssh://git@example.org/x.git",
			"branch.a.b.merge": `refs/heads/q"u\o`, "core.autocrlf": "input", "user.name": "Ann", "gc.auto": "0"} {
			if got := e.git("config", "--file", file, key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	}
	e.git("config", "user.name", "Bob")
	if text, err := r.PlainConfig(ctx(t), e.dir); err != nil || !strings.Contains(string(text), "Bob") {
		t.Errorf("a change is not seen: %v\n%s", err, text)
	}
}

// TestStores: borrowed stores are found through any number of others.
func TestStores(t *testing.T) {
	s := newSandbox(t)
	dir := filepath.Dir(s.dir)
	s.git("clone", "-q", "--shared", s.dir, filepath.Join(dir, "second"))
	s.git("clone", "-q", "--shared", filepath.Join(dir, "second"), filepath.Join(dir, "third"))
	s.dir = filepath.Join(dir, "third")
	got, err := s.open().Stores()
	if err != nil || len(got) != 3 || got[0] != filepath.Join(dir, "third/.git/objects") || got[2] != filepath.Join(dir, "repo/.git/objects") {
		t.Errorf("%q %v", got, err)
	}
}

// TestDrop: a forgotten run leaves no ref of any kind, and those of others stay.
func TestDrop(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	head := s.git("rev-parse", "HEAD")
	for _, kind := range append(runKinds(), "other") {
		for _, run := range []string{"w-1", "w-10"} {
			if err := r.Keep(ctx(t), Own(kind, run+"/A.1"), head); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := r.Drop(ctx(t), "w-1"); err != nil {
			t.Fatal(err)
		}
	}
	left := s.git("for-each-ref", "refs/sluice")
	if strings.Count(left, "/w-1/") != 1 || !strings.Contains(left, "refs/sluice/other/w-1/A.1") || strings.Count(left, "/w-10/") != len(runKinds())+1 {
		t.Errorf("left:\n%s", left)
	}
}
