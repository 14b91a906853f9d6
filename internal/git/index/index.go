// Package index reads and patches git's index files of version 2 and 3 (gitformat-index(5)), which
// only sluice writes.
package index

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own checksum
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"time"
)

// An index is a header of 12 bytes, then the entries. Each starts with its file's times, ends with
// the name and is padded with NULs to a multiple of 8 bytes. The file ends with a checksum.
const (
	indexHead   = 12
	timesSize   = 8  // of ctime, with which an entry begins: 4 bytes of seconds, 4 of nanoseconds
	entryMode   = 24 // 4 bytes
	entrySHA    = 40 // offset of the object's name
	extendedBit = 0x4000
	modeLink    = 0o160000
)

// ForgetFresh drops the times of files that changed in the second of began or later, so that git
// reads them again next time. Git compares whole seconds: a file rewritten in that second, with its
// time restored, would look unchanged.
func ForgetFresh(index, format string, began time.Time) error {
	sum, since := hashOf(format), uint32(began.Unix())
	var dropped []int
	data, err := read(index, sum, func(at int, entry, _ []byte) {
		if binary.BigEndian.Uint32(entry) >= since {
			clear(entry[:timesSize])
			dropped = append(dropped, at)
		}
	})
	if err != nil || len(dropped) == 0 {
		return err
	}
	if err := patch(index, data, dropped, sum); err != nil {
		return errors.Join(err, os.Remove(index))
	}
	return nil
}

// patch writes the times at these offsets, and the checksum, in place. Each entry is independent,
// so a kill in between leaves none wrong, and git ignores the checksum when it reads an index.
func patch(index string, data []byte, at []int, sum hash.Hash) error {
	f, err := os.OpenFile(index, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	end := len(data) - sum.Size()
	sum.Write(data[:end])
	_, err = f.WriteAt(sum.Sum(nil), int64(end))
	for _, i := range at {
		_, werr := f.WriteAt(data[i:i+timesSize], int64(i))
		err = errors.Join(err, werr)
	}
	return errors.Join(err, f.Close())
}

// Links returns the paths of an index's submodules; none if the index is missing.
func Links(index, format string) (links []string, err error) {
	_, err = read(index, hashOf(format), func(_ int, entry, name []byte) {
		if binary.BigEndian.Uint32(entry[entryMode:]) == modeLink {
			links = append(links, string(name))
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return links, err
}

// read calls fn with each entry of an index, its offset and its name. One of another form is removed: git
// makes it again.
func read(index string, sum hash.Hash, fn func(at int, entry, name []byte)) ([]byte, error) {
	data, err := os.ReadFile(index)
	if err == nil && !eachEntry(data, sum.Size(), fn) {
		err = fmt.Errorf("%s: not an index of version 2 or 3", index)
		err = errors.Join(err, os.Remove(index))
	}
	return data, err
}

func eachEntry(data []byte, hashSize int, fn func(at int, entry, name []byte)) bool {
	if len(data) < indexHead+hashSize || !bytes.Equal(data[:4], []byte("DIRC")) {
		return false
	}
	if v := binary.BigEndian.Uint32(data[4:]); v != 2 && v != 3 {
		return false
	}
	at, end := indexHead, len(data)-hashSize
	for range binary.BigEndian.Uint32(data[8:]) {
		flags := at + entrySHA + hashSize
		if flags+2 > end {
			return false
		}
		name := flags + 2
		if binary.BigEndian.Uint16(data[flags:])&extendedBit != 0 {
			name += 2
		}
		if name > end {
			return false
		}
		length := bytes.IndexByte(data[name:end], 0)
		if length < 0 {
			return false
		}
		fn(at, data[at:name], data[name:name+length])
		at += (name + length - at + 8) / 8 * 8
	}
	return true
}

func hashOf(format string) hash.Hash {
	if format == "sha256" {
		return sha256.New()
	}
	return sha1.New()
}
