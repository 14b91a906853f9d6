//go:build linux

package test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/engine"
	"sluice/internal/cluster"
	"sluice/internal/console"
	"sluice/internal/serve"
	"sluice/internal/workspace"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

const wordSpec = `workflow: {id: long}
steps:
  - {id: A, run: [sh, -c, "echo A >> @RAN@"], gate: GA}
  - {id: B, run: [sh, -c, "echo B >> @RAN@"], gate: GB}
gates:
  - {id: GA, reviewer: {level: notify, run: "true"}, veto_window: 15s, on_pass: {next_step: B}, on_fail: {next_step: FAILED}}
  - {id: GB, reviewer: {level: human}, on_pass: {next_step: DONE}}
`

// phase returns the phase of the only run, as the machine knows it.
func (w *sandbox) phase() string {
	st, ok := w.status()
	if !ok || len(st.Runs) != 1 {
		return ""
	}
	return st.Runs[0].Phase
}

// gateState returns the state of a gate of the only run.
func (w *sandbox) gateState(id string) string {
	st, _ := w.status()
	for _, r := range st.Runs {
		return r.States()[id]
	}
	return ""
}

func (w *sandbox) follows() bool {
	st, ok := w.status()
	return ok && st.Cluster != nil && !st.Cluster.Leads && st.Cluster.Epoch > 0
}

// A person works at the machine that follows: what is said there is recorded by the one that leads,
// also after a takeover in which a window was about to close. Where nobody leads, it is not recorded.
func TestClusterWordAtTheFollower(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "13-cluster word", "a follower forwards files and answers, and says \"recorded\" only after the leader's fact; a deposed leader answers \"not recorded, ask X\"")
	servers := natstest.Start(t, 1)
	a, b, id := machinesWith(t, servers, "1", wordSpec)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	b.bootIn(servers, "--standby")
	eventually(t, "b follows", b.follows)
	b.do(b.bin, "start", "long")
	if b.phase() == "" {
		t.Error("what the follower has said is recorded is not in its journal")
	}
	eventually(t, "the window is open", func() bool { return b.gateState("GA") == engine.OnWindow })
	a.signal(syscall.SIGSTOP)
	eventually(t, "b leads", b.leads)
	eventually(t, "B runs, once", func() bool { return b.gateState("GB") == engine.OnHuman })
	a.signal(syscall.SIGCONT)
	eventually(t, "a follows", a.follows)
	eventually(t, "a has it", func() bool { return a.gateState("GB") == engine.OnHuman })
	a.do(a.bin, "pass", "GB", "--yes")
	if got := a.phase(); got != engine.RunCompleted {
		t.Errorf("the run is %s", got)
	}
	b.sameAsStream(servers, id)
	b.kill()
	out, err := a.try(a.bin, "start", "long")
	if err == nil || !strings.Contains(out, "ot recorded") && !strings.Contains(out, "not known whether it is recorded") {
		t.Errorf("nobody leads: %v, %s", err, out)
	}
}

// A pass that is put as a file on the machine that follows counts, also where the work is in files that only the leader
// has.
func TestClusterPassFileAtTheFollower(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, b, _ := machinesWith(t, servers, "1", `workflow: {id: long, workspace: run}
steps:
  - {id: A, run: [sh, -c, "echo made > made.txt"], outputs: [made.txt], gate: GA}
gates:
  - {id: GA, reviewer: {level: human}, on_pass: {next_step: DONE}}
`)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	b.bootIn(servers, "--standby")
	eventually(t, "b follows", b.follows)
	a.do(a.bin, "start", "long")
	eventually(t, "the gate asks", func() bool { return b.gateState("GA") == engine.OnHuman })
	b.put("repo/.workflow/signals/GA-pass", "good\n")
	eventually(t, "the run ends", a.ended)
}

// serveStandby has a standby serve in this process, by a clock that is ahead.
func (w *sandbox) serveStandby(servers *natstest.Servers, ahead time.Duration) {
	w.t.Helper()
	con := console.New(w.env, strings.NewReader(""), w.log, w.log)
	con.Now = func() time.Time { return time.Now().Add(ahead) }
	home, err := workspace.Home(con)
	if err != nil {
		w.t.Fatal(err)
	}
	parts, err := serve.New(serve.Options{Console: con, Self: w.bin,
		Cluster: &serve.Cluster{Servers: cluster.Servers{URLs: servers.URL()}, Standby: true}}, zerolog.New(w.log).With().Timestamp().Logger())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- parts.Server(home, nil).Run(ctx, nil) }()
	w.t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, parts.Close()); err != nil {
			w.t.Error(err)
		}
	})
}

// The leader dies 2 seconds before a veto window closes, and the veto is a file on its disk. The clock
// of the machine that takes over is an hour ahead. The veto wins.
func TestClusterVetoOnTheDeposed(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "13-cluster veto", "failover 2 s before a window closes, the veto on the deposed machine's disk, the clock an hour ahead: the veto wins")
	servers := natstest.Start(t, 1)
	a, b, id := machinesWith(t, servers, "1", wordSpec)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	b.serveStandby(servers, time.Hour)
	eventually(t, "b follows", b.follows)
	a.do(a.bin, "start", "long")
	var until time.Time
	eventually(t, "the window is open", func() bool {
		until = a.step("A").Gates[0].Until
		return !until.IsZero()
	})
	time.Sleep(time.Until(until) - 2*time.Second)
	a.kill()
	a.put("repo/.workflow/signals/GA-veto", "not yet\n")
	eventually(t, "b leads", b.leads)
	if left := time.Until(b.step("A").Gates[0].Until.Add(-time.Hour)); left < 8*time.Second || left > 16*time.Second {
		t.Errorf("b has the window open for %s", left)
	}
	a.bootIn(servers)
	eventually(t, "the veto has won", func() bool { return b.phase() == engine.RunFailed })
	if got := b.step("A").Gates[0]; got.ByKind != "human" || got.By == nil || !strings.Contains(got.By.Via, "file on ") {
		t.Errorf("%+v, by %+v", got, got.By)
	}
	eventually(t, "the file is put away", func() bool {
		_, err := os.Lstat(filepath.Join(a.repo, ".workflow/signals/GA-veto"))
		return errors.Is(err, fs.ErrNotExist)
	})
	a.sameAsStream(servers, id)
}
