package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/cluster"
)

// A key that agents could read is not used.
func TestNoKeyInTheRepo(t *testing.T) {
	t.Parallel()
	root, away := realDir(t), realDir(t)
	key := func(dir string) string {
		file := filepath.Join(dir, "worker.nk")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	in, out, link := key(root), key(away), filepath.Join(away, "link.nk")
	if err := os.Symlink(in, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of   *Cluster
		seen bool
	}{
		{nil, false}, {&Cluster{}, false},
		{&Cluster{Servers: cluster.Servers{NKey: out}, Workers: out}, false},
		{&Cluster{Servers: cluster.Servers{NKey: in}}, true},
		{&Cluster{Servers: cluster.Servers{NKey: out}, Workers: link}, true},
	} {
		err := c.of.unseen(root)
		if (err != nil) != c.seen || err != nil && !strings.Contains(err.Error(), "agents can read it") {
			t.Errorf("%+v: %v", c.of, err)
		}
	}
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
