//go:build !unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

func statOf(info fs.FileInfo) Stat {
	return Stat{Size: info.Size(), ModTime: info.ModTime(), Mode: info.Mode()}
}

func isCrossDevice(error) bool { return false }

// OpenDir opens a folder for listing. A link to one is followed here.
func OpenDir(dir string) (*os.File, error) { return os.Open(dir) }

// SyncDir does nothing here: this system has no way to sync a folder.
func SyncDir(string) error { return nil }

func renameNew(src, dst string) error { return renameByLink(src, dst) }

// openBeneath relies on the look before it: a link swapped in after that look is followed here.
func openBeneath(dir, name string) (*os.File, error) { return os.Open(filepath.Join(dir, name)) }

// RealPath is filepath.EvalSymlinks.
func RealPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// MountID is not known here: "".
func MountID(string) string { return "" }

// exchange is not known here.
func exchange(string, string) error { return errors.ErrUnsupported }
