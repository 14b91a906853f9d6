package notify

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/tools/conform"
)

// fake is a channel made of a func.
type fake struct {
	name string
	send func(ctx context.Context, n Notice) error
}

func (f fake) Name() string                             { return f.name }
func (f fake) Send(ctx context.Context, n Notice) error { return f.send(ctx, n) }

func TestChannelsDoNotDelayOneAnother(t *testing.T) {
	conform.Rule(t, "field ask 5", "a channel that hangs holds up no other")
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var lines []string
		var mu sync.Mutex
		n := New(Options{Channels: []Channel{
			fake{"deaf", func(context.Context, Notice) error { <-release; return errors.New("no \x1b[31muse") }},
			fake{"slow", func(ctx context.Context, _ Notice) error { <-ctx.Done(); return ctx.Err() }},
			fake{"quick", func(context.Context, Notice) error { return nil }},
			fake{"broken", func(context.Context, Notice) error { panic("oh\nno") }},
			fake{"wordless", func(context.Context, Notice) error { return errors.New("\x00") }},
		}, Log: func(_ Notice, what string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, what) }})
		began := time.Now()
		results := n.Send(t.Context(), Notice{Title: "x"})
		if took := time.Since(began); took != sendLimit {
			t.Errorf("took %s, want %s", took, sendLimit)
		}
		want := []Result{
			{Channel: "log", OK: true},
			{Channel: "deaf", Why: "not done after 5.5s: no longer waited for", Hung: true, Took: sendLimit},
			{Channel: "slow", Why: "not done after 5.5s: no longer waited for", Hung: true, Took: sendLimit},
			{Channel: "quick", OK: true},
			{Channel: "broken", Why: "the channel panicked: oh no"},
			{Channel: "wordless", Why: "failed without a message"},
		}
		for i := range want {
			if i >= len(results) || results[i] != want[i] {
				t.Errorf("result %d of %+v, want %+v", i, results, want[i])
			}
		}
		time.Sleep(time.Minute)
		close(release)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(lines, "; "); got != "notified; slow: not delivered: context deadline exceeded; deaf: not delivered: no use" {
			t.Errorf("log: %s", got)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestSendEndsSoonAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		n := New(Options{Channels: []Channel{fake{"deaf", func(context.Context, Notice) error { <-release; return nil }}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		r := n.Send(ctx, Notice{})
		if took := time.Since(began); took != time.Second+cancelGrace || r[0].OK {
			t.Errorf("took %s: %+v", took, r)
		}
		if err := n.Close(); err == nil || !strings.Contains(err.Error(), "did not end") {
			t.Errorf("Close: %v", err)
		}
		close(release)
	})
}

func TestAStuckChannelHoldsABoundedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var held atomic.Int32
		n := New(Options{Channels: []Channel{fake{"deaf", func(context.Context, Notice) error { held.Add(1); <-release; return nil }}}})
		var wg sync.WaitGroup
		var dropped atomic.Int32
		for range 50 {
			wg.Go(func() {
				r := n.Send(t.Context(), Notice{})
				if strings.Contains(r[0].Why, "still being sent") || strings.Contains(r[0].Why, "not done after") {
					dropped.Add(1)
				}
			})
		}
		wg.Wait()
		if held.Load() != maxInFlight || dropped.Load() != 50 {
			t.Errorf("%d held, %d told of it", held.Load(), dropped.Load())
		}
		close(release)
		synctest.Wait()
		if r := n.Send(t.Context(), Notice{}); !r[0].OK {
			t.Errorf("after it woke up: %+v", r)
		}
	})
}

func TestClosedNotifierRefuses(t *testing.T) {
	t.Parallel()
	n := New(Options{Channels: []Channel{fake{"x", func(context.Context, Notice) error { return nil }}}})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if r := n.Send(context.Background(), Notice{}); r != nil {
		t.Errorf("%+v", r)
	}
}

