//go:build linux

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nkeys"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// userKeys makes nkeys of users: the files of their seeds, and their public keys.
func userKeys(t *testing.T, names ...string) (file, public map[string]string) {
	t.Helper()
	file, public = map[string]string{}, map[string]string{}
	for _, name := range names {
		key, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, err := key.Seed()
		if err != nil {
			t.Fatal(err)
		}
		if public[name], err = key.PublicKey(); err != nil {
			t.Fatal(err)
		}
		file[name] = filepath.Join(t.TempDir(), name+".nk")
		if err := os.WriteFile(file[name], seed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, public
}

// lists reports whether `sluice workers` shows a text.
func (w *sandbox) lists(want string) bool {
	_, out := w.code("workers")
	return strings.Contains(out, want)
}

// A worker with a user as it has printed it does the steps of a run, and obeys only the daemon that it
// was told. It is drained and resumed, and ends by Ctrl-C with what it has.
func TestClusterOrders(t *testing.T) {
	conform.Rule(t, "13-workers rights", "a worker does a whole run with the permissions that it prints, and those alone")
	conform.Rule(t, "13-workers drain", "typed: draining, drained, resumed; a standby names who leads")
	t.Parallel()
	file, public := userKeys(t, "daemon", "desk", "other", "0", "1")
	accounts := func(workers string) func(*natstest.Servers) {
		return natstest.Config(fmt.Sprintf(`accounts {
  JOURNALS: { jetstream: enabled, users: [ {nkey: %s} ] }
  WORKERS: { jetstream: enabled, users: [ {nkey: %s}
%s ] }
}`, public["daemon"], public["desk"], workers))
	}
	servers := natstest.Start(t, 1, accounts(""))
	a, all, id, ran := workersOf(t, servers, 2, "--nkey", file["daemon"])
	rights := ""
	for i, w := range all {
		rights += w.do(w.bin, "worker", "--rights", "--journal", id, "--nkey", file[fmt.Sprint(i)])
	}
	servers.Kill(0)
	accounts(rights)(servers)
	servers.Run(0)
	servers.Ready()
	a.bootIn(servers, "--nkey", file["daemon"], "--workers-nkey", file["desk"])
	eventually(t, "a leads", a.leads)
	if code, out := a.code("workers"); code != 0 || !strings.Contains(out, "start them with --desk "+public["desk"]) {
		t.Errorf("%d: %s", code, out)
	}
	for _, c := range []struct{ flag, want string }{
		{"--slots=1", "a worker obeys only signed orders"},
		{"--desk=UX", "is no public key of a user"},
	} {
		code, out := all[0].code("worker", "--cluster", servers.URL(), "--journal", id, "--labels", "linux", "--nkey", file["0"], c.flag)
		if out = strings.Join(strings.Fields(out), " "); code != 2 || !strings.Contains(out, c.want) || !strings.Contains(out, "--desk KEY") {
			t.Errorf("%d: %s", code, out)
		}
	}

	// one that obeys somebody else does nothing, and both sides say why
	all[1].workIn(servers, id, "--nkey", file["1"], "--desk", public["other"])
	eventually(t, "the other is there", func() bool { return a.lists("linux") })
	a.do(a.bin, "start", "far")
	for _, w := range []*sandbox{a, all[1]} {
		eventually(t, "it is said that it is not signed", func() bool {
			return strings.Contains(tailOf(w.log.Name()), "none of the keys that this worker obeys (--desk) has signed it")
		})
	}
	eventually(t, "the status says so too", func() bool {
		return strings.Contains(a.do(a.bin, "status"), "refuses it: none of the keys")
	})
	works := func() {
		all[0].workIn(servers, id, "--nkey", file["0"], "--desk", public["other"], "--desk", public["desk"])
	}
	works()
	eventually(t, "B runs", func() bool { return ranLines(t, ran) == "A a\nB a\n" })
	all[1].stop() // it has nothing, and ends at once
	eventually(t, "the other is gone", func() bool { _, out := a.code("workers"); return strings.Count(out, "  linux  ") == 1 })

	worker := strings.Fields(a.do(a.bin, "workers"))[0]
	a.do(a.bin, "workers", "drain", worker)
	eventually(t, "it drains", func() bool { return a.lists("1 of 1 busy, draining") })
	all[0].signal(syscall.SIGINT)
	eventually(t, "it says what it waits for", func() bool {
		return strings.Contains(tailOf(all[0].log.Name()), "takes nothing new, and ends once these are done")
	})
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := all[0].last.Wait(); err != nil { // B is done and fetched
		t.Fatalf("the worker's end: %v", err)
	}
	eventually(t, "B has passed", func() bool { return a.step("B").State == engine.Passed })
	works()
	eventually(t, "it drains after its start, and has nothing", func() bool { return a.lists("0 of 1 busy, drained") })
	eventually(t, "C waits for it", func() bool {
		return strings.Contains(a.do(a.bin, "status"), "all workers with the labels linux are draining")
	})

	b := follower(t, a, servers, id, file)
	code, out := b.code("workers", "resume", worker)
	if out = strings.Join(strings.Fields(out), " "); code != 1 || !strings.Contains(out, "this machine only follows, and") ||
		!strings.Contains(out, fmt.Sprintf("(pid %d) decides → do it there", a.last.Process.Pid)) {
		t.Errorf("at a standby: %d: %s", code, out)
	}
	if code, out = a.code("workers", "resume", "0123456789abcdef"); code != 1 || !strings.Contains(out, "no worker 0123456789abcdef is there") {
		t.Errorf("%d: %s", code, out)
	}
	a.do(a.bin, "workers", "resume", worker)
	eventually(t, "the run ends", a.ended)
	if got := ranLines(t, ran); got != "A a\nB a\nC a\n" {
		t.Errorf("these steps ran:\n%s", got)
	}
	all[0].signal(syscall.SIGTERM)
	if err := all[0].last.Wait(); err != nil {
		t.Errorf("the worker's end: %v", err)
	}
	all[0].last = nil
}

// follower is a standby of a machine that leads.
func follower(t *testing.T, a *sandbox, servers *natstest.Servers, id string, file map[string]string) *sandbox {
	t.Helper()
	b := standby(t, a, servers, id, []string{"--nkey", file["daemon"]}, "--workers-nkey", file["desk"])
	eventually(t, "it follows, and hears of workers too", func() bool {
		var list struct{ Workers []json.RawMessage }
		code, out := b.code("workers", "--json")
		return code == 0 && json.Unmarshal([]byte(out), &list) == nil && len(list.Workers) == 1
	})
	return b
}

// standby is another machine with the repo and the journal of one that leads. key says who it is for
// the servers; flags are more of its daemon.
func standby(t *testing.T, a *sandbox, servers *natstest.Servers, id string, key []string, flags ...string) *sandbox {
	t.Helper()
	b := newSandbox(t, workerSettings)
	b.clone(a)
	b.do(b.bin, "watch", "add")
	b.do(b.bin, append([]string{"cluster", "join", id, servers.URL()}, key...)...)
	b.bootIn(servers, append(append([]string{"--standby"}, key...), flags...)...)
	return b
}
