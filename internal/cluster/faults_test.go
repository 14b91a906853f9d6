package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"sluice/internal/fault"
	"sluice/journal"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// An append that times out is recorded once, however often it is tried, and nobody is "deposed" by it:
// the servers that follow stop, so that the stream's leader has no majority, and go on later.
func TestTimedOutAppendIsRecordedOnce(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 3)
	a := newMachine(t, "a", servers.URL())
	id := a.begin(3)
	d := a.mustLead(id, false)
	next := 0
	for range 3 {
		if err := d.append(next); err != nil {
			t.Fatal(err)
		}
		next++
		leader := servers.LeaderOf(streamPrefix + id)
		for i := range 3 {
			if i != leader {
				servers.Stop(i)
			}
		}
		done := make(chan error, 1)
		go func() { done <- d.append(next) }()
		for until := time.Now().Add(10 * requestIn); d.member.Report().Stalled == ""; time.Sleep(retryAfter) {
			select {
			case err := <-done:
				t.Fatalf("acknowledged by one server of three: %v", err)
			default:
			}
			if time.Now().After(until) {
				t.Fatal("nobody is told that it waits")
			}
		}
		time.Sleep(2 * requestIn) // it has timed out, and is tried again
		for i := range 3 {
			if i != leader {
				servers.Continue(i)
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after the majority is back: %v", err)
			}
			next++
		case <-time.After(30 * time.Second):
			t.Fatal("the append never ends")
		}
	}
	a.sameAsStream(id)
	a.acknowledged(next)
	if d.member.Report().Epoch != 2 || d.member.Report().Stalled != "" {
		t.Errorf("%+v", d.member.Report())
	}
}

// The decider and the server that leads the stream die together; the standby reads from the server
// that was cut off, and so is behind. What was acknowledged is all there. Then all servers lose what
// they have stored: nobody begins anew.
func TestDeciderAndServerDieTogether(t *testing.T) {
	conform.Rule(t, "13-cluster minority", "acknowledged records, byte-equal files; with all stores wiped, nobody begins anew")
	t.Parallel()
	appends := 500
	if os.Getenv("SLUICE_TORTURE") != "" {
		appends = 5000
	}
	servers := natstest.Start(t, 3)
	a := newMachine(t, "a", servers.URL())
	id := a.begin(3)
	leader := servers.LeaderOf(streamPrefix + id)
	minority := (leader + 1) % 3
	b := newMachine(t, "b", servers.URL(minority))
	if err := b.conn.Join(context.Background(), b.options(id), b.state, nil); err != nil {
		t.Fatal(err)
	}
	d := a.mustLead(id, false)
	led := make(chan *decider, 1)
	go func() {
		e, err := b.lead(id, true, 2*time.Minute)
		if err != nil {
			t.Errorf("the standby: %v", err)
		}
		led <- e
	}()
	for i := range appends {
		if i == appends-appends/10 {
			servers.Stop(minority) // cut off: the rest is not there
		}
		if err := d.append(i); err != nil {
			t.Fatal(err)
		}
	}
	servers.Kill(leader)
	d.die()
	servers.Continue(minority)
	killed := time.Now()
	var e *decider
	select {
	case e = <-led:
	case <-time.After(time.Minute):
		t.Fatal("the standby never leads")
	}
	if e == nil {
		return
	}
	t.Logf("the standby leads after %s", time.Since(killed))
	if err := e.append(appends); err != nil {
		t.Fatal(err)
	}
	b.sameAsStream(id)
	b.acknowledged(appends + 1)
	e.end()

	servers.Run(leader)
	servers.Ready()
	a.follows(id)
	if !bytes.Equal(a.file(), b.file()) {
		t.Error("the two machines' journals differ")
	}

	for i := range 3 {
		servers.Kill(i)
		servers.Wipe(i)
	}
	for i := range 3 {
		servers.Run(i)
	}
	servers.Ready()
	empty := newMachine(t, "c", servers.URL())
	for _, m := range []*machine{a, b, empty} {
		m.refused(id, "they were emptied, or are others")
	}
	err := empty.conn.Join(context.Background(), empty.options(id), empty.state, nil)
	if f, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(f.Advice, "check the id") {
		t.Errorf("a machine joins what is not there: %v", err)
	}
	// a person begins it again from what a machine has
	if again := a.begin(3); again != id {
		t.Errorf("it begins another: %s", again)
	}
	f := b.mustLead(id, false)
	if err := f.append(appends + 1); err != nil {
		t.Fatal(err)
	}
	b.sameAsStream(id)
	b.acknowledged(appends + 2)
}

