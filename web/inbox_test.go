package web

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
)

// atStep puts the page's clock at the begin of a step of the ages that pages show.
func (p *site) atStep() {
	now := p.con.Now()
	p.later(now.Truncate(tick).Add(tick).Sub(now))
}

// TestInboxLeavesOthersAsTheyWere: what happens in one run renders no part about others anew, until ages have
// taken a step.
func TestInboxLeavesOthersAsTheyWere(t *testing.T) {
	p := newSite(t)
	p.run(asksSpec)
	p.atStep()
	draw := p.s.pages.parts(httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), p.s.inbox)
	sums := func() map[string]uint64 {
		_, now, err := draw(context.Background(), true)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]uint64{}
		for id, part := range now.parts {
			out[id] = part.sum
		}
		return out
	}
	first := sums()
	p.later(tick / 2)
	if later := sums(); !maps.Equal(first, later) {
		t.Errorf("parts about which nothing has changed differ: %v %v", first, later)
	}
	p.later(tick / 2)
	if later := sums(); first["waits"] == later["waits"] || first["runs"] == later["runs"] {
		t.Error("ages do not change")
	}
	p.run(asksSpec)
	if later := sums(); first["waits"] == later["waits"] {
		t.Error("a new run is not shown")
	}
}

// TestInboxCountsDownExactly: what is left of a veto's window is never more than there is.
func TestInboxCountsDownExactly(t *testing.T) {
	p := newSite(t)
	p.atStep()
	p.later(tick - time.Second)
	now := p.con.Now()
	r := daemon.RunStatus{Phase: engine.RunRunning, Waits: []daemon.Wait{{Kind: "window", Gate: "G", Until: now.Add(9 * time.Minute)}}}
	if got := itemOf("shop", r, now).Words; got != "G passes in 9m00s unless you veto" {
		t.Errorf("the run says %q", got)
	}
	html, err := p.s.pages.render("waititem", waitItem{Until: p.con.Now().Add(time.Minute)})
	if err != nil || !strings.Contains(string(html), "<b>59s left</b>") && !strings.Contains(string(html), "<b>1m00s left</b>") {
		t.Errorf("%s %v", html, err)
	}
}

// TestInboxSaysThatNothingCanBeDecided: while the journal cannot be written the page has what is recorded, and says so.
func TestInboxSaysThatNothingCanBeDecided(t *testing.T) {
	p := newSite(t)
	a := p.counted()
	run := p.run(asksSpec)
	a.stall = "write journal.jsonl: no space left on device"
	html := p.gets("/").Body.String()
	for _, want := range []string{"shop: the journal cannot be written, so nothing is started or decided: " + a.stall, run} {
		if !strings.Contains(html, want) {
			t.Errorf("the inbox lacks %q:\n%s", want, html)
		}
	}
}

// TestItemsAreRenderedOnce: of a long list, only the items that have changed are rendered.
func TestItemsAreRenderedOnce(t *testing.T) {
	p := newSite(t)
	p.atStep()
	since := p.con.Now().Truncate(tick).Add(-time.Hour)
	var page inboxPage
	for i := range 200 {
		id := fmt.Sprintf("w-%d", i)
		page.Runs = append(page.Runs, runItem{Repo: "shop", URL: "/r/shop/" + id, ID: id, State: "running", Since: since})
	}
	render := func() string {
		html, err := p.s.pages.render("runs", page)
		if err != nil {
			t.Fatal(err)
		}
		return string(html)
	}
	first := render()
	if again := render(); again != first || strings.Count(first, "for 1h00m") != 200 {
		t.Fatalf("%.300s", first)
	}
	const each = 12 // allocations of an item that is as it was
	if got := testing.AllocsPerRun(5, func() { render() }); got > 200*each {
		t.Errorf("a list of 200 items that have not changed costs %.0f allocations", got)
	}
	page.Runs[7].State = "paused"
	if html := render(); strings.Count(html, "paused") != 1 {
		t.Errorf("a change is not shown: %.300s", html)
	}
	p.later(time.Hour)
	if html := render(); strings.Count(html, "for 2h00m") != 200 {
		t.Errorf("later it shows the earlier ages: %.300s", html)
	}
	for i := range itemsMost {
		page.Runs[0].ID = fmt.Sprint(i)
		render()
	}
	if n := len(p.s.pages.items); n > itemsMost+1 {
		t.Errorf("%d items are kept", n)
	}
}
