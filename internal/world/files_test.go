//go:build linux || darwin

package world

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/job"
	"sluice/notify"
	"sluice/tools/conform"
)

const gateSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer}, signal: {type: sentinel_file}, gate: G}
gates:
  - id: G
    reviewer: {level: auto, agent_type: reviewer}
    outputs: [{.workflow/verdict.json: answer}, {words.txt: answer.feedback}]
    on_pass: {next_step: DONE}
    max_retries: 5
`

func (b *bench) writeJob(file int) job.Job {
	score := 40.0
	j := b.reviewJob("G", 2)
	j.Kind, j.Key, j.Proc = engine.DoWrite, "w-1/G.1", nil
	j.Write = &engine.Write{ID: "w-1/G.1", Gate: "G", N: 2, File: file, Path: ".workflow/retry-context/G-attempt-1.md"}
	j.Round = &engine.Round{N: 2, Step: "A", Attempt: 1, Outcome: "fail", ByKind: "reviewer", Feedback: "it is red", Score: &score,
		Answer: []byte(`{"feedback":"it is red","verdict":"fail"}`), Ended: time.Unix(1700000000, 0)}
	return j
}

func TestWriteRetryContext(t *testing.T) {
	conform.Rule(t, "1-language rule 7", "the feedback, written once")
	conform.Rule(t, "004 §3 retry_context_path", "at its place")
	b := newBench(t, gateSpec)
	j := b.writeJob(1)
	var before os.FileInfo
	for range 2 {
		ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.FileWritten)
		if !ok || ev.Why != "" || ev.ID != "w-1/G.1" || ev.Run != run1 {
			t.Fatalf("%+v", ev)
		}
		info, err := os.Stat(b.path(j.Write.Path))
		if err != nil || before != nil && !os.SameFile(info, before) {
			t.Errorf("it was written again: %v", err)
		}
		before = info
	}
	wantText(t, "the file", b.get(j.Write.Path), "it is red", "reviewer", "40", "`w-1`")
}

func TestWriteOutOfTheRepo(t *testing.T) {
	b := newBench(t, gateSpec)
	out := t.TempDir()
	if err := os.Symlink(out, b.path(".workflow/retry-context")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{".workflow/retry-context/x.md", "../x.md"} {
		j := b.writeJob(1)
		j.Write.Path = p
		if ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.FileWritten); !ok || ev.Why == "" {
			t.Errorf("%s: %+v", p, ev)
		}
	}
	if entries, _ := os.ReadDir(out); len(entries) > 0 {
		t.Errorf("%v was written outside", entries)
	}
}

func TestWriteGateOutputs(t *testing.T) {
	conform.Rule(t, "1-language outputs", "a gate's outputs: a text as it is, else JSON")
	b := newBench(t, gateSpec)
	if ev, ok := b.e.Carry(b.ctx(), b.writeJob(0), nil).(engine.FileWritten); !ok || ev.Why != "" {
		t.Fatalf("%+v", ev)
	}
	if b.get("words.txt") != "it is red" || !strings.Contains(b.get(".workflow/verdict.json"), `"verdict": "fail"`) {
		t.Errorf("%q %q", b.get("words.txt"), b.get(".workflow/verdict.json"))
	}
	j := b.writeJob(0)
	j.Round.Answer = nil
	if ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.FileWritten); !ok || !strings.Contains(ev.Why, "words.txt") {
		t.Errorf("without an answer: %+v", ev)
	}
}

// TestSweep: the files of ended runs leave; those of live runs and of nobody stay.
func TestSweep(t *testing.T) {
	conform.Rule(t, "1-language rule 7 sweep", "the files of ended runs leave, those of live ones stay")
	conform.Rule(t, "1-language rule 7 sweep", "the files of ended runs move, others stay")
	b := newBench(t, gateSpec)
	b.e.Carry(b.ctx(), b.writeJob(1), nil)
	mine := b.writeJob(1)
	mine.Run, mine.Write.Path = "w-2", ".workflow/retry-context/w-2/G-attempt-1.md"
	b.e.Carry(b.ctx(), mine, nil)
	b.put(".workflow/retry-context/by-hand.md", "x")
	sweep := b.job(engine.Effect{Kind: engine.DoWrite, Key: "w-3/sweep", Write: &engine.Write{ID: "w-3/sweep", Sweep: true}})
	sweep.Live = []string{"w-2", "w-3"}
	for range 2 {
		if ev, ok := b.e.Carry(b.ctx(), sweep, nil).(engine.FileWritten); !ok || ev.Why != "" || ev.ID != "w-3/sweep" {
			t.Errorf("%+v", ev)
		}
	}
	if b.has(".workflow/retry-context/G-attempt-1.md") || !b.has(".workflow/runs/w-1/retry-context/G-attempt-1.md") {
		t.Error("the file of the ended run stayed")
	}
	if !b.has(".workflow/retry-context/w-2/G-attempt-1.md") || !b.has(".workflow/retry-context/by-hand.md") {
		t.Error("a file of a live run, or of nobody, has gone")
	}
	sweep.Live = nil
	b.e.Carry(b.ctx(), sweep, nil)
	if b.has(".workflow/retry-context/w-2") {
		t.Error("the folder of an ended run stayed")
	}
}

func TestNotify(t *testing.T) {
	conform.Rule(t, "field ask 5", "the notice names run and gate and what to do; its result is kept")
	conform.Rule(t, "4-trust shown", "a notice says that the gate is unprotected")
	b := newBench(t, gateSpec)
	var got []notify.Notice
	n := notify.New(notify.Options{Log: func(n notify.Notice, what string) { got = append(got, n) }, Command: []string{"sh", "-c", "exit 3"}})
	defer n.Close()
	b.notifier = n
	j := b.reviewJob("G", 1)
	j.Kind, j.Key = engine.DoNotify, "w-1/G#1.human-4"
	j.Round.Trust = engine.TrustFile
	j.Notice = &engine.Notice{ID: j.Key, Kind: engine.NoticeHuman, Run: run1, Step: "A", Gate: "G", N: 1, Text: "exhausted: \x1b[31mred"}
	ev, ok := b.e.Carry(b.ctx(), j, nil).(engine.Noticed)
	if !ok || ev.ID != j.Key || ev.Run != run1 || len(ev.Results) != 2 || !strings.Contains(ev.Results[0], "shown") || !strings.Contains(ev.Results[1], "3") {
		t.Errorf("%+v", ev)
	}
	if len(got) != 1 {
		t.Fatalf("%d notices", len(got))
	}
	wantText(t, "the notice", got[0].Title+"\n"+got[0].Body, "G", "A of w-1", "exhausted: red", "sluice pass G --run w-1", "sluice fail G --run w-1 -m", "trust: file (not held): an agent")
	b.notifier = nil
	if ev := b.e.Carry(b.ctx(), j, nil).(engine.Noticed); len(ev.Results) != 1 || !strings.Contains(ev.Results[0], "nobody") {
		t.Errorf("%+v", ev)
	}
}

func TestWordsOfEachNotice(t *testing.T) {
	b := newBench(t, gateSpec)
	for kind, want := range map[string]string{
		engine.NoticeGate: "sluice veto G", engine.NoticeHuman: "sluice pass G", engine.NoticeReminder: "still waits", engine.NoticeRejected: "rejected/",
		engine.NoticeEnded: "w-1 has ended: running", engine.NoticePaused: "sluice resume w-1", engine.NoticeInfo: "said so",
	} {
		j := b.reviewJob("G", 1)
		j.Notice = &engine.Notice{Kind: kind, Run: run1, Step: "A", Gate: "G", Text: "said so"}
		n := b.e.Notice(j)
		wantText(t, kind, n.Title+"\n"+n.Body, want, "said so")
		if strings.Contains(n.Body, "did not pass") {
			t.Errorf("%s: %s", kind, n.Body)
		}
		j.Round = nil // of a round long gone
		j.RunInfo.Unpassed = 3
		n = b.e.Notice(j)
		if told := strings.Contains(n.Body, "3 rounds that a gate did not pass went on."); told != (kind == engine.NoticeEnded) {
			t.Errorf("%s: %s", kind, n.Body)
		}
	}
}

func (b *bench) move(m *engine.Move) engine.FileMoved {
	b.t.Helper()
	ev, ok := b.e.Carry(b.ctx(), job.Job{Effect: engine.Effect{Kind: engine.DoMove, Key: m.ID, Move: m}}, nil).(engine.FileMoved)
	if !ok || ev.ID != m.ID {
		b.t.Fatalf("%+v", ev)
	}
	return ev
}

// scanned returns the files in the inboxes once there are as many as wanted.
func (b *bench) scanned(in job.Inboxes, want int) []engine.FileSeen {
	b.t.Helper()
	var out []engine.FileSeen
	eventually(b.t, "as many files are seen", func() bool {
		evs, _, err := b.e.Scan(b.ctx(), in)
		if err != nil {
			b.t.Fatal(err)
		}
		out = nil
		for _, ev := range evs {
			out = append(out, ev.(engine.FileSeen))
		}
		return len(out) >= want
	})
	return out
}

// TestFullDisk: what cannot be written is tried again until there is room, and health says so meanwhile.
func TestFullDisk(t *testing.T) {
	b := newBench(t, gateSpec)
	tries := 0
	err := b.e.Persist(b.ctx(), "x", func() error {
		if tries++; tries < 3 {
			return &os.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}
		}
		if h := strings.Join(b.e.Health(), "\n"); !strings.Contains(h, "no space left") {
			t.Errorf("health: %s", h)
		}
		return nil
	})
	if err != nil || tries != 3 || len(b.e.Health()) != 0 {
		t.Errorf("%v after %d tries; health %v", err, tries, b.e.Health())
	}
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	if err := b.e.Persist(ctx, "x", func() error { return syscall.ENOSPC }); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