// A stream that somebody has changed is refused, whatever the change.
func TestEditedStreams(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	js := newMachine(t, "editor", servers.URL()).conn.js
	ctx := context.Background()
	name := func(id string) string { return streamPrefix + id }
	edit := func(id string, f func(*jetstream.StreamConfig)) {
		s, err := js.Stream(ctx, name(id))
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		f(&c)
		if _, err := js.UpdateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	// again makes the stream anew with some of its messages, as an editor would that cannot delete any
	again := func(id string, f func([][]byte) [][]byte) {
		s, err := js.Stream(ctx, name(id))
		if err != nil {
			t.Fatal(err)
		}
		var all [][]byte
		for seq := range s.CachedInfo().State.LastSeq {
			m, err := s.GetMsg(ctx, seq+1)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m.Data)
		}
		c := s.CachedInfo().Config
		if err := js.DeleteStream(ctx, name(id)); err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
		for _, data := range f(all) {
			if _, err := js.Publish(ctx, subjectPrefix+id, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string // with "…": only who reads all of it can find it
		edit func(id string)
		want string
	}{
		{"emptied", func(id string) { again(id, func([][]byte) [][]byte { return nil }) }, "a daemon never begins a record"},
		{"a message is gone…", func(id string) {
			again(id, func(all [][]byte) [][]byte { return append(all[:2:2], all[3:]...) })
		}, "is no part of this record"},
		{"a record says something else…", func(id string) {
			again(id, func(all [][]byte) [][]byte {
				all[2] = []byte(strings.Replace(string(all[2]), `"n":0`, `"n":7`, 1))
				return all
			})
		}, "the sum does not match"},
		{"a foreign message", func(id string) {
			if _, err := js.Publish(ctx, subjectPrefix+id, []byte(`{"hello":1}`)); err != nil {
				t.Fatal(err)
			}
		}, "is no part of this record"},
		{"it drops old messages", func(id string) { edit(id, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }) },
			"has another max_age"},
		{"any replica answers", func(id string) { edit(id, func(c *jetstream.StreamConfig) { c.AllowDirect = true }) },
			"has another allow_direct"},
		{"it takes in others", func(id string) {
			edit(id, func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "x."+id) })
		}, "has another subjects"},
		{"no lease", func(id string) { edit(id, func(c *jetstream.StreamConfig) { c.Metadata[leaseKey] = "soon" }) },
			"is no lease"},
		{"of another journal", func(id string) {
			other := newMachine(t, "other", servers.URL())
			foreign := other.begin(1)
			msg := other.stream(foreign)
			again(id, func([][]byte) [][]byte { return [][]byte{msg} })
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, "m", servers.URL())
			id := m.begin(1)
			d := m.mustLead(id, false)
			for i := range 4 {
				if err := d.append(i); err != nil {
					t.Fatal(err)
				}
			}
			d.end()
			c.edit(id)
			if strings.HasSuffix(c.name, "…") {
				m = newMachine(t, "new", servers.URL())
			}
			m.refused(id, c.want)
		})
	}
}

