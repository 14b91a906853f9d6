package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sluice/daemon"
	"sluice/engine"
)

// fake is a repo as a test wants it.
type fake struct {
	mu      sync.Mutex
	status  daemon.Status
	offers  []daemon.Offer
	late    bool          // the next look at the offers comes too early for them
	waiting int           // calls that follow facts
	stir    chan struct{} // a fact
	did     []engine.Event
}

func (f *fake) Status(_ context.Context, run string) (daemon.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := f.status
	st.Runs = append([]daemon.RunStatus{}, st.Runs...)
	return st, nil
}

func (f *fake) Run(ctx context.Context, run string) (daemon.RunStatus, error) {
	st, err := f.Status(ctx, run)
	for _, r := range st.Runs {
		if r.ID == run {
			return r, err
		}
	}
	return daemon.RunStatus{}, errors.New("no such run")
}

func (f *fake) Spec(context.Context, string) (string, error) { return "", nil }

func (f *fake) Facts(ctx context.Context, _ string, from int64, _ bool, fn func(daemon.Line) error) error {
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.stir:
		return fn(daemon.Line{Seq: from})
	}
}

func (f *fake) Offers(context.Context) ([]daemon.Offer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late {
		f.late = false
		return nil, nil
	}
	return append([]daemon.Offer{}, f.offers...), nil
}

func (f *fake) Do(_ context.Context, ev engine.Event, _ string) (daemon.Done, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, ev)
	return daemon.Done{}, nil
}

// serves returns a client of a server of f; prompt is that of every offer.
func (f *fake) serves(t *testing.T, prompt string) *sdk.ClientSession {
	t.Helper()
	f.stir = make(chan struct{})
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(context.Background(), Options{Root: "/r", Version: "1", In: toServer, Out: fromServer,
			Open: func(context.Context) (Repo, func(), error) { return f, func() {}, nil },
			Work: func(context.Context, daemon.Offer) (Work, error) { return Work{Prompt: prompt}, nil }})
	}()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = fromClient.Close() // as an agent that ends
		if err := <-ended; err != nil {
			t.Errorf("an agent that ends is an error: %v", err)
		}
		_ = s.Close() // its other end is gone
	})
	return s
}

func call(t *testing.T, s *sdk.ClientSession, tool string, in map[string]any) (text string, refused bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return err.Error(), true
	}
	for _, c := range res.Content {
		if x, ok := c.(*sdk.TextContent); ok {
			text += x.Text
		}
	}
	return text, res.IsError
}

func running(id string, started int) daemon.RunStatus {
	return daemon.RunStatus{ID: id, Phase: engine.RunRunning, Started: time.Unix(int64(started), 0)}
}

// TestCallsAtATime: of many calls that wait, those beyond the bound are refused, and the others go on when something happens.
func TestCallsAtATime(t *testing.T) {
	f := &fake{status: daemon.Status{Runs: []daemon.RunStatus{running("w-1", 1)}}}
	s := f.serves(t, "p")
	var wg sync.WaitGroup
	got := make(chan string, maxCalls)
	for range maxCalls {
		wg.Go(func() {
			text, refused := call(t, s, "next", map[string]any{"wait_seconds": 600})
			got <- fmt.Sprint(refused, text)
		})
	}
	follow := func(want int) {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			f.mu.Lock()
			n := f.waiting
			f.mu.Unlock()
			if n == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d calls have waited, not %d", n, want)
			}
		}
	}
	follow(maxCalls)
	for range maxCalls { // something that is not what they wait for
		f.stir <- struct{}{}
	}
	follow(2 * maxCalls)
	if text, refused := call(t, s, "list", nil); !refused || !strings.Contains(text, "16 calls are under way") {
		t.Errorf("one more: %s", text)
	}
	f.mu.Lock()
	f.offers = []daemon.Offer{{Run: "w-1", Step: "X-1", Attempt: 1, SignalType: engine.SignalFile}}
	f.mu.Unlock()
	close(f.stir)
	wg.Wait()
	for range maxCalls {
		if text := <-got; !strings.Contains(text, `"step":"X-1"`) {
			t.Errorf("a call that waited: %s", text)
		}
	}
	if text, refused := call(t, s, "list", nil); refused {
		t.Errorf("after them: %s", text)
	}
}

