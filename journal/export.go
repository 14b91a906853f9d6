package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"sluice/internal/fault"
	"sluice/internal/strictjson"
)

// maxExportLineBytes limits a line of an export: one fact of a record, in plain JSON.
const maxExportLineBytes = strictjson.PlainMost*MaxLineBytes + 256

// ErrExportChanged reports that someone else wrote to, cut or replaced the open export, as a git
// checkout does. Open it again and continue from its Last.
var ErrExportChanged = errors.New("the export was changed by somebody else")

// Line is one line of an export: one fact.
type Line struct {
	Seq  int64           `json:"seq"` // of the record in the journal
	N    int             `json:"n"`   // index among the record's facts, from 0
	At   time.Time       `json:"at"`  // of the record
	Fact json.RawMessage `json:"fact"`
	Sum  string          `json:"sum"` // of the record
}

// Keep reports whether fact n of a record belongs in an export.
type Keep func(r Record, n int) bool

// Lines returns the export's lines for a record.
func Lines(r Record, keep Keep) []Line {
	var lines []Line
	for n, fact := range r.Facts {
		if keep(r, n) {
			lines = append(lines, Line{Seq: r.Seq, N: n, At: r.At, Fact: fact, Sum: r.Sum})
		}
	}
	return lines
}

// Export is a readable copy, in the repo, of a part of the journal: one fact per line. It is not
// synced: lines lost in a crash are appended again from the journal. It is for one goroutine at a
// time.
type Export struct {
	name string
	file *os.File
	size int64
	buf  []byte
	seq  int64
	n    int
}

// OpenExport opens the export at name, or creates it; its folder must exist. It cuts off a torn
// last line. It follows no link at name, because agents can write to the repo. If the last line is
// not an export's, it returns a *Fault: move the file away and export everything again.
func OpenExport(name string) (*Export, error) {
	f, err := openPlain(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be opened to write: %w", name, err)
	}
	x := &Export{name: name, file: f}
	if err := x.findEnd(); err != nil {
		f.Close()
		return nil, err
	}
	return x, nil
}

// findEnd finds the last whole line and cuts off what follows it.
func (x *Export) findEnd() error {
	st, err := x.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: cannot be measured: %w", x.name, err)
	}
	end := st.Size()
	// The last whole line and the torn one together are at most this long.
	start := max(end-2*maxExportLineBytes, 0)
	for window := int64(64 << 10); ; window *= 8 {
		from := max(end-window, start)
		data := make([]byte, end-from)
		if n, err := x.file.ReadAt(data, from); n < len(data) {
			return fmt.Errorf("%s: cannot be read: %w", x.name, err)
		}
		last := bytes.LastIndexByte(data, '\n')
		before := bytes.LastIndexByte(data[:max(last, 0)], '\n')
		if from > start && before < 0 {
			continue
		}
		if before < 0 && from > 0 {
			return &Fault{File: x.name, Kind: FaultDiffers}
		}
		x.size = from + int64(last) + 1
		if last >= 0 {
			line, err := parseExportLine(data[before+1 : last])
			if err != nil {
				return &Fault{File: x.name, Kind: FaultDiffers, Why: err.Error()}
			}
			x.seq, x.n = line.Seq, line.N
		}
		break
	}
	if x.size < end {
		if err := x.file.Truncate(x.size); err != nil {
			return fmt.Errorf("%s: the torn last line cannot be cut off: %w", x.name, err)
		}
	}
	return nil
}

// Last returns the last line's record seq and fact index; 0, 0 if there is no line.
func (x *Export) Last() (seq int64, n int) { return x.seq, x.n }