// What a machine has more than the stream is sent where nothing else stands there, and otherwise
// refused: more than an append cannot be without an acknowledgement.
func TestLocalTails(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	appendAlone := func(m *machine, at ...int) {
		t.Helper()
		log, _, err := journal.Open(m.state, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range at {
			if _, _, err := log.Append(journal.Entry{At: time.Now(), Event: fmt.Appendf(nil, `{"kind":"test","n":%d}`, n)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("behind", func(t *testing.T) {
		a := newMachine(t, "a", servers.URL())
		id := a.begin(1)
		appendAlone(a, 0, 1, 2, 3)
		d := a.mustLead(id, false)
		if err := d.append(4); err != nil {
			t.Fatal(err)
		}
		a.sameAsStream(id)
		a.acknowledged(5)
	})
	t.Run("one append differs", func(t *testing.T) {
		a, b := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())
		id := a.begin(1)
		appendAlone(a, 7)
		b.mustLead(id, false).end()
		d := a.mustLead(id, false)
		if err := d.append(0); err != nil {
			t.Fatal(err)
		}
		a.sameAsStream(id)
		a.acknowledged(1)
	})
	t.Run("several differ", func(t *testing.T) {
		a, b := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())
		id := a.begin(1)
		appendAlone(a, 7, 8)
		b.mustLead(id, false).end()
		a.refused(id, "have different records from 2 on: 2 records here are not in the stream")
	})
	t.Run("several differ, and the stream has as many", func(t *testing.T) {
		a, b := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())
		id := a.begin(1)
		appendAlone(a, 7, 8)
		d := b.mustLead(id, false)
		if err := d.append(0); err != nil {
			t.Fatal(err)
		}
		d.end()
		a.refused(id, "have different records from 2 on: 2 records here are not in the stream")
	})
	t.Run("a torn line, and a group the stream has whole", func(t *testing.T) {
		a := newMachine(t, "a", servers.URL())
		id := a.begin(1)
		d := a.mustLead(id, false)
		at := time.Now()
		var group []journal.Entry
		for i := range 3 {
			group = append(group, journal.Entry{At: at, Event: fmt.Appendf(nil, `{"kind":"test","n":%d}`, i)})
		}
		if _, _, err := d.log.Append(group...); err != nil {
			t.Fatal(err)
		}
		d.end()
		file := filepath.Join(a.state, journal.FileName)
		data := a.file()
		if err := os.Truncate(file, int64(len(data)-400)); err != nil { // in the middle of the second
			t.Fatal(err)
		}
		a.mustLead(id, false).end()
		a.sameAsStream(id)
		a.acknowledged(3)
	})
	t.Run("larger than a message", func(t *testing.T) {
		a := newMachine(t, "a", servers.URL())
		id := a.begin(1)
		d := a.mustLead(id, false)
		at := time.Now()
		var group []journal.Entry
		for i, size := range []int{3 << 20, 10, 600 << 10, 600 << 10, journal.MaxLineBytes - 1000} {
			group = append(group, journal.Entry{At: at, Event: fmt.Appendf(nil, `{"kind":"test","n":%d,"pad":%q}`, i, strings.Repeat("x", size))})
		}
		if _, _, err := d.log.Append(group...); err != nil {
			t.Fatal(err)
		}
		a.sameAsStream(id)
		a.acknowledged(5)
		b := newMachine(t, "b", servers.URL())
		d.end()
		b.mustLead(id, false)
		b.sameAsStream(id)
	})
}

// The journal of an older release has its id only in a later record: a machine that was interrupted
// before it has that goes on, and a foreign journal does not pass for it.
func TestOldJournal(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	old := func(m *machine, from int) {
		t.Helper()
		log, _, err := journal.Open(m.state, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if _, _, err := log.Append(journal.Entry{At: time.Now(), Event: fmt.Appendf(nil, `{"kind":"test","n":%d}`, from+i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	a, b, c := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL()), newMachine(t, "c", servers.URL())
	old(a, 0)
	id := a.begin(1)
	part := a.file()
	for range 3 {
		part = part[:strings.LastIndexByte(string(part[:len(part)-1]), '\n')+1]
	}
	if err := os.WriteFile(filepath.Join(b.state, journal.FileName), part, 0o600); err != nil {
		t.Fatal(err)
	}
	b.mustLead(id, false).end()
	b.sameAsStream(id)
	b.acknowledged(5)
	old(c, 100)
	if err := c.conn.Join(context.Background(), c.options(id), c.state, nil); err == nil || !strings.Contains(err.Error(), "is not that of stream") {
		t.Errorf("a foreign journal joins: %v", err)
	}
	c.refused(id, "have different records from 1 on")
	if _, err := journal.Repair(c.state, 0, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := c.conn.Join(context.Background(), c.options(id), c.state, nil); err != nil {
		t.Errorf("the advice does not help: %v", err)
	}
}

// Of machines that all begin at once one leads, and the others follow; each leads in its turn, also
// one that was too late before.
func TestManyBeginAtOnce(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a := newMachine(t, "a", servers.URL())
	id := a.begin(1)
	const n = 4
	var mu sync.Mutex // of the one that leads
	leads := 0
	var wg sync.WaitGroup
	last := newMachine(t, "last", servers.URL())
	for i := range n {
		m := newMachine(t, fmt.Sprint("m", i), servers.URL())
		wg.Go(func() {
			for appended := false; !appended; { // on a busy machine another may take over before
				d, err := m.lead(id, false, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if err := d.append(leads); err == nil {
					leads, appended = leads+1, true
				} else if d.member.Holds() {
					t.Errorf("it leads, and cannot append: %v", err)
					appended = true
				}
				d.die()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	last.mustLead(id, false)
	last.sameAsStream(id)
	last.acknowledged(n)
}

// A full server stalls the leader and loses nothing; it goes on when there is room.
func TestFullStream(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1, natstest.Store(2<<20))
	a := newMachine(t, "a", servers.URL())
	id := a.begin(1)
	d := a.mustLead(id, false)
	pad := strings.Repeat("x", 100<<10)
	done := make(chan error, 1)
	n := 0
	one := func() {
		_, _, err := d.log.Append(journal.Entry{At: time.Now(), Event: fmt.Appendf(nil, `{"kind":"test","n":%d,"pad":%q}`, n, pad)})
		done <- err
	}
	for full := false; !full; {
		go one()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > 100 {
				t.Fatal("it is never full")
			}
		case <-time.After(2 * requestIn):
			full = true
		}
	}
	if why := d.member.Report().Stalled; !strings.Contains(why, "resource") && !strings.Contains(why, "maximum") {
		t.Errorf("stalled: %q", why)
	}
	servers.Kill(0)
	natstest.Store(100 << 20)(servers)
	servers.Run(0)
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("it does not go on: %q", d.member.Report().Stalled)
	}
	a.sameAsStream(id)
	a.acknowledged(n + 1)
}

// The servers are checked by their certificate, and this machine by its nkey.
func TestSecureServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	otherSeed, err := other.Seed()
	if err != nil {
		t.Fatal(err)
	}
	good, bad := filepath.Join(dir, "user.nk"), filepath.Join(dir, "other.nk")
	cert, key := certificate(t, dir)
	for name, data := range map[string][]byte{good: seed, bad: otherSeed} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	servers := natstest.Start(t, 1, natstest.Secure(public, cert, key))
	urls := strings.Replace(servers.URL(), "nats://", "tls://", 1)
	conn, err := Connect(Servers{URLs: urls, NKey: good, CA: cert})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for name, c := range map[string]struct {
		s    Servers
		want string
	}{
		"no key":         {Servers{URLs: urls, CA: cert}, "the credentials are refused"},
		"another key":    {Servers{URLs: urls, CA: cert, NKey: bad}, "the credentials are refused"},
		"no certificate": {Servers{URLs: urls, NKey: good}, "certificate"},
	} {
		if conn, err := Connect(c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			if err == nil {
				conn.Close()
			}
		}
	}
}

// certificate makes a certificate for this machine that signs itself.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestConnect(t *testing.T) {
	t.Parallel()
	login := natstest.Start(t, 1, natstest.Login("ann", "secret"))
	small := natstest.Start(t, 1, natstest.Payload(1<<20))
	plain := natstest.Start(t, 1, natstest.Plain)
	three := natstest.Start(t, 3)
	for _, c := range []struct{ name, urls, want string }{
		{"nobody there", "nats://127.0.0.1:1", "no server answers at 127.0.0.1:1: check the addresses"},
		{"no password", strings.Replace(login.URL(), "ann:secret@", "", 1), "the credentials are refused"},
		{"a wrong password", strings.Replace(login.URL(), "secret", "guess", 1), "the credentials are refused"},
		{"small messages", small.URL(), "set `max_payload: 8MB` on every server"},
		{"no address", "nats://", "address 1 names no server"},
		{"another scheme", "http://a", "address 1 names no server"},
		{"a path", "nats://a/b", "address 1 names no server"},
		{"an empty one", "nats://a,,b", "address 2 names no server"},
	} {
		conn, err := Connect(Servers{URLs: c.urls})
		if err == nil {
			conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "guess") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Connect(Servers{URLs: "nats://a", NKey: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "--nkey") {
		t.Errorf("no nkey: %v", err)
	}
	conn, err := Connect(Servers{URLs: login.URL() + "," + strings.TrimPrefix(login.URL(), "nats://ann:secret@")})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	begin := func(urls string, replicas int) error {
		m := newMachine(t, "m", urls)
		_, err := m.conn.Begin(context.Background(), m.options(""), m.state, New{Replicas: replicas, Lease: testLease})
		if marked, _ := Marked(m.state); marked != "" {
			t.Error("it is marked as begun")
		}
		return err
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no JetStream":       {begin(plain.URL(), 1), "none has JetStream"},
		"one server for all": {begin(login.URL(), 3), "have 3 servers up"},
	} {
		var f *fault.Error
		if !errors.As(c.err, &f) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
	three.Kill(0)
	three.Kill(1)
	if err := begin(three.URL(2), 3); err == nil || !strings.Contains(err.Error(), "have 3 servers up") {
		t.Errorf("one of three: %v", err)
	}
}
