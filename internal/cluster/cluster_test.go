package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/fault"
	"sluice/journal"
	"sluice/tools/natstest"
)

const testLease = 3 * time.Second // longer than a loaded machine stalls

// machine is a host with a state folder of its own.
type machine struct {
	t     testing.TB
	name  string
	state string
	conn  *Conn
	skew  time.Duration // of its clock
}

func newMachine(t testing.TB, name, urls string) *machine {
	t.Helper()
	conn, err := Connect(Servers{URLs: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &machine{t: t, name: name, state: t.TempDir(), conn: conn}
}

func (m *machine) options(id string) Options {
	return Options{ID: id, By: m.name, Now: func() time.Time { return time.Now().Add(m.skew) }, Logf: func(format string, args ...any) {
		m.t.Logf(m.name+": "+format, args...)
	}}
}

// begin creates the stream.
func (m *machine) begin(replicas int) string {
	m.t.Helper()
	b, err := m.conn.Begin(context.Background(), m.options(""), m.state, New{Replicas: replicas, Lease: testLease})
	if err != nil {
		m.t.Fatal(err)
	}
	return b.ID
}

// decider is a machine that leads.
type decider struct {
	*machine
	member *Member
	log    *journal.Log
	stop   context.CancelFunc
}

// lead waits until the machine leads.
func (m *machine) lead(id string, standby bool, within time.Duration) (*decider, error) {
	m.t.Helper()
	o := m.options(id)
	o.Standby = standby
	d := &decider{machine: m, member: m.conn.Member(o)}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	limit := time.AfterFunc(within, stop)
	if err := d.member.Take(ctx, m.state); err != nil {
		d.member.Close()
		return nil, err
	}
	if !limit.Stop() {
		return nil, errors.New("too late")
	}
	log, _, err := journal.Open(m.state, journal.Options{Copy: d.member.Copy})
	if err != nil {
		m.t.Fatal(err)
	}
	d.log = log
	m.t.Cleanup(func() { d.end() })
	return d, nil
}

func (m *machine) mustLead(id string, standby bool) *decider {
	m.t.Helper()
	d, err := m.lead(id, standby, 5*time.Minute)
	if err != nil {
		m.t.Fatalf("%s does not lead: %v", m.name, err)
	}
	return d
}

// end ends the decider as a stop of the service does.
func (d *decider) end() {
	d.stop()
	d.member.Close()
	d.log.Close()
}

// die ends it as a kill does: it leaves the lease as it is.
func (d *decider) die() {
	d.member.mu.Lock()
	d.member.gone = true // nothing is renewed, or given back
	d.member.mu.Unlock()
	d.end()
}

func (d *decider) append(n int) error {
	_, _, err := d.log.Append(journal.Entry{At: time.Now(), Event: fmt.Appendf(nil, `{"kind":"test","n":%d}`, n)})
	return err
}

func (m *machine) file() []byte {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.state, journal.FileName))
	if err != nil {
		m.t.Fatal(err)
	}
	return data
}

// stream returns what the stream has. A loaded server may leave a request unanswered.
func (m *machine) stream(id string) []byte {
	m.t.Helper()
	s := m.conn.streamOf(id)
	ask := func(f func() (what string, err error)) {
		m.t.Helper()
		for until := time.Now().Add(time.Minute); ; time.Sleep(retryAfter) {
			what, err := f()
			if err == nil && what == "" {
				return
			}
			if err != nil || time.Now().After(until) {
				m.t.Fatal(what, err)
			}
		}
	}
	ask(func() (string, error) {
		_, what, err := s.look(context.Background())
		return what, err
	})
	var all []byte
	for seq, is := uint64(1), there; is == there; seq++ {
		ask(func() (what string, err error) {
			var data []byte
			data, is, what, err = s.get(context.Background(), seq)
			all = append(all, data...)
			return what, err
		})
	}
	return all
}

func (m *machine) sameAsStream(id string) {
	m.t.Helper()
	if file, stream := m.file(), m.stream(id); !bytes.Equal(file, stream) {
		m.t.Fatalf("%s: the file has %d bytes and the stream %d, and they differ", m.name, len(file), len(stream))
	}
	if _, err := journal.Verify(m.state, journal.Options{}); err != nil {
		m.t.Fatal(err)
	}
}

// follows lets a standby follow until its file is the stream.
func (m *machine) follows(id string) {
	m.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until) && !bytes.Equal(m.file(), m.stream(id)); {
		if _, err := m.lead(id, true, testLease/2); !errors.Is(err, context.Canceled) {
			m.t.Fatalf("%s: two lead, or %v", m.name, err)
		}
	}
	m.sameAsStream(id)
}

// acknowledged checks that the journal has 0 to n-1, each once and in order.
func (m *machine) acknowledged(n int) {
	m.t.Helper()
	next := 0
	log, _, err := journal.OpenRead(m.state, journal.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	if err := log.Replay(1, func(r journal.Record) error {
		var got int
		if k, _ := fmt.Sscanf(string(r.Event), `{"kind":"test","n":%d}`, &got); k == 1 {
			if got != next {
				return fmt.Errorf("record %d has %d, want %d", r.Seq, got, next)
			}
			next++
		}
		return nil
	}); err != nil || next != n {
		m.t.Fatalf("%s: %d of %d: %v", m.name, next, n, err)
	}
}

// A server that is still starting is waited for.
func TestBeginWaitsForServers(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 3)
	servers.Kill(2)
	time.Sleep(time.Second) // the others see it
	a := newMachine(t, "a", servers.URL(0, 1))
	back := make(chan struct{})
	time.AfterFunc(2*time.Second, func() { servers.Run(2); close(back) })
	a.begin(3)
	<-back
}

