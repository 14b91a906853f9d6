package git

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinkedConfigIsReadAgain: what a link leads to can change without the link.
func TestLinkedConfigIsReadAgain(t *testing.T) {
	s := newSandbox(t)
	s.git("remote", "add", "origin", "https://example.org/one")
	config, shared := filepath.Join(s.dir, ".git/config"), filepath.Join(s.dir, ".git/shared")
	check(t, os.Rename(config, shared))
	check(t, os.Symlink("shared", config))
	r := s.open()
	for _, want := range []string{"https://example.org/one", "https://example.org/two"} {
		s.git("config", "--file", shared, "remote.origin.url", want)
		if got, err := r.RemoteURL(ctx(t), "origin"); err != nil || got != want {
			t.Errorf("%q, want %q (%v)", got, want, err)
		}
	}
}
