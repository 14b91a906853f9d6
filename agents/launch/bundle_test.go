package launch

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/layout"
)

// What an agent has put in the place of a launch's files keeps the others from nothing.
func TestOutputAmongWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(own string) error{
		"nothing": func(string) error { return nil },
		"a file":  func(own string) error { return os.WriteFile(own, nil, 0o600) },
		"a link":  func(own string) error { return os.Symlink(own, own) },
		"folders": func(own string) error { return os.MkdirAll(filepath.Join(own, "answer.json"), 0o700) },
	} {
		l, dir := layout.Layout{Root: t.TempDir()}, ".workflow/runs/far-1/A.1"
		at := l.Path(dir)
		if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "stdout"), []byte("out"), 0o600),
			put(filepath.Join(at, layout.OwnDir))); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := PackOutput(l, dir, &out); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		in := tar.NewReader(&out)
		h, err := in.Next()
		if err != nil || h.Name != "stdout" {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		if h, err := in.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}
