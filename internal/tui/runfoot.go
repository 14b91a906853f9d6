package tui

import (
	"fmt"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/internal/console"
	"sluice/internal/press"
	"sluice/internal/render"
	"sluice/internal/text"
)

// of names the run of a gate, unless it is the screen's own run.
func (sc *screen) of(r *daemon.RunStatus) string {
	if r.ID == sc.id {
		return ""
	}
	return " of " + text.Line(r.Child.Title())
}

// formRows is how many rows a question of a form takes.
const formRows = 5

func (sc *screen) foot(width int, now time.Time) []string {
	c := sc.c
	out := []string{""}
	if sc.note != "" && now.Sub(sc.noted) < runSaidFor {
		out = append(out, c.Paint(console.Bold, sc.note))
	}
	switch {
	case sc.typing:
		typed := string(sc.words)
		prompt, enter := fmt.Sprintf("%s %s #%d: what is wrong? ", sc.verb, text.Line(sc.about.gate), sc.about.round), "Enter sends it, Esc goes back"
		if sc.form != nil {
			prompt, enter = "▸ ", "Enter takes it, or the value in brackets; Esc goes back: nothing is decided"
			asks := Wrap(fmt.Sprintf("%s #%d asks: %s", text.Line(sc.about.gate), sc.about.round, sc.form.Question()), width-1)
			for _, l := range asks[:min(len(asks), formRows)] {
				out = append(out, c.Paint(console.Yellow, l))
			}
		}
		for len([]rune(typed)) > 0 && len(prompt)+len([]rune(typed)) > width-3 {
			typed = string([]rune(typed)[1:]) // show its end, where the person types
		}
		return append(out, c.Paint(console.Dim, enter), c.Paint(console.Yellow, prompt)+typed+"▏")
	case sc.sure != nil:
		for _, l := range Wrap(sc.sure.question, width-1) {
			out = append(out, c.Paint(console.Yellow, l))
		}
		then := c.Paint(console.Dim, press.Wait)
		if sc.guard.Ripe(sc.offer(), now) {
			then = c.Paint(console.Bold, press.Answers)
		}
		return append(out, Wrap(then, width-1)...)
	}
	asks, keys := sc.asks(now)
	out = append(out, asks...)
	if sc.page != nil {
		if sc.paged != (about{}) && len(keys) == 0 {
			out = append(out, c.Paint(console.Yellow, "! this page is out of date: Esc goes back"))
		}
		return append(out, keysLine(c, append(keys, "↑ ↓ space scroll", "Esc goes back")...))
	}
	if sc.run.Paused != "" && len(keys) == 0 {
		return append(out, keysLine(c, "r resume", sc.leaves()))
	}
	return append(out, keysLine(c, append(keys, "s show", sc.leaves())...))
}

// asks returns the gates that keys decide now, and the keys.
func (sc *screen) asks(now time.Time) (out, keys []string) {
	c := sc.c
	if g, run := sc.gate("human", sc.meant()); g != nil {
		out = append(out, c.Paint(console.Yellow, "? "+text.Title(g.ID, g.Name)+sc.of(run)+" asks you")+c.Paint(console.Dim, ": "+render.Why(g.Why)))
		keys = append(keys, "p pass", "f fail with words")
	}
	if g, run := sc.gate("window", sc.meant()); g != nil {
		out = append(out, c.Paint(console.Yellow, "‖ "+text.Title(g.ID, g.Name)+sc.of(run)+" goes on in "+render.Ago(g.Until.Sub(now))))
		keys = append(keys, "v veto with words")
	}
	return out, keys
}

// leaves returns the key that leaves. The run continues only if another process serves it.
func (sc *screen) leaves() string {
	switch {
	case sc.run.Paused != "":
		return "q leave"
	case sc.ours:
		return "q pause and leave"
	}
	return "q leave (it goes on)"
}

func keysLine(c *console.Console, keys ...string) string {
	for i, k := range keys {
		letter, words, _ := strings.Cut(k, " ")
		keys[i] = c.Paint(console.Bold, letter) + " " + c.Paint(console.Dim, words)
	}
	return strings.Join(keys, c.Paint(console.Dim, " · "))
}
