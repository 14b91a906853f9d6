package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sluice/internal/health"
	"sluice/internal/ids"
	"sluice/internal/text"
)

const (
	packPrefix = "SLUICE_PACKS_" // with the journal's id: its bucket
	packMost   = 2<<30 + 1       // bytes of one object: at its limit package tree fails by itself
	slowest    = 256 << 10       // bytes a second that are still waited for
	patience   = 20 * time.Second
	listBytes  = 8 << 20         // of the names, for the time that they may take
	standsIn   = "sluice.object" // in the metadata of a name: the digest that it stands for
	// launchesFor is longer than a daemon is down between the end of a worker's launch and taking it in.
	launchPrefix = "SLUICE_LAUNCHES_" // with the journal's id: the bucket of its workers
	launchesFor  = 14 * 24 * time.Hour
)

// Unfit is why the servers have nothing usable under a digest or a name. It may be there later.
type Unfit struct {
	Name string
	Why  string
}

func (e *Unfit) Error() string { return fmt.Sprintf("%.80s: %s", e.Name, e.Why) }

// Packs stores bytes for the machines of a journal, each under its SHA-256, and names for them. A call
// repeats itself until the servers acknowledge it, or ctx ends; no other error of theirs is final than
// an *Unfit. Any goroutine may call it.
type Packs struct {
	// Patience is how long the servers may say, answer after answer, that an object is missing or is
	// another, before that is believed: a replica answers what it had a while ago.
	Patience time.Duration

	js       jetstream.JetStream
	journals jetstream.JetStream // where the journal's stream is; nil: another creates the bucket
	id       string
	bucket   string
	ttl      time.Duration // of what is stored; 0 = it stays
	replicas int
	most     int64 // as packMost

	mu    sync.Mutex // guards what follows
	store jetstream.ObjectStore
	waits map[string]int  // how many calls wait, by what for
	gone  map[string]bool // what was removed: a server may still say that it is there
}

// Packs returns the packs of a journal. replicas is for the first Put, which creates their bucket; 0:
// as many as the journal's stream has.
func (c *Conn) Packs(id string, replicas int) *Packs {
	return &Packs{js: c.js, journals: c.js, id: id, bucket: packPrefix + id, replicas: replicas, most: packMost,
		Patience: patience, waits: map[string]int{}, gone: map[string]bool{}}
}

// Launches returns what workers and whoever decides exchange about a journal's launches: Packs in a
// bucket of their own, in the account of c, whose objects go after launchesFor. A worker has no journal.
func (c *Conn) Launches(id string, journal *Conn) *Packs {
	p := c.Packs(id, 0)
	p.bucket, p.ttl, p.journals = launchPrefix+id, launchesFor, nil
	if journal != nil {
		p.journals = journal.js
	}
	return p
}

// LaunchesSubjects are the subjects that a worker publishes to for Launches, which it does not create.
func LaunchesSubjects(id string) []string {
	bucket := launchPrefix + id
	stream := "OBJ_" + bucket // as package jetstream names it
	return []string{"$O." + bucket + ".>", "$JS.API.STREAM.INFO." + stream, "$JS.API.STREAM.PURGE." + stream,
		"$JS.API.DIRECT.GET." + stream + ".>",
		"$JS.API.CONSUMER.CREATE." + stream + ".>", "$JS.API.CONSUMER.DELETE." + stream + ".*",
		"$JS.FC." + stream + ".>"}
}

// Open creates the bucket if there is none.
func (p *Packs) Open(ctx context.Context) error {
	nothing := func(context.Context, jetstream.ObjectStore) error { return nil }
	return p.repeat(ctx, func() error { return p.within(ctx, 0, true, nothing) })
}

// Stalled returns what calls wait for; "": none waits.
func (p *Packs) Stalled() (what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for why := range p.waits {
		what = max(what, why)
	}
	return what
}

// waitsFor counts a call that waits for something else than before; "" is nothing.
func (p *Packs) waitsFor(before, now string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits[before]--; p.waits[before] <= 0 {
		delete(p.waits, before)
	}
	if now != "" {
		p.waits[now]++
	}
}

// Put stores what r has and returns its digest, SHA-256 in hex. What is there already is not sent again.
func (p *Packs) Put(ctx context.Context, r io.Reader) (digest string, err error) {
	f, digest, size, err := spool(r, p.most)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digest, p.repeat(ctx, func() error {
		had, err := p.info(ctx, digest, true)
		if err == nil && int64(had.Size) == size && sumOf(had) == digest && !p.removed(digest, false) {
			return nil
		}
		if unfit := (*Unfit)(nil); err != nil && !errors.As(err, &unfit) {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return final{err}
		}
		return p.within(ctx, size, true, func(ctx context.Context, store jetstream.ObjectStore) error {
			_, err := store.Put(ctx, jetstream.ObjectMeta{Name: digest}, onDisk{f})
			return err
		})
	})
}

// PutFrom is Put for what write writes.
func (p *Packs) PutFrom(ctx context.Context, write func(io.Writer) error) (digest string, err error) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.CloseWithError(write(w)) // Put returns it
	}()
	digest, err = p.Put(ctx, r)
	_ = r.CloseWithError(io.ErrClosedPipe)
	<-done
	return digest, err
}

// Get returns what Put has stored under a digest. It reads again until the digest fits.
func (p *Packs) Get(ctx context.Context, digest string) (data io.ReadCloser, err error) {
	if !IsDigest(digest) {
		return nil, &Unfit{digest, "it is no digest"}
	}
	err = p.repeat(ctx, func() (err error) {
		data, err = p.read(ctx, digest)
		return err
	})
	return data, err
}

