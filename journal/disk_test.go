package journal

import (
	"math/rand/v2"

	"sluice/tools/faultdisk"
)

// disk is a disk in memory.
type disk struct{ *faultdisk.Disk }

func newDisk(seed uint64) *disk {
	return &disk{faultdisk.New(rand.New(rand.NewPCG(seed, 1)))}
}

func (d *disk) Open(name string) (File, error)      { return opened(d.Find(name)) }
func (d *disk) OpenWrite(name string) (File, error) { return opened(d.Find(name)) }
func (d *disk) Create(name string) (File, error)    { return opened(d.Empty(name)) }

func opened(f *faultdisk.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// crash is the power cut, and the start after it.
func (d *disk) crash() {
	d.PowerCut()
	d.Revive()
	d.SetRoom(-1)
}