func TestOneServer(t *testing.T) {
	servers := natstest.Start(t, 1)
	a, b := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())
	id := a.begin(1)
	d := a.mustLead(id, false)
	for i := range 50 {
		if err := d.append(i); err != nil {
			t.Fatal(err)
		}
	}
	if !d.member.Holds() || d.member.Report().Epoch != 2 {
		t.Errorf("%+v", d.member.Report())
	}
	if err := b.conn.Join(context.Background(), b.options(id), b.state, nil); err != nil {
		t.Fatal(err)
	}
	if marked, err := Marked(b.state); marked != id || err != nil {
		t.Errorf("%q, %v", marked, err)
	}
	// while the leader lives, the standby only follows
	if _, err := b.lead(id, true, 2*testLease); !errors.Is(err, context.Canceled) {
		t.Fatalf("two lead, or %v", err)
	}
	b.follows(id)
	d.die()
	began := time.Now()
	e := b.mustLead(id, true)
	if took := time.Since(began); took < testLease/2 {
		t.Errorf("it took over after %s, with a lease of %s", took, testLease)
	}
	for i := range 50 {
		if err := e.append(50 + i); err != nil {
			t.Fatal(err)
		}
	}
	b.sameAsStream(id)
	b.acknowledged(100)
	if r := e.member.Report(); r.Epoch != 3 || r.Leader != "b" || !r.Leads {
		t.Errorf("%+v", r)
	}
	// the first comes back, and follows
	if _, err := a.lead(id, false, testLease); !errors.Is(err, context.Canceled) {
		t.Fatalf("two lead, or %v", err)
	}
	a.follows(id)
	// one that ends by itself leaves the lead at once
	e.end()
	began = time.Now()
	a.mustLead(id, false)
	if took := time.Since(began); took >= testLease {
		t.Errorf("it took %s to take what nobody has", took)
	}
}

// A stop that comes before the acknowledgement of a renewal leaves the lead all the same.
func TestLeaveAfterARenewal(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, "a", servers.URL())
	id := a.begin(1)
	d := a.mustLead(id, false)
	r, rev, err := d.member.leases.read(t.Context())
	if err == nil {
		_, err = d.member.leases.write(t.Context(), r, rev) // as if it was renewed, and the stop came first
	}
	if err != nil {
		t.Fatal(err)
	}
	d.end()
	if r, _, err := d.member.leases.read(t.Context()); err != nil || !r.Left {
		t.Errorf("%+v, %v", r, err)
	}
}

// A leader that another has deposed records nothing more, and what it had not acknowledged is cut.
func TestDeposed(t *testing.T) {
	servers := natstest.Start(t, 1)
	a, b := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())
	id := a.begin(1)
	d := a.mustLead(id, false)
	if err := d.append(0); err != nil {
		t.Fatal(err)
	}
	d.member.quit() // it hangs: renews nothing, and does not know that it is deposed
	d.member.wg.Wait()
	e := b.mustLead(id, false)
	if err := d.append(7); !errors.Is(err, ErrDeposed) {
		t.Fatalf("a deposed leader appends: %v", err)
	}
	select {
	case <-d.member.Lost():
	default:
		t.Error("it does not know that it is deposed")
	}
	if d.member.Holds() {
		t.Error("effects may begin")
	}
	if err := e.append(1); err != nil {
		t.Fatal(err)
	}
	d.end()
	a.follows(id)
	for _, m := range []*machine{a, b} {
		m.sameAsStream(id)
		m.acknowledged(2)
	}
	kept, err := filepath.Glob(filepath.Join(a.state, "journal.cut-*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("what was cut is kept in %v, %v", kept, err)
	}
	// an idle leader finds out by the lease
	f := a.conn.Member(a.options(id))
	if rev, err := f.leases.write(context.Background(), renewal{Epoch: 99, By: "c"}, revision(t, f)); err != nil || rev == 0 {
		t.Fatal(err)
	}
	select {
	case <-e.member.Lost():
	case <-time.After(10 * testLease):
		t.Error("an idle leader does not find out that it is deposed")
	}
}

func revision(t *testing.T, m *Member) uint64 {
	t.Helper()
	_, rev, err := m.leases.read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// refused checks for exit code 78, and that nothing local was changed.
func (m *machine) refused(id string, want string) {
	m.t.Helper()
	before, _ := os.ReadFile(filepath.Join(m.state, journal.FileName))
	for _, standby := range []bool{false, true} {
		_, err := m.lead(id, standby, 20*time.Second)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.ExitDamaged || !strings.Contains(err.Error(), want) {
			m.t.Fatalf("%s, standby %v: %v, want exit code 78 and %q", m.name, standby, err, want)
		}
	}
	if after, _ := os.ReadFile(filepath.Join(m.state, journal.FileName)); before != nil && !bytes.Equal(before, after) {
		m.t.Fatalf("%s: the local journal was changed", m.name)
	}
}
