package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// spool copies r to a file that goes when it is closed.
func spool(r io.Reader, most int64) (f *os.File, digest string, size int64, err error) {
	if f, err = os.CreateTemp("", "sluice-pack-"); err != nil {
		return nil, "", 0, final{err}
	}
	h := sha256.New()
	if err = os.Remove(f.Name()); err != nil {
		err = final{err}
	} else if size, err = io.Copy(io.MultiWriter(onDisk{f}, h), io.LimitReader(r, most+1)); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && size > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	if err != nil {
		_ = f.Close() // it is gone
		return nil, "", size, err
	}
	return f, hex.EncodeToString(h.Sum(nil)), size, nil
}

// final is an error that no repetition changes: one of this machine.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// onDisk marks the errors of a file.
type onDisk struct{ f *os.File }

func (d onDisk) Write(p []byte) (int, error) { return own(d.f.Write(p)) }
func (d onDisk) Read(p []byte) (int, error)  { return own(d.f.Read(p)) }

func own(n int, err error) (int, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		err = final{err}
	}
	return n, err
}
