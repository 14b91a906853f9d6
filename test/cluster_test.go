//go:build linux

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/daemon"
	"sluice/engine"
	"sluice/journal"
	"sluice/tools/natstest"
)

const (
	clusterLease = 2 * time.Second
	// serverElection is how long three servers may take to choose another leader of a stream, as
	// docs/cluster.md promises for the takeover in all.
	serverElection = 15 * time.Second
)

// Each step writes a line, so that it is seen how often it ran and where.
const clusterSpec = `workflow: {id: long}
steps:
  - {id: A, run: [sh, -c, "echo A >> @RAN@; sleep 0.4"], gate: GA}
  - {id: B, run: [sh, -c, "echo B >> @RAN@; sleep 1.5"], gate: GB}
  - {id: C, run: [sh, -c, "echo C >> @RAN@; sleep 0.4"], gate: GC}
gates:
  - {id: GA, reviewer: {level: auto, run: "true"}, on_pass: {next_step: B}}
  - {id: GB, reviewer: {level: auto, run: "true"}, on_pass: {next_step: C}}
  - {id: GC, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`

// twoMachines are two sandboxes with the same repo, of which the first has begun the cluster.
func twoMachines(t *testing.T, servers *natstest.Servers, replicas string) (a, b *sandbox, id string) {
	t.Helper()
	ran := filepath.Join(t.TempDir(), "ran")
	a = newSandbox(t, "trust: file\nnotify: {desktop: false}\n")
	a.put("repo/.workflow/specs/long.yaml", strings.ReplaceAll(clusterSpec, "@RAN@", ran))
	a.commit()
	b = newSandbox(t, "trust: file\nnotify: {desktop: false}\n")
	if err := os.RemoveAll(b.repo); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "clone", "-q", a.repo, b.repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a.do(a.bin, "watch", "add")
	b.do(b.bin, "watch", "add")
	var begun struct{ Journal string }
	out := a.do(a.bin, "cluster", "init", servers.URL(), "--replicas", replicas, "--lease", clusterLease.String(), "--json")
	if err := json.Unmarshal([]byte(out), &begun); err != nil || !journal.IsID(begun.Journal) {
		t.Fatalf("%v: %s", err, out)
	}
	b.do(b.bin, "cluster", "join", begun.Journal, servers.URL())
	return a, b, begun.Journal
}

// bootIn starts the daemon in the cluster.
func (w *sandbox) bootIn(servers *natstest.Servers, flags ...string) {
	w.t.Helper()
	w.last = exec.Command(w.bin, append([]string{"daemon", "--cluster", servers.URL()}, flags...)...)
	w.last.Dir, w.last.Env, w.last.Stdout, w.last.Stderr = w.repo, w.env, w.log, w.log
	if err := w.last.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *sandbox) leads() bool {
	st, ok := w.status()
	return ok && st.Cluster != nil && st.Cluster.Leads && st.Cluster.Holds
}

func (w *sandbox) step(id string) (s daemon.StepStatus) {
	st, _ := w.status()
	for _, r := range st.Runs {
		for _, s := range r.Steps {
			if s.ID == id {
				return s
			}
		}
	}
	return s
}

func (w *sandbox) ended() bool {
	st, ok := w.status()
	return ok && len(st.Runs) == 1 && st.Runs[0].Phase == engine.RunCompleted
}

// streamOf returns the bytes of a journal's stream.
func streamOf(t *testing.T, servers *natstest.Servers, id string) (all []byte) {
	t.Helper()
	nc, err := nats.Connect(servers.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, "SLUICE_"+id)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); ; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Data...)
	}
}

func (w *sandbox) sameAsStream(servers *natstest.Servers, id string) {
	w.t.Helper()
	var file, stream []byte
	eventually(w.t, "the file is the stream, byte for byte", func() bool {
		var err error
		if file, err = os.ReadFile(filepath.Join(w.state(), journal.FileName)); err != nil {
			w.t.Fatal(err)
		}
		stream = streamOf(w.t, servers, id)
		return bytes.Equal(file, stream)
	})
	if _, err := journal.Verify(w.state(), journal.Options{}); err != nil {
		w.t.Fatal(err)
	}
}

// The machine that decides is killed in the middle of a run, alone or with the server that leads the
// stream. The standby takes over in time, the run goes on to its end, and what was passed is not done
// again.
func TestClusterTakeover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server bool // a server dies too
		most   time.Duration
	}{
		{"leader", false, clusterLease + time.Second},
		{"leader and server", true, serverElection},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers := natstest.Start(t, 3)
			a, b, id := twoMachines(t, servers, "3")
			a.bootIn(servers)
			eventually(t, "a leads", a.leads)
			b.bootIn(servers, "--standby")
			eventually(t, "b follows", func() bool { st, ok := b.status(); return ok && st.Cluster != nil })
			a.do(a.bin, "start", "long")
			eventually(t, "B runs", func() bool { return a.step("B").State == engine.Running })
			if out, err := b.try(b.bin, "start", "long"); err == nil || !strings.Contains(out, "only follows") {
				t.Errorf("the standby starts a run: %v\n%s", err, out)
			}
			eventually(t, "the standby has the run", func() bool { return b.step("B").State == engine.Running })
			if out := b.do(b.bin, "status"); !strings.Contains(out, "epoch 2") || !strings.Contains(out, "leads; this machine has") {
				t.Errorf("the standby's status:\n%s", out)
			}
			if out := a.do(a.bin, "status"); !strings.Contains(out, "epoch 2, this machine leads") {
				t.Errorf("the leader's status:\n%s", out)
			}

			if c.server {
				servers.Kill(servers.LeaderOf("SLUICE_" + id))
			}
			a.kill()
			killed := time.Now()
			within(t, c.most, "b leads", b.leads)
			t.Logf("b leads after %s", time.Since(killed))
			eventually(t, "the run ends", b.ended)
			b.sameAsStream(servers, id)
			if b.step("A").Attempt != 1 {
				t.Errorf("A has %d attempts", b.step("A").Attempt)
			}

			// the first machine is back, and follows
			a.bootIn(servers)
			eventually(t, "a follows", func() bool { st, ok := a.status(); return ok && st.Cluster != nil && !st.Cluster.Leads && st.Cluster.Epoch == 3 })
			a.sameAsStream(servers, id)
			if !a.ended() {
				t.Error("a does not know that the run has ended")
			}
		})
	}
}
