package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// adder takes a file into an archive.
type adder func(name string, mode fs.FileMode, data []byte) error

// pack puts a folder into an archive, with everything that would tell two builds apart left out:
// who, when and in which order.
func pack(file, dir, top string, at time.Time) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	err = walk(dir, top, func(name string, mode fs.FileMode, data []byte) error {
		err := t.WriteHeader(&tar.Header{Name: name, Mode: int64(mode), Size: int64(len(data)), ModTime: at,
			Format: tar.FormatUSTAR})
		if err == nil {
			_, err = t.Write(data)
		}
		return err
	})
	return errors.Join(err, t.Close(), z.Close())
}

// walk visits the files by name.
func walk(dir, top string, add adder) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if filepath.Base(path) == "sluice" {
			mode = 0o755
		}
		return add(top+"/"+filepath.ToSlash(rel), mode, data)
	})
}

// squeeze makes NAME.gz of each file of a folder, as man pages lie in a Debian system.
func squeeze(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return walk(from, "", func(name string, _ fs.FileMode, data []byte) (err error) {
		f, err := os.Create(filepath.Join(to, filepath.Base(name)+".gz"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
		if err == nil {
			_, err = z.Write(data)
			err = errors.Join(err, z.Close())
		}
		return err
	})
}
