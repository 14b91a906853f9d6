package workers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/tools/natstest"
)

// Two sides speak the newest version that both know, if the other has not given it up.
func TestCommonVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, other Versions
		want       int
	}{
		{Versions{}, Versions{}, 1}, // both of before there were any
		{Versions{1, 1}, Versions{}, 1},
		{Versions{3, 1}, Versions{2, 1}, 2},
		{Versions{3, 2}, Versions{2, 1}, 2},
		{Versions{3, 3}, Versions{2, 1}, 0},
		{Versions{3, 2}, Versions{}, 0},
	} {
		if got, back := c.one.common(c.other), c.other.common(c.one); got != c.want || back != c.want {
			t.Errorf("%+v and %+v: %d and %d, want %d", c.one, c.other, got, back, c.want)
		}
	}
}

// A worker of a release with other messages is listed with the reason, and is sent nothing. What it had
// before it was replaced is made anew elsewhere, and a request in other messages is refused by name.
func TestAnotherRelease(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, first := newBench(t, s, 1), newMaker()
	p, out, stop := hire(t, s, t.TempDir(), first, 1)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return first.begun(testKey) == 1 })
	if _, err := b.conn.Ask(t.Context(), prefix+p.ID()+orderEnd, fmt.Appendf(nil,
		`{"wire":7,"do":{"all":"new"},"journal":%q,"epoch":1,"key":%q}`, testJournal, testKey)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "speaks version 7") {
		t.Errorf("the worker does not say why it refuses:\n%s", out)
	}

	stop()
	beat := fmt.Appendf(nil, `{"worker":%q,"name":"w","journal":%q,"version":"v9","wire":7,"wire_least":7,"labels":["linux"],`+
		`"slots":1,"since":"2026-01-01T00:00:00Z","launches":"in other words"}`, p.ID(), testJournal)
	if err := b.conn.Say(prefix+p.ID()+beatEnd, beat); err != nil {
		t.Fatal(err)
	}
	if x := within(t, back).Exit; !x.Lost {
		t.Errorf("%+v", x)
	}
	waits := make(chan string, 9)
	anew := b.launches(strings.TrimSuffix(testKey, "1")+"2", launch.Watch{Waits: func(why string) { waits <- why }})
	ended := time.After(30 * time.Second)
	for why := ""; !strings.Contains(why, "of another release"); {
		if err := b.conn.Say(prefix+p.ID()+beatEnd, beat); err != nil {
			t.Fatal(err)
		}
		select {
		case why = <-waits:
		case <-time.After(time.Second):
		case <-ended:
			t.Fatalf("it waits because %q", why)
		}
	}
	if w := b.Workers(); len(w) != 1 || w[0].Version != "v9" || !strings.Contains(w[0].Foreign, "version 7") {
		t.Errorf("the list: %+v", w)
	}
	second := newMaker()
	_, _, _ = hire(t, s, t.TempDir(), second, 1)
	close(second.ends)
	if x := within(t, anew).Exit; x.Code != 7 {
		t.Errorf("%+v", x)
	}
}

// A worker takes no order for a repo that it does not work for, and is no worker of that repo's.
func TestAnotherRepo(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	p, out, _ := hire(t, s, t.TempDir(), m, 1)
	until(t, "it is there", func() bool { return len(b.Workers()) == 1 })
	other := strings.Repeat("f", len(testJournal))
	order := sentFor(testKey)
	data, err := json.Marshal(call{Wire: versions().Newest, Do: doLaunch, Journal: other, Epoch: 9, At: time.Now(), Key: testKey, Sent: &order})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := b.conn.Ask(t.Context(), prefix+p.ID()+orderEnd, data)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := readAnswer(reply); err != nil || a.Is != isRefused || !strings.Contains(a.Why, "another repo") {
		t.Errorf("%+v, %v", a, err)
	}
	if m.begun(testKey) != 0 || !strings.Contains(out.String(), "another repo") {
		t.Errorf("%d launches; the log:\n%s", m.begun(testKey), out)
	}
	desk, err := NewDesk(DeskOptions{Conn: b.conn, Journal: other, Lease: func() time.Duration { return time.Second }, Logf: b.log.logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = desk.Close() })
	if x := within(t, b.launches(testKey, launch.Watch{Began: func() { close(m.ends) }})).Exit; x.Code != 7 { // beats came meanwhile
		t.Errorf("%+v", x)
	}
	if w := desk.Workers(); len(w) != 0 {
		t.Errorf("it is listed: %+v", w)
	}
}
