package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"sluice/internal/fault"
)

// Limits for what is written and what is read.
const (
	// MaxLineBytes is the longest line, with its newline. It is this large because a run's first
	// line holds its specs.
	MaxLineBytes = 4 << 20
	// MaxBatchEntries is the most entries one Append takes.
	MaxBatchEntries = 1024
	// MaxBatchBytes is the most bytes one Append, or one group of Appends
	// that share a sync, may come to.
	MaxBatchBytes = 16 << 20
)

// The fixed parts of a line. The end has a fixed length, so the sum is found by position, whatever
// the payload is.
const (
	headSeq   = `{"seq":`
	headAt    = `,"at":"`
	headEvent = `","event":`
	headFacts = `,"facts":[`
	tailPrev  = `],"prev":"`
	tailSum   = `"` + sumKey
	sumKey    = `,"sum":"`
	tailEnd   = `"}`

	hexLen    = 2 * sha256.Size
	atLayout  = "2006-01-02T15:04:05.000000000Z"
	sumLen    = len(sumKey) + hexLen + len(tailEnd) // not covered by the sum
	endLen    = len(tailPrev) + hexLen + len(tailSum) + hexLen + len(tailEnd)
	maxSeqLen = 19
	// lineRest is the most a line needs beyond appendBody's output; lineOverhead, the most beyond
	// its event and facts.
	lineRest     = len(headSeq) + maxSeqLen + endLen + 1
	lineOverhead = lineRest + len(headAt) + len(atLayout) + len(headEvent) + len(headFacts)
)

// Record is one line: an event and what was decided on it.
type Record struct {
	Seq   int64             // from 1, without gaps
	At    time.Time         // UTC, nanoseconds
	Event json.RawMessage   // as given, without newlines between tokens
	Facts []json.RawMessage // in the given order; may be empty
	Prev  string            // hex SHA-256 of the previous line; 64 zeros in the first
	Sum   string            // hex SHA-256 of this line up to its sum
}

// Entry is what a caller appends: a record without its place in the chain.
type Entry struct {
	At    time.Time
	Event json.RawMessage
	Facts []json.RawMessage
}

// ErrRefused is an entry or a batch that cannot be recorded: too long, not JSON, or not UTF-8.
// Nothing was written; a retry does not help.
var ErrRefused = errors.New("refused")

// point is a place in the chain: just after a record.
type point struct {
	seq        int64
	start, end int64             // of the record's line, with its newline
	sum        [sha256.Size]byte // the record's sum
	hash       [sha256.Size]byte // of the whole line: the next record's prev
}

// appendBody encodes the part of a line from the time to the last fact. That part does not depend
// on the chain, so callers encode concurrently and leave only the rest to the writer.
func appendBody(buf []byte, e Entry) ([]byte, error) {
	start := len(buf)
	at := e.At.UTC()
	if y := at.Year(); y < 0 || y > 9999 {
		return buf, fault.New("give a real time", "append: %w: the year %d has not four digits", ErrRefused, y)
	}
	buf = append(buf, headAt...)
	buf = at.AppendFormat(buf, atLayout)
	buf = append(buf, headEvent...)
	buf, err := appendJSON(buf, e.Event)
	if err != nil {
		return buf, fmt.Errorf("append: %w: the event %w", ErrRefused, err)
	}
	buf = append(buf, headFacts...)
	for i, f := range e.Facts {
		if i > 0 {
			buf = append(buf, ',')
		}
		if buf, err = appendJSON(buf, f); err != nil {
			return buf, fmt.Errorf("append: %w: fact %d %w", ErrRefused, i, err)
		}
	}
	if n := lineRest + len(buf) - start; n > MaxLineBytes {
		return buf, fault.New("name long texts by path and digest",
			"append: %w: a line of %d bytes is over the limit of %d", ErrRefused, n, MaxLineBytes)
	}
	return buf, nil
}

// appendJSON adds one JSON value and ensures that it stays on one line.
func appendJSON(buf []byte, raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) > MaxLineBytes:
		return buf, fault.New("name long texts by path and digest", "has %d bytes, and a line has at most %d", len(raw),
			MaxLineBytes)
	case !utf8.Valid(raw):
		return buf, fault.New("encode it as JSON text", "is not UTF-8")
	case !json.Valid(raw):
		return buf, fault.New("encode it first", "is not JSON")
	}
	return append(buf, oneLine(raw)...), nil
}

// oneLine returns valid JSON on one line. In valid JSON, newlines only appear between tokens.
func oneLine(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if bytes.IndexByte(raw, '\n') < 0 {
		return raw
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		panic("journal: JSON that was valid is not: " + err.Error())
	}
	return out.Bytes()
}

// appendLine encodes the record that follows p and returns the new record's point.
func appendLine(buf []byte, p point, body []byte) ([]byte, point) {
	start := len(buf)
	buf = append(buf, headSeq...)
	buf = strconv.AppendInt(buf, p.seq+1, 10)
	buf = append(buf, body...)
	buf = append(buf, tailPrev...)
	buf = hex.AppendEncode(buf, p.hash[:])
	buf = append(buf, '"')
	sum := sha256.Sum256(buf[start:])
	buf = append(buf, sumKey...)
	buf = hex.AppendEncode(buf, sum[:])
	buf = append(buf, tailEnd...)
	next := point{seq: p.seq + 1, start: p.end, sum: sum, hash: sha256.Sum256(buf[start:])}
	buf = append(buf, '\n')
	next.end = p.end + int64(len(buf)-start)
	return buf, next
}

