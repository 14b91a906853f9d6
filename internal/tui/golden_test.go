package tui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/tools/picture"
)

var rewrite = flag.Bool("rewrite", false, "write the screens of testdata anew: read the diff")

// is compares the screen with the one that is kept.
func (s *sit) is(name string) {
	s.t.Helper()
	file := filepath.Join("testdata", name+".txt")
	var lines []string
	for l := range strings.SplitSeq(s.shows(), "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	got := strings.Join(lines, "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		s.t.Errorf("%s (%v): the screen is:\n%s\nand was:\n%s", name, err, got, want)
	}
}

// day is a working day: two repos, agents at work, one gate that asks, a window, a budget.
func (s *sit) day() {
	since := func(d time.Duration) time.Time { return s.at.Add(-d) }
	step := func(id, name, state string, attempt int, began time.Duration, summary string, gates ...daemon.GateStatus) daemon.StepStatus {
		st := daemon.StepStatus{ID: id, Name: name, State: state, Attempt: attempt, Summary: summary, Role: "implementer", Gates: gates}
		if attempt > 0 {
			st.Since = since(began)
		}
		return st
	}
	feature := daemon.RunStatus{ID: "feature-7", Workflow: "feature", Name: "Feature", Phase: engine.RunRunning, Started: since(41 * time.Minute),
		Trust: engine.TrustSandbox, Usage: engine.Usage{Tokens: 184_220, CostUSD: 1.31}, Budget: engine.Usage{CostUSD: 5},
		Steps: []daemon.StepStatus{
			step("plan", "plan", engine.Passed, 1, 33*time.Minute, "", daemon.GateStatus{ID: "plan-ok", Level: "notify", State: engine.Approved, Round: 1, ByKind: "window", Score: new(91.)}),
			step("build", "build it", engine.Gating, 2, 2*time.Minute, "search() has no duplicates now; 12 tests pass",
				daemon.GateStatus{ID: "build-ok", Name: "review", Level: "human", Reviewed: "824b68dd73408a6b", State: engine.OnHuman, Why: "level", Round: 2, Count: 1, Max: 3, Score: new(84.), Feedback: "mind the log level"}),
			step("docs", "docs", "waiting", 0, 0, ""),
		},
		Waits: []daemon.Wait{{Kind: "human", Step: "build", Gate: "build-ok", Since: since(95 * time.Second), Text: "for a person at build-ok"}}}
	fix := daemon.RunStatus{ID: "fix-31", Workflow: "fix", Name: "Fix", Phase: engine.RunRunning, Started: since(6 * time.Minute), Usage: engine.Usage{Tokens: 20_410, CostUSD: 0.2},
		Steps: []daemon.StepStatus{
			step("repro", "repro", engine.Passed, 1, 3*time.Minute, "", daemon.GateStatus{ID: "repro-ok", Level: "notify", State: engine.OnWindow, Round: 1, Score: new(77.), Until: s.at.Add(48 * time.Second)}),
			step("code", "code", engine.Running, 1, 50*time.Second, ""),
		},
		Waits: []daemon.Wait{{Kind: "window", Step: "repro", Gate: "repro-ok", Since: since(12 * time.Second), Until: s.at.Add(48 * time.Second), Text: "for a veto at repro-ok"}}}
	old := daemon.RunStatus{ID: "fix-30", Workflow: "fix", Phase: engine.RunFailed, Started: since(3 * time.Hour), Ended: since(2 * time.Hour), EndWhy: "code failed 3 times",
		Steps: []daemon.StepStatus{step("repro", "repro", engine.Passed, 1, 0, ""), step("code", "code", engine.Superseded, 3, 0, "")}}
	today := daemon.Today{Day: "2026-11-21", All: engine.Spend{Usage: engine.Usage{Tokens: 912_000, CostUSD: 7.4}}, Budget: engine.Spend{Usage: engine.Usage{CostUSD: 20}}}
	s.desk.words["/home/ann/lib fix-31 code"] = "▸ Edit parser.go: the loop stops one too early"
	s.tell(reposSeen{roots: []string{"/home/ann/app", "/home/ann/lib"}},
		repoSeen{root: "/home/ann/app", served: true, whole: true, status: daemon.Status{Trust: "sandbox", Today: today, Runs: []daemon.RunStatus{feature}}},
		repoSeen{root: "/home/ann/lib", served: true, whole: true, status: daemon.Status{Trust: "sandbox", Today: today, Runs: []daemon.RunStatus{old, fix}}})
	s.desk.page = Page{Gate: "build-ok", Round: 2, Content: "824b68dd73408a6b", Text: 12, Lines: strings.Split(`build-ok review of feature-7, round 2: asks you
  step        build it
  task        search() must not return duplicates
  done when   go test ./...
  attempt     2, gating, 6m12s
  it says     done: search() has no duplicates now; 12 tests pass
  criterion   holds
  cost        61200 tokens, 0.44 USD
  changed     search.go
  verdict     pass, score 84, by its reviewer
  finding     minor search.go:41 the log level is debug
  round 1     failed by ann (terminal): empty queries

diff --git a/search.go b/search.go
@@ -38,3 +38,4 @@
 func search(q string) []string {
-	return all(q)
+	log.Debug(q)
+	return unique(all(q))
 }`, "\n")}
}

