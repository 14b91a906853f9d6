package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	secretEnd   = "-secret" // of its subject, beside that of the renewals
	secretBytes = 32
)

// Secret returns what the machines of a journal share, made at first use. It is where the renewals are:
// in the account that no worker enters.
func (m *Member) Secret(ctx context.Context) ([]byte, error) {
	m.secretMu.Lock()
	defer m.secretMu.Unlock()
	if m.secret != nil {
		return m.secret, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestIn)
	defer cancel()
	s, err := m.leases.js.Stream(ctx, leaseStream)
	if err != nil {
		return nil, err
	}
	subject := leaseSubject + m.opt.ID + secretEnd
	fresh := make([]byte, secretBytes)
	_, _ = rand.Read(fresh) // never fails
	_, err = m.leases.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: fresh},
		jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
	if err == nil {
		m.secret = fresh
		return fresh, nil
	}
	msg, read := s.GetLastMsgForSubject(ctx, subject)
	if read != nil {
		return nil, errors.Join(err, read)
	}
	if len(msg.Data) != secretBytes {
		return nil, fmt.Errorf("the servers have %d bytes in %s, not %d", len(msg.Data), subject, secretBytes)
	}
	m.secret = msg.Data
	return msg.Data, nil
}
