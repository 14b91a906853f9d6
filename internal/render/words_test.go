package render

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
)

// TestSpentShort: the cost first, tokens by the thousand, and bounds where there are some.
func TestSpentShort(t *testing.T) {
	for _, c := range []struct {
		u, most engine.Spend
		want    string
	}{
		{engine.Spend{}, engine.Spend{}, ""},
		{engine.Spend{Usage: engine.Usage{Tokens: 9999}}, engine.Spend{}, "9999 tokens"},
		{engine.Spend{Usage: engine.Usage{Tokens: 912_345, CostUSD: 0.5}}, engine.Spend{}, "0.50 USD, 912k tokens"},
		{engine.Spend{Usage: engine.Usage{Tokens: 1_250_000}}, engine.Spend{Usage: engine.Usage{Tokens: 2_000_000, CostUSD: 3}}, "0.00 of 3.00 USD, 1.2M of 2.0M tokens"},
		{engine.Spend{Launches: 2, Time: engine.Duration(time.Minute)}, engine.Spend{Launches: 5, Time: engine.Duration(time.Hour)}, "2 of 5 launches, 1m0s of 1h0m0s at work"},
	} {
		if got := SpentInAllShort(c.u, c.most); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestAgo: a span of time in two figures, and never less than nothing.
func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Hour: "0s", 9 * time.Second: "9s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 3 * time.Hour: "3h00m", 3*time.Hour + 5*time.Minute: "3h05m", 50 * time.Hour: "2d"} {
		if got := Ago(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

// TestUnpassedLinesAreFew: when much went on without a pass, the newest is named and the rest counted.
func TestUnpassedLinesAreFew(t *testing.T) {
	c := console.New(nil, nil, nil, nil)
	r := daemon.RunStatus{More: 5}
	for i := range UnpassedShown + 2 {
		r.Unpassed = append(r.Unpassed, daemon.LetThrough{Gate: fmt.Sprint("G", i), Outcome: "skip", Failures: 1, To: "b"})
	}
	got := UnpassedLines(c, r)
	if len(got) != UnpassedShown+1 || got[0] != "  7 rounds that a gate did not pass went on earlier" || !strings.Contains(got[len(got)-1], fmt.Sprint("G", UnpassedShown+1)) {
		t.Errorf("%q", got)
	}
	r.More, r.Unpassed = 0, r.Unpassed[:1]
	if got := UnpassedLines(c, r); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

func TestSizesAsPeopleSayThem(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 40: "3072.0 GiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// What asks once the failures are used up is short where a row shows the count, and never has the output of a process.
func TestWhyAfterTheLastFailure(t *testing.T) {
	why := "it failed 3 times: it ended with exit code 1: “no route to host”\n\nstdout:\nline\nstderr:\nno route to host"
	if got, want := Why(why), `it failed 3 times: “it ended with exit code 1: "no route to host"”`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for why, want := range map[string]string{
		why: `“it ended with exit code 1: "no route to host"”`, "it failed 1 time: level": "“level”", "it said again 1 time": "it said again 1 time", "level": "",
		"it changed protected files: Makefile; it failed": "it changed protected files: Makefile; it failed",
	} {
		if got := WhyElse(Cause(why)); got != want {
			t.Errorf("%q: got %q, want %q", why, got, want)
		}
	}
}

// TestQuoted: what an agent says stands in quotes that it cannot end, also where it is why a gate asks.
func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " \n": "", "both modules\n\nand tests": "“both modules and tests”",
		"done” · passed by ann · “": "“done\" · passed by ann · \"”",
	} {
		if got := Quoted(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := Why("blocked: which port?\n\nThe gate has passed"); got != "blocked: “which port? The gate has passed”" {
		t.Errorf("%q", got)
	}
	const still = "no progress: the same failure came 3 times over an unchanged tree: "
	if got := Why(still + "passed by ann"); got != still+"“passed by ann”" {
		t.Errorf("%q", got)
	}
	failed := daemon.GateStatus{ID: "G", State: engine.OnHuman, Count: 1, Max: 1, Why: "it failed 1 time: by ann"}
	if got := strings.Join(GateLines(console.New(nil, nil, io.Discard, io.Discard), failed, time.Now()), "\n"); !strings.HasSuffix(got, "failed 1/1 · “by ann”") {
		t.Errorf("%q", got)
	}
	step := daemon.StepStatus{ID: "A", State: engine.Gating, Summary: "all done” · passed by ann"}
	con := console.New(nil, nil, io.Discard, io.Discard)
	if got := strings.Join(StepLines(con, step, time.Now()), "\n"); !strings.HasSuffix(got, `“all done" · passed by ann”`) {
		t.Errorf("%q", got)
	}
}
