package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

const (
	saySubject = "sluice.say." // with the journal's id: what people say on other machines
	sayMost    = 2 << 20       // bytes of a message, either way
	hearMost   = 16            // messages answered at once
	hearQueue  = 64            // that wait; more are dropped, and sent again
	hearBytes  = 16 << 20      // of these
)

// Say sends words to the machine that leads and returns its answer. heard is false where nobody
// leads: then nothing was taken in. An error proves nothing.
func (m *Member) Say(ctx context.Context, words []byte) (answer []byte, heard bool, err error) {
	msg, err := m.nc.RequestWithContext(ctx, saySubject+m.opt.ID, words)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, false, nil
	}
	if err == nil && len(msg.Data) > sayMost {
		err = errors.New("its answer is too large")
	}
	if err != nil {
		return nil, true, err
	}
	return msg.Data, true, nil
}

// Hear has what other machines say answered, until ctx ends. It answers only below _INBOX: whoever
// may send to it could else have it write anywhere in the account, in the journal too.
func (m *Member) Hear(ctx context.Context, answer func(ctx context.Context, words []byte) []byte) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, hearMost)
	sub, err := m.nc.Subscribe(saySubject+m.opt.ID, func(msg *nats.Msg) {
		if !strings.HasPrefix(msg.Reply, nats.InboxPrefix) || len(msg.Data) > sayMost {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		wg.Go(func() {
			defer func() { <-slots }()
			_ = msg.Respond(answer(ctx, msg.Data)) // who gets none asks again
		})
	})
	if err != nil {
		return err
	}
	if err = sub.SetPendingLimits(hearQueue, hearBytes); err == nil {
		<-ctx.Done()
	}
	err = errors.Join(err, sub.Unsubscribe())
	_ = m.nc.FlushTimeout(requestIn) // so that others learn soon that nobody listens; else they learn it later
	return err
}