// TestArgumentsAreReadAsSent: an answer reaches the daemon as the agent wrote it, and what would be read in two ways is
// refused, as in a signal file.
func TestArgumentsAreReadAsSent(t *testing.T) {
	r := running("w-1", 0)
	r.Steps = []daemon.StepStatus{{ID: "X-1", State: engine.Running, Attempts: []engine.Attempt{{N: 1, State: engine.Running, Offered: true}}}}
	f := &fake{status: daemon.Status{Runs: []daemon.RunStatus{r}}, offers: []daemon.Offer{{Run: "w-1", Step: "X-1", Attempt: 1, Claimed: "an agent", SignalType: engine.SignalFile, Signal: "/r/X-1-done.json"}}}
	s := f.serves(t, "p")
	signal := func(more string) (string, bool) {
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "signal", Arguments: json.RawMessage(`{"run": "w-1", "step": "X-1", "attempt": 1, ` + more + `}`)})
		if err != nil {
			return err.Error(), true
		}
		return fmt.Sprint(res.Content[0].(*sdk.TextContent).Text), res.IsError
	}
	for _, bad := range []string{`"status": "failed", "status": "done"`, `"status": "done", "answer": {"a": 1, "a": 2}`, `"status": "done", "answer": "\ud800"`} {
		if text, refused := signal(bad); !refused {
			t.Errorf("%s: %s", bad, text)
		}
	}
	const answer = `{"n":9007199254740993,"f":1.10}`
	if text, refused := signal(`"status": "done", "answer": ` + answer); refused {
		t.Fatal(text)
	}
	if got := f.did[len(f.did)-1].(engine.FileSeen).Sentinel; len(f.did) != 1 || string(got.Answer) != answer {
		t.Errorf("%d events, answer %s", len(f.did), got.Answer)
	}
}