// Append adds the lines after Last and skips the others, so a record may be passed in again. On an
// error the export is unchanged, and the same lines may be appended again.
func (x *Export) Append(lines ...Line) error {
	x.buf = x.buf[:0]
	seq, n := x.seq, x.n
	for _, line := range lines {
		if line.Seq < seq || line.Seq == seq && line.N <= n {
			continue
		}
		x.buf = appendExportLine(x.buf, line)
		seq, n = line.Seq, line.N
	}
	if len(x.buf) == 0 {
		return nil
	}
	if err := x.unchanged(); err != nil {
		return err
	}
	if _, err := x.file.WriteAt(x.buf, x.size); err != nil {
		if cutErr := x.file.Truncate(x.size); cutErr != nil {
			err = fmt.Errorf("%w (and what was written of it cannot be cut off: %w)", err, cutErr)
		}
		return fmt.Errorf("%s: cannot be written: %w: it is completed from the journal later", x.name, err)
	}
	x.size, x.seq, x.n = x.size+int64(len(x.buf)), seq, n
	if cap(x.buf) > keepBufferBytes {
		x.buf = nil
	}
	return nil
}

// unchanged checks that the name still refers to the opened file and that its size is as expected.
func (x *Export) unchanged() error {
	mine, err := x.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: cannot be measured: %w", x.name, err)
	}
	named, err := os.Lstat(x.name)
	if err != nil || !os.SameFile(mine, named) || mine.Size() != x.size {
		return fault.New("open it again", "%s: %w", x.name, ErrExportChanged)
	}
	return nil
}

// Close closes the file.
func (x *Export) Close() error { return x.file.Close() }

func appendExportLine(buf []byte, l Line) []byte {
	buf = append(buf, headSeq...)
	buf = strconv.AppendInt(buf, l.Seq, 10)
	buf = append(buf, `,"n":`...)
	buf = strconv.AppendInt(buf, int64(l.N), 10)
	buf = append(buf, headAt...)
	buf = l.At.UTC().AppendFormat(buf, atLayout)
	buf = append(buf, `","fact":`...)
	buf = append(buf, strictjson.Plain(oneLine(l.Fact))...)
	buf = append(buf, `,"sum":"`...)
	buf = append(buf, l.Sum...)
	return append(buf, tailEnd+"\n"...)
}

// parseExportLine accepts exactly what appendExportLine writes, or wrote before its JSON was plain.
func parseExportLine(data []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(data, &l); err != nil {
		return l, fmt.Errorf("the line is not JSON: %w", err)
	}
	if l.Seq < 1 || l.N < 0 || len(l.Sum) != hexLen || len(l.Fact) == 0 {
		return l, errors.New("the line is not one of an export")
	}
	if again := appendExportLine(nil, l); !bytes.Equal(again[:len(again)-1], strictjson.Plain(data)) {
		return l, errors.New("the line is not one of an export")
	}
	return l, nil
}

// WriteLines writes the export of the journal in dir, limited to the facts that keep chooses. If
// the journal is damaged, it writes what precedes the damage and returns a *Damage.
func WriteLines(to io.Writer, dir string, keep Keep, opt Options) error {
	return eachLine(dir, keep, opt, func(line Line) error {
		_, err := to.Write(appendExportLine(nil, line))
		return err
	})
}

// eachLine passes each line that keep chooses to each. It reads the journal as it is when opened.
func eachLine(dir string, keep Keep, opt Options, each func(Line) error) error {
	name := path(dir, FileName)
	f, size, err := openSized(opt.fs(), name)
	if err != nil {
		return err
	}
	defer f.Close()
	s := newScanner(f, name, point{}, size)
	for {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, line := range Lines(p.record(), keep) {
			if err := each(line); err != nil {
				return err
			}
		}
	}
}

// FaultKind is how an export differs from the journal.
type FaultKind string

// The kinds of a Fault.
const (
	FaultDiffers FaultKind = "differs" // the line differs from the journal
	FaultMissing FaultKind = "missing" // a line is missing here
	FaultExtra   FaultKind = "extra"   // the journal has no such line
	// all lines agree, but the last ones are missing: a daemon that starts adds them
	FaultBehind FaultKind = "behind"
)

// Fault is the first place where an export differs from the journal.
type Fault struct {
	File string
	Line int64 // in the export, from 1; 0: the last one, uncounted
	Kind FaultKind
	Seq  int64  // of the record; 0 if the line cannot be read
	N    int    // of the fact; 0 if the line cannot be read
	Why  string // detail, or ""
}

