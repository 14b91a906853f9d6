package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
)

// crowd is told of rounds that ask, and says what a person says.
type crowd struct {
	mu    sync.Mutex
	told  []string
	says  chan Do
	heard chan Done
	take  func(context.Context, engine.Event) (Done, error)
}

func (c *crowd) asked(run string, rounds []job.AskedRound) {
	line := run + ":"
	for _, q := range rounds {
		line += fmt.Sprintf(" %s#%d %s", q.Gate, q.N, q.State)
		if q.Owed {
			line += " owed"
		} else {
			line += fmt.Sprintf(" (of %s, %s)", q.Job.Notice.Kind, q.Job.RunInfo.Workflow)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, line)
}

func (c *crowd) hear(ctx context.Context, do func(context.Context, Do) (Done, error),
	take func(context.Context, engine.Event) (Done, error)) (end func()) {
	c.take = take
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case d := <-c.says:
				done, err := do(ctx, d)
				if err != nil {
					done.Ignored = "error: " + err.Error()
				}
				c.heard <- done
			}
		}
	})
	return work.Wait
}

func (c *crowd) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

func (c *crowd) has(line string) func(RunStatus) bool {
	return func(RunStatus) bool { return slices.Contains(c.all(), line) }
}

// serveCrowd serves a repo whose people are the crowd.
func serveCrowd(t *testing.T, root string, world World, c *crowd) *service {
	t.Helper()
	return serveWith(t, root, world, func(opt *RepoOptions) { opt.Asked, opt.Hear = c.asked, c.hear })
}

// TestAskedAndHeard: each round at which a person may decide is told of while it is one, again
// after a restart, and what is heard beside the socket is taken in as from it.
func TestAskedAndHeard(t *testing.T) {
	root, world := t.TempDir(), newStage()
	c := &crowd{says: make(chan Do), heard: make(chan Done)}
	s := serveCrowd(t, root, world, c)
	d, err := s.client.Do(context.Background(), engine.RunRequested{Source: "two"}, "")
	if err != nil || d.Run != "two-1" {
		t.Fatalf("%+v %v", d, err)
	}
	s.until("two-1", "the veto window's notice is announced", c.has("two-1: GA#1 notice owed"))
	s.until("two-1", "the person's gate is announced", c.has("two-1: GB#1 human owed"))
	s.until("two-1", "its notice was sent", func(r RunStatus) bool {
		st, err := s.client.Status(context.Background(), "")
		return err == nil && st.Notices == 0
	})
	s.stop()
	before := len(c.all())
	s = serveCrowd(t, root, world, c)
	s.until("two-1", "it is announced again", c.has("two-1: GB#1 human (of reminder, two)"))
	if got := c.all()[before:]; len(got) != 1 {
		t.Errorf("after the restart: %q", got)
	}
	say := func(outcome string, round int) Done {
		raw, err := json.Marshal(engine.Answered{Gate: "GB", Run: "two-1", Round: round, Outcome: outcome, By: engine.Actor{Who: "nobody", Trust: engine.TrustSigned}})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case c.says <- Do{Kind: "answered", Event: raw, Via: "desktop"}:
			return <-c.heard
		case <-time.After(20 * time.Second):
			t.Fatal("nobody hears")
			return Done{}
		}
	}
	if d := say("pass", 7); !strings.Contains(d.Ignored, "round 1, not 7") {
		t.Errorf("of another round: %+v", d)
	}
	ann := engine.Actor{Who: "ann", Via: "comment 3", Trust: engine.TrustForge}
	if d, err := c.take(t.Context(), engine.Answered{Run: "two-1", Gate: "GB", Round: 7, Outcome: "pass", By: ann}); err != nil ||
		!strings.Contains(d.Ignored, "round 1, not 7") {
		t.Errorf("of another round, with who says it: %+v, %v", d, err)
	}
	if d := say("pass", 1); d.Ignored != "" || d.Seq == 0 {
		t.Errorf("%+v", d)
	}
	r := s.until("two-1", "the end", func(r RunStatus) bool { return r.Phase == engine.RunCompleted })
	if by := r.Steps[1].Gates[0].By; by == nil || by.Via != "desktop" || by.Trust != engine.TrustFile || by.Who == "nobody" {
		t.Errorf("who passed: %+v", by)
	}
	s.until("two-1", "the round is over", c.has("two-1:"))
	if d := say("fail", 1); !strings.Contains(d.Ignored, "over") {
		t.Errorf("a second answer: %+v", d)
	}
	s.stop()
	if d, err := c.take(t.Context(), engine.Answered{Run: "two-1", Gate: "GB", Outcome: "pass", By: ann}); err == nil {
		t.Errorf("it has stopped, and decides %+v", d)
	}
	if got := c.all(); len(got) != len(slices.Compact(slices.Clone(got))) {
		t.Errorf("told again of what had not changed: %q", got)
	}
}
