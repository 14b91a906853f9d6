package workspace

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/internal/atomicfile"
)

// TestReposAtOnce: who changes the list waits for another process's change, whose repo would else be lost.
func TestReposAtOnce(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	on := func(change func(home, root string) (bool, error), root string, want bool) {
		t.Helper()
		if changed, err := change(home, root); err != nil || changed != want {
			t.Errorf("%s: %t, %v", root, changed, err)
		}
	}
	on(AddRepo, "/b", true)
	on(AddRepo, "/b", false)
	done := make(chan bool, 1)
	err := atomicfile.Alone(ReposFile(home), func() error { // another process
		go func() {
			on(AddRepo, "/a", true)
			done <- true
		}()
		select {
		case <-done:
			t.Error("it did not wait")
			done <- true
		case <-time.After(50 * time.Millisecond):
		}
		return atomicfile.Write(ReposFile(home), []byte(`["/b", "/c"]`), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if got, err := daemon.LoadRepos(ReposFile(home)); err != nil || !slices.Equal(got, []string{"/a", "/b", "/c"}) {
		t.Errorf("%v, %v", got, err)
	}
	on(RemoveRepo, "/b", true)
	on(RemoveRepo, "/b", false)
	if got, err := daemon.LoadRepos(ReposFile(home)); err != nil || !slices.Equal(got, []string{"/a", "/c"}) {
		t.Errorf("%v, %v", got, err)
	}
}
