package workers

import (
	"errors"
	"os"
	"testing"
	"time"

	"sluice/internal/layout"
)

// TestAStopThatCouldNotBeSaved: the launch is ended once the disk has room again.
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
	if _, err := ask(doStop); err == nil {
		t.Fatal("it can be saved")
	}
	if err := errors.Join(os.RemoveAll(file), os.Rename(file+".aside", file)); err != nil {
		t.Fatal(err)
	}
	var a answer
	for range 50 { // as the desk asks, ten times a second
		if a, err = ask(doStop); err != nil || a.Is == isEnded {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || a.Is != isEnded {
		t.Errorf("it is %s %v: nobody has ended it", a.Is, err)
	}
}
