package agents

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"sluice/internal/atomicfile"
)

// The files of one stream. Output beyond the head goes to tail; a full tail replaces old. So the
// newest output is always on disk, survives the shim, and the total is bounded. At the end all
// parts are joined into one file.
const (
	stdoutFile = "stdout"
	stderrFile = "stderr"
	TailSuffix = ".tail"     // of the file with the newest output, while the command runs and the head is full
	OldSuffix  = ".tail.old" // of the file that was the tail before

	markerBytes = 256 // reserved for the line about omitted output
)

// sink keeps the head and the tail of a stream in at most max bytes of disk. Without output it
// creates nothing. Its Write never fails, because the command must not be blocked: it counts what
// it cannot keep.
type sink struct {
	below     string // see Spec.Below
	path      string
	head      int64 // limit of the first file
	segment   int64 // limit of each of tail and old
	file      *os.File
	looked    time.Time // last check that the file exists
	room      int64     // left in file
	inTail    bool
	left      int64 // bytes omitted on purpose
	oldBytes  int64 // in old
	unwritten int64 // bytes that could not be written
	failure   error // the first reason for that
}

func newSink(below, path string, limit int64) *sink {
	s := &sink{below: below, path: path, head: limit / 2, segment: segmentOf(limit)}
	s.room = s.head
	return s
}

func segmentOf(limit int64) int64 { return (limit/2 - markerBytes) / 2 }

// create creates a new file and never opens an existing one, which might be a link or a pipe.
func (s *sink) create(name string) error {
	const fresh = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(name, fresh, 0o600)
	if errors.Is(err, fs.ErrExist) {
		os.Remove(name)
		f, err = os.OpenFile(name, fresh, 0o600)
	}
	if err != nil {
		s.fail(0, err)
		return err
	}
	s.file = f
	return nil
}

const (
	thereEvery = time.Second // interval between checks that the file is in place
	thereTries = 10          // attempts per check to restore it
)

