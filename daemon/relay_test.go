package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/journal"
	"sluice/tools/conform"
)

// servedIn serves a repo with a lead in a cluster, and returns its client and its end.
func servedIn(t *testing.T, lead *fakeLead, leads bool) (c *Client, ready chan *Repo, ended chan error) {
	t.Helper()
	return servedWith(t, lead, leads, newStage())
}

func servedWith(t *testing.T, lead *fakeLead, leads bool, world World) (c *Client, ready chan *Repo, ended chan error) {
	t.Helper()
	root := t.TempDir()
	state := filepath.Join(root, "state")
	ctx, cancel := context.WithCancel(context.Background())
	ended, ready = make(chan error, 1), make(chan *Repo, 1)
	if leads {
		close(lead.turn)
		lead.holds.Store(true)
	}
	go func() {
		ended <- Serve(ctx, root, state, func(context.Context, string, string) (RepoOptions, func(), error) {
			l, _, err := journal.Open(state, journal.Options{}) // as Take would
			if err != nil {
				return RepoOptions{}, nil, err
			}
			return RepoOptions{World: world, Compile: twoGates, Config: engine.DefaultConfig, Lead: lead}, nil, l.Close()
		}, func(r *Repo, _ journal.Recovery) { ready <- r })
	}()
	c = NewClient(state)
	t.Cleanup(func() {
		c.Close()
		cancel()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("it does not end")
		}
	})
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := c.Ping(ctx); err == nil {
			return c, ready, ended
		}
		if time.Now().After(until) {
			t.Fatal("it does not answer")
		}
	}
}

func runs(r *Repo) (n int) {
	_ = r.queue.ask(context.Background(), func(c *core) { n = len(c.state.Order) })
	return n
}

