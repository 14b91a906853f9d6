package workers

import "sluice/internal/layout"

// records are the launches that the journal has. A worker may do one of them although this machine has
// not sent it and nobody waits for it yet: the one before may have, and work is brought here first.
type records struct {
	epoch int64           // in which they were read; 0 = they are not known
	keys  map[string]bool // as of the newest whole scan
	begun map[string]bool // those waited for since, which may be newer
}

// Recorded says which launches the journal has: see launch.Afar.
func (d *Desk) Recorded(keys []string) {
	now := records{epoch: d.opt.Lead(), keys: map[string]bool{}, begun: map[string]bool{}}
	for _, key := range keys {
		now.keys[key] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.records.begun { // the scan may have begun before they were decided
		now.keys[key] = true
	}
	d.records = now
}

// unrecorded reports that nobody waits for a launch, and nobody will: the journal does not have it.
func (d *Desk) unrecorded(key string) bool {
	epoch, of := d.opt.Lead(), layout.LaunchOf(key)
	d.mu.Lock()
	defer d.mu.Unlock()
	return epoch > 0 && d.records.epoch == epoch && d.live[key] == nil && !d.records.keys[of] && !d.records.begun[of]
}
