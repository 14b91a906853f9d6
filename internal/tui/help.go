package tui

import (
	"fmt"
	"strings"

	"sluice/internal/console"
)

// Key is a row of the table of keys.
type Key struct{ Group, Keys, Does string }

// Keys returns what each key does, by groups.
func Keys() []Key {
	const decide = "Decide, at a row or on its page"
	return []Key{
		{"Move", "↑ ↓ j k", "a row up, down"},
		{"Move", "PgUp PgDn g G", "a page up, down; to the top, to the end"},
		{"Move", "Tab", "to the next thing that waits for you"},
		{"Move", "space ← →", "fold and unfold a run"},
		{"Move", "/", "show only runs with these words in their repo, name, state, steps or gates; Esc shows all"},
		{"Look", "Enter", "what a decision needs: task, criterion, verdict, findings, changes; scroll with ↑ ↓ space b"},
		{"Look", "o", "on a page: only the changes since the attempt before"},
		{"Look", "t", "the agent's output, live"},
		{"Look", "s", "on an agent's output: what a decision needs, as Enter at the row"},
		{"Look", "w", "the changes in your pager; on a page, those that it shows"},
		{"Look", "r", "on a page: read it again, and show a new round"},
		{"Look", "?", "all keys"},
		{"Look", "Esc q", "back"},
		{decide, "p", "pass: the work goes on; Enter confirms it"},
		{decide, "f", "fail, with words that the next attempt reads"},
		{decide, "v", "veto, with words: a reviewer's pass does not count, also after its window has closed"},
		{decide, "c", "comment on lines of the changes, in your editor; the comments fail the round, or veto its pass"},
		{decide, "d", "any outcome that the gate has, by its name, with a reason"},
		{decide, "n", "a note: the prompts of the run's next attempts have it; at a step, those of that step"},
		{decide, "P", "pause the run, or resume it"},
		{decide, "a", "abort the run, after a question"},
	}
}

// Columns of the help.
const (
	helpKeys = 17 // before what a key does
	helpDoes = 54 // of what it does
)

// helpPage lists the keys, the rules of decisions and the signs.
func helpPage(o *one) *pageView {
	var lines []string
	group := ""
	for _, k := range Keys() {
		if k.Group != group {
			lines, group = append(lines, "", k.Group), k.Group
		}
		keys := "  " + k.Keys
		for _, l := range console.Wrap(k.Does, helpDoes) {
			lines = append(lines, fmt.Sprintf("%-*s", helpKeys, keys)+l)
			keys = ""
		}
	}
	leaves := "q or Ctrl-C leaves. The runs go on."
	if o != nil {
		leaves = `q leaves; the run goes on if another process serves the repo, else it
is paused. Ctrl-C pauses it and leaves.`
	}
	return &pageView{title: "keys", lines: append(lines[1:], strings.Split(`
  A key decides only what has been on the screen for a second. A key
  held down, and several at once, decide nothing.
  While you type: Enter sends, Alt-Enter or Ctrl-J begins a new line,
  Esc goes back. What you decide counts for the round that you were
  shown; if somebody was faster, a line says so.

Signs
  ? asks you     ‖ goes on by itself soon, or is paused
  ▸ under way    ✓ passed, completed    ✗ failed
  ◇ gate not open    ↷ skipped, sent on    – undone, aborted

`+leaves, "\n")...)}
}
