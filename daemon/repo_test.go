package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/journal"
	"sluice/tools/conform"
)

// stage is a World whose processes end as the script says, at once.
type stage struct {
	mu      sync.Mutex
	files   []engine.Event
	hints   chan struct{}
	carried []string
	digest  string
	verdict func(gate string, n int) engine.Judgement
}

func newStage() *stage {
	return &stage{hints: make(chan struct{}, 1), digest: "d", verdict: func(string, int) engine.Judgement { return engine.Judgement{Outcome: "pass"} }}
}

func (s *stage) put(ev engine.Event) {
	s.mu.Lock()
	s.files = append(s.files, ev)
	s.mu.Unlock()
	select {
	case s.hints <- struct{}{}:
	default:
	}
}

// count is how many effects were carried out.
func (s *stage) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.carried)
}

func (s *stage) Carry(ctx context.Context, job job.Job, emit func(engine.Event)) engine.Event {
	s.mu.Lock()
	s.carried = append(s.carried, job.Name())
	s.mu.Unlock()
	switch job.Kind {
	case engine.DoRun:
		ev := engine.ProcessEnded{Run: job.Run, Key: job.Key}
		switch job.Proc.Kind {
		case engine.ProcStep:
			s.put(engine.FileSeen{Name: job.Step + "-done.json", ID: job.Key, Written: time.Now(), Sentinel: &engine.Sentinel{}})
		case engine.ProcCheck:
			ev.Check = &engine.CheckResult{OK: true, Digest: s.digest}
		case engine.ProcReview:
			v := s.verdict(job.Gate, job.N)
			ev.Verdict = &v
		}
		return ev
	case engine.DoStop:
		return engine.ProcessEnded{Run: job.Run, Key: job.Key, Exit: engine.Exit{Stopped: true}}
	case engine.DoNotify:
		return engine.Noticed{ID: job.Key, Results: []string{"test: shown"}}
	case engine.DoWrite:
		return engine.FileWritten{Run: job.Run, ID: job.Key}
	case engine.DoMove:
		s.mu.Lock()
		for i, f := range s.files {
			if f.(engine.FileSeen).ID == job.Key {
				s.files = append(s.files[:i:i], s.files[i+1:]...)
				break
			}
		}
		s.mu.Unlock()
		return engine.FileMoved{ID: job.Key}
	}
	<-ctx.Done()
	return nil
}

func (s *stage) Scan(context.Context, job.Inboxes) ([]engine.Event, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]engine.Event{}, s.files...), false, nil
}
func (s *stage) Proven(string) (p engine.Proven, words string)           { return p, "" }
func (s *stage) DigestNow(context.Context, job.Reviewed) (string, error) { return s.digest, nil }
func (s *stage) Trees(context.Context, *engine.Spec) map[string]string   { return nil }
func (s *stage) Hints() <-chan struct{}                                  { return s.hints }
func (s *stage) Hinted() []job.Place                                     { return []job.Place{{}} }
func (s *stage) Health() []string                                        { return nil }
func (s *stage) Awaits(string, string) string                            { return "" }
func (s *stage) Level(string) (string, string)                           { return engine.TrustFile, "nothing holds it" }

// twoGates is a workflow of two steps, a notify gate and a human one.
func twoGates(source string) (*engine.Spec, error) {
	if !strings.HasPrefix(source, "two") {
		return nil, errors.New("x.yaml:1:1: no workflow")
	}
	step := func(id, gate string) *engine.Step {
		return &engine.Step{ID: id, Name: id, Agent: &engine.Agent{Type: "r", Launch: engine.LaunchHeadless},
			Signal: engine.Signal{Type: engine.SignalFile, Value: ".workflow/signals/" + id + "-done.json"}, Gates: []string{gate}}
	}
	window := engine.Duration(20 * time.Millisecond)
	w := &engine.Spec{ID: "two", Name: "two", Steps: []*engine.Step{step("A", "GA"), step("B", "GB")}, Gates: []*engine.Gate{
		{ID: "GA", Step: "A", Reviewer: engine.Reviewer{Level: engine.LevelNotify, AgentType: "reviewer"}, VetoWindow: &window, OnPass: []string{"B"}, OnFail: "A", MaxRetries: 3, OnExhausted: "human", RetryContext: "r-{n}.md"},
		{ID: "GB", Step: "B", Reviewer: engine.Reviewer{Level: engine.LevelHuman}, OnPass: []string{engine.EndDone}, OnFail: "B", MaxRetries: 3, OnExhausted: "human", RetryContext: "q-{n}.md"},
	}}
	w.Link()
	return w, nil
}

