package daemon

import (
	"bytes"
	"math/rand/v2"

	"sluice/journal"
	"sluice/tools/faultdisk"
)

// simDisk is a disk in memory with the journal. Syncs fail of that alone.
type simDisk struct{ *faultdisk.Disk }

func newSimDisk(seed uint64) *simDisk {
	d := faultdisk.New(rand.New(rand.NewPCG(seed, 2)))
	d.SyncOf = simJournal
	return &simDisk{d}
}

const (
	simDir     = "/sim/state"
	simJournal = simDir + "/" + journal.FileName
)

func (d *simDisk) Open(name string) (journal.File, error)      { return opened(d.Find(name)) }
func (d *simDisk) OpenWrite(name string) (journal.File, error) { return opened(d.Find(name)) }
func (d *simDisk) Create(name string) (journal.File, error)    { return opened(d.Empty(name)) }

func opened(f *faultdisk.File, err error) (journal.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// holds reports whether a power cut now would leave text in the journal.
func (d *simDisk) holds(text string) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	ino := d.Durable[simJournal]
	return ino != nil && bytes.Contains(ino.Durable, []byte(text))
}

// journalBytes is the journal as a process would read it now.
func (d *simDisk) journalBytes() []byte {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	if ino := d.Names[simJournal]; ino != nil {
		return ino.Data
	}
	return nil
}
