//go:build linux

package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/engine"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// workerAgent plays the agents on a worker. Each launch leaves a line with its machine.
const workerAgent = `set -eu
echo "$SLUICE_STEP @NAME@" >> "@RAN@"
case "$SLUICE_STEP" in
A) echo one > one.txt; git add one.txt; git commit -q -m "one" ;;
B) test -s one.txt; echo two > two.txt
   while test ! -e "@RAN@.go"; do sleep 0.05; done ;;
C) printf '{"ok":true,"token":"%s"}' "$SLUICE_TOKEN" > "$SLUICE_ANSWER"; exit 0 ;;
esac
mkdir -p "$(dirname "$SLUICE_SIGNAL")"
printf '{"step":"%s","status":"done","summary":"made by @NAME@","token":"%s"}' "$SLUICE_STEP" "$SLUICE_TOKEN" > "$SLUICE_SIGNAL.tmp"
mv "$SLUICE_SIGNAL.tmp" "$SLUICE_SIGNAL"
`

const workerSpec = `workflow: {id: far, workspace: run}
steps:
  - {id: A, agent: {type: builder, launch: headless, prompt: Make one.}, signal: {type: sentinel_file}, outputs: [one.txt], gate: GA}
  - {id: B, agent: {type: builder, launch: headless, prompt: Make two.}, signal: {type: sentinel_file}, outputs: [two.txt], gate: GB}
  - {id: C, agent: {type: builder, launch: headless, prompt: Say yes.}, answer: {type: object, required: [ok], properties: {ok: {type: boolean}}}, gate: GC}
gates:
  - {id: GA, reviewer: {level: auto, run: test -s one.txt}, on_pass: {next_step: B}}
  - {id: GB, reviewer: {level: auto, run: test -s one.txt -a -s two.txt}, on_pass: {next_step: C}}
  - {id: GC, reviewer: {level: auto, run: "true"}, on_pass: {next_step: DONE}}
`

const workerSettings = `notify: {desktop: false}
agents: {acts: {command: [sh, "@WORK@/agent.sh"], prompt_via: file}}
roles: {builder: {agent: acts, on: [linux]}}
sandbox: {read: ["@WORK@/tools"], write: ["@WORK@/ran"]}
`

