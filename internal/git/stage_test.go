package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func (s *sandbox) openStaged() *Repo {
	s.t.Helper()
	r, err := OpenWith(ctx(s.t), s.dir, Options{Staging: filepath.Join(s.dir, "staging")})
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

// TestAddWorktreeOutOfReach: whoever works in the checkout around a new worktree cannot redirect
// its files.
func TestAddWorktreeOutOfReach(t *testing.T) {
	s := newSandbox(t)
	for i := range 50 {
		s.write(fmt.Sprintf("d/f%d", i), "x\n")
	}
	s.commit("files")
	r := s.openStaged()
	victim := s.beside("victim")
	check(t, os.Mkdir(victim, 0o755))
	for i := range 12 {
		name := fmt.Sprintf("wt%d", i)
		path := filepath.Join(s.dir, name)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { // an agent, as fast as possible
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := os.Lstat(filepath.Join(s.dir, ".git/worktrees", name, "index")); err == nil {
					_ = os.Rename(path, path+".moved")
					_ = os.Symlink(victim, path)
					return
				}
			}
		}()
		_, err := r.AddWorktree(ctx(t), path, name)
		close(stop)
		<-done
		if left, _ := os.ReadDir(victim); len(left) > 0 {
			t.Fatalf("%s: %s was written outside (%v)", name, left[0].Name(), err)
		}
		if err != nil && strings.Contains(s.git("worktree", "list"), "/"+name+" ") {
			t.Errorf("%s: half a worktree was left: %v", name, err)
		}
	}
}

// TestAddWorktreeStaged: a worktree built elsewhere and moved equals one built in place, also after
// a kill.
func TestAddWorktreeStaged(t *testing.T) {
	s := newSandbox(t)
	s.write("sub/c.txt", "c\n")
	s.commit("files")
	r := s.openStaged()
	for name, before := range map[string]func(path, staged string){
		"a":      func(string, string) {},
		"deep/b": func(string, string) { check(t, os.Mkdir(filepath.Join(s.dir, "deep"), 0o755)) },
		"c":      func(_, staged string) { s.git("worktree", "add", "-q", "-b", "c", staged) },
		"d": func(path, staged string) {
			s.git("worktree", "add", "-q", "-b", "d", staged)
			check(t, os.WriteFile(filepath.Join(s.dir, ".git/worktrees/d/gitdir"), []byte(path+"/.git\n"), 0o644))
		},
	} {
		path := filepath.Join(s.dir, name)
		st, err := r.stage(path)
		check(t, err)
		st.close()
		before(path, st.path)
		made, err := r.AddWorktree(ctx(t), path, filepath.Base(name))
		check(t, err)
		if got := s.gitIn(path, "status", "--porcelain"); !made || got != "" {
			t.Errorf("%s: made %v, not clean: %s", name, made, got)
		}
		if got := s.gitIn(path, "rev-parse", "--show-toplevel"); got != path {
			t.Errorf("%s: its top level is %s", name, got)
		}
		if _, err := r.GitDir(path); err != nil {
			t.Error(err)
		}
	}
	if got := s.git("worktree", "list", "--porcelain"); strings.Contains(got, "staging") || strings.Contains(got, "prunable") || strings.Count(got, "worktree ") != 5 {
		t.Errorf("%s", got)
	}
	if _, err := os.Lstat(filepath.Join(s.dir, "staging")); err == nil {
		t.Error("the place was left")
	}
	check(t, os.RemoveAll(filepath.Join(s.dir, "a")))
	if _, err := r.AddWorktree(ctx(t), filepath.Join(s.dir, "a"), "a2"); err == nil || !strings.Contains(err.Error(), "git worktree prune") {
		t.Errorf("one that was deleted: %v", err)
	}
}
