package workers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// lateBack is a result with work.
func lateBack() launch.Back {
	return launch.Back{Commit: testCommit, Tip: testCommit, Pack: strings.Repeat("a", 64), Head: testCommit, Start: testCommit}
}

// keeping has a bench keep late work, and counts how often by key. The first call for a key fails with
// the errors given for it.
func (b *bench) keeping(fails map[string]error) func(key string) int {
	var mu sync.Mutex
	n := map[string]int{}
	b.keeps = func(s launch.Sent, back launch.Back) (string, string, error) {
		mu.Lock()
		defer mu.Unlock()
		n[s.Key]++
		if back.Commit != testCommit || s.Head != testCommit || s.Start != testCommit || s.Run != "far-1" || s.Step != "A" || s.N != 1 {
			b.t.Errorf("it is asked to keep %+v of %+v", back, s)
		}
		if err := fails[s.Key]; err != nil && n[s.Key] == 1 {
			return "", "", err
		}
		return "git diff x " + s.Key, "", nil
	}
	return func(key string) int {
		mu.Lock()
		defer mu.Unlock()
		return n[key]
	}
}

// A worker was silent, and its launch was replaced. It comes back with the launch at work: that is ended, and
// what it has made is kept, once; then the worker forgets it.
func TestLateWorkIsKept(t *testing.T) {
	conform.Rule(t, "13-workers late tree", "what a replaced launch has made is kept once, and its worker forgets it")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m, state := newBench(t, s, 1), newMaker(), t.TempDir()
	m.back = lateBack()
	kept := b.keeping(nil)
	_, _, stop := hire(t, s, state, m, 1)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	stop()
	if x := within(t, back).Exit; !x.Lost {
		t.Fatalf("%+v", x)
	}
	p, _, _ := hire(t, s, state, m, 1)
	until(t, "the worker forgets it", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.keys[testKey].Over
	})
	if n := kept(testKey); n != 1 {
		t.Errorf("it was kept %d times", n)
	}
	if log := b.log.String(); !strings.Contains(log, "its result does not count; its work is kept: git diff x "+testKey) {
		t.Errorf("not reported:\n%s", log)
	}
	if x := within(t, b.launches(testKey, launch.Watch{})).Exit; !x.Lost {
		t.Errorf("the late one counts: %+v", x)
	}
}

// A result that comes long after its worker was last heard of counts, where nothing was launched in its place: nobody
// decided meanwhile.
func TestLateResultCounts(t *testing.T) {
	conform.Rule(t, "13-workers late", "a result that has waited for longer than the lease, while nobody decided, counts")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	_, _, _ = hire(t, s, t.TempDir(), m, 1)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	b.epoch.Store(0)
	close(m.ends)
	since := time.Now()
	until(t, "the lease is over", func() bool { return time.Since(since) > 2*b.silence() })
	b.epoch.Store(1)
	if x := within(t, back).Exit; x.Lost || x.Code != 7 {
		t.Errorf("%+v", x)
	}
}

