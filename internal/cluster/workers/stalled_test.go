package workers

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"sluice/tools/natstest"
)

// A heartbeat says what its worker waits for in the object store, as long as it waits; from anybody it is
// foreign text.
func TestStalledWorker(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b := newBench(t, s, 1)
	var why atomic.Value
	why.Store("no room\x1b[2J")
	p, _ := hireAs(t, PostOptions{Conn: connect(t, s), State: t.TempDir(), Slots: 1, Maker: newMaker(), Logf: b.log.logf,
		Stalled: func() string { return why.Load().(string) }}, nil)
	stalled := func() string {
		if w := b.Workers(); len(w) == 1 {
			return w[0].Stalled
		}
		return ""
	}
	until(t, "it waits", func() bool { return strings.HasPrefix(stalled(), "no room") })
	if strings.Contains(stalled(), "\x1b") {
		t.Errorf("%q", stalled())
	}
	why.Store("")
	until(t, "it waits no more", func() bool { return len(b.Workers()) == 1 && stalled() == "" })

	beat, err := readBeat(fmt.Appendf(nil, `{"worker":%q,"name":"w","journal":%q,"wire":2,"wire_least":2,"labels":["linux"],"slots":1,`+
		`"stalled":%q}`, p.ID(), testJournal, strings.Repeat("ä", maxWhy)), p.ID())
	if err != nil || len(beat.Stalled) > maxWhy {
		t.Errorf("%d bytes, %v", len(beat.Stalled), err)
	}
}
