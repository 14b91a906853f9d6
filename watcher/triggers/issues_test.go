package triggers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/forge"
	"sluice/tools/conform"
)

// fakeForge is a forge's issues, and what it says of people.
type fakeForge struct {
	looks chan error // each listing takes one
	open  []forge.Issue
	may   map[string]string // yes, or why it is not known
	asked []string          // read once nobody listens
}

func (f *fakeForge) Issues(ctx context.Context, labels []string, assignee string) ([]forge.Issue, error) {
	if !slices.Equal(labels, []string{"agent"}) || assignee != "me" {
		return nil, fmt.Errorf("asked for %v of %s", labels, assignee)
	}
	select {
	case err := <-f.looks:
		return f.open, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fakeForge) MayWrite(_ context.Context, login string) (bool, error) {
	f.asked = append(f.asked, login)
	if may := f.may[login]; may != "" && may != "yes" {
		return true, errors.New(may)
	}
	return f.may[login] == "yes", nil
}

func ofIssues() *engine.Trigger {
	return &engine.Trigger{Kind: engine.OnIssue, Labels: []string{"agent"}, Assignee: "me"}
}

// TestTrusted: whose issue needs no person's word.
func TestTrusted(t *testing.T) {
	conform.Rule(t, "12-triggers issue", "each issue once, with its number, title, body and url")
	conform.Rule(t, "12-forge trusted", "an issue needs no person's word only if its author may write to the repo; each author is asked for once in a listing, and no outsider")
	b := newBench(t, nil, t.TempDir())
	issues := []forge.Issue{{Number: 1, Author: "ann", Belongs: true, Title: "'; rm -rf /", Body: "b", URL: "u", Labels: []string{"agent"}},
		{Number: 2, Author: "reader", Belongs: true}, {Number: 3, Author: "eve"}, {Number: 4, Author: "odd", Belongs: true},
		{Number: 5, Author: "ann", Belongs: true}, {Number: 6}}
	f := &fakeForge{looks: make(chan error), open: issues, may: map[string]string{"ann": "yes", "eve": "yes", "odd": "HTTP 502"}}
	b.opt.Forge = func(context.Context) (Forge, error) { return f, nil }
	stop := b.listen(ofIssues(), nil)
	f.looks <- nil
	var got []string
	for range issues {
		fired := <-b.fired
		got = append(got, fmt.Sprint(fired.Key, fired.Trusted))
		if fired.Key == "1" {
			b.want(fmt.Sprint(fired.Values), "map[issue:map[author:ann body:b labels:[agent] number:1 title:'; rm -rf / url:u]]")
		}
	}
	b.want(strings.Join(got, " "), "1true 2false 3false 4false 5true 6false")
	for range 3 { // what has not changed is asked for no more
		f.looks <- nil
	}
	stop()
	b.want(strings.Join(f.asked, " "), "ann reader odd")
	if n := len(b.fired); n > 0 {
		t.Errorf("%d reports more", n)
	}
}

// TestForgeAway: what the forge refuses is noted with what to do, until it answers.
func TestForgeAway(t *testing.T) {
	conform.Rule(t, "12-triggers issue", "a forge that is away is asked again")
	b := newBench(t, nil, t.TempDir())
	f := &fakeForge{looks: make(chan error)}
	b.opt.Forge = func(context.Context) (Forge, error) { return f, nil }
	b.listen(ofIssues(), nil)
	f.looks <- &forge.Fault{Kind: forge.NoGH}
	for end := time.Now().Add(10 * time.Second); !strings.Contains(strings.Join(b.All(), ""), "gh auth login"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v", b.All())
		}
	}
	f.looks <- nil
	f.looks <- nil
	if len(b.All()) > 0 {
		t.Errorf("%v", b.All())
	}
	b = newBench(t, nil, t.TempDir())
	b.opt.Forge = func(context.Context) (Forge, error) { return nil, &forge.Fault{Kind: forge.NoGH} }
	if _, err := b.Present(t.Context(), &engine.Spec{On: &engine.On{Triggers: []*engine.Trigger{ofIssues()}}}); err == nil ||
		!strings.Contains(err.Error(), "gh auth login") {
		t.Errorf("armed without gh: %v", err)
	}
}
