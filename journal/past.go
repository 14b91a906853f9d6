package journal

import (
	"fmt"
	"time"
)

// CheckPast reads the records that Open skipped because of a snapshot and checks their chain. It
// returns a *Damage for the first break. The state is not in doubt then, because the snapshot is
// chained to the records after it; the history before it is.
//
// It may run beside appends. It calls rest every few hundred records with the time that they took;
// rest keeps the load low by waiting. An error from rest stops it and is returned unchanged.
func (l *Log) CheckPast(rest func(took time.Duration) error) error {
	if l.from.seq == 0 {
		return nil
	}
	f, err := l.fs.Open(l.name)
	if err != nil {
		return fmt.Errorf("%s: cannot be read: %w", l.name, err)
	}
	defer f.Close()
	s := newScanner(f, l.name, point{}, l.from.end)
	for s.at.seq < l.from.seq {
		began := time.Now()
		for n := 0; n < markEvery && s.at.seq < l.from.seq; n++ {
			if _, err := s.more(); err != nil {
				return err
			}
		}
		if err := rest(time.Since(began)); err != nil {
			return err
		}
	}
	if s.at.hash != l.from.hash {
		return s.damage(another(s.at.seq))
	}
	return nil
}