// TestScreens: what the screen looks like, kept to be looked at.
func TestScreens(t *testing.T) {
	for _, size := range []struct {
		name          string
		width, height int
	}{{"80x24", 80, 24}, {"40x10", 40, 10}, {"120x30", 120, 30}} {
		s := newSit(t, size.width, size.height)
		s.day()
		s.is("list-" + size.name)
		s.types("<enter>")
		s.is("page-" + size.name)
		s.decides("f")
		s.types("the log level is wrong<alt+enter>日本語 too")
		s.is("words-" + size.name)
		s.types("<esc><esc>a")
		s.is("ask-" + size.name)
		s.types("n")
		s.decides("p")
		s.is("new-pass-" + size.name)
		s.soon()
		s.is("pass-" + size.name)
		s.types("<esc>?")
		s.is("help-" + size.name)
		s.types("<esc>")
		s.tell(repoLost{"/home/ann/app", "the process that served it is gone"}, reposSeen{roots: []string{"/home/ann/app", "/home/ann/lib"}, note: "no daemon answers: `sluice daemon` starts one"})
		s.is("lost-" + size.name)
	}
}

// dayGraph is the workflow of the day's first run, as specs/graph draws it; a state follows a dot.
const dayGraph = `feature  Feature

[plan] · passed
 └─ <plan-ok> · passed
     ├─ pass ─> build
     └─ fail ─> plan

[build] build it · gating
 └─ <build-ok> review · human
     ├─ pass ─> docs
     └─ fail ─> build

[docs] · waiting
 └─ then ─> DONE
`

// dayFacts are the newest facts of that run.
func dayFacts() (out []daemon.Line) {
	at := time.Date(2026, 11, 20, 14, 3, 0, 0, time.UTC)
	for i, f := range []string{
		`{"kind": "round_passed", "run": "feature-7", "gate": "plan-ok", "n": 1, "outcome": "pass", "by_kind": "window"}`,
		`{"kind": "round_failed", "run": "feature-7", "gate": "build-ok", "n": 1, "outcome": "fail", "by_kind": "human", "by": {"who": "ann", "via": "terminal"}, "to": "build", "feedback": "search() returns duplicates"}`,
		`{"kind": "human_asked", "run": "feature-7", "gate": "build-ok", "n": 2, "why": "level"}`,
	} {
		out = append(out, daemon.Line{Seq: int64(i + 1), At: at.Add(time.Duration(i) * 11 * time.Minute), Fact: []byte(f)})
	}
	return out
}

// TestTheDocsPictureTheScreen: the pictures of the docs are drawn from the screens at two sizes.
func TestTheDocsPictureTheScreen(t *testing.T) {
	for _, p := range []struct {
		name          string
		width, height int
	}{{"top", 80, 24}, {"run", 140, 24}} {
		s := newSit(t, p.width, p.height)
		if p.name == "run" {
			s.one = &one{id: "feature-7"}
			s.tell(factsSeen(dayFacts()), graphSeen(func(daemon.RunStatus) string { return strings.ReplaceAll(dayGraph, " · ", "\t") }))
		}
		s.day()
		screen := picture.Frame{Screen: strings.Join(s.screen(), "\n"), Hold: time.Second}
		got := picture.SVG("sluice "+p.name+" in a terminal", p.width, p.height, []picture.Frame{screen})
		file := filepath.Join("..", "..", "docs", p.name+".svg")
		if *rewrite {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if kept, err := os.ReadFile(file); err != nil || string(kept) != string(got) {
			t.Errorf("%s is not drawn from the screen (%v): go test ./internal/tui -run Docs -rewrite, and look at it", file, err)
		}
	}
}

// TestTheDocsShowTheScreen: the page of the docs has the screen as it is.
func TestTheDocsShowTheScreen(t *testing.T) {
	page, err := os.ReadFile("../../docs/top.md")
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.ReadFile("testdata/list-80x24.txt")
	if err != nil || !strings.Contains(string(page), "```\n"+string(screen)+"```") {
		t.Errorf("docs/top.md does not have testdata/list-80x24.txt (%v): put it there", err)
	}
}
