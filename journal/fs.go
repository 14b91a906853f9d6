package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// File is an open file as the journal uses it.
type File interface {
	io.ReaderAt
	io.WriterAt // a write past the end extends the file; an error may leave part of it written
	io.Closer
	Sync() error               // on nil, data and size are on the disk
	Truncate(size int64) error // only makes it shorter
	Size() (int64, error)
}

// FS is the journal's interface to the disk. Names are full paths. Errors satisfy errors.Is with
// the values of io/fs.
type FS interface {
	Open(name string) (File, error)      // an existing file, to read
	OpenWrite(name string) (File, error) // an existing file, to read and write
	Create(name string) (File, error)    // an empty file, to read and write; an existing one is truncated
	Rename(from, to string) error        // atomic, replaces
	Remove(name string) error
	ReadDir(dir string) ([]string, error) // the names in a folder
	SyncDir(dir string) error             // creations, renames and removals in it are on the disk
}

const filePerm = 0o600

// OSFS returns the real disk. Only the owner can read the files it creates.
func OSFS() FS { return osFS{} }

type osFS struct{}

func (osFS) Open(name string) (File, error) { return wrap(os.Open(name)) }
func (osFS) OpenWrite(name string) (File, error) {
	return wrap(os.OpenFile(name, os.O_RDWR, filePerm))
}
func (osFS) Create(name string) (File, error) {
	return wrap(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm))
}
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) Remove(name string) error     { return os.Remove(name) }
func (osFS) SyncDir(dir string) error     { return syncDir(dir) }

func (osFS) ReadDir(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Exists reports whether the folder has a journal. On an error that is not known, as in another user's folder.
func Exists(dir string) (bool, error) {
	_, err := os.Lstat(path(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// openSized opens a file to read, and measures it.
func openSized(fsys FS, name string) (File, int64, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%s: cannot be measured: %w", name, err)
	}
	return f, size, nil
}

func wrap(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return syncData(f.File) }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
