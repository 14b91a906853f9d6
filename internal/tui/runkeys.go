package tui

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/form"
	"sluice/internal/press"
)

const (
	keyInterrupt = 0x03
	keyEnd       = "\x04"
	keyErase     = 0x7f
	keyBack      = 0x08
	keyKill      = 0x15
	keyEscape    = "\x1b"
	pageRows     = 10
	maxTyped     = 4000 // characters of typed words
)

// press handles one read of the terminal. It returns ErrLeft if the person leaves, ErrInterrupt on
// Ctrl-C.
func (sc *screen) press(ctx context.Context, in typed) error {
	if bytes.IndexByte(in.bytes, keyInterrupt) >= 0 {
		return ErrInterrupt
	}
	keys := sc.decoder.Keys(in.bytes)
	for _, k := range keys {
		sc.guard.Read(k.Text, len(keys) == 1 && !k.Pasted, in.at)
		switch {
		case sc.typing:
			sc.write(ctx, k)
		case sc.sure != nil:
			sc.confirm(ctx, k.Text)
		case sc.page != nil:
			if !sc.decides(k.Text) {
				sc.scroll(k.Text)
			}
		case sc.decides(k.Text) || sc.guard.Several(): // a paste is no key
		default:
			if err := sc.command(ctx, k.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// write edits the words; Enter sends them.
func (sc *screen) write(ctx context.Context, k press.Key) {
	if sc.guard.Rushed() {
		sc.typing, sc.words, sc.form = false, nil, nil
		sc.tell("several keys at once decide nothing")
		return
	}
	switch r, _ := utf8.DecodeRuneInString(k.Text); {
	case k.Pasted:
		for _, r := range k.Text {
			sc.add(r)
		}
	case k.Text == keyEscape:
		sc.typing, sc.words, sc.form = false, nil, nil
	case r == '\r' || r == '\n':
		sc.send(ctx)
	case r == keyErase || r == keyBack:
		sc.words = sc.words[:max(len(sc.words)-1, 0)]
	case r == keyKill:
		sc.words = nil
	default: // add drops arrows and the like, which begin with a control character
		sc.add(r)
	}
}

// add appends a character to the words, which are one line.
func (sc *screen) add(r rune) {
	if r == '\r' || r == '\n' || r == '\t' {
		r = ' '
	}
	if r >= ' ' && r != utf8.RuneError && len(sc.words) < maxTyped {
		sc.words = append(sc.words, r)
	}
}

// send sends the words. An Enter that was pasted with them is part of them.
func (sc *screen) send(ctx context.Context) {
	text := strings.TrimSpace(string(sc.words))
	if text == "" && sc.form == nil {
		return
	}
	if why := sc.guard.Ends(sc.offer()); why != "" {
		sc.add('\n')
		sc.tell("%s: press Enter again", why)
		return
	}
	if sc.form != nil {
		sc.fillIn(text)
		return
	}
	verb, kind := sc.verb, "human"
	if verb == engine.OutcomeVeto {
		kind = "window"
	}
	sc.typing, sc.words = false, nil
	sc.answer(ctx, kind, sc.about, verb, text, nil)
}

// fillIn takes a line of the answer. After the last one it asks for confirmation.
func (sc *screen) fillIn(line string) {
	sc.words = nil
	if why := sc.form.Take(line); why != "" {
		sc.tell("%s", why)
		return
	}
	sc.note = ""
	if !sc.form.Done() {
		return
	}
	answer, err := sc.form.Answer()
	sc.typing, sc.form = false, nil
	g, run := sc.gate("human", sc.about.is)
	switch {
	case err != nil:
		sc.tell("nothing was decided: %s", err)
	case g == nil:
		sc.tell("it does not ask any more: nothing was decided")
	default:
		sc.sure = &sure{sc.about, passOf(run, g, answer).Question(), answer}
	}
}

func (sc *screen) confirm(ctx context.Context, k string) {
	why, sure := sc.guard.Ends(sc.offer()), sc.sure
	sc.sure = nil
	switch {
	case k != "\r" && k != "\n":
		sc.tell("nothing was decided")
	case why != "":
		sc.tell("nothing was decided: %s", why)
	default:
		sc.answer(ctx, "human", sure.about, engine.OutcomePass, "", sure.answer)
	}
}

func (sc *screen) scroll(k string) {
	switch k {
	case "\x1b[A", "\x1bOA", "k":
		sc.top--
	case "\x1b[B", "\x1bOB", "j", "\r":
		sc.top++
	case " ", "\x1b[6~":
		sc.top += pageRows
	case "b", "\x1b[5~":
		sc.top -= pageRows
	case "q", keyEscape:
		if !sc.guard.Several() {
			sc.page, sc.paged, sc.top = nil, about{}, 0
		}
	}
}

// command handles a key at the run itself that decides nothing.
func (sc *screen) command(ctx context.Context, k string) error {
	switch k {
	case "q", keyEnd:
		return ErrLeft
	case "s":
		sc.show(ctx)
	case "r":
		if sc.run.Paused != "" {
			if _, err := sc.host.Do(ctx, engine.ResumeRequested{Run: sc.id}); err != nil {
				sc.tell("%s", err)
			}
		}
	}
	return nil
}

// decides handles a key that begins a decision, at the run or at a page. It reports whether the key
// is one.
func (sc *screen) decides(k string) bool {
	kind, none := "human", "no gate asks you now"
	switch k {
	case "p", "f":
	case "v":
		kind, none = "window", "no veto window is open; `sluice veto GATE` overrules an earlier pass"
	default:
		return false
	}
	g, run := sc.gate(kind, sc.meant())
	if g == nil {
		sc.tell("%s", none)
		return true
	}
	if why := sc.guard.Begin(sc.offer()); why != "" {
		sc.tell("%s", why)
		return true
	}
	sc.note = ""
	switch k {
	case "p":
		if g.AnswerRequired {
			f, err := form.New(g.AnswerSchema)
			if err != nil {
				sc.tell("the schema of the answer cannot be read: %s", err)
				return true
			}
			sc.typing, sc.verb, sc.about, sc.form = true, engine.OutcomePass, aboutOf(run, g), f
			return true
		}
		sc.sure = &sure{aboutOf(run, g), passOf(run, g, nil).Question(), nil}
	case "f":
		sc.typing, sc.verb, sc.about = true, engine.OutcomeFail, aboutOf(run, g)
	case "v":
		sc.typing, sc.verb, sc.about = true, engine.OutcomeVeto, aboutOf(run, g)
	}
	return true
}

// sure is a pass that waits for Enter.
type sure struct {
	about    about
	question string
	answer   []byte
}

func passOf(run *daemon.RunStatus, g *daemon.GateStatus, answer []byte) press.Pass {
	out := press.Pass{Run: run.ID, Gate: g.ID, GateName: g.Name, Round: g.Round, Content: g.Reviewed, Answer: form.Shown(answer)}
	for _, s := range run.Steps {
		for _, x := range s.Gates {
			if x.ID == g.ID {
				out.Step, out.StepName = s.ID, s.Name
			}
		}
	}
	return out
}

// about is the round that a decision is for: another may open while the decision is typed.
type about struct {
	run, gate string
	round     int
	content   string
}

func aboutOf(run *daemon.RunStatus, g *daemon.GateStatus) about {
	return about{run.ID, g.ID, g.Round, g.Reviewed}
}

func (x about) is(run *daemon.RunStatus, g *daemon.GateStatus) bool { return x == aboutOf(run, g) }

// meant selects the gates for keys: with a page open, the shown one.
func (sc *screen) meant() func(*daemon.RunStatus, *daemon.GateStatus) bool {
	if sc.page != nil {
		return sc.paged.is
	}
	return anyRound
}

// offer identifies everything that keys can decide on the current screen.
func (sc *screen) offer() string {
	switch {
	case sc.form != nil:
		return fmt.Sprint(sc.form.At(), sc.about)
	case sc.typing:
		return fmt.Sprint(sc.verb, sc.about)
	case sc.sure != nil:
		return fmt.Sprint("sure", sc.sure.about)
	}
	out := ""
	for _, kind := range []string{"human", "window"} {
		if g, run := sc.gate(kind, sc.meant()); g != nil {
			out += fmt.Sprint(kind, aboutOf(run, g), sc.page != nil)
		}
	}
	return out
}

// show opens the page of the gate that asks, else of the running step.
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
	page, err := sc.host.Show(ctx, of, what)
	if err != nil {
		sc.tell("%s", err)
		return
	}
	sc.open(&of, page)
}

// open shows a page. Keys decide its round if that waits for a person.
func (sc *screen) open(run *daemon.RunStatus, page Page) {
	sc.page, sc.paged, sc.top = page.Lines, about{}, 0
	if g := gateOf(run, page.Gate); g != nil && (g.State == engine.OnHuman || g.State == engine.OnWindow) {
		sc.paged = about{run.ID, g.ID, page.Round, page.Content}
	}
}
