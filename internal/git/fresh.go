package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own checksum
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"os"
	"time"
)

// Git's index, version 2 and 3 (gitformat-index(5)): a header of 12 bytes, then the entries. Each
// starts with its file's times, ends with the name and is padded with NULs to a multiple of 8
// bytes. The file ends with a checksum.
const (
	indexHead   = 12
	entryCTime  = 0 // 4 bytes of seconds, 4 of nanoseconds
	timesSize   = 8
	entrySHA    = 40 // offset of the object's name
	extendedBit = 0x4000
)

var errIndexForm = errors.New("not an index of version 2 or 3")

// forgetFresh drops the times of files that changed in the second of began or later, so that git
// reads them again next time. Git compares whole seconds: a file rewritten in that second, with its
// time restored, would look unchanged.
func forgetFresh(index, format string, began time.Time) error {
	data, err := os.ReadFile(index) // only ours
	if err != nil {
		return err
	}
	sum := sha1.New()
	if format == "sha256" {
		sum = sha256.New()
	}
	at, err := dropTimes(data, sum.Size(), uint32(began.Unix()))
	if err == nil && len(at) > 0 {
		err = patch(index, data, at, sum)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", index, errors.Join(err, os.Remove(index)))
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

// dropTimes clears the times of entries whose file changed in the second since or later, and
// returns their offsets.
func dropTimes(data []byte, hashSize int, since uint32) (dropped []int, err error) {
	if len(data) < indexHead+hashSize || !bytes.Equal(data[:4], []byte("DIRC")) {
		return nil, errIndexForm
	}
	if v := binary.BigEndian.Uint32(data[4:]); v != 2 && v != 3 {
		return nil, errIndexForm
	}
	at, end := indexHead, len(data)-hashSize
	for range binary.BigEndian.Uint32(data[8:]) {
		flags := at + entrySHA + hashSize
		if flags+2 > end {
			return dropped, errIndexForm
		}
		name := flags + 2
		if binary.BigEndian.Uint16(data[flags:])&extendedBit != 0 {
			name += 2
		}
		if name > end {
			return dropped, errIndexForm
		}
		length := bytes.IndexByte(data[name:end], 0)
		if length < 0 {
			return dropped, errIndexForm
		}
		if binary.BigEndian.Uint32(data[at+entryCTime:]) >= since {
			clear(data[at+entryCTime : at+entryCTime+timesSize])
			dropped = append(dropped, at+entryCTime)
		}
		at += (name + length - at + 8) / 8 * 8
	}
	return dropped, nil
}
