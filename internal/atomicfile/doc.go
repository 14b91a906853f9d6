// Package atomicfile writes, moves and reads small files so that neither a crash nor another process
// can make half of one count.
//
// Writing goes through a dotfile in the same folder, which is synced and then renamed, and the folder
// is synced after it: after a crash there is the old file or the new one, never a part of either.
// Moving never overwrites. Reading takes regular files only, follows no link, waits for nothing
// (a plain open of a FIFO hangs until somebody writes to it) and stops at a limit.
package atomicfile

import (
	"errors"
	"io/fs"
	"time"
)

// ErrNotRegular says that a name is no regular file: a link, a pipe, a socket, a device or a folder,
// or that a link lies on the way to it.
var ErrNotRegular = errors.New("not a regular file")

// ErrTooLarge says that a file has more bytes than the caller takes.
var ErrTooLarge = errors.New("file is too large")

// Stat is what tells one state of a file from another. Two equal Stats say that nothing happened to
// the file between them, but for a write within the clock tick of the first or through a memory map,
// which may leave no trace here: who must know compares the content.
type Stat struct {
	Dev, Ino uint64 //
	Size     int64  // in bytes
	ModTime  time.Time
	Mode     fs.FileMode
	Nlink    uint64 // 0 where unknown
	Uid      uint32 // its owner
	// Changed is when anything of it changed, its times and links too; nobody can set it back. Zero where unknown.
	Changed time.Time
}

// Untouched reports whether s and t are Same, and nothing else of the file changed in between: nobody has set its time
// back, and no link was made to it.
func (s Stat) Untouched(t Stat) bool { return s.Same(t) && s.Changed.Equal(t.Changed) }

// Same reports whether s and t are of the same file in the same state; links made to it do not count.
func (s Stat) Same(t Stat) bool {
	return s.Dev == t.Dev && s.Ino == t.Ino && s.Size == t.Size && s.ModTime.Equal(t.ModTime) && s.Mode == t.Mode
}
