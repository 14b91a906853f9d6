package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/press"
)

// seat is a person at the screen, with a clock that stands until they wait.
type seat struct {
	t  *testing.T
	sc *screen
	s  *served
	at time.Time
}

func newSeat(t *testing.T, run daemon.RunStatus) *seat {
	p := &seat{t: t, at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	p.sc, p.s = newScreen(run)
	p.sc.c.Now = func() time.Time { return p.at }
	return p.waits(0)
}

// waits lets time pass, with the screen painted before and after.
func (p *seat) waits(d time.Duration) *seat {
	p.sc.frame(100, 30, p.at)
	p.at = p.at.Add(d)
	p.sc.frame(100, 30, p.at)
	return p
}

// chunk is one read of the terminal.
func (p *seat) chunk(keys string) error {
	err := p.sc.press(p.t.Context(), typed{[]byte(keys), p.at})
	p.waits(0)
	return err
}

// types sends each key by itself, so far apart.
func (p *seat) types(keys string, apart time.Duration) *seat {
	for _, k := range keys {
		p.waits(apart)
		_ = p.chunk(string(k))
	}
	return p
}

// got is what was answered, and forgets it.
func (p *seat) got() string {
	var out []string
	for _, ev := range p.s.events {
		an := ev.(engine.Answered)
		out = append(out, an.Outcome+"|"+an.Text)
	}
	p.s.events = nil
	return strings.Join(out, ", ")
}

func (p *seat) foot() string { return bare(strings.Join(p.sc.foot(100, p.at), "\n")) }

// TestNoKeyDecidesAtARunByAccident: what was typed ahead, pasted, held down or typed for somewhere else decides nothing.
func TestNoKeyDecidesAtARunByAccident(t *testing.T) {
	const typing, repeat = 120 * time.Millisecond, 33 * time.Millisecond
	open := func(t *testing.T) *seat { return newSeat(t, at("human", engine.OnHuman)).waits(time.Minute) }
	page := func(t *testing.T) *seat {
		p := open(t)
		p.sc.page = []string{"task", "a page"}
		return p.waits(time.Minute)
	}
	before := func(t *testing.T) *seat { return newSeat(t, at("agent", "")) }
	opens := func(p *seat) { p.sc.run = at("human", engine.OnHuman); p.waits(0) }
	for name, do := range map[string]func(t *testing.T) *seat{
		"a rejection typed at the page of s": func(t *testing.T) *seat {
			return page(t).types("this is poor, stop\r", typing)
		},
		"a rejection typed slowly at the page": func(t *testing.T) *seat {
			return page(t).types("this is poor: stop\r", 900*time.Millisecond)
		},
		"a rejection typed at the gate, without f": func(t *testing.T) *seat {
			return open(t).types("please stop\r", typing)
		},
		"p alone":            func(t *testing.T) *seat { return open(t).types("p", 0).waits(time.Hour) },
		"p held down":        func(t *testing.T) *seat { return open(t).types(strings.Repeat("p", 200), repeat) },
		"p and Enter in one": func(t *testing.T) *seat { p := open(t); _ = p.chunk("p\r"); return p },
		"p, then Enter at once": func(t *testing.T) *seat {
			return open(t).types("p\r", 5*time.Millisecond)
		},
		"p and Enter within a second, then Enter": func(t *testing.T) *seat {
			return open(t).types("p\r\r", 700*time.Millisecond)
		},
		"a paste": func(t *testing.T) *seat {
			p := open(t)
			_ = p.chunk("is good\rp\rp\r")
			return p.waits(time.Hour)
		},
		"a paste that comes slowly": func(t *testing.T) *seat {
			return open(t).types("ok\rp\rp\rf no\rp\n", 20*time.Millisecond)
		},
		"a bracketed paste": func(t *testing.T) *seat {
			p := open(t)
			_ = p.chunk("\x1b[200~p\n\x1b[201~")
			return p
		},
		"a bracketed paste in parts": func(t *testing.T) *seat {
			p := open(t)
			for _, part := range []string{"\x1b[20", "0~", "p", "\r", "f", "no", "\r", "\x1b[20", "1~"} {
				_ = p.waits(3 * time.Second).chunk(part)
			}
			return p
		},
		"a paste into the words": func(t *testing.T) *seat {
			p := open(t).types("f", 0).waits(time.Minute)
			_ = p.chunk("bad\rp\r")
			return p
		},
		"a paste that begins with f": func(t *testing.T) *seat {
			p := open(t).types("foo bar\r", time.Millisecond).waits(time.Minute)
			return p.types("\r", 0)
		},
		"typed before the gate opens": func(t *testing.T) *seat {
			p := before(t).types("p\rfno\r", typing)
			opens(p)
			return p.waits(time.Hour)
		},
		"typed as the gate opens": func(t *testing.T) *seat {
			p := before(t)
			opens(p)
			return p.types("p", 500*time.Millisecond).types("\r", 2*time.Second)
		},
		"held down from before": func(t *testing.T) *seat {
			p := before(t).types(strings.Repeat("p", 30), repeat)
			opens(p)
			return p.types(strings.Repeat("p", 300), repeat).types("\r", 2*time.Second)
		},
		"held down from before, slowly": func(t *testing.T) *seat {
			p := before(t).types("ppp", 600*time.Millisecond)
			opens(p)
			return p.types("pppppp", 600*time.Millisecond).types("\r", 2*time.Second)
		},
		"f held down from before": func(t *testing.T) *seat {
			p := before(t).types(strings.Repeat("f", 30), repeat)
			opens(p)
			return p.types(strings.Repeat("f", 300), repeat).types("\r", 2*time.Second)
		},
		"another round comes while one is asked": func(t *testing.T) *seat {
			p := open(t).types("p", 0).waits(2 * time.Second)
			p.sc.run.Steps[1].Gates[0].Round++
			return p.types("\r", 2*time.Second)
		},
		"other work comes while one is asked": func(t *testing.T) *seat {
			p := open(t).types("p", 0).waits(2 * time.Second)
			p.sc.run.Steps[1].Gates[0].Reviewed = "fedcba9876543210"
			return p.types("\r", 2*time.Second)
		},
		"any key but Enter": func(t *testing.T) *seat { return open(t).types("px\r", 2*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			if p := do(t); p.got() != "" {
				t.Errorf("answered")
			}
		})
	}
}

// TestAPassAtARunIsAskedOnceMore: p asks, on a line that says what is passed, and Enter passes it; also with the page open.
func TestAPassAtARunIsAskedOnceMore(t *testing.T) {
	for _, page := range []bool{false, true} {
		run := at("human", engine.OnHuman)
		run.Steps[1].Gates[0].Reviewed = "0123456789abcdef0123"
		p := newSeat(t, run).waits(2 * time.Second)
		if page {
			p.sc.open(&run, Page{Lines: []string{"task"}, Gate: "G", Round: 3, Content: "0123456789abcdef0123"})
			p.waits(2 * time.Second)
		}
		p.types("p", 0)
		const question = "Pass G review, round 3 of w-1: step X-2 implement, content 0123456789ab?"
		if got := p.foot(); !strings.Contains(got, question) || strings.Contains(got, press.Answers) {
			t.Errorf("asked:\n%s", got)
		}
		p.waits(time.Second)
		if got := p.foot(); !strings.Contains(got, press.Answers) {
			t.Errorf("asked for a second:\n%s", got)
		}
		if got := p.types("\r", 0).got(); got != "pass|" {
			t.Errorf("answered %q", got)
		}
	}
}

// TestWhyAKeyDidNothing: the person is told, and what they do then counts.
func TestWhyAKeyDidNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(p *seat)
		want string
	}{
		{"too soon", func(p *seat) {
			p.types("p", 300*time.Millisecond)
		}, "it has only just come to the screen: look, then press p"},
		{"held", func(p *seat) {
			p.waits(2*time.Second).types("fff", 300*time.Millisecond)
			_ = p.chunk("\x1b")
			p.types("f", 100*time.Millisecond)
		}, ""},
		{"at once", func(p *seat) {
			p.waits(2*time.Second).types("jp", 20*time.Millisecond)
		}, "several keys at once decide nothing"},
		{"Enter too soon", func(p *seat) {
			p.waits(2*time.Second).types("p\r", 300*time.Millisecond)
		}, "it has only just come to the screen"},
		{"another key", func(p *seat) { p.waits(2*time.Second).types("px", 2*time.Second) }, "nothing was decided"},
	} {
		p := newSeat(t, at("human", engine.OnHuman))
		c.do(p)
		if got := p.foot(); !strings.Contains(got, c.want) || p.got() != "" {
			t.Errorf("%s:\n%s", c.name, got)
		}
		_ = p.chunk("\x1b")
		if got := p.waits(3*time.Second).types("p\r", 2*time.Second).got(); got != "pass|" {
			t.Errorf("%s: then %q", c.name, got)
		}
	}
}

