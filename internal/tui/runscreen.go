package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/form"
	"sluice/internal/press"
	"sluice/internal/render"
	"sluice/internal/text"
)

// The screen of one run is plain text in the terminal's alternate buffer. It is painted whole each
// time, so the next paint repairs a resize or a line that another program wrote.

// Pace and limits of the screen.
const (
	paintPace  = 250 * time.Millisecond
	recentMost = 50
	runSaidFor = 8 * time.Second // how long an answer to a key stays
	leastWidth = 20
	leastRows  = 6
)

const (
	enterScreen = "\x1b[?1049h\x1b[?25l" + press.PasteOn
	leaveScreen = press.PasteOff + "\x1b[?25h\x1b[?1049l"
	homeCursor  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	bell        = "\a"
)

type screen struct {
	c     *console.Console
	host  RunHost
	id    string
	from  int64 // journal record of the first fact shown
	ours  bool  // this process serves the repo
	in    *os.File
	out   *os.File
	keys  chan typed
	mu    sync.Mutex // guards lines
	lines []daemon.Line

	decoder press.Decoder
	guard   press.Guard

	run    daemon.RunStatus
	kids   []daemon.RunStatus // live runs below it, at any depth
	typing bool               // words for a fail or a veto are typed
	verb   string             // fail or veto
	about  about              // the round they are for
	words  []rune             // typed so far
	form   *form.Form         // of a pass's answer, while it is typed
	sure   *sure              // a pass that waits for Enter
	page   []string           // show's text; nil = the run itself
	paged  about              // the round that it shows
	top    int                // first line of the page
	note   string             // the answer to the last key
	noted  time.Time
	rung   map[string]bool // rounds for which the bell rang
}

type typed struct {
	bytes []byte
	at    time.Time
}

// typedAhead is how many reads are queued while the screen is busy. The rest stays in the terminal.
const typedAhead = 64

// watch shows the run until it ends or the person leaves.
func (sc *screen) watch(ctx context.Context) (daemon.RunStatus, error) {
	in, _ := console.Terminal(sc.c.In)
	out, _ := console.Terminal(sc.c.Out)
	sc.in, sc.out, sc.keys = in, out, make(chan typed, typedAhead)
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return sc.printLines(ctx)
	}
	fmt.Fprint(out, enterScreen)
	r, err := sc.loop(ctx)
	fmt.Fprint(out, leaveScreen)
	if rerr := term.Restore(int(in.Fd()), before); err == nil {
		err = rerr
	}
	if err == nil || errors.Is(err, ErrLeft) || errors.Is(err, ErrInterrupt) || ctx.Err() != nil {
		for _, l := range render.RunLines(sc.c, r, sc.c.Now()) {
			sc.c.Print("%s", console.ClipPainted(l, sc.c.Width()))
		}
	}
	return r, err
}

// loop paints and reads keys until the run ends or the person leaves. It waits for its goroutines.
func (sc *screen) loop(ctx context.Context) (daemon.RunStatus, error) {
	inner, stop := context.WithCancel(ctx)
	reader, err := cancelreader.NewReader(sc.in)
	if err != nil {
		stop()
		return sc.run, err
	}
	var wg sync.WaitGroup
	wg.Go(func() { sc.readKeys(inner, reader) })
	wg.Go(func() { sc.readFacts(inner) })
	defer func() {
		stop()
		reader.Cancel()
		wg.Wait()
		_ = reader.Close() // it was cancelled
	}()
	tick := time.NewTicker(paintPace)
	defer tick.Stop()
	for {
		r, err := sc.host.Run(ctx, sc.id)
		if ctx.Err() != nil {
			return sc.run, ctx.Err()
		}
		if err != nil {
			return sc.gone(ctx, err)
		}
		sc.run = r
		if !r.Live() {
			return r, nil
		}
		sc.kids = sc.kidsNow(ctx)
		sc.paint()
		select {
		case <-ctx.Done():
			return sc.run, ctx.Err()
		case <-tick.C:
		case k := <-sc.keys:
			if err := sc.press(ctx, k); err != nil {
				return sc.run, err
			}
		}
	}
}

// kidsNow returns the live runs below the run. It looks only if the run waits for tasks.
func (sc *screen) kidsNow(ctx context.Context) []daemon.RunStatus {
	if !slices.ContainsFunc(sc.run.Waits, func(w daemon.Wait) bool { return w.Kind == "tasks" }) {
		return nil
	}
	st, err := sc.host.Status(ctx, "")
	if err != nil {
		return sc.kids // the next look finds out
	}
	return daemon.Below(slices.DeleteFunc(st.Runs, func(r daemon.RunStatus) bool { return !r.Live() }), sc.id)
}

func (sc *screen) readKeys(ctx context.Context, r io.Reader) {
	buf := make([]byte, 256)
	for {
		n, err := r.Read(buf)
		if err != nil {
			return
		}
		select {
		case sc.keys <- typed{append([]byte(nil), buf[:n]...), sc.c.Now()}:
		case <-ctx.Done():
			return
		}
	}
}

