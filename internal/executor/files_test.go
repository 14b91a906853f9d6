//go:build linux || darwin

package executor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/conform"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/notify"
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

// taken is a file that was taken in, as its move.
func (b *bench) taken(rel string) *engine.Move {
	b.t.Helper()
	data, st, err := atomicfile.OpenRegular(b.root, rel, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return &engine.Move{ID: idOf(st, layout.HexSum(data), nil), Name: filepath.Base(rel)}
}

func (b *bench) move(m *engine.Move) engine.FileMoved {
	b.t.Helper()
	ev, ok := b.e.Carry(b.ctx(), job.Job{Effect: engine.Effect{Kind: engine.DoMove, Key: m.ID, Move: m}}, nil).(engine.FileMoved)
	if !ok || ev.ID != m.ID {
		b.t.Fatalf("%+v", ev)
	}
	return ev
}

func TestMove(t *testing.T) {
	conform.Rule(t, "2-files signal 4", "the file goes to its attempt's folder; a second move is none")
	b := newBench(t, gateSpec)
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	m := b.taken(".workflow/signals/w-1/A-done.json")
	m.Dir, m.Run, m.To, m.As = run1, run1, "A.1", "signal.json"
	for range 2 {
		if ev := b.move(m); ev.To != ".workflow/runs/w-1/A.1/signal.json" {
			t.Errorf("moved to %q", ev.To)
		}
	}
	if b.has(".workflow/signals/w-1/A-done.json") || b.get(".workflow/runs/w-1/A.1/signal.json") != "{}" {
		t.Error("it was not moved")
	}
}

func TestMoveRejected(t *testing.T) {
	conform.Rule(t, "2-files signal 5", "what was not taken in lies in rejected/ with its reason")
	conform.Rule(t, "2-files signal 5", "to rejected/, with its reason, doubles kept")
	b := newBench(t, gateSpec)
	for i, name := range []string{"x", "x", "-rf\n\xff", "a;b"} {
		b.put(".workflow/signals/"+name, strings.Repeat("y", i+1))
		m := b.taken(".workflow/signals/" + name)
		m.Why = "nothing waits for it"
		to := b.move(m).To
		if !strings.HasPrefix(to, ".workflow/signals/rejected/") || b.get(to+".why") != "nothing waits for it\n" {
			t.Errorf("%q is at %q", name, to)
		}
	}
	if entries, _ := os.ReadDir(b.path(".workflow/signals/rejected")); len(entries) != 8 {
		t.Errorf("%d files, want 8", len(entries))
	}
}

// TestMoveInTheMiddle: the file was moved by a daemon that was ended before it wrote why.
func TestMoveInTheMiddle(t *testing.T) {
	conform.Rule(t, "2-files signal 4", "a move that was broken off is finished")
	conform.Rule(t, "2-files signal 4", "a crash in the move's middle")
	b := newBench(t, gateSpec)
	b.put(".workflow/signals/x", "y")
	m := b.taken(".workflow/signals/x")
	m.Why = "w"
	b.sh("mkdir .workflow/signals/rejected && mv .workflow/signals/x .workflow/signals/rejected/x")
	b.move(m)
	if b.get(".workflow/signals/rejected/x.why") != "w\n" {
		t.Error("nobody says why")
	}
}

// TestMoveOfAnother: a file that was replaced meanwhile is a new one, and stays.
func TestMoveOfAnother(t *testing.T) {
	b := newBench(t, gateSpec)
	b.put(".workflow/signals/x", "y")
	m := b.taken(".workflow/signals/x")
	b.put(".workflow/signals/x", "other")
	if ev := b.move(m); ev.To != "" || b.get(".workflow/signals/x") != "other" {
		t.Errorf("%+v", ev)
	}
	m.Name = "../../../README.md"
	if ev := b.move(m); ev.To != "" || !b.has("README.md") {
		t.Errorf("%+v", ev)
	}
}

func TestNotify(t *testing.T) {
	conform.Rule(t, "field ask 5", "the notice names run and gate and what to do; its result is kept")
	conform.Rule(t, "4-trust shown", "a notice says that the gate is unprotected")
	b := newBench(t, gateSpec)
	var got []notify.Notice
	n := notify.New(notify.Log(func(n notify.Notice, what string) { got = append(got, n) }), notify.Command([]string{"sh", "-c", "exit 3"}))
	defer n.Close()
	b.e.opt.Notifier = func() *notify.Notifier { return n }
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
	wantText(t, "the notice", got[0].Title+"\n"+got[0].Body, "G", "A of w-1", "exhausted: red", "sluice pass G --run w-1", "sluice fail G --run w-1 -m", "unprotected")
	b.e.opt.Notifier = nil
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

// scanned gives what lies in the inboxes, when there is as much as wanted.
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

func TestScanOrder(t *testing.T) {
	conform.Rule(t, "2-files decision", "one scan gives signals, veto, fail, pass, in this order")
	conform.Rule(t, "8-semantics 22", "signals by name, veto, fail, pass")
	b := newBench(t, gateSpec)
	names := []string{"A-done.json", "B-done.json", "G-veto", "G-fail.json", "G-fail.md", "G-pass.txt", "G-replan"}
	for i := range names {
		b.put(".workflow/signals/"+names[len(names)-1-i], "{}")
	}
	b.put(".workflow/signals/w-1/0-pass", "words")
	b.put(".workflow/signals/.hidden", "{}")
	b.put(".workflow/signals/rejected/old", "{}")
	in := job.Inboxes{Runs: []string{run1}, Asked: []job.Reviewed{{Run: run1, Gate: "G", Step: "A", Attempt: 1}}}
	var got []string
	for _, ev := range b.scanned(in, 8) {
		got = append(got, ev.Name)
		if (ev.Dir == run1) != (ev.Name == "0-pass") || ev.By.Via != "file" || ev.By.Trust != "file" || ev.By.Who == "" || ev.ID == "" || ev.Written.IsZero() {
			t.Errorf("%+v", ev)
		}
	}
	want := []string{"A-done.json", "B-done.json", "G-veto", "G-fail.json", "G-fail.md", "0-pass", "G-pass.txt", "G-replan"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestScanReads(t *testing.T) {
	conform.Rule(t, "2-files signal 7", "links, pipes and large files are told of and not read")
	conform.Rule(t, "2-files signal 7", "pipes, links and what is too large are not read")
	conform.Rule(t, "2-files signal 3", "tokens are looked up; doubled keys refused")
	b := newBench(t, gateSpec)
	token := b.e.Token("w-1/A#1.1")
	files := map[string]string{
		"A-done.json":  `{"step":"A","status":"blocked","question":"q?","options":["x"],"attempt":1,"launch":2,"token":"` + token + `","answer":{"a":1}}`,
		"B-done.json":  `{"token":"beef"}`,
		"C-done.json":  `{"token":"` + b.e.Token("w-1/A#1.1+2") + `"}`,
		"D-done.json":  `{"status":"done","Status":"failed"}`,
		"E-done.json":  `{"status":"do`,
		"F-done.json":  ``,
		"G-fail":       "make it better\n",
		"G-pass.json":  `{"feedback":"fine","round":3,"run":"w-1","by":"alice"}`,
		"G-veto":       "\xff\xfe",
		"H-done.json":  strings.Repeat("x", 65<<10),
		"not\na-name ": "x",
	}
	for name, text := range files {
		b.put(".workflow/signals/"+name, text)
	}
	b.sh("mkfifo .workflow/signals/fifo && ln -s ../../README.md .workflow/signals/link")
	got := map[string]engine.FileSeen{}
	for _, ev := range b.scanned(job.Inboxes{Tokens: map[string]string{"w-1/A#1.1": ""}}, len(files)+2) {
		got[ev.Name] = ev
	}
	a := got["A-done.json"]
	if a.TokenOf != "w-1/A#1.1" || a.Sentinel.Status != "blocked" || a.Sentinel.Question != "q?" || a.Sentinel.Attempt != 1 || a.Sentinel.Launch != 2 || string(a.Sentinel.Answer) != `{"a":1}` || a.Digest == "" {
		t.Errorf("A: %+v %+v", a, a.Sentinel)
	}
	if got["B-done.json"].TokenOf != "?" || got["C-done.json"].TokenOf != "w-1/A#1.1" || got["F-done.json"].TokenOf != "" {
		t.Errorf("tokens: %q %q", got["B-done.json"].TokenOf, got["C-done.json"].TokenOf)
	}
	for _, name := range []string{"D-done.json", "E-done.json", "H-done.json", "fifo", "link"} {
		if ev := got[name]; ev.Sentinel != nil || ev.SentinelBad == "" {
			t.Errorf("%s: %+v", name, ev)
		}
	}
	if f := got["F-done.json"]; f.Sentinel == nil || f.Sentinel.Status != "done" {
		t.Errorf("empty: %+v", f)
	}
	if h := got["G-pass.json"].Human; h == nil || h.Text != "fine" || h.Round != 3 || h.Run != run1 || h.By != "alice" {
		t.Errorf("G-pass.json: %+v", h)
	}
	if h := got["G-fail"].Human; h == nil || strings.TrimSpace(h.Text) != "make it better" {
		t.Errorf("G-fail: %+v", h)
	}
	if ev := got["G-veto"]; ev.Human != nil || ev.HumanBad == "" {
		t.Errorf("G-veto: %+v", ev)
	}
}

// TestScanWaitsForTheWhole: JSON counts when it is whole, text when it has not changed for a while.
func TestScanWaitsForTheWhole(t *testing.T) {
	conform.Rule(t, "2-files signal 2", "JSON counts when it is whole, text when it has settled")
	conform.Rule(t, "2-files signal 2", "JSON when whole, text when at rest")
	b := newBench(t, gateSpec)
	b.settings.Settle = engine.Duration(time.Hour)
	see := func() int {
		evs, _, err := b.e.Scan(b.ctx(), job.Inboxes{})
		if err != nil {
			t.Fatal(err)
		}
		return len(evs)
	}
	text := `{"status": "done"}`
	for i := range len(text) {
		b.put(".workflow/signals/A-done.json", text[:i])
		if n := see(); n != 0 {
			t.Fatalf("%q was taken for whole", text[:i])
		}
	}
	b.put(".workflow/signals/G-fail", "not yet wh")
	b.put(".workflow/signals/A-done.json", text)
	if n := see(); n != 1 {
		t.Errorf("%d files, want the whole one", n)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(b.path(".workflow/signals/G-fail"), old, old); err != nil {
		t.Fatal(err)
	}
	if n := see(); n != 2 {
		t.Errorf("%d files, want the old one too", n)
	}
}

func TestScanOfWorktrees(t *testing.T) {
	conform.Rule(t, "1-language rule 3 sentinel_file", "written below the worktree it counts too")
	b := newBench(t, treeSpec)
	b.put("sub/.workflow/signals/B-done.json", "{}")
	b.put("tree/.workflow/signals/w-1/A-done.json", "{}")
	in := job.Inboxes{Runs: []string{run1}, Trees: []string{b.path("tree"), "never-made", "."}}
	b.e.notePlace(b.stepJob("B", 1, 1))
	got := map[string]engine.FileSeen{}
	for _, ev := range b.scanned(in, 2) {
		got[ev.Name] = ev
	}
	if a := got["A-done.json"]; a.Place != b.path("tree") || a.Dir != run1 {
		t.Errorf("%+v", a)
	}
	if x := got["B-done.json"]; x.Place != "." || x.Dir != "" {
		t.Errorf("%+v", x)
	}
	x := got["B-done.json"]
	if ev := b.move(&engine.Move{ID: x.ID, Name: x.Name, Dir: x.Dir, Place: x.Place, Run: run1, To: "B.1", As: "signal.json"}); !b.has(".workflow/runs/w-1/B.1/signal.json") {
		t.Errorf("%+v", ev)
	}
}

// TestScanFailsClosed: an inbox that cannot be read is not an empty one; a folder that is gone is made again.
func TestScanFailsClosed(t *testing.T) {
	conform.Rule(t, "2-files signal 1", "an inbox that cannot be read is not an empty one")
	b := newBench(t, gateSpec)
	b.sh("rm -r .workflow/signals")
	if _, _, err := b.e.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}}); err != nil || !b.has(".workflow/signals/w-1") {
		t.Errorf("after it was removed: %v", err)
	}
	b.sh("rm -r .workflow/signals/w-1 && ln -s /tmp .workflow/signals/w-1")
	b.put(".workflow/signals/A-done.json", "{}")
	evs, _, err := b.e.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}})
	eventually(t, "the link is told of", func() bool { // and read as nothing; all others are read
		evs, _, err = b.e.Scan(b.ctx(), job.Inboxes{Runs: []string{run1}})
		return err != nil || len(evs) == 2
	})
	if f, ok := evs[len(evs)-1].(engine.FileSeen); err != nil || !ok || f.Name != run1 || f.Sentinel != nil || f.SentinelBad == "" {
		t.Errorf("a link in the place of a run's inbox: %+v %v", evs, err)
	}
	b.sh("rm .workflow/signals/w-1")
	if _, _, err := b.e.Scan(b.ctx(), job.Inboxes{}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	if _, _, err := b.e.Scan(ctx, job.Inboxes{}); err == nil {
		t.Error("a scan that was broken off counts as one")
	}
}

