package cluster

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/tools/natstest"
)

// Words reach the machine that listens, and only an answer below _INBOX is given: not one that would
// land in the journal.
func TestSayAndHear(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, b := newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())
	id := a.begin(1)
	said, hears := b.conn.Member(b.options(id)), a.conn.Member(a.options(id))
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if answer, heard, err := said.Say(ctx, []byte("x")); heard || err != nil {
		t.Fatalf("nobody listens: %s, %v, %v", answer, heard, err)
	}
	var n atomic.Int64
	ended := make(chan error, 1)
	until, deaf := context.WithCancel(ctx)
	defer deaf()
	go func() {
		ended <- hears.Hear(until, func(_ context.Context, words []byte) []byte {
			n.Add(1)
			return slices.Concat([]byte("yes "), words)
		})
	}()
	var answer []byte
	for heard := false; !heard && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		var err error
		if answer, heard, err = said.Say(ctx, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if string(answer) != "yes x" {
		t.Fatalf("%q", answer)
	}
	before := a.stream(id)
	for _, to := range []string{subjectPrefix + id, "$JS.API.STREAM.DELETE." + streamPrefix + id, "", "_INBOXES.x"} {
		if err := b.conn.nc.PublishMsg(&nats.Msg{Subject: saySubject + id, Reply: to, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.conn.nc.PublishRequest(saySubject+id, nats.NewInbox(), make([]byte, sayMost+1)); err != nil {
		t.Fatal(err)
	}
	if answer, _, err := said.Say(ctx, []byte("y")); string(answer) != "yes y" { // after them all
		t.Fatalf("%q, %v", answer, err)
	}
	if got := n.Load(); got != 2 {
		t.Errorf("%d were heard, want 2", got)
	}
	if after := a.stream(id); !bytes.Equal(before, after) {
		t.Errorf("the journal has other %d bytes", len(after))
	}
	deaf()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, heard, err := said.Say(ctx, []byte("x")); heard || err != nil {
		t.Errorf("it is heard after the end: %v", err)
	}
}