// TestAnswersAreBounded: what others wrote does not flood an agent.
func TestAnswersAreBounded(t *testing.T) {
	long := strings.Repeat("é", 100<<10)
	r := running("w-0", 0)
	r.Steps = []daemon.StepStatus{{ID: "X-1", State: engine.Running, Attempt: 1, Summary: long, Attempts: []engine.Attempt{{N: 1, State: engine.Running, Offered: true}}}}
	g := daemon.GateStatus{ID: "G"}
	for n := range 40 {
		g.Rounds = append(g.Rounds, engine.Round{N: n + 1, Seq: int64(n), Step: "X-1", Attempt: 1, State: engine.Refused, Feedback: long, Findings: json.RawMessage(`"` + long + `"`)})
	}
	r.Steps[0].Gates = []daemon.GateStatus{g}
	for n := range 20 {
		r.Steps = append(r.Steps, daemon.StepStatus{ID: fmt.Sprintf("Y-%d", n), Attempts: []engine.Attempt{{Answer: json.RawMessage(`"` + strings.Repeat("a", 10<<10) + `"`)}}})
	}
	f := &fake{status: daemon.Status{Runs: []daemon.RunStatus{r}}, offers: []daemon.Offer{{Run: "w-0", Step: "X-1", Attempt: 1, Prompt: "/r/prompt.md"}}}
	for n := range 3 * maxRuns {
		f.status.Runs = append(f.status.Runs, daemon.RunStatus{ID: fmt.Sprintf("w-%d", n+1), Phase: engine.RunCompleted})
	}
	s := f.serves(t, long)
	text, _ := call(t, s, "context", map[string]any{"run": "w-0", "step": "X-1"})
	var told struct {
		Failures []failure
		Answers  map[string]string
		Offer    offer
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	if n := len(told.Failures); n != maxFailed || told.Failures[n-1].Round != 40 || len(told.Failures[0].Feedback) > maxShown+10 || told.Failures[0].Findings != nil {
		t.Errorf("%d failures are told, the last %d", n, told.Failures[n-1].Round)
	}
	if n := len(told.Answers); n != 6 {
		t.Errorf("%d answers of 10 KiB are told", n)
	}
	if p := told.Offer.Prompt; len(p) > maxPrompt+100 || !strings.HasSuffix(p, "[cut: read the whole of it in /r/prompt.md]") || strings.ContainsRune(p, '\uFFFD') {
		t.Errorf("a prompt of %d bytes, that ends %q", len(p), p[len(p)-60:])
	}
	text, _ = call(t, s, "list", nil)
	var list struct {
		Runs []run
		Left int `json:"left_out"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Runs) != maxRuns || list.Left != 3*maxRuns+1-maxRuns || list.Runs[0].Run != "w-0" || list.Runs[1].Run != "w-150" {
		t.Errorf("%v: %d runs, %d left out: %.300s", err, len(list.Runs), list.Left, text)
	}
}

// TestHiddenIsShown: what another agent hid in an answer, a finding or a summary is shown, escaped or not.
func TestHiddenIsShown(t *testing.T) {
	r := running("w-1", 0)
	r.Vars = map[string]any{"v": "var\u202e"}
	r.Steps = []daemon.StepStatus{{ID: "X-1", Summary: "sum\u202e", Attempts: []engine.Attempt{{Answer: json.RawMessage(`{"a\u202e": "plain \" \u202e tag \udb40\udc41", "n": [1, true, "b\u202e"]}`)}},
		Gates: []daemon.GateStatus{{ID: "G", Rounds: []engine.Round{{N: 1, Step: "X-1", Attempt: 1, State: engine.Refused, Findings: json.RawMessage("[\"find\u202e\"]")}}}}}}
	got, refused := call(t, (&fake{status: daemon.Status{Runs: []daemon.RunStatus{r}}}).serves(t, "p"), "context", map[string]any{"run": "w-1", "step": "X-1"})
	var told map[string]any
	if err := json.Unmarshal([]byte(got), &told); refused || err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	shown, _ := json.Marshal(told)
	if strings.ContainsRune(string(shown), '\u202e') || strings.ContainsRune(string(shown), '\U000e0041') || strings.Count(string(shown), "U+202E") != 6 || !strings.Contains(string(shown), "U+E0041") || !strings.Contains(string(shown), `[1,true,`) {
		t.Errorf("%s", shown)
	}
}

// TestStalled: while the journal cannot be written an agent is told, and does not wait.
func TestStalled(t *testing.T) {
	f := &fake{status: daemon.Status{Stalled: "disk full"}}
	if text, refused := call(t, f.serves(t, "p"), "next", map[string]any{"wait_seconds": 600}); !refused || !strings.Contains(text, "disk full") {
		t.Errorf("%v %s", refused, text)
	}
}

// TestWaitsOnlyForWhatMayCome: a call comes back at once where only a person has something go on.
func TestWaitsOnlyForWhatMayCome(t *testing.T) {
	for kind, waits := range map[string]bool{"human": false, "paused": false, "parent": false, "held": false, "agent": true, "window": true, "review": true, "limit": true, "need": true} {
		r := runOf(daemon.RunStatus{ID: "w-1", Phase: engine.RunRunning, Waits: []daemon.Wait{{Kind: kind}}}, false)
		if got := moves(offering{Runs: []run{r}}); got != waits {
			t.Errorf("%s: waits %v, want %v", kind, got, waits)
		}
	}
	if moves(offering{}) || !moves(offering{Runs: []run{{Phase: engine.RunPending}}}) {
		t.Error("without a run there is nothing to wait for, and a pending one begins by itself")
	}
}

// TestOfferBetweenTheLooks: a step that comes on offer after the offers were read is offered, and a claimed one is not waited for.
func TestOfferBetweenTheLooks(t *testing.T) {
	f := &fake{late: true, offers: []daemon.Offer{{Run: "w-1", Step: "A", Attempt: 1}}}
	f.status.Runs = []daemon.RunStatus{running("w-1", 1)}
	f.status.Runs[0].Waits = []daemon.Wait{{Kind: "offer", Step: "A"}}
	s := f.serves(t, "p")
	close(f.stir)
	if text, refused := call(t, s, "next", map[string]any{"wait_seconds": 60}); refused || !strings.Contains(text, `"offer":{"run":"w-1"`) {
		t.Errorf("%v %s", refused, text)
	}
	f.offers[0].Claimed = "somebody"
	if text, refused := call(t, s, "next", map[string]any{"wait_seconds": 600}); refused || !strings.Contains(text, "claimed steps wait") {
		t.Errorf("%v %s", refused, text)
	}
}

// TestJudged: what is said of an attempt, by the states of its rounds.
func TestJudged(t *testing.T) {
	at := time.Unix(0, 0)
	for _, c := range []struct {
		state, round, outcome string
		phase                 string
	}{
		{engine.Passed, engine.Approved, "passed", engine.RunRunning},
		{engine.Skipped, "", "passed", engine.RunRunning},
		{engine.Routed, engine.Refused, "routed", engine.RunRunning},
		{engine.Superseded, engine.Refused, "failed", engine.RunRunning},
		{engine.Superseded, engine.Undone, "over", engine.RunAborted},
		{engine.Gating, engine.OnHuman, "human", engine.RunRunning},
		{engine.Gating, engine.OnWindow, "window", engine.RunRunning},
		{engine.Gating, engine.OnReview, "waiting", engine.RunRunning},
		{engine.Signalled, "", "waiting", engine.RunRunning},
	} {
		st := daemon.StepStatus{ID: "X", Attempts: []engine.Attempt{{N: 1, State: c.state}}, Gates: []daemon.GateStatus{{ID: "G"}}}
		if c.round != "" {
			st.Gates[0].Rounds = []engine.Round{{N: 1, Attempt: 1, State: c.round, WindowEnds: at}}
		}
		if got := judgedOf(daemon.RunStatus{ID: "w-1", Phase: c.phase}, st, 1); got.Outcome != c.outcome || got.Say == "" {
			t.Errorf("%s, round %s: %+v", c.state, c.round, got)
		}
	}
}

// TestChildRunsAreNamed: a run that is done for another says for which, and for which task; so does a step of it on offer.
func TestChildRunsAreNamed(t *testing.T) {
	kid := running("goal-1.T2.1", 2)
	kid.Child = &engine.ChildOf{Parent: "goal-1", Step: "work", Task: "T2", Try: 1}
	f := &fake{status: daemon.Status{Runs: []daemon.RunStatus{running("goal-1", 1), kid}}, offers: []daemon.Offer{{Run: kid.ID, Step: "code", Child: kid.Child}}}
	s := f.serves(t, "do it")
	for _, tool := range []string{"list", "next"} {
		text, refused := call(t, s, tool, nil)
		if n := strings.Count(text, `"child_of":"T2 of goal-1"`); refused || n != 1 {
			t.Errorf("%s tells it %d times: %s", tool, n, text)
		}
	}
}

// TestRoutesAreNoFailures: rounds that took a route stand under routes with their words, and not under failures; so they do in
// what is said of an attempt.
func TestRoutesAreNoFailures(t *testing.T) {
	r := running("w-1", 1)
	rounds := []engine.Round{
		{N: 1, Step: "X", Attempt: 1, Seq: 1, State: engine.Undone, Outcome: "fail", Feedback: "red"},
		{N: 2, Step: "X", Attempt: 2, Seq: 2, State: engine.ByRoute, Outcome: "replan", Route: "replan", To: "plan", Feedback: "too large", Findings: []byte(`[{"file":"a.go"}]`)},
	}
	r.Steps = []daemon.StepStatus{{ID: "X", Attempts: []engine.Attempt{{N: 1, State: engine.Superseded}, {N: 2, State: engine.Superseded}},
		Gates: []daemon.GateStatus{{ID: "G", Rounds: rounds}}}}
	failed, routes := failures(r)
	if len(failed) != 1 || failed[0].Feedback != "red" || len(routes) != 1 || routes[0].Outcome != "replan" || routes[0].Feedback != "too large" || string(routes[0].Findings) != `[{"file":"a.go"}]` {
		t.Errorf("failures %+v, routes %+v", failed, routes)
	}
	got := judgedOf(r, r.Steps[0], 2)
	if got.Outcome != "routed" || len(got.Routes) != 1 || got.Routes[0].Feedback != "too large" || len(got.To) != 1 || got.To[0] != "plan" {
		t.Errorf("%+v", got)
	}
}
