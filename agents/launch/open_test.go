package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/settings"
)

// TestOpenLaunchIsRecalled: a launch that no sandbox holds counts for all repos until its end, also for
// the next daemon, and its mark needs no file of its own.
func TestOpenLaunchIsRecalled(t *testing.T) {
	t.Parallel()
	const key, why = "w-1/A#1.1", "the sandbox is off"
	l := layout.Layout{Root: t.TempDir(), State: t.TempDir()}
	open := func() (*Cage, *Unheld) {
		unheld := &Unheld{}
		x, err := newCage(CageOptions{Layout: l, Notes: &health.Notes{Log: t.Logf}, Settings: settings.Default, Unheld: unheld,
			Inboxes: &boxes{}, Vacate: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
		return x, unheld
	}
	x, unheld := open()
	if err := x.Expose("w-1", key, why); err != nil {
		t.Fatal(err)
	}
	mark := x.PIDFile(key) + layout.OpenMark
	a, err1 := os.Lstat(mark)
	b, err2 := os.Lstat(x.ExposedFile("w-1"))
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		t.Errorf("the mark is %v, %v; that of the run %v, %v", a, err1, b, err2)
	}
	said, _ := unheld.any()
	if !strings.Contains(said, key+": "+why) {
		t.Errorf("said is %q", said)
	}

	_, unheld = open()
	if again, ok := unheld.any(); !ok || again != said {
		t.Errorf("the next daemon knows %q, want %q", again, said)
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil { // a power cut, or an older release's
		t.Fatal(err)
	}
	x, unheld = open()
	if again, ok := unheld.any(); !ok || !strings.HasPrefix(again, key+": ") {
		t.Errorf("of an empty mark it knows %q", again)
	}

	x.ends(key)
	if again, ok := unheld.any(); ok {
		t.Errorf("after its end it is %q", again)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(mark), "*")); len(left) > 0 {
		t.Errorf("left is %q", left)
	}
	if _, exposed := l.Exposed("w-1"); !exposed {
		t.Error("the run is not exposed any more")
	}
}
