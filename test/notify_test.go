//go:build linux

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
)

const (
	hungRuns    = 30                    // of each kind
	hungMost    = 10 * time.Millisecond // that a gate may be later, in the middle, where the machine has nothing else to do
	hungNotices = 1000                  // in one burst
	hungHolds   = 8                     // processes that the notifier holds at most
	hungFiles   = 40                    // descriptors more than before the first run: exports are held open, and a client
	hungThreads = 100
)

// hungCommand is a person's command that hangs for the runs of one workflow, and fails for those of another.
const hungCommand = `case $SLUICE_NOTICE_RUN in
hung-*) exec sleep 1000 ;;
dead-*) echo "no such display"; exit 7 ;;
esac
`

const hungSpec = `workflow: {id: %s}
steps:
  - {id: A, run: [true], gate: G}
  - {id: B, run: [true], next_step: DONE}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: B}}
`

// TestHungNotifierDelaysNoGate: from the moment a person is asked to the end of the run, with a person who answers at
// once, it takes as long whether the notice hangs, fails or is shown.
func TestHungNotifierDelaysNoGate(t *testing.T) {
	settings := strings.Replace(quickSettings, "notify: {desktop: false}", "notify: {desktop: false, command: [sh, \"@WORK@/tell.sh\"]}", 1)
	x := newSandbox(t, strings.Replace(settings, "ACTS", "@WORK@/agent.sh", 1))
	x.put("tell.sh", hungCommand)
	kinds := []string{"good", "hung", "dead"}
	for _, k := range kinds {
		x.put("repo/.workflow/specs/"+k+".yaml", fmt.Sprintf(hungSpec, k))
	}
	x.commit()
	x.do(x.bin, "watch", "add")
	x.boot()
	eventually(t, "it serves", func() bool { _, ok := x.status(); return ok })
	c := daemon.NewClient(x.state())
	defer c.Close()
	took := map[string][]time.Duration{}
	for range hungRuns { // in turn, so that what else the machine does is shared
		for _, k := range kinds {
			took[k] = append(took[k], x.gateTime(c, k))
		}
	}
	middle := func(k string) time.Duration {
		slices.Sort(took[k])
		return took[k][len(took[k])/2]
	}
	good := middle("good")
	for _, k := range kinds[1:] {
		t.Logf("a gate takes %v with a good notifier, %v with one that is %s", good, middle(k), k)
		if late := middle(k) - good; late > hungMost+good/2 {
			t.Errorf("with a notifier that is %s a gate is %v later", k, late)
		}
	}
	eventually(t, "status tells of it", func() bool {
		st, ok := x.status()
		return ok && slices.ContainsFunc(st.Health, func(h string) bool { return strings.HasPrefix(h, "notices by command: ") })
	})
}

// gateTime plays one run, and returns the time from the question to its end by the daemon's own
// record.
func (x *sandbox) gateTime(c *daemon.Client, workflow string) time.Duration {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), waitMost)
	defer cancel()
	src, err := os.ReadFile(filepath.Join(x.repo, ".workflow/specs", workflow+".yaml"))
	if err != nil {
		x.t.Fatal(err)
	}
	started, err := c.Do(ctx, engine.RunRequested{Workflow: workflow, Source: string(src)}, "command")
	if err != nil {
		x.t.Fatal(err)
	}
	var asked, ended time.Time
	stop := fmt.Errorf("it has ended")
	err = c.Facts(ctx, started.Run, started.Seq, true, func(l daemon.Line) error {
		var f struct{ Kind string }
		if err := json.Unmarshal(l.Fact, &f); err != nil {
			return err
		}
		switch f.Kind {
		case "human_asked":
			asked = l.At
			_, err := c.Do(ctx, engine.Answered{Run: started.Run, Gate: "G", Outcome: engine.OutcomePass}, "command")
			return err
		case "run_ended":
			ended = l.At
			return stop
		}
		return nil
	})
	if err != stop { //nolint:errorlint // it is ours
		x.t.Fatalf("%s: %v", started.Run, err)
	}
	return ended.Sub(asked)
}

// TestHungNotifierPilesUpNothing: a burst of notices to a command that hangs leaves no process and no thread, descriptor
// or goroutine of the daemon behind, and is over soon.
func TestHungNotifierPilesUpNothing(t *testing.T) {
	t.Parallel()
	settings := strings.Replace(quickSettings, "notify: {desktop: false}", "notify: {desktop: false, command: [sleep, \"1000\"]}", 1)
	x := newSandbox(t, settings)
	const spec = "workflow: {id: w}\nsteps:\n  - {id: A, when: \"false\", run: [true], next_step: DONE}\n"
	x.put("repo/.workflow/specs/w.yaml", spec)
	x.commit()
	x.do(x.bin, "watch", "add")
	x.boot()
	eventually(t, "it serves", func() bool { _, ok := x.status(); return ok })
	c := daemon.NewClient(x.state())
	defer c.Close()
	held := func() (fds, threads int) {
		dir := "/proc/" + strconv.Itoa(x.last.Process.Pid)
		names, _ := os.ReadDir(dir + "/fd")
		tasks, _ := os.ReadDir(dir + "/task")
		return len(names), len(tasks)
	}
	fds, _ := held()
	most := 0
	for i := range hungNotices { // the end of each run is told
		if d, err := c.Do(t.Context(), engine.RunRequested{Workflow: "w", Source: spec, Parallel: true}, "command"); err != nil || d.Run == "" {
			t.Fatalf("%v %s", err, d.Ignored)
		}
		if i%100 == 0 {
			most = max(most, len(processesOf(x.work)))
		}
	}
	eventually(t, "all notices are attempted", func() bool {
		most = max(most, len(processesOf(x.work)))
		st, ok := x.status()
		return ok && st.Notices == 0 && !slices.ContainsFunc(st.Runs, daemon.RunStatus.Live)
	})
	t.Logf("%d processes at the same time", most)
	if most > hungHolds+8 { // the daemon itself, and a git now and then
		t.Errorf("%d processes at the same time", most)
	}
	st, _ := x.status()
	if !slices.ContainsFunc(st.Health, func(h string) bool { return strings.HasPrefix(h, "notices by command: ") }) {
		t.Errorf("status does not tell: %q", st.Health)
	}
	var now, threads, procs int
	for until := time.Now().Add(waitMost); ; time.Sleep(pollEvery) {
		if now, threads = held(); len(processesOf(x.work)) == 1 && now <= fds+hungFiles && threads < hungThreads {
			break
		}
		if procs = len(processesOf(x.work)); time.Now().After(until) {
			t.Fatalf("left are %d processes, %d descriptors (%d before), %d threads", procs, now, fds, threads)
		}
	}
	t.Logf("%d descriptors before, %d after; %d threads", fds, now, threads)
	if err := x.last.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