// Name has a name stand for a digest whose object is stored.
func (p *Packs) Name(ctx context.Context, name, digest string) error {
	return p.repeat(ctx, func() error {
		return p.within(ctx, 0, true, func(ctx context.Context, store jetstream.ObjectStore) error {
			meta := jetstream.ObjectMeta{Name: name, Metadata: map[string]string{standsIn: digest}}
			_, err := store.Put(ctx, meta, nil)
			return err
		})
	})
}

// Named returns the digest that a name stands for.
func (p *Packs) Named(ctx context.Context, name string) (digest string, err error) {
	err = p.repeat(ctx, func() error {
		info, err := p.info(ctx, name, false)
		if err != nil {
			return err
		}
		if digest = info.Metadata[standsIn]; !IsDigest(digest) {
			return &Unfit{name, fmt.Sprintf("it stands for %.80q, which is no digest", digest)}
		}
		return nil
	})
	return digest, err
}

// Named is a name, what it stands for, and since when.
type Named struct {
	Name, Digest string
	At           time.Time
}

// Names lists the names that begin with a prefix. It may miss the newest.
func (p *Packs) Names(ctx context.Context, prefix string) (list []Named, err error) {
	err = p.repeat(ctx, func() error {
		return p.within(ctx, listBytes, true, func(ctx context.Context, store jetstream.ObjectStore) error {
			all, err := store.List(ctx)
			if errors.Is(err, jetstream.ErrNoObjectsFound) {
				err = nil
			}
			list = nil
			for _, o := range all {
				if strings.HasPrefix(o.Name, prefix) && IsDigest(o.Metadata[standsIn]) {
					list = append(list, Named{o.Name, o.Metadata[standsIn], o.ModTime})
				}
			}
			return err
		})
	})
	return list, err
}

// Remove removes a name, or what is stored under a digest.
func (p *Packs) Remove(ctx context.Context, name string) error {
	p.removed(name, true)
	return p.repeat(ctx, func() error {
		return p.within(ctx, 0, true, func(ctx context.Context, store jetstream.ObjectStore) error {
			err := store.Delete(ctx, name)
			if errors.Is(err, jetstream.ErrObjectNotFound) {
				err = nil
			}
			return err
		})
	})
}

// removed reports whether a name was removed, now or before.
func (p *Packs) removed(name string, now bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now {
		p.gone[name] = true
	}
	return p.gone[name]
}

// info reads what the servers say about an object.
func (p *Packs) info(ctx context.Context, name string, create bool) (info *jetstream.ObjectInfo, err error) {
	err = p.within(ctx, 0, create, func(ctx context.Context, store jetstream.ObjectStore) (err error) {
		info, err = store.GetInfo(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			err = &Unfit{name, "the servers do not have it"}
		}
		return err
	})
	return info, err
}

// within calls do with the bucket and the time that so many bytes may take.
func (p *Packs) within(ctx context.Context, size int64, create bool,
	do func(context.Context, jetstream.ObjectStore) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestIn+time.Duration(size/slowest)*time.Second)
	defer cancel()
	store, err := p.open(ctx, create)
	if err != nil {
		return err
	}
	return do(ctx, store)
}

// open returns the bucket. With create, it is created if there is none.
func (p *Packs) open(ctx context.Context, create bool) (jetstream.ObjectStore, error) {
	p.mu.Lock()
	store := p.store
	p.mu.Unlock()
	if store != nil {
		return store, nil
	}
	store, err := p.js.ObjectStore(ctx, p.bucket)
	if none := errors.Is(err, jetstream.ErrBucketNotFound); none && create && p.journals != nil {
		store, err = p.create(ctx)
	} else if none {
		err = &Unfit{p.bucket, "the servers have no such bucket"}
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store = store
	return store, nil
}

func (p *Packs) create(ctx context.Context) (jetstream.ObjectStore, error) {
	replicas := p.replicas
	if replicas == 0 {
		s, err := p.journals.Stream(ctx, streamPrefix+p.id)
		if err != nil {
			return nil, err
		}
		replicas = s.CachedInfo().Config.Replicas
	}
	return p.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: p.bucket, TTL: p.ttl,
		Description: "commits for a journal of sluice", Replicas: replicas})
}

// repeat calls try until it returns nil or a final error, or ctx ends. An *Unfit is final once the
// servers have answered with nothing else for a while; if ctx ends before, both are returned.
func (p *Packs) repeat(ctx context.Context, try func() error) error {
	var since time.Time // of the first *Unfit in a row
	var unfit *Unfit    // the newest of these
	waits := ""
	wait := func(what string) { p.waitsFor(waits, what); waits = what }
	defer wait("")
	for {
		err := try()
		var no *Unfit
		var own final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &own):
			return own.error
		case errors.As(err, &no):
			if unfit == nil {
				since = time.Now()
			}
			if unfit = no; time.Since(since) >= p.Patience {
				return err
			}
		case ctx.Err() == nil: // else it says nothing about the servers
			unfit = nil
			wait("the object store: " + text.Message(why(err)))
		}
		if health.Wait(ctx, retryAfter) {
			continue
		}
		if unfit != nil {
			return errors.Join(ctx.Err(), unfit)
		}
		return errors.Join(ctx.Err(), err)
	}
}

// IsDigest reports whether a text is a digest as Put returns it.
func IsDigest(s string) bool { return ids.Hex(s, sha256.Size) }

// sumOf returns the digest that an object was stored with.
func sumOf(info *jetstream.ObjectInfo) string {
	sum, err := jetstream.DecodeObjectDigest(info.Digest)
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum)
}