// What is said to a machine that follows is decided once by the one that leads, whatever is lost or
// doubled on the way, and only for its epoch.
func TestPassedOn(t *testing.T) {
	conform.Rule(t, "13-cluster word", "a follower forwards files and answers, and says \"recorded\" only after the leader's fact; a deposed leader answers \"not recorded, ask X\"")
	leader, follower := newFakeLead(), newFakeLead()
	leader.hears = make(chan func(context.Context, []byte) []byte, 1)
	_, ready, _ := servedIn(t, leader, true)
	repo, answer := <-ready, <-leader.hears
	c, _, _ := servedIn(t, follower, false)
	ctx := context.Background()
	var mu sync.Mutex
	var words [][]byte
	lose := 0 // that many answers are lost
	follower.say = func(ctx context.Context, raw []byte) ([]byte, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		words = append(words, raw)
		got := answer(ctx, raw)
		if lose--; lose >= 0 {
			return nil, true, errors.New("lost")
		}
		return got, true, nil
	}
	done, err := c.Do(ctx, engine.RunRequested{Source: "two"}, "")
	if err != nil || done.Run != "two-1" || done.Seq == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	var by engine.Actor
	_ = repo.queue.ask(ctx, func(c *core) { by = c.state.Runs["two-1"].By })
	if by.Who != username() || !strings.HasPrefix(by.Via, "command on ") {
		t.Errorf("by %+v", by)
	}

	// an answer is lost, and a word doubled
	lose = 2
	if done, err = c.Do(ctx, engine.PauseRequested{Run: "two-1"}, ""); err != nil || done.Ignored != "" {
		t.Errorf("%+v, %v", done, err)
	}
	again := answer(ctx, words[0])
	var a reply
	if err := json.Unmarshal(again, &a); err != nil || a.Done.Run != "two-1" || runs(repo) != 1 {
		t.Errorf("a word that comes twice: %s, and there are %d runs", again, runs(repo))
	}
	var both sync.WaitGroup // at the same time
	var w word
	if err := json.Unmarshal(words[0], &w); err != nil {
		t.Fatal(err)
	}
	other := func(change func(*word)) []byte { // a new word
		x := w
		x.ID = journal.NewID()
		change(&x)
		raw, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	same := func(*word) {}
	fresh := other(same)
	for range 8 {
		both.Go(func() { answer(ctx, fresh) })
	}
	both.Wait()
	if n := runs(repo); n != 2 {
		t.Errorf("eight of one word started %d runs", n-1)
	}

	// for another epoch, without a lease, or unreadable: nothing is decided
	refused := func(what string, raw []byte) {
		t.Helper()
		if got := string(answer(ctx, raw)); !strings.Contains(got, `"refused":true`) {
			t.Errorf("%s: %s", what, got)
		}
	}
	for _, epoch := range []int64{0, 3, 5} {
		refused("another epoch", other(func(w *word) { w.Epoch = epoch }))
	}
	leader.holds.Store(false)
	refused("without a lease", other(same))
	leader.holds.Store(true)
	doubled := strings.Replace(string(other(same)), `"epoch":4`, `"epoch":4,"epoch":4`, 1)
	for _, raw := range []string{"", "{", `{"id":"x","epoch":4}`, doubled, strings.Repeat(" ", wordBytes) + string(other(same)),
		string(other(func(w *word) { w.Do.Kind = "file_seen" })), string(other(func(w *word) { w.Do.Kind = "claimed" }))} {
		if got := string(answer(ctx, []byte(raw))); !strings.Contains(got, `"error"`) {
			t.Errorf("%.80s: %s", raw, got)
		}
	}
	if n := runs(repo); n != 2 {
		t.Errorf("%d runs", n)
	}

	// what this machine says where no answer comes, and where nobody leads
	follower.say = func(context.Context, []byte) ([]byte, bool, error) { return nil, true, errors.New("lost") }
	late, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := say(late, follower, word{}); err == nil || !strings.Contains(err.Error(), "not known whether it is recorded") {
		t.Error(err)
	}
	follower.say = nil
	_, err = c.Do(ctx, engine.RunRequested{Source: "two"}, "")
	if err == nil || !strings.Contains(err.Error(), "not recorded") || !strings.Contains(err.Error(), "the other decides") {
		t.Error(err)
	}
	for _, ev := range []engine.Event{engine.Claimed{Run: "two-1"}, engine.FileSeen{Sentinel: &engine.Sentinel{}}} {
		if _, err := c.Do(ctx, ev, ""); err == nil || !strings.Contains(err.Error(), "not recorded") {
			t.Errorf("%s: %v", ev.EventKind(), err)
		}
	}
}

// A word that may have been decided in one epoch is not said again in the next one.
func TestPassedOnOnceOverEpochs(t *testing.T) {
	follower, n := newFakeLead(), 0
	follower.say = func(context.Context, []byte) ([]byte, bool, error) {
		if n++; n == 1 {
			return nil, true, errors.New("lost")
		}
		return reply{Refused: true}.encode(), true, nil
	}
	_, err := say(context.Background(), follower, word{})
	if err == nil || !strings.Contains(err.Error(), "not known") || n != 2 {
		t.Errorf("%v after %d tries", err, n)
	}
}

// What is said to a leader that is deposed meanwhile is not recorded, and the answer says whom to ask.
func TestDeposedAnswers(t *testing.T) {
	lead := newFakeLead()
	b := handled(t)
	b.opt.Lead = lead
	stopped := func() error {
		err := deposed(b.opt.Lead, ErrStopped)
		if es, ok := errors.AsType[errStatus](err); ok && es.code == http.StatusConflict && strings.Contains(err.Error(), "not recorded") && strings.Contains(err.Error(), "the other") {
			return nil
		}
		return err
	}
	if !errors.Is(stopped(), ErrStopped) {
		t.Error("who only stops says that another machine decides")
	}
	close(lead.lost)
	if err := stopped(); err != nil {
		t.Error(err)
	}
	if err := deposed(b.opt.Lead, http.ErrHandlerTimeout); !errors.Is(err, http.ErrHandlerTimeout) {
		t.Error(err)
	}
}

// A file of another machine counts by its age, as an answer only, and with the lower trust of the two
// machines.
func TestPassedOnFile(t *testing.T) {
	leader := newFakeLead()
	leader.hears = make(chan func(context.Context, []byte) []byte, 1)
	_, ready, _ := servedIn(t, leader, true)
	repo, answer := <-ready, <-leader.hears
	ctx := context.Background()
	there := time.Now().Add(-time.Hour) // its clock
	f := engine.FileSeen{Name: "GA-pass", ID: "1-2-3", Of: "two-1/A#1.1", Place: "p", TokenOf: "two-1/A#1.1", DigestNow: "forged",
		Written: there.Add(-3 * time.Second), By: engine.Actor{Who: "x", Trust: engine.TrustSigned, Key: "k"},
		Sentinel: &engine.Sentinel{Step: "A", Status: "done"},
		Human:    &engine.HumanSay{Text: "yes", Proven: engine.Proven{Signed: &engine.Signed{Key: "k"}}}}
	w := word{ID: journal.NewID(), Epoch: 4, From: "b", Who: "ann\x1b", Trust: engine.TrustFile, File: &f, At: there}
	got, err := repo.intake.file(ctx, w, engine.Actor{Who: "ann"})
	if err != nil || got.ID != "elsewhere-"+w.ID || got.Of+got.Place+got.TokenOf+got.DigestNow != "" || got.Sentinel != nil ||
		got.By.Who != "ann" || got.Human.Proven.Signed != nil || got.Human.Proven.Unproven == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if age := time.Since(got.Written); age < 3*time.Second || age > 10*time.Second {
		t.Errorf("it is %s old, and was 3 seconds", age)
	}

	if _, err := repo.Do(ctx, Do{Kind: "run_requested", Event: []byte(`{"source":"two"}`)}); err != nil {
		t.Fatal(err)
	}
	round := asksAtGB(t, repo)
	now := time.Now()
	for name, bound := range map[string]bool{"GB-pass.md": true, "GB-route": true, "GB-fail.json": false, "GB-veto": false,
		"G-route": false} { // what lets work go on is about its content
		w.File = &engine.FileSeen{Name: name, Human: &engine.HumanSay{}}
		if got, err := repo.intake.file(ctx, w, engine.Actor{}); err != nil || (got.DigestNow != "") != bound {
			t.Errorf("%s: about %q, %v", name, got.DigestNow, err)
		}
	}
	w.File = &engine.FileSeen{Name: "GB-pass", Human: &engine.HumanSay{}, Written: now, ID: "9"}
	w.At, w.Trust = now, "forged"
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var a reply
		if err := json.Unmarshal(answer(ctx, raw), &a); err != nil || a.Error != "" || len(a.Done.Facts) == 0 {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if q := round(); q.By == nil || q.By.Who != "ann" || q.By.Via != "file on b" || q.By.Trust != engine.TrustFile || q.N != 1 {
		t.Errorf("%+v by %+v", q, q.By)
	}
}

// asksAtGB waits until GB of two-1 asks a person. It returns what reads its round.
func asksAtGB(t *testing.T, repo *Repo) (round func() engine.Round) {
	t.Helper()
	round = func() (q engine.Round) {
		_ = repo.queue.ask(t.Context(), func(c *core) {
			if r := c.state.Runs["two-1"].CurrentRound("GB"); r != nil {
				q = *r
			}
		})
		return q
	}
	for until := time.Now().Add(10 * time.Second); round().State != engine.OnHuman; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("GB asks nobody")
		}
	}
	return round
}

