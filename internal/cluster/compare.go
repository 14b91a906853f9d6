package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/text"
	"sluice/journal"
)

// Compared is what Compare found.
type Compared struct {
	Stream  string // its name
	Records int64  // of it that were read
	Differs int64  // the first record that is not the same in the file and the stream; 0 = none
	Why     string // what differs; or, with 0, what only one of them has yet
}

// compareIn is the time that a whole stream may take to read.
const compareIn = 10 * time.Minute

// Compare reads the whole stream of a journal and compares it with the file in the state folder. It
// changes nothing and may run beside the daemon: an append may be in only one of them yet, and a
// standby's file may be behind.
func (s Servers) Compare(ctx context.Context, state string) (got Compared, err error) {
	c, err := Connect(s)
	if err != nil {
		return got, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, compareIn)
	defer cancel()
	log, _, err := journal.OpenRead(state, journal.Options{})
	if err != nil {
		return got, err
	}
	defer log.Close()
	past, err := historyOf(log)
	if err != nil {
		return got, err
	}
	if past.newest.Epoch == 0 {
		return got, fault.Failed("omit --cluster", "no machine has ever led this journal, so no stream has it")
	}
	str := c.streamOf(past.id)
	got.Stream = str.name()
	err = got.read(ctx, str, log)
	return got, err
}

// read compares the messages of the stream, one after the other, with the file.
func (c *Compared) read(ctx context.Context, s *stream, log *journal.Log) error {
	head, _ := log.Last()
	prev, next := hex.EncodeToString(make([]byte, sha256.Size)), int64(1)
	var sums []journal.Record // read from the stream and not compared yet, with their sums only
	compare := func() (differ bool, err error) {
		if len(sums) == 0 {
			return false, nil
		}
		var d differs
		if err = same(log, sums, min(next-1, head)); errors.As(err, &d) {
			c.Records, c.Differs, c.Why = d.seq-1, d.seq, fmt.Sprintf("record %d is another one in the file", d.seq)
			return true, nil
		}
		c.Records, sums = next-1, nil
		return false, err
	}
	for seq := uint64(1); ; seq++ {
		data, is, err := s.surely(ctx, seq)
		if err != nil {
			return err
		}
		var records []journal.Record
		over, bad := is == none, false
		if !over {
			records, err = journal.ParseLines(data)
			bad = err != nil || records[0].Seq != next || records[0].Prev != prev
		}
		if over || bad || len(sums) >= compareAtOnce {
			if differ, err := compare(); differ || err != nil {
				return err
			}
		}
		switch {
		case over:
			return c.ends(log, head)
		case bad:
			c.Differs = next
			c.Why = fmt.Sprintf("message %d of the stream does not go on with record %d", seq, next)
			return nil
		}
		for _, r := range records {
			sums = append(sums, journal.Record{Seq: r.Seq, Prev: r.Prev, Sum: r.Sum})
		}
		next += int64(len(records))
		sum := sha256.Sum256(lastLine(data))
		prev = hex.EncodeToString(sum[:])
	}
}

// compareAtOnce is how many records are compared together. Each comparison reads the file from the mark before
// the first of them.
const compareAtOnce = 10_000

// lastLine returns the last of whole lines, without its newline.
func lastLine(lines []byte) []byte {
	lines = lines[:len(lines)-1]
	return lines[bytes.LastIndexByte(lines, '\n')+1:]
}

// surely reads a message, and waits for servers that do not answer.
func (s *stream) surely(ctx context.Context, seq uint64) (data []byte, is found, err error) {
	for {
		what := ""
		if s.s == nil {
			_, what, err = s.look(ctx)
		}
		if err == nil && s.s != nil {
			data, is, what, err = s.get(ctx, seq)
		}
		if err != nil || is != unknown {
			return data, is, err
		}
		if !health.Wait(ctx, retryAfter) {
			return nil, unknown, fault.Failed("try again when they answer", "the servers: %s", what)
		}
	}
}

// ends looks at what follows in the file after the stream's last record: no more than one append, or
// what was recorded after this machine has left.
func (c *Compared) ends(log *journal.Log, head int64) error {
	if head <= c.Records {
		if n := c.Records - head; n > 0 {
			c.Why = "the file is behind by " + text.Plural(int(n), "record")
		}
		return nil
	}
	var at time.Time
	left := false
	err := log.Replay(c.Records+1, func(r journal.Record) error {
		left = left || r.Left()
		if !at.IsZero() && !r.At.Equal(at) && !left && c.Differs == 0 {
			c.Differs = c.Records + 1
		}
		at = r.At
		return nil
	})
	c.Why = text.Plural(int(head-c.Records), "record") + " of the file are not in the stream"
	if left && c.Differs == 0 {
		c.Why += ": this machine has left"
	}
	return err
}
