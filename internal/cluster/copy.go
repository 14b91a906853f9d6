package cluster

import (
	"bytes"
	"context"
	"time"

	"sluice/internal/fault"
	"sluice/internal/health"
)

const (
	partMost   = 1 << 20 // bytes of one message, unless one line has more
	retryAfter = 100 * time.Millisecond
	// stopGrace is how long an append that is on its way may take once the service is to stop.
	stopGrace = 2 * time.Second
)

// Copy is a journal.Copy that appends to the stream. While the stream does not acknowledge, it waits;
// it ends with the service, or when this machine is deposed.
func (m *Member) Copy(lines []byte, _ int64) (wait func() error) {
	part, rest := split(lines)
	sent, last := make(chan error, 1), m.last
	go func() { sent <- m.str.publish(context.WithoutCancel(m.ctx), part, last) }()
	return func() error {
		ctx, cancel := m.appending()
		defer cancel()
		err := <-sent
		for {
			if err != nil {
				m.stuck(why(err))
				if err = m.resolve(ctx, part); err != nil {
					return err
				}
			}
			m.stuck("")
			m.last++
			if len(rest) == 0 {
				return nil
			}
			part, rest = split(rest)
			err = m.str.publish(ctx, part, m.last)
		}
	}
}

// split takes whole lines for one message.
func split(lines []byte) (part, rest []byte) {
	if len(lines) <= partMost {
		return lines, nil
	}
	if n := bytes.LastIndexByte(lines[:partMost], '\n'); n >= 0 {
		return lines[:n+1], lines[n+1:]
	}
	n := bytes.IndexByte(lines, '\n')
	return lines[:n+1], lines[n+1:]
}

// appending returns a context that ends a while after the service's, or at once when another machine
// has taken over.
func (m *Member) appending() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.ctx))
	stop := context.AfterFunc(m.ctx, func() { time.AfterFunc(stopGrace, cancel) })
	return ctx, func() { stop(); cancel() }
}

// resolve finds out what became of lines that were sent after message m.last. It returns nil once
// they are in the stream. No error of an append is believed: it may have been committed, or may yet
// be.
func (m *Member) resolve(ctx context.Context, lines []byte) error {
	for {
		data, is, what, err := m.str.get(ctx, m.last+1)
		switch {
		case err != nil:
			return err
		case is == there && bytes.Equal(data, lines):
			return nil
		case is == there:
			m.lose()
			return m.deposed()
		case is == none:
			if err := m.str.publish(ctx, lines, m.last); err == nil {
				return nil
			} else {
				what = why(err)
			}
		}
		m.stuck(what)
		if !health.Wait(ctx, retryAfter) {
			return fault.New("start again: the next start finds out what became of it",
				"stopped while the stream did not acknowledge a record: %s", what)
		}
	}
}
