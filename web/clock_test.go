package web

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/press"
)

// TestClockThatIsOff: where the machine's clock is set back or ahead while somebody looks at a gate, nothing that was
// written is lost, and after one more look the answer counts.
func TestClockThatIsOff(t *testing.T) {
	for what, off := range map[string]time.Duration{"back": -3 * time.Hour, "ahead": 3 * time.Hour} {
		t.Run(what, func(t *testing.T) {
			p := newSite(t)
			run := p.run(asksSpec)
			at := "/r/shop/" + run + "/g/G"
			form := p.form(at)
			p.later(off)
			w := p.answer(at, form, "outcome", "fail", "text", "my words")
			if off > 0 { // it has been on the screen long enough
				if w.Code != 303 {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				return
			}
			again := w.Body.String()
			if w.Code != 409 || !strings.Contains(again, "only just come") || !strings.Contains(again, "my words") {
				t.Fatalf("%d %s", w.Code, again)
			}
			p.later(press.Shown)
			if w := p.answer(at, fieldsOf(again), "outcome", "fail", "text", "my words"); w.Code != 303 {
				t.Errorf("after one more look: %d %s", w.Code, w.Body)
			}
			if w := p.ask("GET", "/", nil); w.Code != 200 {
				t.Errorf("the login is over: %d", w.Code)
			}
		})
	}
}