// TestScanOfRunsThatAreOver: what is written for a run that does not live is seen, so that it can be refused.
func TestScanOfRunsThatAreOver(t *testing.T) {
	b := newBench(t, gateSpec)
	b.scanned(job.Inboxes{Runs: []string{run1}}, 0)
	b.put(".workflow/signals/w-1/A-done.json", "{}")
	b.put(".workflow/signals/w-7/A-done.json", "{}")
	b.put(".workflow/signals/rejected/old.json", "{}")
	b.put(".workflow/signals/-odd/x.json", "{}")
	evs := b.scanned(job.Inboxes{}, 2)
	if len(evs) != 2 || evs[0].Dir != run1 || evs[1].Dir != "w-7" {
		t.Fatalf("%+v", evs)
	}
	for _, ev := range evs {
		b.move(&engine.Move{ID: ev.ID, Name: ev.Name, Dir: ev.Dir, Why: "it is over"})
	}
	for until := time.Now().Add(waitFor); b.has(".workflow/signals/w-1") || b.has(".workflow/signals/w-7"); time.Sleep(10 * time.Millisecond) {
		b.scanned(job.Inboxes{}, 0)
		if time.Now().After(until) { // a test of the watch may lie in the folder for a moment
			t.Fatal("an empty folder of a run that is over stayed")
		}
	}
}

