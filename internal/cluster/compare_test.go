package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/journal"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// The file and the stream are compared record by record, and the first difference is named.
func TestCompare(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "13-cluster compared", "`audit verify` compares file and stream")
	servers := natstest.Start(t, 1)
	a, b := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())
	compared := func(m *machine, records, differs int64, why string) {
		t.Helper()
		got, err := Servers{URLs: servers.URL()}.Compare(context.Background(), m.state)
		if err != nil || got.Records != records || got.Differs != differs || !strings.Contains(got.Why, why) || why == "" && got.Why != "" {
			t.Errorf("%s: %+v, %v; want %d records, the first that differs %d, and %q", m.name, got, err, records, differs, why)
		}
	}
	alone := func(m *machine, texts ...string) { // appends to the file alone
		t.Helper()
		log, _, err := journal.Open(m.state, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for i, s := range texts {
			if _, _, err := log.Append(journal.Entry{At: time.Now().Add(time.Duration(i) * time.Second), Event: fmt.Appendf(nil, `{"kind":%q}`, s)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := (Servers{URLs: servers.URL()}).Compare(context.Background(), t.TempDir()); err == nil {
		t.Error("a journal that nobody has led is compared")
	}
	id := a.begin(1)
	d := a.mustLead(id, false)
	for i := range 5 {
		if err := d.append(i); err != nil {
			t.Fatal(err)
		}
	}
	compared(a, 7, 0, "")
	if _, err := b.lead(id, true, testLease/2); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.follows(id)
	if err := d.append(5); err != nil {
		t.Fatal(err)
	}
	compared(b, 8, 0, "behind by 1 record")
	alone(b, "x", "y")
	compared(b, 7, 8, "record 8 is another one in the file")
	d.end()
	alone(a, "unacknowledged")
	compared(a, 8, 0, "1 record of the file are not in the stream")
	alone(a, "more")
	compared(a, 8, 9, "2 records of the file are not in the stream")
	if _, err := journal.Repair(a.state, 8, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Leave(a.state, a.options("")); err != nil {
		t.Fatal(err)
	}
	alone(a, "more", "and more")
	compared(a, 8, 0, "this machine has left")
	if _, err := a.conn.js.Publish(context.Background(), subjectPrefix+id, []byte("foreign\n")); err != nil {
		t.Fatal(err)
	}
	compared(a, 8, 9, "message 9 of the stream does not go on with record 9")
}

// A machine that has left, and decided alone, begins the stream again with a new epoch.
func TestLeaveAndBeginAgain(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, "a", servers.URL())
	id := a.begin(1)
	a.mustLead(id, false).end()
	for range 2 { // as after a crash before the mark was removed
		if err := Leave(a.state, a.options("")); err != nil {
			t.Fatal(err)
		}
		if err := writeMark(a.state, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := Leave(a.state, a.options("")); err != nil {
		t.Fatal(err)
	}
	if err := Leave(a.state, a.options("")); err == nil {
		t.Error("it leaves what it has left")
	}
	if again := a.begin(1); again != id {
		t.Errorf("it begins %s, and was %s", again, id)
	}
	d := a.mustLead(id, false)
	if e := d.member.Report().Epoch; e != 4 {
		t.Errorf("epoch %d", e)
	}
	a.sameAsStream(id)
	rep, err := journal.Verify(a.state, journal.Options{})
	if err != nil || rep.Epoch != 4 || rep.Left || rep.Records != 5 {
		t.Errorf("%+v, %v", rep, err)
	}
}
