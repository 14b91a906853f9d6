package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestAlone: of many changes none is lost.
func TestAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := Alone(file, func() error {
				data, err := os.ReadFile(file)
				if err != nil && !os.IsNotExist(err) {
					return err
				}
				return Write(file, append(data, 'x'), 0o600)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if data, err := os.ReadFile(file); err != nil || string(data) != strings.Repeat("x", 20) {
		t.Errorf("%q, %v", data, err)
	}
	if err := Alone(filepath.Join(file, "none"), func() error { return nil }); err == nil {
		t.Error("it has a lock where there is no folder")
	}
}
