package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"sluice/journal"
	"sluice/tools/natstest"
)

// Servers are killed and stopped, deciders die, hang or end, at random moments. Each record that was
// acknowledged is there, once and in order; none that a deposed leader was refused is; and the files
// are the stream, byte for byte. SLUICE_CLUSTER_FAULTS says how many faults, SLUICE_CLUSTER_SEED which.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	faults, seed := 6, uint64(time.Now().UnixNano())
	for name, to := range map[string]func(int){
		"SLUICE_CLUSTER_FAULTS": func(n int) { faults = n }, "SLUICE_CLUSTER_SEED": func(n int) { seed = uint64(n) },
	} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			to(n)
		}
	}
	t.Logf("SLUICE_CLUSTER_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	servers := natstest.Start(t, 3)
	machines := []*machine{newMachine(t, "a", servers.URL()), newMachine(t, "b", servers.URL())}
	id := machines[0].begin(3)
	var acked []int
	refused := map[int]bool{}
	next, leads := 0, 0
	d := machines[0].mustLead(id, false)
	// some appends for a while; false: the leader is no more
	work := func(d *decider, span time.Duration) bool {
		for until := time.Now().Add(span); time.Now().Before(until); {
			n := next
			next++
			switch err := d.append(n); {
			case err == nil:
				acked = append(acked, n)
			case errors.Is(err, ErrDeposed):
				refused[n] = true
				return false
			default:
				t.Fatalf("append: %v", err)
			}
		}
		return true
	}
	other := func() {
		leads = 1 - leads
		d = machines[leads].mustLead(id, true)
	}
	for range faults {
		alive := work(d, time.Duration(rnd.IntN(300))*time.Millisecond)
		i := rnd.IntN(3)
		switch what := rnd.IntN(5); {
		case !alive:
			t.Fatal("deposed, although nobody else leads")
		case what == 0:
			t.Logf("server %d is killed", i)
			servers.Kill(i)
			work(d, time.Second)
			servers.Run(i)
		case what == 1:
			t.Logf("server %d stops", i)
			servers.Stop(i)
			time.AfterFunc(time.Duration(rnd.IntN(4000))*time.Millisecond, func() { servers.Continue(i) })
			work(d, 5*time.Second)
		case what == 2:
			t.Log("the leader dies")
			d.die()
			other()
		case what == 3:
			t.Log("the leader and a server die")
			servers.Kill(i)
			d.die()
			other()
			servers.Run(i)
		default:
			t.Log("the leader hangs, and goes on later")
			old := d
			old.member.quit()
			old.member.wg.Wait()
			other()
			work(d, 200*time.Millisecond)
			if work(old, time.Second) {
				t.Fatal("two lead")
			}
			old.end()
		}
		servers.Ready()
	}
	work(d, 200*time.Millisecond)
	d.end()
	last := machines[1-leads].mustLead(id, false)
	last.end()
	machines[leads].mustLead(id, false).end()
	machines[leads].sameAsStream(id)
	if n := checkAcked(t, machines[leads], acked, refused); n < len(acked) {
		t.Fatalf("%d of %d acknowledged records are there", n, len(acked))
	}
	t.Logf("%d acknowledged, %d refused", len(acked), len(refused))
}

// checkAcked returns how many of the acknowledged records the journal has, in order.
func checkAcked(t *testing.T, m *machine, acked []int, refused map[int]bool) (found int) {
	t.Helper()
	seen := map[int]bool{}
	log, _, err := journal.OpenRead(m.state, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Replay(1, func(r journal.Record) error {
		var n int
		if k, _ := fmt.Sscanf(string(r.Event), `{"kind":"test","n":%d}`, &n); k != 1 {
			return nil
		}
		if seen[n] || refused[n] {
			return fmt.Errorf("record %d: %d is there twice (%v), or was refused (%v)", r.Seq, n, seen[n], refused[n])
		}
		seen[n] = true
		if found < len(acked) && n == acked[found] {
			found++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}
