//go:build linux

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/daemon"
	"sluice/engine"
	"sluice/journal"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

const (
	clusterLease = 2 * time.Second
	takeoverMost = 10 * time.Second // a second, where nothing else runs
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
	return machinesWith(t, servers, replicas, clusterSpec)
}

func machinesWith(t *testing.T, servers *natstest.Servers, replicas, spec string) (a, b *sandbox, id string) {
	t.Helper()
	a = newSandbox(t, "trust: file\nnotify: {desktop: false}\n")
	a.put("repo/.workflow/specs/long.yaml", strings.ReplaceAll(spec, "@RAN@", filepath.Join(t.TempDir(), "ran")))
	a.commit()
	b = newSandbox(t, "trust: file\nnotify: {desktop: false}\n")
	b.clone(a)
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

// clone makes the machine's repo a clone of another's.
func (w *sandbox) clone(of *sandbox) {
	w.t.Helper()
	if err := os.RemoveAll(w.repo); err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.Command("git", "clone", "-q", of.repo, w.repo).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
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
	ctx, cancel := context.WithTimeout(t.Context(), waitMost)
	defer cancel()
	s, err := js.Stream(ctx, "SLUICE_"+id)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); ; seq++ {
		m, err := messageOf(ctx, s, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Data...)
	}
}

// messageOf asks again where a server was killed with the question.
func messageOf(ctx context.Context, s jetstream.Stream, seq uint64) (*jetstream.RawStreamMsg, error) {
	for {
		within, cancel := context.WithTimeout(ctx, 2*time.Second)
		m, err := s.GetMsg(within, seq)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return m, err
		}
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
		stops  bool // the leader only stops for a while
		most   time.Duration
	}{
		{"leader", false, false, clusterLease + takeoverMost},
		{"leader and server", true, false, serverElection},
		{"leader that stops", false, true, clusterLease + takeoverMost},
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
			if c.stops {
				a.signal(syscall.SIGSTOP)
			} else {
				a.kill()
			}
			killed := time.Now()
			within(t, c.most, "b leads", b.leads)
			t.Logf("b leads after %s", time.Since(killed))
			eventually(t, "the run ends", b.ended)
			b.sameAsStream(servers, id)
			if b.step("A").Attempt != 1 {
				t.Errorf("A has %d attempts", b.step("A").Attempt)
			}

			// the first machine is back, and follows
			if c.stops {
				a.signal(syscall.SIGCONT)
			} else {
				a.bootIn(servers)
			}
			eventually(t, "a follows", func() bool {
				st, ok := a.status()
				return ok && st.Cluster != nil && !st.Cluster.Leads && st.Cluster.Epoch == 3
			})
			a.sameAsStream(servers, id)
			if !a.ended() {
				t.Error("a does not know that the run has ended")
			}
		})
	}
}

// A machine of an older release, which cannot read a record of the one that led, follows: its status has
// what came before that record and says which it is. It never leads, although nobody else does.
func TestClusterOlderRelease(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, b, id := twoMachines(t, servers, "1")
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	a.do(a.bin, "start", "long")
	eventually(t, "the run ends", a.ended)
	a.stop()
	seq := a.recordsNewer(servers, id)
	stream := streamOf(t, servers, id)

	b.bootIn(servers) // nobody leads, so that it would at once
	eventually(t, "b has the record", func() bool {
		st, ok := b.status()
		return ok && st.Cluster != nil && st.Cluster.Seq == seq && st.Cluster.Unread != nil
	})
	want := fmt.Sprintf("this release cannot read record %d of kind of_tomorrow: upgrade before it can take over", seq)
	if out := b.do(b.bin, "status"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) || !strings.Contains(out, "completed") {
		t.Errorf("the status:\n%s", out)
	}
	if code, out := b.code("start", "long"); code == 0 || !strings.Contains(out, "not recorded") {
		t.Errorf("a word on it: %d, %s", code, out)
	}
	b.sameAsStream(servers, id)
	if b.leads() || !bytes.Equal(stream, streamOf(t, servers, id)) {
		t.Error("it leads, or has appended something")
	}
}

// One of three servers dies, and comes back: the run goes on, and the status says how far each replica is.
func TestClusterReplicaOffline(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 3)
	a, _, id := twoMachines(t, servers, "3")
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	says := func(what string) {
		t.Helper()
		eventually(t, "the status says "+what, func() bool { return strings.Contains(a.do(a.bin, "status"), what) })
	}
	down := (servers.LeaderOf("SLUICE_"+id) + 1) % 3
	name := fmt.Sprintf("s%d", down)
	says(name + " current")
	servers.Kill(down)
	says(name + " offline")
	a.do(a.bin, "start", "long")
	eventually(t, "the run ends", a.ended)
	servers.Run(down)
	says(name + " current")
}

