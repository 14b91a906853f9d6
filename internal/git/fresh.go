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

// The index of git, version 2 and 3 (gitformat-index(5)): a head of 12 bytes, then the entries. Each begins with the times
// of its file, ends with the name and is padded with NULs to a multiple of 8 bytes. The file ends with a checksum.
const (
	indexHead   = 12
	entryCTime  = 0  // 4 bytes of seconds, 4 of nanoseconds
	entrySHA    = 40 // where the object's name begins
	extendedBit = 0x4000
)

var errIndexForm = errors.New("not an index of version 2 or 3")

// forgetFresh drops the times of files that changed in the second of began or later, so that git reads them again at the
// next taking. It compares whole seconds: a file written once more in that second, with its time put back, would look
// unchanged.
func forgetFresh(index, format string, began time.Time) error {
	data, err := os.ReadFile(index) // ours alone
	if err != nil {
		return err
	}
	sum := sha1.New()
	if format == "sha256" {
		sum = sha256.New()
	}
	n, err := dropTimes(data, sum.Size(), uint32(began.Unix()))
	if err != nil {
		return fmt.Errorf("%s: %w", index, errors.Join(err, os.Remove(index)))
	}
	if n == 0 {
		return nil
	}
	seal(data, sum)
	tmp := index + ".new"
	if err := os.WriteFile(tmp, data, privateOwn); err != nil {
		return err
	}
	return os.Rename(tmp, index)
}

// seal writes the checksum at the end of an index.
func seal(data []byte, sum hash.Hash) {
	end := len(data) - sum.Size()
	sum.Write(data[:end])
	copy(data[end:], sum.Sum(nil))
}

// dropTimes sets the times of entries to 0 whose file changed in the second since or later, and says how many.
func dropTimes(data []byte, hashSize int, since uint32) (dropped int, err error) {
	if len(data) < indexHead+hashSize || !bytes.Equal(data[:4], []byte("DIRC")) {
		return 0, errIndexForm
	}
	if v := binary.BigEndian.Uint32(data[4:]); v != 2 && v != 3 {
		return 0, errIndexForm
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
			clear(data[at+entryCTime : at+entryCTime+8])
			dropped++
		}
		at += (name + length - at + 8) / 8 * 8
	}
	return dropped, nil
}
