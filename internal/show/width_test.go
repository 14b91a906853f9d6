package show

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/render"
)

// window is a terminal of some columns; 0 = a pipe.
type window struct {
	bytes.Buffer
	columns int
}

func (w *window) Columns() int { return w.columns }

// Words that are long, wide, or hostile.
const (
	longID  = "a-workflow-whose-name-says-all-that-it-does-and-more-than-that-1"
	longWhy = "the review says that 検索の結果が空のときの振る舞いが決まっていない, that e\u0301tudes are not found, and /a/path/which/has/no/blank/in/it/and/is/wider/than/any/of/the/terminals/in/this/test/of/the/widths/that/tables/have/index.go 👩‍💻 the end of the reason"
	hostile = "\x1b[2J\x1b]0;owned\x07\r\n\t\u202e"
)

func longRuns(now time.Time) daemon.Status {
	r := daemon.RunStatus{ID: longID, Workflow: "w", Name: "検索" + hostile, Phase: engine.RunRunning, Started: now.Add(-time.Hour), Trust: engine.TrustFile, Exposed: longWhy,
		Notes: []engine.Note{{N: 1, Step: longID, Text: longWhy + hostile}}, SpecDrift: true,
		Steps: []daemon.StepStatus{
			{ID: longID, Name: "検索を実装する" + hostile, State: engine.Running, Attempt: 12, Since: now.Add(-time.Minute), Role: "implementor", Summary: longWhy, Failure: longWhy,
				List:  &daemon.ListStatus{File: "to-do.json", Fault: longWhy, Tasks: []daemon.TaskStatus{{ID: longID, Title: "検索", State: engine.TaskBlocked, Why: longWhy}}},
				Gates: []daemon.GateStatus{{ID: "G-" + longID, Level: "human", State: engine.OnHuman, Why: longWhy, Feedback: longWhy + hostile, Count: 2, Max: 3}, {ID: "b", Level: "auto"}}},
			{ID: "b", State: "waiting", Gates: []daemon.GateStatus{{ID: "b", Implicit: true, Level: "auto"}}},
		},
		Waits: []daemon.Wait{{Kind: "human", Gate: "G-" + longID, Since: now.Add(-time.Minute), Until: now.Add(time.Minute), Text: longWhy}}}
	ended := daemon.RunStatus{ID: "b-1", Workflow: "b", Phase: engine.RunFailed, Started: now.Add(-3 * time.Hour), Ended: now.Add(-2 * time.Hour), EndWhy: longWhy, Stubbed: true, Trust: engine.TrustFile}
	return daemon.Status{Root: "/home/someone/projects/of/this/year/検索", Runs: []daemon.RunStatus{ended, r}}
}

func longFacts(t *testing.T) (lines []daemon.Line) {
	t.Helper()
	for _, f := range []engine.Fact{
		engine.StepSignalled{Step: longID, N: 1, Status: "done", Summary: longWhy + hostile},
		engine.RoundFailed{Gate: "G-" + longID, N: 3, Outcome: "fail", ByKind: "reviewer", To: "検索", Feedback: longWhy},
		engine.RunBegan{},
		engine.Checked{Step: longID, N: 1, OK: true, Unshipped: 2},
	} {
		raw, err := engine.EncodeFact(f)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(fmt.Appendf(nil, `{"run":%q,`, longID), bytes.TrimPrefix(raw, []byte("{"))...)
		lines = append(lines, daemon.Line{Fact: raw})
	}
	return lines
}

// TestNothingIsWiderThanTheTerminal: at every width each line of inbox, ls, status and log fits, and none has what a
// terminal acts on; in a pipe each row is one line and whole.
func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	now := time.Now()
	st := longRuns(now)
	for name, prints := range map[string]func(con *console.Console){
		"inbox": func(con *console.Console) { _ = PrintInbox(con, Waits(st, true, nil), 0) },
		"ls":    func(con *console.Console) { _ = Runs(t.Context(), con, st, true, true) },
		"status": func(con *console.Console) {
			for _, r := range st.Runs {
				con.PrintLines(render.RunLines(con, r, now))
			}
		},
		"log": func(con *console.Console) {
			for _, withRun := range []bool{false, true} {
				log := NewLog(con, withRun, true)
				for _, l := range longFacts(t) {
					if err := log.Fact(l); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
		"end": func(con *console.Console) {
			con.PrintLines(render.EndLines(con, daemon.RunStatus{Steps: []daemon.StepStatus{{ID: longID, State: engine.Passed, Summary: longWhy}}}))
		},
	} {
		for _, width := range []int{0, 20, 40, 80, 140} {
			out := &window{columns: width}
			con := console.New(nil, nil, out, &bytes.Buffer{})
			con.Now = func() time.Time { return now }
			con.Colour = width == 80
			prints(con)
			if out.Len() == 0 {
				t.Errorf("%s at %d prints nothing", name, width)
			}
			for l := range strings.Lines(out.String()) {
				l = strings.TrimSuffix(l, "\n")
				if w := ansi.StringWidth(l); width > 0 && w > width {
					t.Errorf("%s at %d: %d cells: %q", name, width, w, l)
				}
				if bare := ansi.Strip(l); strings.ContainsAny(bare, "\x1b\x07\r\t\u202e") || strings.Contains(l, "\x1b[2J") {
					t.Errorf("%s at %d: %q", name, width, l)
				}
			}
			reason := strings.Contains(squeezed(out.String()), "endofthereason")
			if whole := name != "ls" && name != "end"; !reason && (whole || width == 0) {
				t.Errorf("%s at %d has lost the end of a reason:\n%s", name, width, out)
			}
			if strings.Contains(out.String(), "…") && width == 0 {
				t.Errorf("%s cuts in a pipe:\n%s", name, out)
			}
		}
	}
}

func squeezed(s string) string { return strings.Join(strings.Fields(ansi.Strip(s)), "") }

// TestTheLogOfAPerson: bookkeeping is left out, counted, and there with --all, a warning always; JSON is complete.
func TestTheLogOfAPerson(t *testing.T) {
	for _, c := range []struct {
		all, json bool
		lines     int
		left      int
	}{{false, false, 3, 1}, {true, false, 4, 0}, {false, true, 4, 0}} {
		var out bytes.Buffer
		con := console.New(nil, nil, &out, nil)
		con.JSON = c.json
		log := NewLog(con, false, c.all)
		for _, l := range longFacts(t) {
			if err := log.Fact(l); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(out.String(), "\n"); n != c.lines || log.Left != c.left {
			t.Errorf("%+v: %d lines, %d left\n%s", c, n, log.Left, out.String())
		}
	}
}