// recordsNewer appends a record of a kind that a later release writes, as the machine that leads would.
func (w *sandbox) recordsNewer(servers *natstest.Servers, id string) (seq int64) {
	w.t.Helper()
	log, _, err := journal.Open(w.state(), journal.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	seq, _, err = log.Append(journal.Entry{At: time.Now(), Event: []byte(`{"kind":"tick"}`),
		Facts: []json.RawMessage{[]byte(`{"kind":"of_tomorrow","run":"long-1"}`)}})
	if err != nil {
		w.t.Fatal(err)
	}
	line, _, err := log.Lines(seq, 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := nats.Connect(servers.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("sluice.journal."+id, line, 20*time.Second); err != nil {
		w.t.Fatal(err)
	}
	return seq
}

// code runs a command in the repo and returns its exit code.
func (w *sandbox) code(args ...string) (int, string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.bin, args...)
	cmd.Dir, cmd.Env = w.repo, w.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// What a person can get wrong has one clear line and its exit code, and changes nothing.
func TestClusterMistakes(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, b, id := twoMachines(t, servers, "1")
	says := func(w *sandbox, code int, want string, args ...string) {
		t.Helper()
		got, out := w.code(args...)
		if got != code || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("sluice %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, want, out)
		}
	}
	says(a, 2, "give --cluster", "daemon", "--standby")
	says(a, 1, "no server answers at 127.0.0.1:1", "daemon", "--cluster", "nats://127.0.0.1:1")
	says(a, 1, "no server answers at 127.0.0.1:1", "cluster", "init", "nats://127.0.0.1:1")
	says(a, 2, "--lease 1ms", "cluster", "init", servers.URL(), "--replicas", "1", "--lease", "1ms")
	says(a, 2, "--replicas 9", "cluster", "init", servers.URL(), "--replicas", "9")
	says(a, 1, "has a stream already", "cluster", "init", servers.URL(), "--replicas", "1")
	says(a, 1, "belongs to a cluster", "run", "long")
	says(b, 2, "no journal's id", "cluster", "join", "123", servers.URL())
	says(b, 78, "check the id and the addresses", "cluster", "join", strings.Repeat("0", 32), servers.URL())
	other := newSandbox(t, "")
	other.put("repo/other", "")
	other.commit()
	says(other, 1, "is no clone of the repo that the journal is of", "cluster", "join", id, servers.URL())
	says(other, 1, "belongs to no cluster", "cluster", "leave", "--yes")

	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	says(a, 75, "stop the process", "cluster", "init", servers.URL(), "--replicas", "1")
	a.do(a.bin, "start", "long")
	eventually(t, "the run ends", a.ended)
	a.sameAsStream(servers, id)
	a.stop()
	says(a, 0, "ok stream SLUICE_"+id, "audit", "verify", "--cluster", servers.URL())
	says(a, 0, "epoch 2, and nothing serves this repo here: `sluice watch add`", "status")
	says(a, 1, "no daemon serves this repo in a cluster", "workers")

	// the servers lose all: neither begins anew, and a daemon with only this repo ends
	servers.Kill(0)
	servers.Wipe(0)
	servers.Run(0)
	servers.Ready()
	before, err := os.ReadFile(filepath.Join(a.state(), journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	says(a, 78, "they were emptied, or are others", "daemon", "--cluster", servers.URL())
	says(b, 78, "they were emptied, or are others", "daemon", "--cluster", servers.URL(), "--standby")
	if after, _ := os.ReadFile(filepath.Join(a.state(), journal.FileName)); !bytes.Equal(before, after) {
		t.Error("the journal was changed")
	}

	// one machine goes on alone, which its journal says: nothing else makes it one machine's again
	conform.Rule(t, "13-cluster leaving", "a record `left`; without it a plain `sluice daemon` refuses that journal")
	if err := os.Remove(filepath.Join(a.state(), "cluster")); err != nil {
		t.Fatal(err)
	}
	says(a, 1, "was not left after epoch 2", "run", "long", "--yes")
	says(a, 0, "several machines keep it: epoch 2", "audit", "verify")
	says(a, 0, "", "cluster", "leave", "--yes")
	says(a, 0, "has left the cluster after epoch 2", "audit", "verify")
	says(a, 1, "belongs to no cluster", "cluster", "leave", "--yes")
	a.bootIn(servers)
	eventually(t, "the daemon says so", func() bool { return strings.Contains(tailOf(a.log.Name()), "belongs to no cluster yet") })
	a.stop()
	says(a, 0, "", "run", "long", "--yes")
}

func (w *sandbox) signal(sig syscall.Signal) {
	w.t.Helper()
	if err := w.last.Process.Signal(sig); err != nil {
		w.t.Fatal(err)
	}
}

// stop ends the daemon in order.
func (w *sandbox) stop() {
	w.t.Helper()
	if err := w.last.Process.Signal(os.Interrupt); err != nil {
		w.t.Fatal(err)
	}
	if err := w.last.Wait(); err != nil {
		w.t.Fatalf("the daemon's end: %v", err)
	}
	w.last = nil
}

// The work of A is passed and on the run's branch; that of B waits for a person. C builds on both.
const landingSpec = `workflow: {id: long, workspace: run, on_done: {land: squash}}
steps:
  - {id: A, run: [sh, -c, "echo of A > a.txt"], outputs: [a.txt], gate: GA}
  - {id: B, run: [sh, -c, "cat a.txt > b.txt && echo of B >> b.txt"], outputs: [b.txt], gate: GB}
  - {id: C, run: [sh, -c, "cat b.txt > c.txt"], outputs: [c.txt], gate: GC}
gates:
  - {id: GA, reviewer: {level: auto, run: "true"}, on_pass: {next_step: B}}
  - {id: GB, reviewer: {level: human}, on_pass: {next_step: C}}
  - {id: GC, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`

// die kills the daemon, and the machine's repo with it.
func (w *sandbox) die() {
	w.t.Helper()
	w.kill()
	if err := os.RemoveAll(filepath.Join(w.repo, ".git", "objects")); err != nil {
		w.t.Fatal(err)
	}
}

// The leader's machine dies after the fact of a step's result. The standby, in a clone that lacks the
// commits, lands them from packs alone.
func TestClusterLandsFromPacks(t *testing.T) {
	conform.Rule(t, "13-cluster lands", "a clone that lacks the commits of a dead leader lands them")
	t.Parallel()
	servers := natstest.Start(t, 3)
	a, b, id := machinesWith(t, servers, "3", landingSpec)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	b.bootIn(servers, "--standby")
	a.do(a.bin, "start", "long")
	eventually(t, "B waits for a person", func() bool { return a.step("B").State == engine.Gating })
	eventually(t, "the standby knows it", func() bool { return b.step("B").State == engine.Gating })
	if out, err := exec.Command("git", "-C", b.repo, "rev-parse", "--verify", "sluice/long-1").CombinedOutput(); err == nil {
		t.Fatalf("the standby's clone has the commits already: %s", out)
	}
	if code, out := b.code("show", "GB", "--diff"); code != 1 || !strings.Contains(out, "the work of B is not on this machine") {
		t.Errorf("the standby shows work that it has not: %d, %s", code, out)
	}
	a.die()
	within(t, serverElection, "b leads", b.leads)
	b.do(b.bin, "pass", "GB")
	eventually(t, "the run ends", b.ended)
	for file, want := range map[string]string{"a.txt": "of A\n", "b.txt": "of A\nof B\n", "c.txt": "of A\nof B\n"} {
		out, err := exec.Command("git", "-C", b.repo, "show", "HEAD:"+file).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s on the branch: %q, want %q, %v", file, out, want, err)
		}
	}
	if n := b.step("A").Attempt + b.step("B").Attempt; n != 2 {
		t.Errorf("A and B were done %d times in all", n)
	}
	b.sameAsStream(servers, id)
}

// Work that is not stored, or is something else, stops its run alone: a person is told why, and it goes
// on once the work is there.
func TestClusterLacksWork(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, b, id := machinesWith(t, servers, "1", landingSpec)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	a.do(a.bin, "start", "long")
	eventually(t, "B waits for a person", func() bool { return a.step("B").State == engine.Gating })

	nc, err := nats.Connect(servers.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(t.Context(), "SLUICE_PACKS_"+id)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]byte{}
	for _, o := range objects {
		if o.Size == 0 {
			continue // a name
		}
		if kept[o.Name], err = store.GetBytes(t.Context(), o.Name); err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(kept[o.Name], []byte("PACK")) {
			if _, err := store.PutBytes(t.Context(), o.Name, []byte("PACK of somebody else")); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.die()
	b.bootIn(servers)
	eventually(t, "b leads and has paused the run", func() bool {
		st, ok := b.status()
		return ok && len(st.Runs) == 1 && st.Runs[0].Paused == engine.PausedWork
	})
	if code, out := b.code("pass", "GB"); code == 0 || !strings.Contains(out, "not on this machine") {
		t.Errorf("passed without its work: %d, %s", code, out)
	}
	if out := b.do(b.bin, "status", "long-1"); !strings.Contains(out, "not on this machine") {
		t.Errorf("the status does not say why:\n%s", out)
	}
	for name, data := range kept {
		if _, err := store.PutBytes(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
	}
	b.do(b.bin, "resume", "long-1")
	eventually(t, "the work is there, and GB passes", func() bool {
		code, out := b.code("pass", "GB")
		if code != 0 && !strings.Contains(out, "it did not come within") {
			t.Fatal(out)
		}
		return code == 0
	})
	eventually(t, "it lands", b.ended)
	out, err := exec.Command("git", "-C", b.repo, "show", "HEAD:c.txt").CombinedOutput()
	if err != nil || string(out) != "of A\nof B\n" {
		t.Errorf("c.txt on the branch: %q, %v", out, err)
	}
}