func (f *Fault) Error() string {
	todo := "move the file away: sluice writes it again from the journal"
	if f.Kind == FaultBehind {
		todo = "start the daemon: it completes the file"
	}
	line := "the last line"
	if f.Line > 0 {
		line = "line " + strconv.FormatInt(f.Line, 10)
	}
	what := string(f.Kind)
	if f.Seq > 0 {
		what += fmt.Sprintf(" (record %d, fact %d)", f.Seq, f.N)
	}
	if f.Why != "" {
		what += ": " + f.Why
	}
	return fmt.Sprintf("%s: %s: %s: %s", f.File, line, what, todo)
}

// ExportReport is what VerifyExport found.
type ExportReport struct {
	Lines        int64 // lines that agree with the journal
	Behind       int64 // lines that the journal has and the export does not have yet
	PartialBytes int64 // length of a last line without a newline
}

// VerifyExport compares the export at name with the journal in dir, byte by byte; keep chooses what
// belongs in it. It returns a *Fault for the first differing line, or a *Damage if the journal
// itself is damaged.
func VerifyExport(name, dir string, keep Keep, opt Options) (ExportReport, error) {
	var rep ExportReport
	f, err := openPlain(name, os.O_RDONLY)
	if err != nil {
		return rep, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return rep, fmt.Errorf("%s: cannot be measured: %w", name, err)
	}
	c := &comparison{rep: &rep, name: name, lines: bufio.NewReaderSize(io.LimitReader(f, st.Size()), readBufferBytes)}
	// Measure the journal after the export: beside a working daemon, it then has every line that is
	// read of the export.
	if err := eachLine(dir, keep, opt, c.compare); err != nil {
		return rep, err
	}
	return rep, c.end()
}

// comparison reads an export beside the journal.
type comparison struct {
	rep    *ExportReport
	name   string
	lines  *bufio.Reader
	ended  bool
	behind Line // the first missing line
}

func (c *comparison) fault(kind FaultKind, seq int64, n int) error {
	return &Fault{File: c.name, Line: c.rep.Lines + 1, Kind: kind, Seq: seq, N: n}
}

// read returns the next whole line of the export, with its newline.
func (c *comparison) read() ([]byte, error) {
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxExportLineBytes:
			return nil, c.fault(FaultDiffers, 0, 0)
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF):
			c.ended, c.rep.PartialBytes = true, int64(len(line))
			return nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%s: cannot be read: %w", c.name, err)
		}
	}
}

// compare checks the next line of the export against the journal's.
func (c *comparison) compare(want Line) error {
	if !c.ended {
		got, err := c.read()
		if err != nil {
			return err
		}
		if !c.ended {
			if bytes.Equal(strictjson.Plain(got), appendExportLine(nil, want)) {
				c.rep.Lines++
				return nil
			}
			return c.judge(got, want)
		}
		c.behind = want
	}
	c.rep.Behind++
	return nil
}

func (c *comparison) judge(got []byte, want Line) error {
	l, err := parseExportLine(got[:len(got)-1])
	switch {
	case err != nil:
		return c.fault(FaultDiffers, want.Seq, want.N)
	case l.Seq > want.Seq || l.Seq == want.Seq && l.N > want.N:
		return c.fault(FaultMissing, want.Seq, want.N)
	case l.Seq < want.Seq || l.N < want.N:
		return c.fault(FaultExtra, l.Seq, l.N)
	}
	return c.fault(FaultDiffers, want.Seq, want.N)
}

// end runs when the journal has no more lines.
func (c *comparison) end() error {
	if c.rep.Behind > 0 {
		return c.fault(FaultBehind, c.behind.Seq, c.behind.N)
	}
	got, err := c.read()
	if err != nil || c.ended {
		return err
	}
	l, err := parseExportLine(got[:len(got)-1])
	if err != nil {
		return c.fault(FaultExtra, 0, 0)
	}
	return c.fault(FaultExtra, l.Seq, l.N)
}