// What a worker says of launches that were replaced makes one ref for each that was its own, and none for any other. A
// result that it says again makes none.
func TestForgedLateWork(t *testing.T) {
	conform.Rule(t, "13-workers late tree", "another's launch, another signature, a result that cannot be read: nothing is kept, and it is reported")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, worker := newBench(t, s, 1), "00112233445566ff"
	key := func(n int) string { return fmt.Sprintf("far-1/A#1.%d", n) }
	result := func(back launch.Back) []byte {
		data, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good, odd := result(lateBack()), lateBack()
	odd.Pack = "../../x"
	ended := func(n int, data []byte) answer {
		return answer{Is: isEnded, Result: data, Sign: sign(testToken(key(n)), key(n), data)}
	}
	answers := map[string]answer{
		key(1): ended(1, good),
		key(2): {Is: isEnded, Result: good, Sign: sign(testToken(key(1)), key(2), good)}, // another's token
		key(3): ended(1, good),                                                           // another's result
		key(4): ended(4, result(odd)),
		key(5): ended(5, result(launch.Back{})), // it has nothing
		key(6): ended(6, good),                  // another worker's
		key(7): ended(7, good),                  // nobody sent it
		key(8): ended(8, good),                  // its result is in
		key(9): ended(9, good),                  // a disk is full at first
	}
	lost := record{Worker: worker, Epoch: 1, Taken: true, Lost: true}
	beat := Beat{Worker: worker, Name: "w", Journal: testJournal, Versions: versions(), Labels: []string{"linux"}, Slots: 1, Epoch: 1}
	for n := 1; n <= len(answers); n++ {
		beat.Launches = append(beat.Launches, Doing{Key: key(n), Ended: true})
		r := lost
		r.Sent = sentFor(key(n))
		switch n {
		case 6:
			r.Worker = "ffeeddccbbaa9988"
		case 7:
			continue
		case 8:
			r.Lost, r.Result = false, &launch.Back{}
		}
		if err := b.save(r); err != nil {
			t.Fatal(err)
		}
	}
	b.Recorded(nil)
	kept := b.keeping(map[string]error{key(9): errors.New("no space left")})
	var mu sync.Mutex
	dropped := map[string]int{}
	impostor(t, s, worker, beat, func(c call) answer { // it forgets nothing
		mu.Lock()
		defer mu.Unlock()
		if c.Do == doDrop {
			dropped[c.Key]++
		}
		return answers[c.Key]
	})
	until(t, "it was asked to forget each, again and again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(dropped) == len(answers) && !slices.ContainsFunc(beat.Launches, func(l Doing) bool { return dropped[l.Key] < 2 })
	})
	for n := 1; n <= len(answers); n++ {
		if want := map[int]int{1: 1, 9: 2}[n]; kept(key(n)) != want {
			t.Errorf("%s was kept %d times, want %d", key(n), kept(key(n)), want)
		}
	}
	for n, want := range map[int]string{1: "its work is kept: git diff", 2: "not signed with the launch's token",
		3: "not signed with the launch's token", 4: "its commit cannot be used", 5: "its result does not count\n", 9: "no space left"} {
		if log := b.log.String(); !slices.ContainsFunc(strings.SplitAfter(log, "\n"), func(l string) bool {
			return strings.Contains(l, key(n)) && strings.Contains(l, want)
		}) {
			t.Errorf("not reported: %s: %s:\n%s", key(n), want, log)
		}
	}
}

// The machine that sent a launch is gone, and the one that decides since was not shown it in time. What comes back is kept
// there too, if it is signed with the launch's token; another worker that names the launch changes nothing.
func TestLateWorkAfterATakeover(t *testing.T) {
	conform.Rule(t, "13-workers late tree", "after a takeover the machine that decides keeps it, from the worker that has the token")
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 2), newMaker()
	kept := b.keeping(nil)
	if x := within(t, b.found(testKey)).Exit; !x.Lost {
		t.Fatalf("%+v", x)
	}
	data, err := json.Marshal(lateBack())
	if err != nil {
		t.Fatal(err)
	}
	const other = "00112233445566ff"
	var mu sync.Mutex
	drops := 0
	impostor(t, s, other, Beat{Worker: other, Name: "w", Journal: testJournal, Versions: versions(), Labels: []string{"linux"}, Slots: 1,
		Epoch: 2, Launches: []Doing{{Key: testKey, Ended: true}}}, func(c call) answer {
		mu.Lock()
		defer mu.Unlock()
		if c.Do == doDrop {
			drops++
		}
		return answer{Is: isEnded, Result: data, Sign: sign("", testKey, data)}
	})
	until(t, "the other one is asked to forget it", func() bool { mu.Lock(); defer mu.Unlock(); return drops > 1 })
	if n := kept(testKey); n != 0 {
		t.Fatalf("what another worker says is kept %d times", n)
	}
	m.back = lateBack()
	close(m.ends)
	p, _, _ := hire(t, s, t.TempDir(), m, 1)
	sent := sentFor(testKey)
	if _, err := b.ask(t.Context(), p.ID(), call{Do: doLaunch, Key: testKey, Sent: &sent}); err != nil {
		t.Fatal(err)
	}
	until(t, "its worker forgets it", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.keys[testKey].Over })
	if n := kept(testKey); n != 1 {
		t.Errorf("it was kept %d times", n)
	}
}