type service struct {
	t      *testing.T
	root   string
	state  string
	world  World
	cancel context.CancelFunc
	done   chan error
	client *Client
	repo   *Repo
}

func serveTest(t *testing.T, root string, world World) *service {
	t.Helper()
	return serveWith(t, root, world, func(*RepoOptions) {})
}

// serveWith serves with other options than the usual.
func serveWith(t *testing.T, root string, world World, set func(*RepoOptions)) *service {
	t.Helper()
	s := &service{t: t, root: root, state: filepath.Join(root, "state"), world: world, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	ready := make(chan struct{})
	go func() {
		s.done <- Serve(ctx, root, s.state, func(context.Context, string, string) (RepoOptions, func(), error) {
			opt := RepoOptions{World: world, Compile: twoGates, Config: engine.DefaultConfig, Log: zerolog.Nop(), Version: "test"}
			set(&opt)
			return opt, nil, nil
		}, func(r *Repo, _ journal.Recovery) { s.repo = r; close(ready) })
	}()
	select {
	case <-ready:
	case err := <-s.done:
		t.Fatal(err)
	}
	s.client = NewClient(s.state)
	t.Cleanup(s.stop)
	return s
}

func (s *service) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	s.cancel = nil
	s.client.Close()
	if err := <-s.done; err != nil {
		s.t.Error(err)
	}
}

