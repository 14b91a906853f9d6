//go:build linux

package test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sluice/tools/conform"
)

// The torture kills the real daemon with -9 at random moments of real runs, again and again, and
// restarts it; now and then it kills a process under which launches live. SLUICE_TORTURE says how
// often, SLUICE_TORTURE_SEED which moments.
const (
	tortureKills = 100
	tortureRepos = 3
	tortureStart = 80 * time.Millisecond  // one daemon in four dies within, while it starts
	tortureAlive = 200 * time.Millisecond // the others die within, from when they serve; one in eight lives longer
	tortureSpan  = 4                      // so many times as long
)

// seedOf is the seed that the environment names, or a new one. It is printed.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SLUICE_TORTURE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TORTURE_SEED=%d", seed)
	return seed
}

// timesOf is a number that the environment names, or the short form's.
func timesOf(t *testing.T, name string, short int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number", name, text)
	}
	return n
}

func TestTorture(t *testing.T) {
	conform.Rule(t, "3-engine crash", "whenever the daemon is killed: no outcome of a gate is lost, doubled or changed, no launch lives twice, every run ends")
	t.Parallel()
	x := newArena(t, seedOf(t), tortureRepos, arenaPlaces{})
	hosts, all := 0, map[string]*record{}
	for _, r := range x.repos {
		r.rec = newRecord()
		all[r.flow] = r.rec
	}
	for range timesOf(t, "SLUICE_TORTURE", tortureKills) {
		x.boot()
		life := tortureAlive
		switch x.rnd.IntN(8) {
		case 0, 1:
			life = tortureStart
		case 2:
			x.awaitService()
			life *= tortureSpan
		default:
			x.awaitService()
		}
		life = time.Duration(x.rnd.Int64N(int64(life)))
		takes := x.rnd.IntN(5) == 0
		for until := time.Now().Add(life); time.Now().Before(until); time.Sleep(pollEvery / 3) {
			for _, r := range x.repos {
				x.person(r, true)
			}
			if !takes {
				continue
			}
			if kids := x.children(); len(kids) > 0 {
				takes = false
				if syscall.Kill(kids[x.rnd.IntN(len(kids))], syscall.SIGKILL) == nil {
					hosts++
				}
			}
		}
		x.kill()
		x.checkProcesses()
		for _, r := range x.repos {
			if err := r.look(); err != nil {
				t.Fatal(err)
			}
			for _, f := range append(r.faults, r.heldAgainst(r.rec)...) {
				t.Error(f)
			}
		}
		for _, f := range x.unrecorded(all) { // nothing is launched that is not on the record by then
			t.Error(f)
		}
		if t.Failed() {
			return
		}
	}
	x.boot()
	x.finish()
	x.alone()
	for _, r := range x.repos {
		st, _ := x.status(r)
		for _, run := range st.Runs {
			if run.Phase != "completed" {
				t.Errorf("%s is %s: %s", run.ID, run.Phase, run.EndWhy)
			}
		}
	}
	if err := x.stop(); err != nil {
		t.Errorf("the daemon ends with %v", err)
	}
	x.alone()
	x.check()
	t.Logf("%d processes that launches live under were killed", hosts)
}
