package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/internal/ids"
)

const partIn = 10 * time.Second // the next part of an object, which has some 128 KiB

// read reads an object once. A worker can have written what the servers say of it. So a link to another object
// is not followed, as the client's own Get does without end, and its size says only how long it may take.
func (p *Packs) read(ctx context.Context, digest string) (data io.ReadCloser, err error) {
	info, err := p.info(ctx, digest, false)
	if err != nil {
		return nil, err
	}
	if info.Size > 0 && !ids.Valid(info.NUID) {
		return nil, &Unfit{digest, "the servers have no parts of it"}
	}
	size := int64(min(info.Size, uint64(p.most)))
	err = p.within(ctx, size, false, func(ctx context.Context, _ jetstream.ObjectStore) error {
		var f *os.File
		var sum string
		var bad error
		err := p.parts(ctx, info, func(in io.Reader) { f, sum, _, bad = spool(in, p.most) })
		if err != nil {
			return err
		}
		if bad == nil && sum != digest {
			bad = errors.Join(fmt.Errorf("their SHA-256 is %s", sum), f.Close())
		} else if bad == nil {
			data = f
			return nil
		}
		if own := (final{}); errors.As(bad, &own) {
			return bad
		}
		return &Unfit{digest, "the servers have other bytes under it, or not all: " + bad.Error()}
	})
	return data, err
}

// parts calls read with the parts of an object one after the other, as package jetstream stores them.
func (p *Packs) parts(ctx context.Context, info *jetstream.ObjectInfo, read func(io.Reader)) error {
	if info.Size == 0 {
		read(strings.NewReader(""))
		return nil
	}
	js, err := p.js.Conn().JetStream()
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	defer r.Close()
	ends := func(err error) { _ = w.CloseWithError(err) } // nil: it was read to its end
	defer context.AfterFunc(ctx, func() { ends(ctx.Err()) })()
	late := time.AfterFunc(partIn, func() { ends(fmt.Errorf("no further part comes within %s", partIn)) })
	defer late.Stop()
	sub, err := js.Subscribe("$O."+p.bucket+".C."+info.NUID, func(m *nats.Msg) {
		meta, err := m.Metadata()
		if err == nil {
			_, err = w.Write(m.Data)
		}
		if err != nil || meta.NumPending == 0 {
			ends(err)
		}
		late.Reset(partIn)
	}, nats.OrderedConsumer(), nats.BindStream("OBJ_"+p.bucket), nats.Context(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // the servers forget it by themselves too
	read(r)
	return nil
}
