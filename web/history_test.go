package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/internal/render"
)

// TestHistoryWaits: the history says how long a run waited for people.
func TestHistoryWaits(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	form.Set("sure", "yes")
	if w := p.answer(at, form, "outcome", "pass"); w.Code != http.StatusSeeOther {
		t.Fatalf("pass: %d %s", w.Code, w.Body)
	}
	ended := p.until(run, "the end", func(r daemon.RunStatus) bool { return !r.Live() })
	var waited time.Duration
	for _, g := range ended.Gates() {
		waited += time.Duration(g.Waited)
	}
	if took := ended.Ended.Sub(ended.Started); waited <= 0 || waited > took {
		t.Errorf("it waited %v of %v", waited, took)
	}
	want := "</meter> " + render.Ago(waited) + "</td><td data-is=\"rounds\">"
	if got := p.ask("GET", "/history", nil).Body.String(); !strings.Contains(got, want) {
		t.Errorf("there is no %s:\n%s", want, got)
	}
}

// TestStartShowsPictures: each workflow that can be started is shown with its picture.
func TestStartShowsPictures(t *testing.T) {
	got := newSite(t).ask("GET", "/start", nil).Body.String()
	if !strings.Contains(got, `<g id="shop-w-n-G" class="node gate ahead">`) {
		t.Errorf("no picture of w:\n%s", got)
	}
}