// weak is a world that cannot read what a round is about for a while.
type weak struct {
	*stage
	fails atomic.Bool
}

func (w *weak) DigestNow(ctx context.Context, q job.Reviewed) (string, error) {
	if w.fails.Load() {
		return "", errors.New("its work is not here yet")
	}
	return w.stage.DigestNow(ctx, q)
}

// TestAFileIsPassedOnAgain: a word that the leader could not take in is none that it has decided on. A file is said
// with one id until it is decided.
func TestAFileIsPassedOnAgain(t *testing.T) {
	leader := newFakeLead()
	leader.hears = make(chan func(context.Context, []byte) []byte, 1)
	world := &weak{stage: newStage()}
	_, ready, _ := servedWith(t, leader, true, world)
	repo, answer := <-ready, <-leader.hears
	ctx := context.Background()
	if _, err := repo.Do(ctx, Do{Kind: "run_requested", Event: []byte(`{"source":"two"}`)}); err != nil {
		t.Fatal(err)
	}
	round := asksAtGB(t, repo)
	now := time.Now()
	raw, err := json.Marshal(word{ID: journal.NewID(), Epoch: 4, From: "b", Who: "ann", Trust: engine.TrustFile, At: now,
		File: &engine.FileSeen{Name: "GB-pass", Human: &engine.HumanSay{}, Written: now, ID: "9"}})
	if err != nil {
		t.Fatal(err)
	}
	var a reply
	world.fails.Store(true)
	if err := json.Unmarshal(answer(ctx, raw), &a); err != nil || !strings.Contains(a.Error, "not here yet") {
		t.Fatalf("%+v, %v", a, err)
	}
	world.fails.Store(false)
	a = reply{}
	if err := json.Unmarshal(answer(ctx, raw), &a); err != nil || a.Error != "" || len(a.Done.Facts) == 0 {
		t.Errorf("it can be read by now, and the file is answered with %+v, %v; round %+v", a, err, round())
	}
}

// TestInboxOfAnyName: a file in the inbox is found whatever characters the root's path has.
func TestInboxOfAnyName(t *testing.T) {
	for _, name := range []string{"plain", "a[b]*?", "rejected"} {
		root := filepath.Join(t.TempDir(), name)
		inbox := filepath.Join(root, ".workflow", "signals")
		if err := os.MkdirAll(filepath.Join(inbox, "rejected"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]bool{"rejected/old": false, "G-veto": true} {
			if err := os.WriteFile(filepath.Join(inbox, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if has := inboxHas(root); has != want {
				t.Errorf("%s with %s: %v, want %v", name, file, has, want)
			}
			if err := os.Remove(filepath.Join(inbox, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
