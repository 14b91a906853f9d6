package workers

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
)

// What the launches of a run have left is removed, and their keys are forgotten, once all that share its
// folder have been over for 30 days.
func TestSweep(t *testing.T) {
	t.Parallel()
	now, m, state := time.Now(), newMaker(), t.TempDir()
	post := func() *Post {
		t.Helper()
		p, err := NewPost(PostOptions{State: state, Journal: testJournal, Maker: m, Logf: t.Logf, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := post()
	for _, x := range []struct {
		key, run, dir string
		over          bool
		since         time.Duration
	}{
		{"far-1/A#1.1", "far-1", "far-1/A.1", true, keptFor + 1},
		{"far-1.t.1/B#1.1", "far-1.t.1", "far-1/t/1/B.1", true, keptFor + 2},
		{"far-2/A#1.1", "far-2", "far-2/A.1", true, keptFor + 1},
		{"far-2.t.1/B#1.1", "far-2.t.1", "far-2/t/1/B.1", true, keptFor},
		{"far-3/A#1.1", "far-3", "far-3/A.1", false, keptFor + 1},
	} {
		if err := p.keep(&made{Sent: launch.Sent{Key: x.key, Run: x.run, Dir: ".workflow/runs/" + x.dir}, Over: x.over,
			Since: now.Add(-x.since)}); err != nil {
			t.Fatal(err)
		}
	}
	// Earlier releases kept no folder of what is over, so nothing says what to remove.
	if err := p.keep(&made{Sent: launch.Sent{Key: "far-0/A#1.1"}, Over: true, Since: now.Add(-keptFor - 1)}); err != nil {
		t.Fatal(err)
	}
	m.keeps = errors.New("the disk is gone")
	p = post()
	if p.sweep(); len(p.keys) != 5 {
		t.Errorf("it forgets what it could not remove: %v", slices.Sorted(maps.Keys(p.keys)))
	}
	m.keeps, m.forgot = nil, nil
	p.sweep()
	want := []string{"far-2.t.1/B#1.1", "far-2/A#1.1", "far-3/A#1.1"}
	for _, p := range []*Post{p, post()} {
		if got := slices.Sorted(maps.Keys(p.keys)); !slices.Equal(got, want) {
			t.Errorf("it knows %v", got)
		}
	}
	if !slices.Equal(m.forgot, []string{".workflow/runs/far-1: far-1 far-1.t.1"}) {
		t.Errorf("it removes %v", m.forgot)
	}
}

// What a worker knows of one journal, its epoch and the keys it has used, does not count for another.
func TestStateOfAnotherJournal(t *testing.T) {
	t.Parallel()
	o := PostOptions{State: t.TempDir(), Journal: testJournal, Maker: newMaker(), Logf: t.Logf, Now: time.Now}
	for range 2 {
		if _, err := NewPost(o); err != nil {
			t.Fatal(err)
		}
	}
	o.Journal = strings.Repeat("0", len(testJournal))
	if _, err := NewPost(o); err == nil || !strings.Contains(err.Error(), testJournal) {
		t.Errorf("it works for another journal: %v", err)
	}
}
