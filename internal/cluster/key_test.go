package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"sluice/tools/natstest"
)

// A request is signed for one subject, one answer and its own bytes.
func TestSigned(t *testing.T) {
	t.Parallel()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(file, append(seed, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := PublicKey(file)
	if err != nil || !IsKey(public) || IsKey(public+"A") {
		t.Fatalf("%q, %v", public, err)
	}
	s := natstest.Start(t, 1, natstest.Config("accounts { A: { jetstream: enabled, users: [{nkey: "+public+"}] } }"))
	c, err := Connect(Servers{URLs: s.URL(), NKey: file})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Key() != public {
		t.Errorf("it has the key %s", c.Key())
	}
	got := make(chan *nats.Msg, 1)
	if _, err := c.nc.Subscribe("here", func(m *nats.Msg) {
		if err := m.Respond([]byte("yes")); err != nil {
			t.Error(err)
		}
		got <- m
	}); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Ask(t.Context(), "here", []byte("do it")); err != nil || string(a) != "yes" {
		t.Fatalf("%s, %v", a, err)
	}
	m := <-got
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	otherPublic, err := other.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	is := func(want bool, what, subject string, by []string, change func(*nats.Msg)) {
		t.Helper()
		x := *m
		x.Header = nats.Header{}
		x.Header.Set(signHeader, m.Header.Get(signHeader))
		change(&x)
		if Signed(&x, subject, by) != want {
			t.Errorf("%s: signed is %v", what, !want)
		}
	}
	by := []string{otherPublic, public}
	is(true, "as it was sent", "here", by, func(*nats.Msg) {})
	is(true, "under another subject of the message", "here", by, func(m *nats.Msg) { m.Subject = "$O.x" })
	is(false, "for another receiver", "there", by, func(*nats.Msg) {})
	is(false, "with another answer's subject", "here", by, func(m *nats.Msg) { m.Reply = "_INBOX.x" })
	is(false, "with other bytes", "here", by, func(m *nats.Msg) { m.Data = []byte("do it!") })
	is(false, "by another key", "here", []string{otherPublic}, func(*nats.Msg) {})
	is(false, "by none", "here", nil, func(*nats.Msg) {})
	is(false, "by what is no key", "here", []string{"UX"}, func(*nats.Msg) {})
	is(false, "unsigned", "here", by, func(m *nats.Msg) { m.Header.Del(signHeader) })
}

// A server cannot have a request signed in place of a login.
func TestLoginSignsNoRequest(t *testing.T) {
	t.Parallel()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	k := &key{pair: pair}
	if _, err := k.login([]byte("8sLjOxZVB0Hj8w")); err != nil {
		t.Error(err)
	}
	if _, err := k.login(signedBytes("sluice.worker.x.order", "_INBOX.x", []byte("{}"))); err == nil ||
		!strings.Contains(err.Error(), "in place of a login") {
		t.Errorf("it is signed: %v", err)
	}
}
