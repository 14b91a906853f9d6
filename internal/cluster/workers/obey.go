package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/internal/cluster"
	"sluice/internal/layout"
)

// reply answers a request. It does so below _INBOX only: who sends one could else have this worker
// write to any subject.
func (p *Post) reply(ctx context.Context, m *nats.Msg) {
	a := p.answer(ctx, m)
	if a.Is == isRefused && a.Why != p.said {
		p.said = a.Why
		p.opt.Logf("a request is refused: %s", a.Why)
	}
	data, err := json.Marshal(a)
	if err == nil && strings.HasPrefix(m.Reply, nats.InboxPrefix) {
		err = m.Respond(data)
	}
	if err != nil {
		p.opt.Logf("an answer: %v", err)
	}
}

// answer does what a request asks, if whoever decides has signed it.
func (p *Post) answer(ctx context.Context, m *nats.Msg) answer {
	if len(p.opt.Desks) > 0 && !cluster.Signed(m, p.orders(), p.opt.Desks) {
		return refusal("none of the keys that this worker obeys (--desk) has signed it")
	}
	c, err := readCall(m.Data)
	if err != nil {
		return refusal("%v", err)
	}
	a, err := p.do(ctx, c)
	if err != nil {
		a = refusal("this worker cannot: %v", err)
	}
	if a.Is == isRefused {
		a.Why = fmt.Sprintf("%s (of %s)", a.Why, c.By)
	}
	return a
}

func refusal(format string, args ...any) answer {
	return answer{Is: isRefused, Why: fmt.Sprintf(format, args...)}
}

// do does what is asked.
func (p *Post) do(ctx context.Context, c call) (answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Journal != p.opt.Journal {
		return refusal("it is for another repo"), nil
	}
	if c.Epoch < p.epoch {
		return refusal("its epoch is %d, and another machine decides since, in %d", c.Epoch, p.epoch), nil
	}
	if now := p.opt.Now(); now.Sub(c.At).Abs() > goodFor {
		return refusal("it is of %s, and here it is %s: set the clocks", c.At.Format(time.RFC3339),
			now.Format(time.RFC3339)), nil
	}
	if c.Epoch > p.epoch {
		if err := layout.Save(p.path(epochFile), c.Epoch); err != nil {
			return answer{}, err
		}
		p.epoch = c.Epoch
		p.opt.Logf("%s leads now", c.By)
	}
	m := p.keys[c.Key]
	switch {
	case c.Do == doGreet: // what it says is kept by now
		return answer{Is: isUnknown}, nil
	case c.ofWorker():
		return p.drain(c)
	case m == nil && c.Do == doLaunch:
		return p.accept(ctx, *c.Sent, c.On)
	case m == nil:
		return answer{Is: isUnknown}, nil
	case m.Over:
		return answer{Is: isOver}, nil
	case c.Do == doStop && !m.Stopped || c.Do == doDrop && !m.Drop:
		m.Stopped, m.Drop = true, m.Drop || c.Do == doDrop
		if err := p.keep(m); err != nil { // after a restart it is asked again
			p.opt.Logf("%s: that it is to end: %v", c.Key, err)
		}
		if m.Result == nil {
			s := m.Sent
			p.done.Go(func() { p.opt.Maker.Stop(ctx, s) })
		}
	}
	return p.state(ctx, m), nil
}

// state returns what is known of a launch. One to be forgotten is, once it has ended.
func (p *Post) state(ctx context.Context, m *made) answer {
	switch {
	case m.Result == nil:
		return answer{Is: isRunning, Signals: p.opt.Maker.Signals(m.Sent)}
	case m.Drop:
		p.clear(ctx, m)
		return answer{Is: isOver}
	}
	return answer{Is: isEnded, Result: m.Result, Sign: sign(m.Sent.Token, m.Sent.Key, m.Result)}
}

// clear forgets a launch that has ended, beside the loop: its worktree may have many files. Its key stays. Its files
// go first: they may be what fills the disk. The caller holds the lock.
func (p *Post) clear(ctx context.Context, m *made) {
	if m.clears {
		return
	}
	m.clears = true
	p.done.Go(func() {
		err := p.opt.Maker.Clear(ctx, m.Sent)
		p.mu.Lock()
		defer p.mu.Unlock()
		m.clears = false
		if err != nil {
			p.opt.Logf("%s: what it has left: %v", m.Sent.Key, err)
			return // it is asked again
		}
		over := made{Sent: launch.Sent{Key: m.Sent.Key, Run: m.Sent.Run, Dir: m.Sent.Dir}, Since: p.opt.Now(), Over: true}
		if err := p.keep(&over); err != nil {
			p.opt.Logf("%s: %v", m.Sent.Key, err)
			return
		}
		p.keys[m.Sent.Key] = &over
		p.changes()
	})
}
