package journal

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// Verify reads the leads of a journal: each epoch is higher than the one before.
func TestVerifyLeads(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	lead := func(epoch int64) Entry { return Lead{Epoch: epoch, By: "a"}.Entry(at) }
	left := Left{Epoch: 3, By: "a"}.Entry(at)
	for name, c := range map[string]struct {
		entries []Entry
		epoch   int64
		left    bool
		bad     int64 // the record
	}{
		"none":          {[]Entry{{At: at, Event: []byte(`{"kind":"left"}`)}}, 0, false, 0},
		"led":           {[]Entry{lead(1), lead(3)}, 3, false, 0},
		"left":          {[]Entry{lead(3), left}, 3, true, 0},
		"begun again":   {[]Entry{lead(3), left, lead(4)}, 4, false, 0},
		"an old epoch":  {[]Entry{lead(3), lead(2)}, 3, false, 2},
		"the same":      {[]Entry{lead(3), left, lead(3)}, 3, true, 3},
		"clock":         {[]Entry{Lead{Epoch: 1, Ahead: MaxAhead.Milliseconds()}.Entry(at)}, 1, false, 0},
		"absurd clock":  {[]Entry{Lead{Epoch: 1, Ahead: -MaxAhead.Milliseconds() - 1}.Entry(at)}, 0, false, 0},
		"with decision": {[]Entry{{At: at, Event: lead(3).Event, Facts: []json.RawMessage{[]byte(`{"kind":"x"}`)}}}, 0, false, 0},
	} {
		dir := t.TempDir()
		log, _, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := log.Append(c.entries...); err != nil {
			t.Fatal(err)
		}
		log.Close()
		rep, err := Verify(dir, Options{})
		var d *Damage
		if bad := errors.As(err, &d); bad != (c.bad > 0) || bad && d.Line != c.bad {
			t.Errorf("%s: %v", name, err)
		}
		if rep.Epoch != c.epoch || rep.Left != c.left {
			t.Errorf("%s: epoch %d, left %v", name, rep.Epoch, rep.Left)
		}
	}
}

// The id at the beginning of a journal is read without opening it.
func TestIDIn(t *testing.T) {
	t.Parallel()
	id := NewID()
	for name, c := range map[string]struct {
		event string
		want  string
	}{
		"with":    {string(WithID([]byte(`{"kind":"x"}`), id)), id},
		"without": {`{"kind":"x"}`, ""},
		"another": {`{"journal":"x","kind":"` + id + `"}`, ""},
		"later":   {`{"kind":"x","journal":"` + id + `"}`, ""},
	} {
		dir := t.TempDir()
		if got := IDIn(dir); got != "" {
			t.Errorf("%s: no journal has the id %s", name, got)
		}
		log, _, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := log.Append(Entry{At: time.Now(), Event: []byte(c.event)}); err != nil {
			t.Fatal(err)
		}
		log.Close()
		if got := IDIn(dir); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
