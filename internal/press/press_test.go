package press

import (
	"strings"
	"testing"
	"time"
)

// TestTheRule: each line is one key at a time, after what was drawn when.
func TestTheRule(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(1_000_000 + ms)) }
	for _, c := range []struct {
		name         string
		do           func(g *Guard)
		begins, ends bool
	}{
		{"nothing was drawn", func(g *Guard) { g.Read("p", true, at(5000)) }, false, false},
		{"drawn for a second", func(g *Guard) { g.Draw("w", at(0)); g.Read("p", true, at(1000)) }, true, true},
		{"drawn for less", func(g *Guard) { g.Draw("w", at(0)); g.Read("p", true, at(999)) }, false, false},
		{"drawn again does not begin anew", func(g *Guard) {
			g.Draw("w", at(0))
			g.Draw("w", at(900))
			g.Read("p", true, at(1000))
		}, true, true},
		{"gone and back begins anew", func(g *Guard) {
			g.Draw("w", at(0))
			g.Draw("", at(900))
			g.Draw("w", at(950))
			g.Read("p", true, at(1000))
		}, false, false},
		{"another thing is drawn", func(g *Guard) { g.Draw("x", at(0)); g.Read("p", true, at(2000)) }, false, false},
		{"read before it was drawn", func(g *Guard) {
			g.Draw("w", at(3000))
			g.Read("p", true, at(1000))
		}, false, false},
		{"with others", func(g *Guard) { g.Draw("w", at(0)); g.Read("p", false, at(2000)) }, false, false},
		{"close to another", func(g *Guard) {
			g.Draw("w", at(0))
			g.Read("j", true, at(2000))
			g.Read("p", true, at(2049))
		}, false, false},
		{"after another", func(g *Guard) {
			g.Draw("w", at(0))
			g.Read("j", true, at(2000))
			g.Read("p", true, at(2050))
		}, true, true},
		{"the same within a second", func(g *Guard) {
			g.Draw("w", at(0))
			g.Read("p", true, at(2000))
			g.Read("p", true, at(2999))
		}, false, true},
		{"the same later", func(g *Guard) {
			g.Draw("w", at(0))
			g.Read("p", true, at(2000))
			g.Read("p", true, at(3000))
		}, true, true},
	} {
		var g Guard
		c.do(&g)
		if why := g.Ends("w"); (why == "") != c.ends {
			t.Errorf("%s: ends: %q", c.name, why)
		}
		if why := g.Begin("w"); (why == "") != c.begins {
			t.Errorf("%s: begins: %q", c.name, why)
		}
	}
	var g Guard
	g.Draw("w", at(0))
	g.Read("f", true, at(1000))
	_ = g.Begin("w")
	if g.Read("o", true, at(1049)); !g.Rushed() {
		t.Error("what came in one go with it is a person's")
	}
	if g.Read("o", true, at(1050)); g.Rushed() {
		t.Error("what came later is no person's")
	}
	g.Draw("", at(0))
	if g.Read("p", true, at(9000)); g.Ends("") == "" {
		t.Error("nothing was decided about")
	}
}

// TestTheQuestion names what is passed, cleaned and short.
func TestTheQuestion(t *testing.T) {
	p := Pass{Run: "w-1", Gate: "G", GateName: "re\x1b[2Jview", Round: 3, Step: "A", StepName: "write"}
	p.Content = "0123456789abcdef"
	if got := p.Question(); got != "Pass G review, round 3 of w-1: step A write, content 0123456789ab?" {
		t.Errorf("%q", got)
	}
	p = Pass{Run: "w-1", Gate: "G", Round: 1, Step: "A", Untaken: true}
	if got := p.Question(); got != "Pass G, round 1 of w-1: step A, without its work?" {
		t.Errorf("%q", got)
	}
	if p.Route = "later"; p.Question() != "Decide later at G, round 1 of w-1: step A?" {
		t.Errorf("%q", p.Question())
	}
	run, gate := strings.Repeat("r", 238)+"-2", strings.Repeat("g", 62)+"-2"
	if p = (Pass{Run: run, Gate: gate, Round: 1, Step: gate}); p.Question() != "Pass "+gate+", round 1 of "+run+": step "+gate+"?" {
		t.Errorf("%q", p.Question())
	}
	p = Pass{Run: "w-1", Gate: "G", GateName: strings.Repeat("long ", 100), Round: 1, Step: strings.Repeat("s", 500)}
	if got := p.Question(); len(got) > 300 || strings.Contains(got, "content") || !strings.HasSuffix(got, "?") {
		t.Errorf("%d: %q", len(got), got)
	}
}