// there creates the file, also if the command has removed it, or its folder, as git clean does.
// Otherwise readers of the newest output would see none.
func (s *sink) there() {
	s.looked = time.Now()
	name := s.path
	if s.inTail {
		name += TailSuffix
	}
	gone := s.file
	if gone != nil {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	for range thereTries { // the removal may be in progress, folder by folder
		err := makeDir(s.below, filepath.Dir(name))
		if err == nil {
			err = s.create(name)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if s.file == gone || gone == nil {
		return // Write retries if it could not be created
	}
	defer gone.Close()
	_, err := gone.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(s.file, gone)
	}
	if err != nil {
		s.fail(0, err)
	}
}

func (s *sink) fail(n int, err error) {
	s.unwritten += int64(n)
	if s.failure == nil {
		s.failure = err
	}
}

// Write keeps or counts all of p.
func (s *sink) Write(p []byte) (int, error) {
	total := len(p)
	if total > 0 && (s.file == nil || time.Since(s.looked) >= thereEvery) {
		s.there()
	}
	for len(p) > 0 {
		if s.room == 0 {
			s.turn()
		}
		part := p[:min(int64(len(p)), s.room)]
		p = p[len(part):]
		s.room -= int64(len(part))
		if s.file == nil {
			s.unwritten += int64(len(part))
			continue
		}
		if n, err := s.file.Write(part); err != nil {
			s.fail(len(part)-n, err)
		}
	}
	return total, nil
}

// turn switches to a new tail.
func (s *sink) turn() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	tail := s.path + TailSuffix
	if s.inTail {
		s.left += s.oldBytes
		s.oldBytes = s.segment
		if err := os.Rename(tail, s.path+OldSuffix); err != nil {
			s.fail(0, err)
		}
	}
	s.inTail, s.room = true, s.segment
	_ = s.create(tail)
}

// close joins the files. It returns why not all of the output is kept; "" = all is, or the limit left some out.
func (s *sink) close() (lost string) {
	if s.file != nil || s.unwritten > 0 {
		s.there()
	}
	if s.file != nil {
		s.file.Close()
	}
	if !s.inTail && s.failure == nil {
		return ""
	}
	if _, err := os.Lstat(s.path); s.inTail && errors.Is(err, fs.ErrNotExist) {
		if s.create(s.path); s.file != nil { // the head is gone: keep the tail
			s.file.Close()
		}
	}
	var note string
	if s.left > 0 {
		note = fmt.Sprintf("\n[sluice: %d bytes of output are left out here]\n", s.left)
	}
	if s.unwritten > 0 {
		note += fmt.Sprintf("\n[sluice: %d bytes of output could not be written: %.100v]\n", s.unwritten, s.failure)
	}
	if err := join(s.path, note, s.segment); err != nil {
		s.fail(0, err)
	}
	if s.failure == nil {
		return ""
	}
	return fmt.Sprintf("%d bytes of it could not be written: %.100v", s.unwritten, s.failure)
}

// joinOutput joins the files of a launch whose shim could not; limit is its MaxOutput.
func joinOutput(dir string, limit int64) {
	for _, name := range []string{stdoutFile, stderrFile} {
		path := filepath.Join(dir, name)
		note := ""
		if _, err := os.Lstat(path + OldSuffix); err == nil {
			note = "\n[sluice: some output may be left out here]\n"
		}
		_ = join(path, note, segmentOf(limit)) // its launch is lost, whatever it printed
	}
}

// join appends the note and the newest output to the head. The files may have been replaced, so it
// reads at most a segment of each. After an error the newest output stays where it is.
func join(path, note string, segment int64) error {
	old, tail := path+OldSuffix, path+TailSuffix
	if _, err := os.Lstat(tail); errors.Is(err, fs.ErrNotExist) && note == "" {
		os.Remove(old)
		return nil
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|openSafely, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	info, err := out.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return cmp.Or(err, atomicfile.ErrNotRegular)
	}
	_, err = io.WriteString(out, note)
	for _, part := range []string{old, tail} {
		f, _, no := atomicfile.Open(filepath.Split(part))
		if no != nil {
			continue
		}
		_, no = io.Copy(out, io.LimitReader(f, segment))
		err = errors.Join(err, no, f.Close())
	}
	if err != nil {
		return errors.Join(err, out.Truncate(info.Size()))
	}
	os.Remove(old)
	os.Remove(tail)
	return nil
}

// Tail returns at most n bytes of the newest output in dir, also of a live launch: of stdout and
// stderr, each under its name if it has any. Either can use what the other leaves of its half.
func Tail(dir string, n int) []byte {
	names := [...]string{stdoutFile, stderrFile}
	var parts [len(names)][]byte
	for i, name := range names {
		parts[i] = lastBytes(filepath.Join(dir, name), n+1) // the extra byte shows that there is more
	}
	room := n
	for i, name := range names {
		if len(parts[i]) > 0 {
			room -= len(name) + len(":\n\n")
		}
	}
	if room <= 0 {
		return nil
	}
	half := room / 2
	a, b := len(parts[0]), len(parts[1])
	switch {
	case a+b <= room:
	case a <= half:
		b = room - a
	case b <= half:
		a = room - b
	default:
		a, b = half, half
	}
	var out bytes.Buffer
	for i, keep := range []int{a, b} {
		if len(parts[i]) == 0 {
			continue
		}
		out.WriteString(names[i] + ":\n")
		text := wholeRunes(parts[i], keep)
		out.Write(text)
		if !bytes.HasSuffix(text, []byte("\n")) {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// wholeRunes returns at most the last n bytes of text, starting at a character.
func wholeRunes(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	for i := range min(utf8.UTFMax, len(text)) {
		if utf8.RuneStart(text[i]) {
			return text[i:]
		}
	}
	if len(text) < utf8.UTFMax {
		return nil
	}
	return text // not UTF-8
}

// lastBytes returns the newest n bytes of a stream, across its files.
func lastBytes(path string, n int) []byte {
	var last []byte
	for _, name := range []string{path + TailSuffix, path + OldSuffix, path} {
		if len(last) >= n {
			break
		}
		f, st, err := atomicfile.Open(filepath.Split(name))
		if err != nil {
			continue
		}
		want := min(int64(n-len(last)), st.Size)
		part := make([]byte, want)
		got, _ := f.ReadAt(part, st.Size-want)
		last = append(part[:got], last...)
		f.Close()
	}
	return last
}

// LastOutput returns when the newest output in dir was written; without any, the zero time.
func LastOutput(dir string) time.Time {
	var last time.Time
	for _, name := range []string{stdoutFile, stderrFile} {
		for _, suffix := range []string{"", TailSuffix} {
			info, err := os.Lstat(filepath.Join(dir, name+suffix))
			if err == nil && info.Mode().IsRegular() && info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
	}
	return last
}