// TestATinyTerminalPassesNothingAtARun: where the question does not fit, Enter passes nothing, and one is told.
func TestATinyTerminalPassesNothingAtARun(t *testing.T) {
	p := newSeat(t, at("human", engine.OnHuman)).waits(2 * time.Second)
	p.sc.run.Steps[1].Gates[0].Name = strings.Repeat("review ", 20)
	p.types("p", 0)
	for range 2 {
		lines := p.sc.frame(20, 6, p.at)
		if all := bare(strings.Join(lines, "")); len(lines) != 6 || !strings.Contains(all, "too small") {
			t.Errorf("%d lines: %q", len(lines), all)
		}
		p.at = p.at.Add(2 * time.Second)
	}
	if err := p.sc.press(t.Context(), typed{[]byte("\r"), p.at}); err != nil || p.got() != "" {
		t.Errorf("answered (%v)", err)
	}
}

// TestKeysThatDoNotDecideAreFree: one may leave and scroll at once.
func TestKeysThatDoNotDecideAreFree(t *testing.T) {
	p := newSeat(t, at("human", engine.OnHuman))
	p.sc.page = []string{strings.Repeat("word ", 2000)}
	p.waits(0)
	_ = p.chunk("\x1b[B\x1b[B\x1b[B") // held down
	if p.sc.top != 3 {
		t.Errorf("at line %d", p.sc.top)
	}
	p.types("\x1b", time.Second)
	if p.sc.page != nil {
		t.Error("the page is still there")
	}
	if err := p.waits(time.Second).chunk("q"); !errors.Is(err, ErrLeft) {
		t.Errorf("%v", err)
	}
}
