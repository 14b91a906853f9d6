package main

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"sluice/daemon"
	"sluice/engine"
)

// Keys that are no letters.
const (
	keyInterrupt = 0x03
	keyEnd       = 0x04
	keyErase     = 0x7f
	keyBack      = 0x08
	keyKill      = 0x15
	keyEscape    = 0x1b
	pageRows     = 10
	maxTyped     = 4000 // characters of words typed at the screen
)

// press takes what was typed. errLeft: the person leaves; errInterrupt: with Ctrl-C, which in this mode is a key.
func (sc *screen) press(ctx context.Context, k []byte) error {
	if bytes.IndexByte(k, keyInterrupt) >= 0 {
		return errInterrupt
	}
	switch {
	case sc.typing:
		sc.typed(ctx, k)
	case sc.page != nil:
		sc.scroll(k)
	default:
		return sc.command(ctx, k)
	}
	return nil
}

// typed edits the words; Enter sends them.
func (sc *screen) typed(ctx context.Context, k []byte) {
	if k[0] == keyEscape {
		if len(k) == 1 { // longer: an arrow or the like
			sc.typing, sc.words = false, nil
		}
		return
	}
	for len(k) > 0 {
		r, n := utf8.DecodeRune(k)
		k = k[n:]
		switch {
		case r == '\r' || r == '\n':
			sc.send(ctx)
			return
		case r == keyErase || r == keyBack:
			sc.words = sc.words[:max(len(sc.words)-1, 0)]
		case r == keyKill:
			sc.words = nil
		case r >= ' ' && r != utf8.RuneError && len(sc.words) < maxTyped:
			sc.words = append(sc.words, r)
		}
	}
}

func (sc *screen) send(ctx context.Context) {
	text := strings.TrimSpace(string(sc.words))
	if text == "" {
		return
	}
	verb, kind := sc.verb, "human"
	if verb == engine.OutcomeVeto {
		kind = "window"
	}
	sc.typing, sc.words = false, nil
	g, run := sc.gate(kind, sc.about.is)
	if g == nil {
		sc.tell("it does not ask any more")
		return
	}
	sc.answer(ctx, run.ID, *g, verb, text)
}

// scroll moves the page that show filled, or leaves it.
func (sc *screen) scroll(k []byte) {
	switch string(k) {
	case "\x1b[A", "\x1bOA", "k":
		sc.top--
	case "\x1b[B", "\x1bOB", "j", "\r":
		sc.top++
	case " ", "\x1b[6~":
		sc.top += pageRows
	case "b", "\x1b[5~":
		sc.top -= pageRows
	case "s", "q", "\x1b":
		sc.page, sc.top = nil, 0
	}
}

// command is a key at the run itself.
func (sc *screen) command(ctx context.Context, k []byte) error {
	g, run := sc.asked()
	switch k[0] {
	case 'q', keyEnd:
		return errLeft
	case 's':
		sc.show(ctx)
	case 'p':
		if g == nil {
			sc.tell("no gate asks you now")
			return nil
		}
		sc.answer(ctx, run.ID, *g, engine.OutcomePass, "")
	case 'f':
		if g == nil {
			sc.tell("no gate asks you now")
			return nil
		}
		sc.write(engine.OutcomeFail, g, run)
	case 'v':
		g, run := sc.gate("window", anyRound)
		if g == nil {
			sc.tell("no veto window is open; `sluice veto GATE` overrules an earlier pass")
			return nil
		}
		sc.write(engine.OutcomeVeto, g, run)
	case 'r':
		if sc.run.Paused != "" {
			if _, err := sc.s.Do(ctx, engine.ResumeRequested{Run: sc.id}, "terminal"); err != nil {
				sc.tell("%s", err)
			}
		}
	}
	return nil
}

// write begins the words of a verb, for the round that asks now.
func (sc *screen) write(verb string, g *daemon.GateStatus, run *daemon.RunStatus) {
	sc.typing, sc.verb, sc.about = true, verb, about{run.ID, g.ID, g.Round}
}

// about is the round that words are typed for: while they are, another one may come to ask.
type about struct {
	run, gate string
	round     int
}

// is says that it is the gate's round.
func (x about) is(run *daemon.RunStatus, g *daemon.GateStatus) bool {
	return x == about{run.ID, g.ID, g.Round}
}

// show fills the page with what one needs to decide: at the gate that asks, else at what goes on.
func (sc *screen) show(ctx context.Context) {
	what, of := "", sc.run
	for _, kind := range []string{"human", "window"} {
		if g, run := sc.gate(kind, anyRound); g != nil && what == "" {
			what, of = g.ID, *run
		}
	}
	for _, w := range sc.run.Waits {
		if what == "" {
			what = w.Step
		}
	}
	if what == "" {
		sc.tell("nothing is under way")
		return
	}
	_, lines, err := sc.a.showPage(ctx, sc.p, sc.s, of, what)
	if err != nil {
		sc.tell("%s", err)
		return
	}
	sc.page, sc.top = lines, 0
}
