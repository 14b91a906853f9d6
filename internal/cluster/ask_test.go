package cluster

import (
	"runtime"
	"testing"

	"github.com/nats-io/nats.go"

	"sluice/tools/natstest"
)

// TestAskAllocatesLittle: a desk asks 1,000 workers at its start.
func TestAskAllocatesLittle(t *testing.T) {
	s := natstest.Start(t, 1)
	c, err := Connect(Servers{URLs: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	calls := make(chan *nats.Msg, 1)
	if _, err := c.Listen("asked", calls); err != nil {
		t.Fatal(err)
	}
	go func() {
		for m := range calls {
			_ = m.Respond([]byte("yes"))
		}
	}()
	const asks = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range asks {
		if got, err := c.Ask(t.Context(), "asked", []byte("ready?")); err != nil || string(got) != "yes" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / asks; each > 16<<10 {
		t.Errorf("a question allocates %d bytes, want at most 16 KiB", each)
	}
}
