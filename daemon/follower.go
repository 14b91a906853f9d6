package daemon

import (
	"errors"
	"sync"

	"sluice/journal"
)

// follower keeps the state of a journal that this process follows. Each use reads what has come since
// the last one, not the whole journal.
type follower struct {
	opt RepoOptions

	mu sync.Mutex
	r  *Reader // nil: it is yet to be read
}

// use calls fn with the state as it is now. fn keeps nothing of it, and waits for nobody.
func (f *follower) use(fn func(*Reader) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.r != nil && f.r.c.log.ReadOn(f.r.c.replayed) != nil {
		f.forget() // the file was cut, or has what this release cannot read
	}
	if f.r == nil {
		r, whole, err := follow(f.opt)
		if err != nil {
			return err
		}
		if !whole { // what comes after such a record changes nothing
			defer r.Close()
			return fn(r)
		}
		f.r = r
	}
	return fn(f.r)
}

func (f *follower) forget() {
	if f.r != nil {
		f.r.Close()
		f.r = nil
	}
}

func (f *follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
}

// follow reads the state of a journal that this process follows, up to the first record that this
// release cannot read; then it is not whole.
func follow(opt RepoOptions) (r *Reader, whole bool, err error) {
	log, _, err := journal.OpenRead(opt.State, journal.Options{})
	if err != nil {
		return nil, false, err
	}
	c := newCore(log, opt.Compile)
	var unread *Unread
	err = c.restore()
	if err != nil && !errors.As(err, &unread) {
		log.Close()
		return nil, false, err
	}
	return &Reader{c: c, root: opt.Root, lock: &Lock{}}, err == nil, nil
}
