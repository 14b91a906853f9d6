package cluster

import "time"

// Leads returns the epoch in which this machine decides while its lease lasts, else 0.
func (m *Member) Leads() int64 {
	if r := m.Report(); r.Leads && r.Holds {
		return r.Epoch
	}
	return 0
}

// Lease returns how long a silent machine is waited for; 0 = this machine has not led yet.
func (m *Member) Lease() time.Duration { return time.Duration(m.lease.Load()) }
