package folders

import (
	"context"
	"sync"

	"sluice/internal/job"
	"sluice/internal/layout"
)

// locks has one lock for each file, for as long as somebody wants it. Who waits for one can be called off.
type locks struct {
	mu sync.Mutex
	of map[string]*fileLock
}

type fileLock struct {
	held   chan struct{}
	wanted int // by so many, its holder included
}

// lock waits until nobody else holds the file.
func (l *locks) lock(ctx context.Context, file string) (unlock func(), err error) {
	l.mu.Lock()
	if l.of == nil {
		l.of = map[string]*fileLock{}
	}
	f := l.of[file]
	if f == nil {
		f = &fileLock{held: make(chan struct{}, 1)}
		l.of[file] = f
	}
	f.wanted++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if f.wanted--; f.wanted == 0 {
			delete(l.of, file)
		}
	}
	select {
	case f.held <- struct{}{}:
		return func() { <-f.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// heldRecord is the record of a folder in the hands of one who changes it. Nobody else does so until it is unlocked, while
// git runs in between too. The holder must not hold it twice.
type heldRecord struct {
	Record
	file   string
	unlock func()
}

func (r *heldRecord) keep() error { return layout.Save(r.file, r.Record) }

func (x *Folders) holdFolder(ctx context.Context, j job.Job, top string) (*heldRecord, error) {
	file := x.recordFile(j, "folder", top)
	unlock, err := x.records.lock(ctx, file)
	if err != nil {
		return nil, err
	}
	r, err := x.record(j, top)
	if err != nil {
		unlock()
		return nil, err
	}
	return &heldRecord{Record: r, file: file, unlock: unlock}, nil
}

// NoteFolder changes the record of a folder.
func (x *Folders) NoteFolder(ctx context.Context, j job.Job, top string, change func(*Record)) error {
	r, err := x.holdFolder(ctx, j, top)
	if err != nil {
		return err
	}
	defer r.unlock()
	change(&r.Record)
	return r.keep()
}
