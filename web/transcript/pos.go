package transcript

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"sluice/agents"
	"sluice/internal/atomicfile"
)

// Pos is a place in an output: a byte of one of its files. A file keeps its number when it is renamed.
type Pos struct {
	file uint64 // 0 = the first one
	at   int64
}

// String returns the place as a word for an address: 1234, or 77.1234 in a file that is not the first.
func (p Pos) String() string {
	at := strconv.FormatInt(p.at, 10)
	if p.file == 0 {
		return at
	}
	return strconv.FormatUint(p.file, 10) + "." + at
}

// ParsePos reads a place as String writes it.
func ParsePos(s string) (p Pos, ok bool) {
	number, at, has := strings.Cut(s, ".")
	if !has {
		number, at = "0", s
	}
	var err1, err2 error
	p.file, err1 = strconv.ParseUint(number, 10, 64)
	p.at, err2 = strconv.ParseInt(at, 10, 64)
	return p, err1 == nil && err2 == nil && p.at >= 0 && p.String() == s
}

// Output is what a launch prints.
type Output struct {
	Dir    string // the launch's folder
	Name   string // stdout or stderr
	Format string // of the agent's program, as launch.ReadProgram tells it; "" = plain text
	Ended  bool   // no more will come: a last line without an end counts
}

// file is a file of an output that is open.
type file struct {
	number uint64
	f      io.ReaderAt
	size   int64
	last   bool // nothing was written after it
	done   bool // nothing more is written to it
	gap    bool // something may be left out before it
}

// open opens the files that there are, in order: the first one; the one before the newest, before
// which output may be left out; the newest. At the end of the launch all are one. The caller closes
// them. An agent can put a link or a pipe there, which is refused.
func (o Output) open() (files []file, done func(), err error) {
	var opened []*os.File
	done = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	for i, suffix := range []string{"", agents.OldSuffix, agents.TailSuffix} {
		f, st, err := atomicfile.Open(o.Dir, o.Name+suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			done()
			return nil, nil, err
		}
		opened = append(opened, f)
		number := st.Ino
		if i == 0 {
			number = 0
		}
		files = append(files, file{number: number, f: f, size: st.Size, done: true, gap: suffix == agents.OldSuffix})
	}
	if len(files) == 0 {
		return nil, nil, fs.ErrNotExist
	}
	last := &files[len(files)-1]
	last.last, last.done = true, o.Ended
	return files, done, nil
}
