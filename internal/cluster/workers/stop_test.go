package workers

import (
	"errors"
	"os"
	"testing"
	"time"

	"sluice/internal/layout"
	"sluice/tools/natstest"
)

// TestAStopThatCouldNotBeSaved: the launch is ended on a full disk too, and what it has left goes, which may be what
// fills it.
func TestAStopThatCouldNotBeSaved(t *testing.T) {
	m := newMaker()
	p, err := NewPost(PostOptions{State: t.TempDir(), Journal: testJournal, Slots: 1, Maker: m, Logf: t.Logf, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	sent := sentFor(testKey)
	ask := func(do string) (answer, error) {
		return p.do(ctx, call{Do: do, Key: testKey, Journal: testJournal, Epoch: 1, At: time.Now(), Sent: &sent})
	}
	if a, err := ask(doLaunch); err != nil || a.Is != isRunning {
		t.Fatalf("%+v %v", a, err)
	}
	file := p.path(keysDir, layout.PathElement(testKey)) // a full disk: nothing can be saved
	if err := errors.Join(os.Rename(file, file+".aside"), os.MkdirAll(file+"/x", 0o700)); err != nil {
		t.Fatal(err)
	}
	wait := func(do, is string) {
		t.Helper()
		var a answer
		for range 100 { // as the desk asks, ten times a second
			if a, err = ask(do); err != nil || a.Is == is {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil || a.Is != is {
			t.Fatalf("it is %s %v, and not %s", a.Is, err, is)
		}
	}
	wait(doStop, isEnded)
	if _, err := ask(doDrop); err != nil {
		t.Error(err)
	}
	p.done.Wait()
	m.mu.Lock()
	if len(m.cleared) == 0 {
		t.Error("what it has left is there")
	}
	m.mu.Unlock()
	if a, err := ask(doAsk); err != nil || a.Is == isUnknown {
		t.Errorf("its key is forgotten: %+v, %v", a, err)
	}
	p.done.Wait()
	if err := errors.Join(os.RemoveAll(file), os.Rename(file+".aside", file)); err != nil {
		t.Fatal(err)
	}
	wait(doDrop, isOver)
	p.done.Wait()
	var kept made
	if err := layout.Load(file, &kept); err != nil || !kept.Over {
		t.Errorf("%+v, %v", kept, err)
	}
}

// A launch that is to end, and whose order has not arrived, is not begun for that.
func TestAStopBeginsNothing(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b, m := newBench(t, s, 1), newMaker()
	p, _, _ := hire(t, s, t.TempDir(), m, 1)
	until(t, "it is there", func() bool { return len(b.Workers()) == 1 })
	if err := b.save(record{Sent: sentFor(testKey), Worker: p.ID(), Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	back, err := b.Stop(t.Context(), testKey)
	if err != nil || back == nil || !back.Exit.Lost || m.begun(testKey) != 0 {
		t.Errorf("begun %d times: %+v, %v", m.begun(testKey), back, err)
	}
}