// workersOf returns a machine that decides, and n that work for it.
func workersOf(t *testing.T, servers *natstest.Servers, n int, flags ...string) (a *sandbox, all []*sandbox, id, ran string) {
	t.Helper()
	dir := t.TempDir()
	ran = filepath.Join(dir, "ran")
	a = newSandbox(t, workerSettings)
	a.put("repo/.workflow/specs/far.yaml", workerSpec)
	a.commit()
	a.do(a.bin, "watch", "add")
	var begun struct{ Journal string }
	out := a.do(a.bin, append([]string{"cluster", "init", servers.URL(), "--replicas", "1", "--lease",
		clusterLease.String(), "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &begun); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range n {
		w := newSandbox(t, strings.ReplaceAll(workerSettings, "@WORK@/ran", dir))
		w.clone(a)
		w.put("agent.sh", strings.NewReplacer("@RAN@", ran, "@NAME@", string(rune('a'+i))).Replace(workerAgent))
		all = append(all, w)
	}
	return a, all, begun.Journal, ran
}

// hasWorker reports whether a worker is there for the steps of these tests.
func (w *sandbox) hasWorker() bool { return strings.Contains(w.do(w.bin, "workers"), "linux") }

// workIn starts the worker.
func (w *sandbox) workIn(servers *natstest.Servers, id string, flags ...string) {
	w.t.Helper()
	w.last = exec.Command(w.bin, append([]string{"worker", "--cluster", servers.URL(), "--journal", id, "--labels",
		"linux"}, flags...)...)
	w.last.Dir, w.last.Env, w.last.Stdout, w.last.Stderr = w.repo, w.env, w.log, w.log
	if err := w.last.Start(); err != nil {
		w.t.Fatal(err)
	}
}

// A pipeline's steps run on a worker, and end as if they had run on the machine that decides: its
// commits, files, answers and signals are judged there.
func TestClusterWorker(t *testing.T) {
	conform.Rule(t, "13-workers transcript", "output, answer and signals come back")
	conform.Rule(t, "13-workers packs", "the commits of the order and of the work are packs")
	conform.Rule(t, "13-workers on", "a role says where its steps run")
	conform.Rule(t, "13-workers workers", "who is there, with which labels and slots")
	conform.Rule(t, "13-workers secrets", "the worker plays the role with an agent of its own settings")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 1)
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	a.do(a.bin, "start", "far")
	eventually(t, "A waits for a worker", func() bool { return strings.Contains(a.do(a.bin, "status"), "no worker with the labels linux") })
	all[0].workIn(servers, id)
	eventually(t, "the worker is there", a.hasWorker)
	eventually(t, "the run ends", func() bool {
		st, ok := a.status()
		return ok && len(st.Runs) == 1 && (st.Runs[0].Phase == engine.RunCompleted || st.Runs[0].Paused != "")
	})
	if st, _ := a.status(); st.Runs[0].Phase != engine.RunCompleted {
		t.Errorf("%s", a.do(a.bin, "log"))
		t.Fatalf("%s\n%s", a.do(a.bin, "status"), tailOf(all[0].log.Name()))
	}
	if got := ranLines(t, ran); got != "A a\nB a\nC a\n" {
		t.Errorf("these steps ran on the worker:\n%s", got)
	}
	for _, file := range []string{"one.txt", "two.txt"} {
		a.do("git", "cat-file", "-e", "sluice/far-1:"+file)
	}
	if log := a.do("git", "log", "--format=%s", "sluice/far-1"); !strings.Contains(log, "one\n") {
		t.Errorf("the agent's own commit is not on the branch:\n%s", log)
	}
	if out := a.do(a.bin, "log"); !strings.Contains(out, "made by a") {
		t.Errorf("the agent's own words are not in the log:\n%s", out)
	}
	eventually(t, "nothing is left of it on the worker", func() bool {
		trees, err := all[0].try("git", "worktree", "list") // git fails while one is being removed
		return err == nil && strings.Count(trees, "\n") == 1 && all[0].do("git", "branch", "--list", "sluice-worker/*") == "" &&
			all[0].do("git", "for-each-ref", "refs/sluice/worker") == ""
	})
	if out := a.do(a.bin, "workers"); !strings.Contains(out, "0 of 1 busy") {
		t.Errorf("%s", out)
	}
}

// ranLines returns which steps ran on which worker.
func ranLines(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// A worker is killed in the middle of a step, with all that it has started. The step is launched anew
// on another one, under another key, and has one outcome. The first one comes back, and what it has is
// not taken.
func TestClusterWorkerKilled(t *testing.T) {
	conform.Rule(t, "13-workers silent", "a killed worker: the step runs anew on another, with one outcome")
	t.Parallel()
	servers := natstest.Start(t, 1)
	a, all, id, ran := workersOf(t, servers, 2)
	a.bootIn(servers)
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id)
	eventually(t, "the worker is there", a.hasWorker)
	a.do(a.bin, "start", "far")
	eventually(t, "B runs on the first", func() bool { return strings.HasSuffix(ranLines(t, ran), "B a\n") })
	first := all[0].last
	all[0].last = nil
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	all[1].workIn(servers, id)
	eventually(t, "B runs on the second", func() bool { return strings.HasSuffix(ranLines(t, ran), "B b\n") })
	all[0].workIn(servers, id) // its agent still waits
	eventually(t, "the first is told to forget B", func() bool {
		return len(processesOf(filepath.Join(all[0].work, "repo"))) <= 1 &&
			all[0].do("git", "branch", "--list", "sluice-worker/*") == ""
	})
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run ends", a.ended)
	if got := ranLines(t, ran); !strings.HasPrefix(got, "A a\nB a\nB b\nC ") || strings.Count(got, "\n") != 4 {
		t.Errorf("these steps ran:\n%s", got)
	}
	if s := a.step("B"); s.Attempt != 1 {
		t.Errorf("B has %d attempts", s.Attempt)
	}
	log := a.do(a.bin, "log")
	if strings.Count(log, "made by b") != 1 {
		t.Errorf("B has not one outcome:\n%s", log)
	}
}

// Where workers have an account of their own, one that has a worker's key reaches nothing of the
// journal: it cannot read it, write to it, say what people say, or have the servers write there.
func TestClusterWorkersAccount(t *testing.T) {
	conform.Rule(t, "13-workers catcher", "each allowed request with its reply set to the journal changes nothing there")
	conform.Rule(t, "13-workers accounts", "a worker's key: requests of each kind with the journal as their reply change nothing")
	t.Parallel()
	file, public := userKeys(t, "daemon", "desk", "worker")
	servers := natstest.Start(t, 1, natstest.Config(fmt.Sprintf(`accounts {
  JOURNALS: { jetstream: enabled, users: [ {nkey: %s} ] }
  WORKERS: { jetstream: enabled, users: [ {nkey: %s}, {nkey: %s} ] }
}`, public["daemon"], public["desk"], public["worker"])))
	a, all, id, ran := workersOf(t, servers, 1, "--nkey", file["daemon"])
	if err := os.WriteFile(ran+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a.bootIn(servers, "--nkey", file["daemon"], "--workers-nkey", file["desk"])
	eventually(t, "a leads", a.leads)
	all[0].workIn(servers, id, "--nkey", file["worker"], "--desk", public["desk"])
	a.do(a.bin, "start", "far")
	eventually(t, "the run ends", a.ended)
	if got := ranLines(t, ran); got != "A a\nB a\nC a\n" {
		t.Errorf("these steps ran on the worker:\n%s", got)
	}

	records := func() (out string) {
		for line := range strings.Lines(a.do(a.bin, "audit", "verify", "--cluster", servers.URL(), "--nkey", file["daemon"])) {
			if strings.Contains(line, "journal:") || strings.Contains(line, "stream") {
				out += line
			}
		}
		return out
	}
	before := records()
	key, err := nats.NkeyOptionFromSeed(file["worker"])
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(servers.URL(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), "SLUICE_"+id); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("it finds the journal: %v", err)
	}
	if _, err := js.Publish(t.Context(), "sluice.journal."+id, []byte("{}")); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Errorf("it writes to the journal: %v", err)
	}
	if _, err := nc.Request("sluice.say."+id, []byte("{}"), time.Second); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("it says what people say: %v", err)
	}
	bucket := "OBJ_SLUICE_LAUNCHES_" + id
	stream, err := js.Stream(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	pull, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "x", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []string{"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO." + bucket,
		"$JS.API.CONSUMER.MSG.NEXT." + bucket + "." + pull.CachedInfo().Name, "sluice.worker.0123456789abcdef.order"} {
		for _, reply := range []string{"sluice.journal." + id, "sluice.say." + id, "sluice.lease." + id} {
			if err := nc.PublishRequest(ask, reply, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if after := records(); after != before || !strings.Contains(after, "stream") {
		t.Errorf("the journal was\n%s\nand is\n%s", before, after)
	}
}
