package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRefMoveIsNotCutShort: a ref that is being moved when its caller gives up is moved. A git that is
// killed then leaves its lock, which nobody removes.
func TestRefMoveIsNotCutShort(t *testing.T) {
	s := newSandbox(t)
	sha := s.commit("first")
	s.git("repack", "-adq") // git has to move a ref to what is in a pack
	r, err := Open(ctx(t), s.dir)
	check(t, err)
	defer r.Close()
	begun, slow := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "git")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' update-ref '*) touch %s; sleep 0.3;; esac\nexec %s \"$@\"\n", begun, r.path)
	check(t, os.WriteFile(slow, []byte(script), 0o755))
	r.path = slow
	caller, giveUp := context.WithCancel(ctx(t))
	done := make(chan error, 1)
	go func() { done <- r.Keep(caller, Own("taken", "w-1/A.1"), sha) }()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(begun); err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal("git never begins")
		}
	}
	giveUp()
	check(t, <-done)
	if got := s.git("rev-parse", Own("taken", "w-1/A.1")); got != sha {
		t.Errorf("the ref is at %s", got)
	}
	for _, sha := range []string{sha, s.commit("second")} {
		if err := r.Keep(caller, Own("taken", "w-1/A.2"), sha); !errors.Is(err, context.Canceled) {
			t.Errorf("one that has not begun is moved: %v", err)
		}
	}
}

// TestKeepStartsNoGit: a ref that keeps a new commit of an ordinary repo is written without git, as git writes it. Git
// has to where it would do more, or refuse.
func TestKeepStartsNoGit(t *testing.T) {
	aside := t.TempDir()
	for name, c := range map[string]struct {
		do  func(s *sandbox, ref string)
		git bool
	}{
		"new":              {func(*sandbox, string) {}, false},
		"again":            {func(s *sandbox, ref string) { s.git("update-ref", ref, "HEAD~") }, false},
		"packed before":    {func(s *sandbox, ref string) { s.git("update-ref", ref, "HEAD~"); s.git("pack-refs", "--all") }, false},
		"symbolic":         {func(s *sandbox, ref string) { s.git("symbolic-ref", ref, "refs/heads/main") }, false},
		"in a pack":        {func(s *sandbox, _ string) { s.git("repack", "-adq") }, true},
		"several people's": {func(s *sandbox, _ string) { s.git("config", "core.sharedRepository", "group") }, true},
		"a folder there":   {func(s *sandbox, ref string) { check(t, os.MkdirAll(filepath.Join(s.dir, ".git", ref, "x"), 0o755)) }, true},
		"a link to outside": {func(s *sandbox, ref string) {
			at := filepath.Dir(filepath.Join(s.dir, ".git", ref))
			check(t, os.MkdirAll(filepath.Dir(at), 0o755))
			check(t, os.Symlink(aside, at))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			ref, sha := Own("taken", "w-1/A.1"), s.commit("second")
			c.do(s, ref)
			r := s.open()
			ran, counted := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "git")
			check(t, os.WriteFile(counted, fmt.Appendf(nil, "#!/bin/sh\ntouch %s\nexec %s \"$@\"\n", ran, r.path), 0o755))
			r.path = counted
			check(t, r.Keep(ctx(t), ref, sha))
			if _, err := os.Lstat(ran); (err == nil) != c.git {
				t.Errorf("git ran: %v", err == nil)
			}
			if got := s.git("rev-parse", ref); got != sha {
				t.Errorf("the ref is at %s, not %s", got, sha)
			}
			s.git("fsck", "--strict")
			if main := s.git("rev-parse", "main"); main != sha {
				t.Errorf("main is at %s", main)
			}
		})
	}
}

// TestKeepPassesADeadLock: after a power cut, git leaves a ref's lock. A lock on our ref is
// removed, unless it is newer than this process: then somebody may be using it.
func TestKeepPassesADeadLock(t *testing.T) {
	s := newSandbox(t)
	lock := filepath.Join(s.dir, ".git/refs/sluice/taken/w-1/A.1.lock")
	check(t, os.MkdirAll(filepath.Dir(lock), 0o755))
	for name, c := range map[string]struct {
		age  time.Duration
		want error
	}{"dead": {time.Hour, nil}, "at work": {-time.Hour, ErrIndexHeld}} {
		s.write("a.txt", name)
		sha := s.commit(name)
		r, err := Open(ctx(t), s.dir)
		check(t, err)
		check(t, os.WriteFile(lock, nil, 0o644))
		at := time.Now().Add(-c.age)
		check(t, os.Chtimes(lock, at, at))
		err = r.Keep(ctx(t), Own("taken", "w-1/A.1"), sha)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		check(t, r.Close())
	}
	sha := s.commit("last")
	r, err := Open(ctx(t), s.dir)
	check(t, err)
	defer r.Close()
	branch := filepath.Join(s.dir, ".git/refs/heads/main.lock")
	check(t, os.WriteFile(branch, nil, 0o644))
	check(t, os.Chtimes(branch, time.Unix(1, 0), time.Unix(1, 0)))
	if err := r.MoveRef(ctx(t), s.dir, "refs/heads/main", sha, sha, "x"); err == nil {
		t.Error("the lock of a branch is a person's")
	}
}

// TestLockOfAllRefs: the format reftable has one lock for all refs of a repo. This repo has another
// format, so the lock is made by hand, and git fails for a ref that has moved.
func TestLockOfAllRefs(t *testing.T) {
	s := newSandbox(t)
	sha := s.commit("first")
	r, err := Open(ctx(t), s.dir)
	check(t, err)
	defer r.Close()
	lock := filepath.Join(s.dir, ".git/reftable/tables.list.lock")
	check(t, os.Mkdir(filepath.Dir(lock), 0o755))
	check(t, os.WriteFile(lock, nil, 0o644))
	wrong := strings.Repeat("1", len(sha))
	err = r.MoveRef(ctx(t), s.dir, "refs/heads/main", wrong, sha, "x")
	if !errors.Is(err, ErrIndexHeld) || !strings.Contains(err.Error(), lock) {
		t.Error(err)
	}
}
