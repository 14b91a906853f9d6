package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/git"
)

// Worktrees of other runs are made elsewhere and moved to their places meanwhile: that keeps nobody from
// moving a branch.
func TestWhereWhileWorktreesAreMoved(t *testing.T) {
	p := newPerson(t)
	p.busy()
	repo, err := git.OpenWith(t.Context(), p.dir, git.Options{Staging: filepath.Join(p.dir, ".staging")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	if err := os.Mkdir(filepath.Join(p.dir, "trees"), 0o755); err != nil {
		t.Fatal(err)
	}
	added := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 12 && err == nil; i++ {
			_, err = repo.AddWorktree(t.Context(), filepath.Join(p.dir, "trees", fmt.Sprint(i)), fmt.Sprintf("run/%d", i))
		}
		added <- err
	}()
	for looks := 1; ; looks++ {
		if here, why, err := isHere(t.Context(), repo, "refs/heads/main", p.dir); !here || why != "" || err != nil {
			t.Fatalf("look %d: %v %q %v", looks, here, why, err)
		}
		select {
		case err := <-added:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
