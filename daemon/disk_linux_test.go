package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/engine"
	"sluice/tools/conform"
)

// smallDisk puts a small tmpfs at the folder.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k,mode=700"); err != nil {
		t.Skip("kernel: mount is not permitted")
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// hog takes all the room there is.
func hog(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// fill takes all room on the disk of a service's state, and starts runs until one is refused: the journal's last page had
// room. It returns how many were acknowledged.
func (s *service) fill() (begun int) {
	s.t.Helper()
	hog(s.t, filepath.Join(s.state, "hog"))
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := s.client.Do(ctx, engine.RunRequested{Source: "two", Parallel: true}, "")
		cancel()
		if err != nil {
			return begun
		}
		begun++
	}
	s.t.Fatal("the disk was never full")
	return begun
}

func TestFullDisk(t *testing.T) {
	conform.Rule(t, "2-files journal full disk", "the real loop on a real full disk: stalled, nothing acknowledged or launched, going on by itself")
	root := t.TempDir()
	state := filepath.Join(root, "state")
	smallDisk(t, state)
	world := newStage()
	s := serveTest(t, root, world)
	begun := 0 // runs that were acknowledged
	start := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		_, err := s.client.Do(ctx, engine.RunRequested{Source: "two", Parallel: true}, "")
		if err == nil {
			begun++
		}
		return err
	}
	if err := start(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	begun += s.fill()
	st, serr := s.client.Status(context.Background(), "")
	if serr != nil || !strings.Contains(st.Stalled, "no space left") {
		t.Fatalf("status while the disk is full: %q %v", st.Stalled, serr)
	}
	if len(st.Runs) != begun { // what is decided and not recorded is not shown
		t.Errorf("%d runs are shown while the disk is full, %d are recorded", len(st.Runs), begun)
	}
	if src, err := s.client.Spec(context.Background(), st.Runs[0].ID); err != nil || src == "" {
		t.Errorf("the spec of a run while the disk is full: %q, %v", src, err)
	}
	if _, err := s.client.Offers(context.Background()); err != nil {
		t.Errorf("the offers while the disk is full: %v", err)
	}
	if _, err := s.client.Run(context.Background(), "w-1"); err == nil || !strings.Contains(err.Error(), "stalled: ") {
		t.Errorf("a run's status while the disk is full: %v", err)
	}
	carried := world.count()
	if err := start(300 * time.Millisecond); err == nil {
		t.Error("a start is acknowledged while nothing can be written")
	}
	if n := world.count(); n != carried {
		t.Errorf("%d effects are started while nothing can be written", n-carried)
	}
	if err := os.Remove(filepath.Join(state, "hog")); err != nil {
		t.Fatal(err)
	}
	freed := time.Now()
	if err := start(resumeWithin); err != nil {
		t.Fatalf("%s after there was room again: %v", time.Since(freed), err)
	}
	if st, err := s.client.Status(context.Background(), ""); err != nil || st.Stalled != "" || len(st.Runs) < begun {
		t.Errorf("%d runs, %d were acknowledged; stalled %q, %v", len(st.Runs), begun, st.Stalled, err)
	} else if len(st.Runs) > begun+1 { // the loop may have decided on the first before its sender gave up
		t.Errorf("%d runs, %d were acknowledged: a start that was given up is carried out", len(st.Runs), begun)
	}
	s.stop()
	r, err := OpenReader(root, state, twoGates)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := len(r.Status("", false).Runs); n < begun {
		t.Errorf("%d runs are in the journal, %d were acknowledged", n, begun)
	}
}

// TestAWindowOutlastsAStall: nobody can veto while nothing can be recorded, so a window that ends meanwhile opens again.
func TestAWindowOutlastsAStall(t *testing.T) {
	root := t.TempDir()
	state := filepath.Join(root, "state")
	smallDisk(t, state)
	var ahead atomic.Int64
	s := serveWith(t, root, newStage(), func(o *RepoOptions) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		o.Compile = func(source string) (*engine.Spec, error) {
			w, err := twoGates(source)
			if err == nil {
				hour := engine.Duration(time.Hour)
				w.Gates[0].VetoWindow = &hour
			}
			return w, err
		}
	})
	d, err := s.client.Do(context.Background(), engine.RunRequested{Source: "two", Parallel: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	window := func() (until time.Time) {
		st, err := s.client.Status(context.Background(), d.Run)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range st.Runs[0].Waits {
			if w.Kind == "window" {
				until = w.Until
			}
		}
		return until
	}
	for until := time.Now().Add(10 * time.Second); window().IsZero(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("no window opens")
		}
	}
	ends := window()
	s.fill()
	ahead.Store(int64(time.Until(ends) + time.Minute))
	if err := os.Remove(filepath.Join(state, "hog")); err != nil {
		t.Fatal(err)
	}
	if _, err = s.client.Do(context.Background(), engine.NoteGiven{Run: d.Run, Text: "there is room"}, ""); err != nil {
		t.Fatal(err)
	}
	if again := window(); !again.After(ends) {
		t.Errorf("the window that ended at %s, while nobody could veto, is open until %s", ends, again)
	}
}

// A disk that stays full does not keep the service from ending; what was not acknowledged is
// dropped.
func TestStopOnAFullDisk(t *testing.T) {
	root := t.TempDir()
	state := filepath.Join(root, "state")
	smallDisk(t, state)
	s := serveTest(t, root, newStage())
	s.fill()
	s.cancel()
	s.cancel = nil
	s.client.Close()
	var err error
	select {
	case err = <-s.done:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	if err == nil || !strings.Contains(err.Error(), "not acknowledged is dropped") {
		t.Errorf("the end says %v", err)
	}
}
