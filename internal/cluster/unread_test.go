package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/journal"
	"sluice/tools/natstest"
)

// A machine whose release cannot read a record takes every byte, says which record, and never leads:
// not when the leader dies, nor after a restart.
func TestUnreadRecord(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	a, b := newMachine(t, "a", s.URL()), newMachine(t, "b", s.URL())
	id := a.begin(1)
	if err := b.conn.Join(t.Context(), b.options(id), b.state, nil); err != nil {
		t.Fatal(err)
	}
	d := a.mustLead(id, false)
	newer := journal.Entry{At: time.Now(), Event: []byte(`{"kind":"test","n":0}`),
		Facts: []json.RawMessage{[]byte(`{"kind":"ignored","why":"known"}`), []byte(`{"kind":"of_tomorrow"}`)}}
	seq, _, err := d.log.Append(newer)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.append(1); err != nil { // what comes after it is copied too
		t.Fatal(err)
	}
	d.die()

	for _, standby := range []bool{true, false} { // the second finds the record in its own file
		o := b.options(id)
		o.Standby = standby
		m := b.conn.Member(o)
		ctx, stop := context.WithTimeout(t.Context(), 3*testLease)
		err := m.Take(ctx, b.state)
		stop()
		m.Close()
		if err == nil {
			t.Error("it leads")
		}
		if u := m.Report().Unread; u == nil || u.Seq != seq || u.Kind != "of_tomorrow" {
			t.Errorf("it says %+v of record %d", u, seq)
		}
		if !bytes.Equal(b.file(), a.file()) || strings.Count(string(b.stream(id)), "\n") != int(seq)+1 {
			t.Error("its file is not the journal, or something was appended")
		}
	}
	var u *daemon.Unread
	if _, err := b.conn.Begin(t.Context(), b.options(""), b.state, New{Replicas: 1, Lease: testLease}); !errors.As(err, &u) {
		t.Errorf("it begins a stream anew: %v", err)
	}
	if !bytes.Equal(b.file(), a.file()) {
		t.Error("Begin has appended to its file")
	}
}
