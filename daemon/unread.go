package daemon

import (
	"errors"
	"fmt"

	"sluice/engine"
	"sluice/internal/text"
	"sluice/journal"
)

// Unread is a record that this release cannot read: a newer one has written it. Nothing can be decided
// after it.
type Unread struct {
	Seq  int64  `json:"seq"`
	Kind string `json:"kind"` // of the fact that cannot be read

	err error
}

func (u *Unread) Error() string { return fmt.Sprintf("journal record %d: %v", u.Seq, u.err) }

func (u *Unread) Unwrap() error { return u.err }

// Reads returns what of a record this release cannot read; nil: it reads all of it.
func Reads(rec journal.Record) (u *Unread) {
	_, err := decodeFacts(rec)
	errors.As(err, &u)
	return u
}

func decodeFacts(rec journal.Record) ([]engine.Fact, error) {
	facts := make([]engine.Fact, 0, len(rec.Facts))
	for _, raw := range rec.Facts {
		f, err := engine.DecodeFact(raw)
		if err != nil {
			return nil, &Unread{Seq: rec.Seq, Kind: text.Line(headOf(raw).Kind), err: err}
		}
		facts = append(facts, f)
	}
	return facts, nil
}