// TestFinishLetsWhatIsUnderWayEnd: it refuses later notices at once, and ends none that goes out.
func TestFinishLetsWhatIsUnderWayEnd(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	n := New(Options{Channels: []Channel{fake{"slow", func(ctx context.Context, _ Notice) error {
		close(began)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}}})
	sent, finished := make(chan []Result, 1), make(chan struct{})
	go func() { sent <- n.Send(t.Context(), Notice{}) }()
	<-began
	go func() { n.Finish(); close(finished) }()
	waitFor(t, "later ones are refused", func() bool { return n.Send(t.Context(), Notice{}) == nil })
	select {
	case <-finished:
		t.Error("it did not wait")
	default:
	}
	close(release)
	if r := <-sent; !r[0].OK {
		t.Errorf("%+v", r)
	}
	<-finished
}

func TestCloseEndsWhatRuns(t *testing.T) {
	t.Parallel()
	n := New(Options{Channels: []Channel{&command{argv: []string{"env", mark(t), "sleep", "300"}, limit: commandLimit}}})
	sent := make(chan []Result, 1)
	go func() { sent <- n.Send(context.Background(), Notice{}) }()
	waitFor(t, "a place taken", func() bool { return len(n.lanes[0].places) == 1 })
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if r := <-sent; r[0].OK {
		t.Errorf("%+v", r)
	}
}

func TestNoChannels(t *testing.T) {
	t.Parallel()
	if r := New(Options{}).Send(context.Background(), Notice{}); len(r) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestPanickingLogHarmsNothing(t *testing.T) {
	t.Parallel()
	n := New(Options{Log: func(Notice, string) { panic("disk full") }, Channels: []Channel{fake{"x", func(context.Context, Notice) error { return nil }}}})
	r := n.Send(context.Background(), Notice{})
	if r[0].OK || !strings.Contains(r[0].Why, "disk full") || !r[1].OK {
		t.Errorf("%+v", r)
	}
}

func TestNoticeIsCleanedForEveryChannel(t *testing.T) {
	conform.Rule(t, "4-trust text", "a notice is cleaned")
	t.Parallel()
	var got Notice
	n := New(Options{Channels: []Channel{fake{"x", func(_ context.Context, n Notice) error { got = n; return nil }}}})
	n.Send(context.Background(), Notice{
		ID: "i\x00d", Kind: "ga\x1bcte", Title: "a\nb", Body: "c\n\u202ed", Run: "r\n", Gate: strings.Repeat("g", 500), Urgency: "loud",
	})
	want := Notice{ID: "id", Kind: "gate", Title: "a b", Body: "c\nd", Run: "r", Gate: strings.Repeat("g", maxField-1) + "…", Urgency: UrgencyNormal}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	n.Send(context.Background(), Notice{Urgency: UrgencyCritical})
	if want := (Notice{Kind: KindInfo, Title: "sluice: info", Urgency: UrgencyCritical}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// commandResult sends a notice through a real command.
func commandResult(t *testing.T, limit time.Duration, argv ...string) Result {
	t.Helper()
	n := New(Options{Channels: []Channel{&command{argv: append([]string{"env", mark(t)}, argv...), limit: limit}}})
	r := n.Send(context.Background(), Notice{
		ID: "n-7", Kind: "human", Title: "Gate XG-1 needs you", Body: "two\nlines & <b>", Run: "r-1", Gate: "XG-1", Urgency: UrgencyCritical,
	})
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	return byName(t, r, "command")
}

func TestCommandGetsTheNotice(t *testing.T) {
	conform.Rule(t, "field ask 5", "a command gets the notice")
	t.Parallel()
	dir := t.TempDir()
	r := commandResult(t, commandLimit, "sh", "-c", `
		printf '%s|' "$SLUICE_NOTICE_ID" "$SLUICE_NOTICE_KIND" "$SLUICE_NOTICE_TITLE" "$SLUICE_NOTICE_BODY" "$SLUICE_NOTICE_RUN" "$SLUICE_NOTICE_GATE" "$SLUICE_NOTICE_URGENCY" >"$0/env"
		cat >"$0/stdin"`, dir)
	if !r.OK {
		t.Fatalf("%+v", r)
	}
	env, _ := os.ReadFile(filepath.Join(dir, "env"))
	if want := "n-7|human|Gate XG-1 needs you|two\nlines & <b>|r-1|XG-1|critical|"; string(env) != want {
		t.Errorf("environment %q, want %q", env, want)
	}
	stdin, _ := os.ReadFile(filepath.Join(dir, "stdin"))
	var got Notice
	if err := json.Unmarshal(stdin, &got); err != nil || got.Gate != "XG-1" || got.Body != "two\nlines & <b>" {
		t.Errorf("stdin %s: %+v, %v", stdin, got, err)
	}
}

func TestCommandThatGoesWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		argv []string
		why  string // empty = delivered
	}{
		{"fails", []string{"sh", "-c", "echo >&2 no route to '\x1b[31m'host; exit 7"}, "exit status 7: no route to host"},
		{"hangs", []string{"sleep", "300"}, "had not ended after 300ms: it was killed"},
		{"ignores TERM", []string{"sh", "-c", "trap '' TERM INT HUP; sleep 300; sleep 300"}, "it was killed"},
		{"forks and hangs", []string{"sh", "-c", "(sleep 300 & sleep 300) & sleep 300"}, "it was killed"},
		{"forks and ends", []string{"sh", "-c", "sleep 300 & exit 0"}, ""},
		{"floods", []string{"sh", "-c", "yes"}, "it was killed"},
		{"reads nothing", []string{"sh", "-c", "exec <&-; exit 0"}, ""},
		{"kills itself", []string{"sh", "-c", "kill -9 $$"}, "signal: killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			limit := 5 * time.Second // not to be reached
			if strings.HasSuffix(c.why, "it was killed") {
				limit = 300 * time.Millisecond
			}
			r := commandResult(t, limit, c.argv...)
			if r.OK != (c.why == "") || !strings.Contains(r.Why, c.why) || r.Took > 4*time.Second {
				t.Errorf("%+v, want %q", r, c.why)
			}
		})
	}
	n := New(Options{Command: []string{"/no/such/program"}})
	if r := n.Send(context.Background(), Notice{}); r[0].OK || !strings.Contains(r[0].Why, "no such file") {
		t.Errorf("missing program: %+v", r)
	}
}

// TestCommandRunsNothingOfTheRepo: a daemon in the foreground of a command works in the repo, where an agent may write
// what the person's program would find beside itself, as a json.py for python -c.
func TestCommandRunsNothingOfTheRepo(t *testing.T) {
	t.Chdir(t.TempDir())
	n := New(Options{Command: []string{"sh", "-c", `echo "$(pwd -P) $PWD"; false`}})
	if r := n.Send(t.Context(), Notice{}); !strings.HasSuffix(r[0].Why, ": / /") {
		t.Errorf("%+v", r)
	}
}

// What left the group is out of reach; it must not hold up the result, or make
// a failure of a command that ended well.
func TestCommandWhoseChildLeftTheGroup(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs: setsid (apt-get install util-linux)")
	}
	left := filepath.Join(t.TempDir(), "left")
	n := New(Options{Command: []string{"sh", "-c", `setsid sh -c 'touch "$0"; exec sleep 5' "$0" & until [ -e "$0" ]; do :; done`, left}})
	if r := n.Send(context.Background(), Notice{}); !r[0].OK || r[0].Took > 4*time.Second {
		t.Errorf("%+v", r)
	}
}

func TestDress(t *testing.T) {
	t.Parallel()
	n := Notice{Title: "-a <b> & $(x)", Body: "`calc` \"@\n$(calc) ]]>\n<c>"}
	for _, c := range []struct{ goos, title, body string }{
		{"linux", " -a ‹b› & $(x)", "`calc` \"@\n$(calc) ]]&gt;\n&lt;c&gt;"},
		{"freebsd", " -a ‹b› & $(x)", "`calc` \"@\n$(calc) ]]&gt;\n&lt;c&gt;"},
		{"darwin", " -a <b> & $(x)", n.Body},
	} {
		if title, body := dress(c.goos, n.Title, n.Body); title != c.title || body != c.body {
			t.Errorf("%s: %q, %q, want %q, %q", c.goos, title, body, c.title, c.body)
		}
	}
}