func TestHintsOfAFile(t *testing.T) {
	b := newBench(t, gateSpec)
	eventually(t, "the first hint", func() bool { return len(b.e.Hints()) > 0 })
	for len(b.e.Hints()) > 0 {
		<-b.e.Hints()
	}
	b.put(".workflow/signals/x", "y")
	eventually(t, "a hint", func() bool { return len(b.e.Hints()) > 0 })
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

// TestFloodOfAnInbox: of a launch's own inbox so many files are handed on, its own signal always; the rest is removed and
// counted once, and no link is followed in doing so.
func TestFloodOfAnInbox(t *testing.T) {
	conform.Rule(t, "2-files refused", "beyond the limit a file is removed and counted, once the launch is over; no link is followed")
	b := newBench(t, gateSpec)
	const key = "w-1/A#1.1"
	dir := b.e.PIDFile(key) + layout.InboxMark
	if err := os.MkdirAll(filepath.Join(dir, run1), 0o700); err != nil {
		t.Fatal(err)
	}
	b.e.keepPrivate(key)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const flood = 3 * engine.KeepRefused
	for i := range flood {
		write(filepath.Join(dir, run1, fmt.Sprintf("junk-%d.json", i)), "{}")
	}
	write(filepath.Join(dir, "A-done.json"), `{"status":"done"}`)
	in := job.Inboxes{Runs: []string{run1}, Tokens: map[string]string{key: ""}, Words: map[string]string{key: "A-done.json"}, Refused: map[string]int{key: 10}}
	seen := b.scanned(in, engine.KeepRefused-10+1)
	if n := len(seen); n != engine.KeepRefused-10+1 {
		t.Errorf("%d files were handed on", n)
	}
	if !slices.ContainsFunc(seen, func(f engine.FileSeen) bool { return f.Name == "A-done.json" && f.Of == key }) {
		t.Error("its own signal was not handed on")
	}
	left, err := os.ReadDir(filepath.Join(dir, run1))
	if err != nil || len(left) != engine.KeepRefused-10 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	in.Refused[key] = engine.MostRefused
	if _, _, err := b.e.Scan(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if holdsFile(dir) || holdsFile(filepath.Join(dir, run1)) {
		t.Error("something is left of who has used up all")
	}
	outside := b.path("mine.txt")
	write(outside, "mine")
	if err := os.Remove(filepath.Join(dir, run1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.root, filepath.Join(dir, run1)); err != nil {
		t.Fatal(err)
	}
	b.e.drop(box{path: filepath.Join(dir, run1), dir: run1, of: key}, "mine.txt")
	if !b.has("mine.txt") {
		t.Error("a link was followed out")
	}
	b.e.ends(key)
	var last []engine.Event
	for range 3 {
		evs, _, err := b.e.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		last = append(last, evs...)
	}
	if len(last) != 1 || last[0] != (engine.FilesDropped{Of: key, N: flood + 2}) { // its signal and the link among them
		t.Errorf("at its end: %+v", last)
	}
}