// until polls the run until ok holds.
func (s *service) until(run, what string, ok func(RunStatus) bool) RunStatus {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		r, err := s.client.Run(context.Background(), run)
		if err == nil && ok(r) {
			return r
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not in time: %+v %v", what, r, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestRunThroughTheSocketAndARestart(t *testing.T) {
	conform.Rule(t, "field asks record", "who passed and how is on the record")
	conform.Rule(t, "field ask 9", "a waiting gate is there again after a restart")
	conform.Rule(t, "2-files decision", "a second answer is told")
	conform.Rule(t, "2-files run names", "the first run of two is two-1")
	conform.Rule(t, "2-files journal export", "the export agrees with the journal")
	root := t.TempDir()
	world := newStage()
	world.verdict = func(gate string, n int) engine.Judgement {
		if n == 1 {
			return engine.Judgement{Outcome: "fail", Feedback: "no edge cases"}
		}
		return engine.Judgement{Outcome: "pass"}
	}
	s := serveTest(t, root, world)
	ctx := context.Background()
	d, err := s.client.Do(ctx, engine.RunRequested{Source: "two"}, "")
	if err != nil || d.Run != "two-1" {
		t.Fatalf("start: %+v %v", d, err)
	}
	asksGB := func(r RunStatus) bool { return len(r.Waits) == 1 && r.Waits[0].Kind == "human" }
	r := s.until("two-1", "the human gate", asksGB)
	if n := len(r.Steps[0].Attempts); n != 2 {
		t.Errorf("step A has %d attempts, want 2: the first review failed", n)
	}
	s.stop()
	s = serveTest(t, root, world)
	s.until("two-1", "the human gate after a restart", asksGB)
	odd := engine.Answered{Gate: "GB", Outcome: "fail", Findings: json.RawMessage(`[{"line":"three"}]`)}
	if d, err := s.client.Do(ctx, odd, ""); err == nil || !strings.Contains(err.Error(), "findings[0]: line: want a number") {
		t.Errorf("comments that cannot be read: %+v %v", d, err)
	}
	if d, err := s.client.Do(ctx, engine.Answered{Gate: "GB", Outcome: "pass"}, "terminal"); err != nil || d.Ignored != "" {
		t.Fatalf("pass: %+v %v", d, err)
	}
	r = s.until("two-1", "the end", func(r RunStatus) bool { return r.Phase == engine.RunCompleted })
	if by := r.Steps[1].Gates[0].By; by == nil || by.Via != "terminal" || by.Trust != engine.TrustFile {
		t.Errorf("who passed is on the record: %+v", by)
	}
	if d, _ := s.client.Do(ctx, engine.Answered{Gate: "GB", Outcome: "fail"}, ""); !strings.Contains(d.Ignored, "over") {
		t.Errorf("a second answer is told: %+v", d)
	}
	s.stop()
	rep, err := journal.VerifyExport(filepath.Join(root, ExportName("two")), s.state, KeepAudit("two"), journal.Options{})
	if err != nil || rep.Lines == 0 {
		t.Errorf("the audit export agrees with the journal: %+v %v", rep, err)
	}
	auditOfAnOlderRelease(t, s, root, world, rep.Lines)
	if _, err := os.Stat(filepath.Join(s.state, SocketName)); err == nil {
		t.Error("the socket is left behind")
	}
}

// auditOfAnOlderRelease: an audit file with every fact is put aside at the start, and written anew
// with the decisions.
func auditOfAnOlderRelease(t *testing.T, s *service, root string, world World, lines int64) {
	conform.Rule(t, "13-law 004 audit", "a line for each launch, word, verdict, decision and end; the whole record can be exported")
	name, mark := filepath.Join(root, ExportName("two")), filepath.Join(s.state, markFile)
	var whole bytes.Buffer
	if err := journal.WriteLines(&whole, s.state, KeepWorkflow("two"), journal.Options{}); err != nil {
		t.Fatal(err)
	}
	if n := int64(bytes.Count(whole.Bytes(), []byte("\n"))); n < 3*lines {
		t.Errorf("the whole record has %d lines, the audit %d", n, lines)
	}
	old, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{name: whole.Bytes(), mark: bytes.Replace(old, []byte(`"form":2,`), nil, 1)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = serveTest(t, root, world)
	untilAudited(t, root, s.state, fmt.Sprintf("%d lines", lines), func(rep journal.ExportReport) bool { return rep.Lines == lines })
	s.stop()
	if data, err := os.ReadFile(strings.TrimSuffix(name, ".log") + ".whole.log"); err != nil || !bytes.Equal(data, whole.Bytes()) {
		t.Errorf("what the older release wrote: %v", err)
	}
}

// untilAudited waits until the audit of the workflow "two" agrees with the journal and is as
// wanted.
func untilAudited(t *testing.T, root, state, want string, ok func(journal.ExportReport) bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		rep, err := journal.VerifyExport(filepath.Join(root, ExportName("two")), state, KeepAudit("two"), journal.Options{})
		if err == nil && ok(rep) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the audit: %+v %v, want %s", rep, err, want)
		}
	}
}

func TestOnlyOneServesARepo(t *testing.T) {
	conform.Rule(t, "3-engine one writer", "a second is told who serves it")
	conform.Rule(t, "field ask 2", "one owner per repo")
	root := t.TempDir()
	s := serveTest(t, root, newStage())
	var held *Held
	if _, err := TakeLock(s.state); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Fatalf("a second lock: %v", err)
	}
	if _, err := OpenReader(root, s.state, twoGates); !errors.As(err, &held) {
		t.Fatalf("a reader beside the server: %v", err)
	}
	s.stop()
	r, err := OpenReader(root, s.state, twoGates)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
}
