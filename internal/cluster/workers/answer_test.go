package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/tools/natstest"
)

// slowly is a maker that takes its time to say whether it lacks commits, and has no answer sent meanwhile.
type slowly struct {
	*maker
	asked chan struct{} // closed: it was asked
	goes  chan struct{} // closed: it answers
}

func (m *slowly) Lacks(context.Context, launch.Sent) ([]string, bool, error) {
	close(m.asked)
	<-m.goes
	return nil, false, nil
}

// number reads the end of a subject as the client of NATS counts its own.
func number(subject string) (n int64) {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for _, c := range subject[len(subject)-10:] {
		n = n*62 + int64(strings.IndexRune(digits, c))
	}
	return n
}

// after returns a subject whose number is n higher.
func after(subject string, n int64) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := []byte(subject)
	for i, n := len(out)-1, number(subject)+n; i >= len(out)-10; i, n = i-1, n/62 {
		out[i] = digits[n%62]
	}
	return string(out)
}

// A worker that was asked something cannot tell where another one's answer is sent.
func TestAnswerInAnothersName(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	m := &slowly{newMaker(), make(chan struct{}), make(chan struct{})}
	b := newBenchOver(t, a.as("desk"), 1)
	_, _ = a.hire(m, t.Logf)
	x := a.attacks()

	// The attacker is greeted some times.
	orders := make(chan *nats.Msg, 10)
	if _, err := x.nc.ChanSubscribe(prefix+a.id["bad"]+orderEnd, orders); err != nil {
		t.Fatal(err)
	}
	beat, err := json.Marshal(Beat{Worker: a.id["bad"], Journal: testJournal, Versions: versions(), Labels: []string{"none"}, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for len(seen) < 5 {
		x.publish(prefix+a.id["bad"]+beatEnd, "", beat, nil)
		select {
		case o := <-orders:
			seen = append(seen, o.Reply)
			if err := o.Respond([]byte(`{"is":"unknown"}`)); err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	each := int64(0) // the client's step, or a multiple of it
	for i := range seen[1:] {
		for p, q := each, number(seen[i+1])-number(seen[i]); ; p, q = q, p%q {
			if each = p; q == 0 {
				break
			}
		}
	}

	back := b.launches(testKey, launch.Watch{})
	<-m.asked
	forged := "$JS.API.DIRECT.GET.OBJ_" + testBucket + "." + x.stores([]byte(`{"is":"over"}`), nil)
	for i := range int64(500) {
		x.publish(forged, after(seen[4], (i+1)*max(each, -each)), nil, nil)
	}
	if err := x.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	rest(t)
	close(m.goes)
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	close(m.ends)
	if got := within(t, back); got.Exit.Lost || got.Exit.Code != 7 {
		t.Errorf("an answer in another's name counts: %+v", got.Exit)
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 5 {
		t.Errorf("answers are sent to one place: %v", seen)
	}
}

// A name that only sends heartbeats is given nothing, however free it says that it is, and takes no place of a
// worker that is there.
func TestNamesThatAnswerNothing(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	b.mu.Lock()
	for n := range maxWorkers {
		id := fmt.Sprintf("%016x", n)
		b.workers[id] = &seen{Beat: Beat{Worker: id, Versions: versions(), Labels: []string{"linux"}, Slots: MaxSlots, Epoch: 1},
			at: time.Now().Add(time.Hour)}
	}
	b.mu.Unlock()
	_, _, _ = hire(t, s, t.TempDir(), m, 1)
	back := b.launches(testKey, launch.Watch{})
	until(t, "the worker that is there is given it", func() bool { return m.begun(testKey) > 0 })
	close(m.ends)
	if got := within(t, back); got.Exit.Code != 7 {
		t.Errorf("%+v", got.Exit)
	}
}
