package cluster

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sluice/daemon"
	"sluice/internal/health"
	"sluice/internal/text"
	"sluice/journal"
)

const (
	// replicasEvery is how often the leader asks how far the stream's replicas are.
	replicasEvery = 5 * time.Second
	// replicaSilent is after how long a silent replica counts as offline. Servers (2.15) call one so only
	// 150 seconds after it was killed; a live one is heard each second.
	replicaSilent = 10 * time.Second
)

// keep renews the lease until Close, beside the loop.
func (m *Member) keep(ctx context.Context, epoch int64, rev uint64) {
	ctx, m.quit = context.WithCancel(context.WithoutCancel(ctx))
	m.mu.Lock()
	m.report.Leads = true
	m.mu.Unlock()
	lease := m.str.lease // of this epoch: an append may read another from the stream
	m.lease.Store(int64(lease))
	if rev = m.renew(ctx, epoch, rev, lease); !m.Holds() { // the machine before has renewed since it was read
		rev = m.renew(ctx, epoch, rev, lease)
	}
	m.wg.Go(func() {
		tick := time.NewTicker(lease / renewals)
		defer tick.Stop()
		var asked time.Time
		for {
			if now := time.Now(); now.Sub(asked) >= replicasEvery {
				asked = now
				m.askReplicas(ctx)
			}
			select {
			case <-ctx.Done():
				m.leave(ctx, epoch, rev)
				return
			case <-m.lost:
				return
			case <-tick.C:
				rev = m.renew(ctx, epoch, rev, lease)
			}
		}
	})
}

// leave says that this machine leads no more, or the others would wait for a lease.
func (m *Member) leave(ctx context.Context, epoch int64, rev uint64) {
	m.mu.Lock()
	gone := m.gone
	m.mu.Unlock()
	if gone {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	over := renewal{Epoch: epoch, By: m.opt.By, At: m.opt.Now(), Left: true}
	for {
		if _, err := m.leases.write(ctx, over, rev); err == nil {
			return
		}
		// the last renewal may have been written although the stop came before its acknowledgement
		if r, have, err := m.leases.read(ctx); err == nil && (r.Epoch != epoch || r.Left) {
			return
		} else if err == nil {
			rev = have
		}
		if !health.Wait(ctx, retryAfter) {
			return
		}
	}
}

// renew writes a renewal over that of revision rev, and returns the new revision. The lease counts
// from before it was sent.
func (m *Member) renew(ctx context.Context, epoch int64, rev uint64, lease time.Duration) uint64 {
	sent := m.opt.Now()
	next, err := m.leases.write(ctx, renewal{Epoch: epoch, By: m.opt.By, At: m.opt.Now()}, rev)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.until = sent.Add(lease)
		return next
	}
	// it may have been written, or an older machine's was after it was read, or a newer one leads
	r, have, err := m.leases.read(ctx)
	if err != nil {
		return rev
	}
	if r.Epoch > epoch {
		m.led(journal.Lead{Epoch: r.Epoch, By: r.By})
		m.lose()
	}
	return have
}

// askReplicas notes how far each server is with the stream.
func (m *Member) askReplicas(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestIn)
	defer cancel()
	st, err := m.str.js.Stream(ctx, m.str.name())
	if err != nil {
		return
	}
	replicas := replicasOf(st.CachedInfo())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report.Replicas = replicas
}

func replicasOf(info *jetstream.StreamInfo) (out []daemon.Replica) {
	if info.Cluster == nil {
		return nil
	}
	if info.Cluster.Leader != "" {
		out = append(out, daemon.Replica{Name: text.Line(info.Cluster.Leader), Leads: true, Current: true})
	}
	for _, p := range info.Cluster.Replicas {
		silent := !p.Current && p.Active >= replicaSilent
		out = append(out, daemon.Replica{Name: text.Line(p.Name), Current: p.Current, Offline: p.Offline || silent,
			Behind: int64(p.Lag)})
	}
	return out
}

// Holds reports whether effects may begin: this machine leads, and no other can before its lease is
// over.
func (m *Member) Holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leased()
}

// leased is Holds, for who has locked mu. A sleep stops the steady clock, and only that is never set back:
// the lease is over by the first of the two.
func (m *Member) leased() bool {
	now := m.opt.Now()
	return !m.gone && now.Before(m.until) && now.Round(0).Before(m.until.Round(0))
}

// Lost is closed when another machine decides.
func (m *Member) Lost() <-chan struct{} { return m.lost }

// lose notes that another machine decides, if this one did.
func (m *Member) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.report.Leads && !m.gone {
		m.gone, m.report.Leads, m.until = true, false, time.Time{}
		close(m.lost)
	}
}

// Close ends the renewals, and leaves the lead to the others.
func (m *Member) Close() {
	if m.quit != nil {
		m.quit()
		m.wg.Wait()
	}
}

// Packs returns where the work of the journal's runs is stored.
func (m *Member) Packs() *Packs { return m.packs }

// Report returns how things are.
func (m *Member) Report() daemon.Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.report
	r.Stalled = cmp.Or(r.Stalled, m.packs.Stalled())
	r.Holds = r.Leads && m.leased()
	return r
}

// Leads returns the epoch in which this machine decides while its lease lasts, else 0.
func (m *Member) Leads() int64 {
	if r := m.Report(); r.Leads && r.Holds {
		return r.Epoch
	}
	return 0
}

// Lease returns how long a silent machine is waited for; 0 = this machine has not led yet.
func (m *Member) Lease() time.Duration { return time.Duration(m.lease.Load()) }

// led notes a lead that a record, or a renewal, has told of.
func (m *Member) led(l journal.Lead) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.Epoch > m.report.Epoch {
		m.report.Epoch, m.report.Leader = l.Epoch, text.Line(l.By)
	}
}

// reads notes the first record that this release cannot read; nil: it reads all so far.
func (m *Member) reads(u *daemon.Unread) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u != nil && m.report.Unread == nil {
		m.opt.Logf("this machine follows and never leads: %s", u)
	}
	m.report.Unread = u
}

func (m *Member) unread() *daemon.Unread {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report.Unread
}

// heard notes what the newest renewal says.
func (m *Member) heard(q silence, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.report.Left, m.report.Renewed = q.last.Left, q.last.At.Add(q.ahead)
	}
}

// progress notes the last record that the local file has of the stream.
func (m *Member) progress(seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report.Seq = seq
}

// stuck notes why the stream does not go on; "" = it does.
func (m *Member) stuck(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if what != "" && m.report.Stalled == "" {
		m.opt.Logf("waiting for the stream: %s", text.Message(what))
	}
	m.report.Stalled = text.Message(what)
}

func (m *Member) stalled() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report.Stalled
}