// readFacts keeps the newest important facts. If the stream ends, the loop notices by itself.
func (sc *screen) readFacts(ctx context.Context) {
	_ = sc.host.Facts(ctx, sc.id, sc.from, true, func(l daemon.Line) error {
		if !render.Fact(l.Fact).Key {
			return nil
		}
		sc.mu.Lock()
		defer sc.mu.Unlock()
		sc.lines = append(sc.lines, l)
		if len(sc.lines) > recentMost {
			sc.lines = sc.lines[len(sc.lines)-recentMost:]
		}
		return nil
	})
}

func (sc *screen) recent() []daemon.Line {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]daemon.Line(nil), sc.lines...)
}

func (sc *screen) paint() {
	width, height, err := term.GetSize(int(sc.out.Fd()))
	if err != nil || width < leastWidth {
		width = 80
	}
	if err != nil || height < leastRows {
		height = max(height, leastRows)
	}
	var b strings.Builder
	b.WriteString(homeCursor)
	lines := sc.frame(width, height, sc.c.Now())
	for i, l := range lines {
		b.WriteString(console.ClipPainted(l, width-1))
		b.WriteString(clearLine)
		if i < len(lines)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString(clearBelow)
	if q, run := sc.gate("human", anyRound); q != nil {
		if key := fmt.Sprintf("%s/%s#%d", run.ID, q.ID, q.Round); !sc.rung[key] {
			sc.rung[key] = true
			b.WriteString(bell)
		}
	}
	_, _ = sc.out.WriteString(b.String()) // readKeys notices a lost terminal
}

// frame returns the screen's lines: the run, its latest facts, and the keys at the bottom.
func (sc *screen) frame(width, height int, now time.Time) []string {
	foot, offer := sc.foot(width, now), sc.offer()
	if sc.sure != nil && len(foot) > height-1 {
		foot, offer = append([]string{""}, Wrap(press.TooSmall, width-1)...), ""
	}
	sc.guard.Draw(offer, now)
	room := height - len(foot)
	if sc.page != nil {
		var page []string // wrapped: a person sees all that a decision needs
		for _, l := range sc.page {
			page = append(page, Wrap(l, width-1)...)
		}
		sc.top = max(min(sc.top, len(page)-room), 0)
		return append(fill(page[sc.top:], room), foot...)
	}
	body := append(render.RunLines(sc.c, sc.run, now), sc.kidLines(now)...)
	recent := sc.recent()
	if left := room - len(body) - 2; left > 0 && len(recent) > 0 {
		body = append(body, "", sc.c.Paint(console.Dim, strings.Repeat("─", max(min(width-1, 60), 1))))
		for _, l := range recent[max(len(recent)-left+1, 0):] {
			body = append(body, render.Line(sc.c, l, render.Fact(l.Fact), render.FactRun(l) != sc.id))
		}
	}
	return append(fill(body, room), foot...)
}

func fill(lines []string, rows int) []string {
	if len(lines) > rows {
		cut := append([]string(nil), lines[:max(rows-1, 0)]...)
		return append(cut, "  …")
	}
	for len(lines) < rows {
		lines = append(lines, "")
	}
	return lines
}

func (sc *screen) kidLines(now time.Time) (out []string) {
	c := sc.c
	for _, r := range sc.kids {
		for _, w := range r.Waits {
			said := c.Paint(console.Dim, text.Line(r.Child.Title())+" waits ") + render.WaitWords(w, now)
			if w.Kind == "human" || w.Kind == "window" {
				out = append(out, "  "+c.Paint(console.Yellow, "? ")+said)
			} else if len(sc.kids) <= kidsShown {
				out = append(out, "  "+said)
			}
		}
	}
	return out
}

// kidsShown: with more runs below, only waits for a person are shown.
const kidsShown = 4

func anyRound(*daemon.RunStatus, *daemon.GateStatus) bool { return true }

// gate returns the selected gate of the oldest wait of a kind, and its run.
func (sc *screen) gate(kind string, meant func(*daemon.RunStatus, *daemon.GateStatus) bool) (*daemon.GateStatus, *daemon.RunStatus) {
	for i := -1; i < len(sc.kids); i++ {
		r := &sc.run
		if i >= 0 {
			r = &sc.kids[i]
		}
		for _, w := range r.Waits {
			if w.Kind != kind {
				continue
			}
			for _, s := range r.Steps {
				for i := range s.Gates {
					if g := &s.Gates[i]; g.ID == w.Gate && meant(r, g) {
						return g, r
					}
				}
			}
		}
	}
	return nil, nil
}

func (sc *screen) tell(format string, args ...any) {
	sc.note, sc.noted = text.Message(fmt.Sprintf(format, args...)), sc.c.Now()
}

// answer decides a round, if it still asks.
func (sc *screen) answer(ctx context.Context, kind string, at about, outcome, text string, answer []byte) {
	if g, _ := sc.gate(kind, at.is); g == nil {
		sc.tell("it does not ask any more: nothing was decided")
		return
	}
	done, err := sc.host.Do(ctx, engine.Answered{Gate: at.gate, Run: at.run, Round: at.round, Outcome: outcome, Text: text, Answer: answer})
	switch {
	case err != nil:
		sc.tell("%s", err)
	case done.Ignored != "":
		sc.tell("nothing was done: %s", done.Ignored)
	default:
		sc.tell("%s: %s", at.gate, outcome)
		sc.page, sc.paged, sc.top = nil, about{}, 0
	}
}
