//go:build linux || darwin

package world

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/journal"
	"sluice/specs"
	"sluice/tools/conform"
)

// loop serves the bench by the real loop until the test ends, or stop is called.
func (b *bench) loop() (c *daemon.Client, stop func()) {
	b.t.Helper()
	compile := func(source string) (*engine.Spec, error) {
		s, faults := specs.Load("", []byte(source))
		if len(faults) > 0 {
			return nil, errors.New(faults[0].Message)
		}
		return s, nil
	}
	open := func(context.Context, string, string) (daemon.RepoOptions, func(), error) {
		return daemon.RepoOptions{World: b.e, Compile: compile, Rescan: 200 * time.Millisecond,
			Config: func() engine.Config { return b.settings.Engine() }, Log: zerolog.New(zerolog.NewTestWriter(b.t)).Level(zerolog.WarnLevel)}, nil, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			err := daemon.Serve(ctx, b.root, b.state, open, func(*daemon.Repo, journal.Recovery) { close(ready) })
			var held *daemon.Held
			if !errors.As(err, &held) || !health.Wait(ctx, 10*time.Millisecond) {
				ended <- err
				return
			}
			// A process that another test starts just now has the lock of the loop before until it is the command's.
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("the loop: %v", err)
		}
	})
	b.t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil // for the cleanup
		b.t.Fatalf("the loop: %v", err)
	}
	c = daemon.NewClient(b.state)
	b.t.Cleanup(c.Close)
	return c, stop
}

// start starts a run of the bench's spec.
func (b *bench) start(c *daemon.Client, source string) {
	b.t.Helper()
	if d, err := c.Do(b.ctx(), engine.RunRequested{Workflow: "w", Source: source}, "command"); err != nil || d.Ignored != "" {
		b.t.Fatalf("start: %+v %v", d, err)
	}
}

