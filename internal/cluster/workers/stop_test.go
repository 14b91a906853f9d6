package workers

import (
	"errors"
	"os"
	"testing"
	"time"

	"sluice/internal/layout"
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