// parsed is a parsed line; its slices alias the line.
type parsed struct {
	seq       int64
	at        time.Time
	event     json.RawMessage
	facts     []json.RawMessage
	prev, sum []byte            // hex
	raw, line [sha256.Size]byte // the sum, and the hash of the whole line
}

// record copies only the two sums; the caller must own the line.
func (p *parsed) record() Record {
	return Record{Seq: p.seq, At: p.at, Event: p.event, Facts: p.facts, Prev: string(p.prev), Sum: string(p.sum)}
}

// checkSum checks a line (without its newline) against the sum at its end. A snapshot's first line
// has the same form.
func checkSum(line []byte) ([sha256.Size]byte, error) {
	n := len(line) - sumLen
	if n < 0 || string(line[n:n+len(sumKey)]) != sumKey || string(line[len(line)-len(tailEnd):]) != tailEnd {
		return [sha256.Size]byte{}, errors.New("the line does not end in a sum")
	}
	sum := sha256.Sum256(line[:n])
	var want [hexLen]byte
	hex.Encode(want[:], sum[:])
	// Compared as text, so that upper-case hex counts as a change.
	if string(want[:]) != string(line[n+len(sumKey):len(line)-len(tailEnd)]) {
		return sum, errors.New("the sum does not match")
	}
	return sum, nil
}

// parseLine parses a line (without its newline). It accepts exactly what appendLine writes. It
// reuses facts for the result.
func parseLine(line []byte, facts []json.RawMessage) (parsed, error) {
	var p parsed
	if len(line) >= MaxLineBytes {
		return p, fmt.Errorf("the line is longer than %d bytes", MaxLineBytes)
	}
	if len(line) < lineOverhead-maxSeqLen-1 {
		return p, errors.New("the line is too short")
	}
	var err error
	if p.raw, err = checkSum(line); err != nil {
		return p, err
	}
	if !utf8.Valid(line) || !json.Valid(line) {
		return p, errors.New("the line is not JSON")
	}
	p.line = sha256.Sum256(line)
	p.sum = line[len(line)-len(tailEnd)-hexLen : len(line)-len(tailEnd)]
	rest := line[:len(line)-endLen]
	if string(line[len(rest):len(rest)+len(tailPrev)]) != tailPrev {
		return p, errors.New(`"prev" is not where it should be`)
	}
	p.prev = line[len(rest)+len(tailPrev) : len(rest)+len(tailPrev)+hexLen]
	if rest, err = p.parseHead(rest); err != nil {
		return p, err
	}
	return p, p.parsePayload(rest, facts[:0])
}

// parseHead reads the seq and the time, and returns what follows "event":.
func (p *parsed) parseHead(b []byte) ([]byte, error) {
	b, ok := bytes.CutPrefix(b, []byte(headSeq))
	digits := bytes.IndexByte(b, ',')
	if !ok || digits < 1 || b[0] < '1' || b[0] > '9' {
		return nil, errors.New(`the line does not begin with a "seq"`)
	}
	var err error
	if p.seq, err = strconv.ParseInt(string(b[:digits]), 10, 64); err != nil {
		return nil, errors.New(`"seq" is not a number`)
	}
	b, ok = bytes.CutPrefix(b[digits:], []byte(headAt))
	if !ok || len(b) < len(atLayout) {
		return nil, errors.New(`"at" is not where it should be`)
	}
	at := string(b[:len(atLayout)])
	// time.Parse is lenient (one-digit hours, a decimal comma); here each time has one spelling.
	if p.at, err = time.Parse(atLayout, at); err != nil || p.at.Format(atLayout) != at {
		return nil, errors.New(`"at" is not a UTC time with nanoseconds`)
	}
	if b, ok = bytes.CutPrefix(b[len(atLayout):], []byte(headEvent)); !ok {
		return nil, errors.New(`"event" is not where it should be`)
	}
	return b, nil
}

// parsePayload reads the event and the facts; b ends before the "]" of facts.
func (p *parsed) parsePayload(b []byte, facts []json.RawMessage) error {
	n := valueLen(b)
	p.event, b = b[:n:n], b[n:]
	b, ok := bytes.CutPrefix(b, []byte(headFacts))
	if n == 0 || !ok {
		return errors.New(`"event" and "facts" are not where they should be`)
	}
	for len(b) > 0 {
		if len(facts) > 0 {
			if b[0] != ',' {
				return errors.New(`"facts" is not a plain list`)
			}
			b = b[1:]
		}
		if n = valueLen(b); n == 0 {
			return errors.New(`"facts" is not a plain list`)
		}
		facts = append(facts, b[:n:n])
		b = b[n:]
	}
	p.facts = facts
	return nil
}

// valueLen returns the length of the JSON value at the start of b; 0: none. The caller has checked
// that the whole line is valid JSON.
func valueLen(b []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		if inString {
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
				if depth == 0 {
					return i + 1
				}
			}
			continue
		}
		switch c {
		case '"':
			if depth == 0 && i > 0 {
				return i
			}
			inString = true
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', ':':
			if depth == 0 {
				return i
			}
		}
	}
	if depth > 0 || inString {
		return 0
	}
	return len(b) // a number or a word that ends the list
}