func (b *bench) status(c *daemon.Client) daemon.RunStatus {
	b.t.Helper()
	s, err := c.Run(b.ctx(), run1)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

const loopSpec = `
workflow: {id: w}
steps:
  - id: A
    agent: {type: writer, worktree: tree/, branch: work}
    outputs: [out.txt]
    success_criterion: "grep -q good out.txt exits 0"
    gate: G
  - id: B
    agent: {type: committer, worktree: tree/, branch: work}
    inputs: [out.txt]
    signal: {type: git_commit, value: "[DONE]"}
    gate: H
gates:
  - id: G
    reviewer: {level: auto, agent_type: reviewer}
    on_pass: {next_step: B}
    on_fail: {next_step: A}
  - id: H
    reviewer: {level: human}
    on_pass: {next_step: DONE}
`

// TestLoop carries a run through the real loop: a criterion that fails, a reviewer that wants more, a commit as the
// signal, and a person's file.
func TestLoop(t *testing.T) {
	conform.Rule(t, "004 §6 experiment 4", "criterion and reviewer fail, feedback, retry, pass")
	conform.Rule(t, "004 §2 Retry.written", "the feedback lies at the known place")
	conform.Rule(t, "004 §2 Retry.read", "the third attempt's prompt has it")
	conform.Rule(t, "004 §2 Retry.accumulates", "both failures are there")
	conform.Rule(t, "004 §4 retry-context", "a file per failure")
	conform.Rule(t, "004 §2 Reviewer.human", "it waits until a person's file")
	conform.Rule(t, "004 §6 experiment 5.human", "blocks until a pass file is written")
	conform.Rule(t, "004 §2 Signal.git_commit", "a commit is the step's signal")
	conform.Rule(t, "field ask 15", "a retry has its feedback, on top of the work before")
	conform.Rule(t, "1-language rule 11", "the run's spec is kept with it")
	conform.Rule(t, "2-files decision file", "a pass file by hand completes the run")
	b := newBench(t, loopSpec)
	b.settings.Grace = engine.Duration(time.Second)
	b.script("one", `
case "$SLUICE_ROLE" in
writer)
  n=$(ls "$SLUICE_PROMPT" | wc -l); echo "attempt $SLUICE_ATTEMPT" >>log.txt
  case $SLUICE_ATTEMPT in 1) echo bad >out.txt;; 2) echo good >out.txt;; *) echo good better >out.txt;; esac;;
reviewer)
  if grep -q better out.txt; then echo '{"verdict":"pass","score":90}'; else echo '{"verdict":"fail","feedback":"make it better"}'; fi;;
committer)
  git add -A && git -c user.name=A -c user.email=a@example.org commit -q -m "all of it [DONE]";;
esac`)
	b.put(".workflow/specs/w.yaml", loopSpec)
	c, _ := b.loop()
	b.start(c, loopSpec)
	status := func() daemon.RunStatus { return b.status(c) }
	eventually(t, "a person is asked", func() bool {
		s := status()
		if s.Phase != engine.RunRunning {
			t.Fatalf("%+v", s)
		}
		return s.Steps[1].Gates[0].State == engine.OnHuman
	})
	b.put(".workflow/signals/H-pass", "fine")
	eventually(t, "the run is completed", func() bool { return status().Phase == engine.RunCompleted })
	wantText(t, "the log of attempts", b.get("tree/log.txt"), "attempt 1\nattempt 2\nattempt 3\n")
	wantText(t, "the first retry context", b.get(".workflow/retry-context/G-attempt-1.md"), "The success criterion does not hold")
	wantText(t, "the second retry context", b.get(".workflow/retry-context/G-attempt-2.md"), "make it better")
	wantText(t, "the prompt of the third attempt", b.get(".workflow/runs/w-1/A.3/prompt.md"), "make it better", "The success criterion does not hold")
	wantText(t, "the reviewer's prompt", b.get(".workflow/runs/w-1/G.3/prompt.md"), "+good better", "out.txt")
	if strings.TrimSpace(b.get(".workflow/runs/w-1/spec.yaml")) != strings.TrimSpace(loopSpec) {
		t.Error("spec.yaml is another")
	}
}

const restartSpec = `
workflow: {id: w}
steps:
  - id: A
    run: "echo x >>ran; while [ ! -e go ]; do sleep 0.01; done; echo '{}' >$SLUICE_SIGNAL; sleep 1000"
    signal: {type: sentinel_file}
    gate: G
  - id: B
    agent: {type: writer, launch: subagent}
    signal: {type: git_commit, value: "[B]"}
    gate: H
gates:
  - id: G
    reviewer: {level: notify, run: "true"}
    veto_window: 50ms
    on_pass: {next_step: B}
  - id: H
    reviewer: {level: auto, from: step}
    on_pass: {next_step: DONE}
`

// TestLoopRestarted: the daemon goes while a step is at work; the next one adopts it, ends what lingers after its
// signal, and offers a step that a commit answers.
func TestLoopRestarted(t *testing.T) {
	b := newBench(t, restartSpec)
	b.settings.Linger = engine.Duration(50 * time.Millisecond)
	c, stop := b.loop()
	b.start(c, restartSpec)
	eventually(t, "the step is at work", func() bool { return b.has("ran") })
	stop()
	b.e.Close()
	b.put("go", "")
	b.e = b.executor()
	c, _ = b.loop()
	eventually(t, "the step is offered", func() bool { return b.has(".workflow/runs/w-1/B.1/offer.json") })
	if got := b.get("ran"); got != "x\n" {
		t.Errorf("it ran %q", got)
	}
	b.sh(commit + "-m 'done [B]'")
	eventually(t, "the run is completed", func() bool { return b.status(c).Phase == engine.RunCompleted })
	if s := b.status(c); s.Steps[0].Attempt != 1 || s.Steps[0].Gates[0].ByKind != "window" {
		t.Errorf("%+v", s.Steps[0])
	}
}

// TestLoopRefusesAnOffer: an offered step whose input is missing has failed by name, also where a commit would be its signal.
func TestLoopRefusesAnOffer(t *testing.T) {
	const spec = `workflow: {id: w}
steps:
  - {id: A, agent: {type: a, launch: subagent}, inputs: [in.txt], signal: {type: git_commit}, gate: G}
gates:
  - {id: G, reviewer: {level: auto, from: step}, on_pass: {next_step: DONE}, on_fail: {next_step: FAILED}}
`
	b := newBench(t, spec)
	c, _ := b.loop()
	b.start(c, spec)
	eventually(t, "the run has failed", func() bool { return b.status(c).Phase == engine.RunFailed })
	wantText(t, "why", b.status(c).Steps[0].Failure, "in.txt")
}
