package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/tools/conform"
)

// known is an Afar that has sent some keys.
type known struct {
	keys         map[string]bool
	sends, looks int
}

func (k *known) Launch(_ context.Context, _ string, _ []string, prepare func() (Sent, error), _ Watch) (Back, error) {
	if prepare == nil {
		k.looks++
	} else {
		k.sends++
	}
	return Back{Exit: engine.Exit{Code: 7}}, nil
}
func (k *known) Stop(context.Context, string) (*Back, error) {
	k.looks++
	return &Back{Exit: engine.Exit{Code: -1, Stopped: true}}, nil
}
func (*known) Recorded([]string)                                  {}
func (k *known) Knows(key string) bool                            { return k.keys[key] }
func (*known) Token(string) string                                { return "" }
func (*known) Get(context.Context, string) (io.ReadCloser, error) { return nil, nil }

// A launch that was on the record before, and that this machine has never sent, may be on a worker
// already: it is looked for, and not sent.
func TestFoundLaunchIsSentOnce(t *testing.T) {
	conform.Rule(t, "13-workers keys", "after a takeover no key is sent a second time")
	t.Parallel()
	const key = "far-1/A#1.1"
	for _, c := range []struct {
		name         string
		l            Order
		own          bool
		sends, looks int
	}{
		{"decided now", Order{Key: key}, false, 1, 0},
		{"found, of another machine", Order{Key: key, Found: true}, false, 0, 1},
		{"found, of this machine", Order{Key: key, Found: true}, true, 1, 0},
	} {
		of := &known{keys: map[string]bool{key: c.own}}
		_, err := Far{&Launches{Cage: &Cage{Notes: &health.Notes{}}}, of}.launch(t.Context(), c.l, nil)
		if err != nil || of.sends != c.sends || of.looks != c.looks {
			t.Errorf("%s: sent %d times, looked for %d times, %v", c.name, of.sends, of.looks, err)
		}
	}
}

// What another machine has sent is ended too: as the journal has it, its process must be gone.
func TestFoundLaunchIsEnded(t *testing.T) {
	conform.Rule(t, "13-workers late", "a launch of the machine before that is to end is looked for, and ended")
	t.Parallel()
	const key = "far-1/A#1.1"
	for name, c := range map[string]struct {
		l       Order
		started bool // on this machine
		looks   int
	}{
		"of another machine":  {Order{Key: key, Found: true, On: []string{"linux"}}, false, 1},
		"decided now":         {Order{Key: key, On: []string{"linux"}}, false, 0},
		"it needs no worker":  {Order{Key: key, Found: true}, false, 0},
		"it runs on this one": {Order{Key: key, Found: true, On: []string{"linux"}}, true, 0},
	} {
		ls := &Launches{Cage: &Cage{opt: CageOptions{Inboxes: &boxes{}}}}
		ls.Layout = layout.Layout{Root: t.TempDir(), State: t.TempDir()}
		if c.started {
			if err := layout.Save(ls.PIDFile(key), 1); err != nil {
				t.Fatal(err)
			}
		}
		of := &known{}
		end, some, err := Far{ls, of}.End(t.Context(), c.l)
		if err != nil || of.looks != c.looks || some != (c.looks > 0) || some && !end.Exit.Stopped {
			t.Errorf("%s: looked for %d times: %+v, %v, %v", name, of.looks, end, some, err)
		}
	}
}

// boxes records which inboxes are open.
type boxes struct{ open []string }

func (b *boxes) OpenOwn(key string) { b.open = append(b.open, key) }
func (*boxes) CloseOwn(string)      {}

// Where the end is all that is heard of a launch, as after a restart, its signals are read all the same.
func TestSignalsThatComeWithTheEnd(t *testing.T) {
	t.Parallel()
	const key = "far-1/A#1.1"
	in := &boxes{}
	ls := &Launches{Cage: &Cage{opt: CageOptions{Inboxes: in}}}
	ls.Layout, ls.Notes = layout.Layout{Root: t.TempDir(), State: t.TempDir()}, &health.Notes{Log: t.Logf}
	back := Back{Signals: []Signal{{Name: "A-done.json", Data: []byte("{}")}}}
	if _, err := (Far{ls, nil}).ended(t.Context(), Order{Key: key}, back); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(ls.PIDFile(key)+layout.InboxMark, "far-1", "A-done.json")
	if !slices.Equal(in.open, []string{key}) || !layout.IsFile(file) {
		t.Errorf("opened: %v; there: %v", in.open, layout.IsFile(file))
	}
}

// A signal that could not be written, for example because the disk was full, is written when it is heard again.
func TestASignalIsHeardUntilItIsWritten(t *testing.T) {
	t.Parallel()
	const key = "far-1/A#1.1"
	ls := &Launches{Cage: &Cage{opt: CageOptions{Inboxes: &boxes{}}}}
	ls.Layout, ls.Notes = layout.Layout{Root: t.TempDir(), State: t.TempDir()}, &health.Notes{Log: t.Logf}
	f, words := Far{ls, nil}, []Signal{{Name: "A-done.json", Data: []byte("{}")}, {Name: "A-b\x00", Data: []byte("{}")}}
	file := filepath.Join(ls.PIDFile(key)+layout.InboxMark, "far-1", "A-done.json")
	if err := os.MkdirAll(filepath.Join(file, "in its place"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.hear(key, words); err == nil {
		t.Error("it is said to be written")
	}
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	if err := f.hear(key, words); err != nil || !layout.IsFile(file) {
		t.Errorf("written: %v, %v", layout.IsFile(file), err)
	}
}

// A launch's own signal is heard after many other files, as that of a launch on this machine is.
func TestSignalAfterManyFiles(t *testing.T) {
	t.Parallel()
	const key = "far-1/A#1.1"
	ls := &Launches{Cage: &Cage{opt: CageOptions{Inboxes: &boxes{}}}}
	ls.Layout, ls.Notes = layout.Layout{Root: t.TempDir(), State: t.TempDir()}, &health.Notes{Log: t.Logf}
	f := Far{ls, nil}
	f.open(key)
	for i := range engine.MostRefused - 1 {
		if err := f.hear(key, []Signal{{Name: fmt.Sprintf("note-%d.json", i), Data: []byte("{}")}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.hear(key, []Signal{{Name: "A-done.json", Data: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	if file := filepath.Join(ls.PIDFile(key)+layout.InboxMark, "far-1", "A-done.json"); !layout.IsFile(file) {
		t.Error("its own signal is not heard")
	}
}
