package workers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/layout"
)

// record is what is known on disk of a launch that this machine has to send. It is there before
// anything is sent, so that this machine goes on with it after a restart; without one, another machine
// may have sent it.
type record struct {
	Sent    launch.Sent  `json:"sent"`         // of one that no worker has only its key; of one found its token too
	On      []string     `json:"on,omitempty"` // the labels that its worker needs
	Worker  string       `json:"worker"`       // "" = it was not sent yet
	Epoch   int64        `json:"epoch"`
	Taken   bool         `json:"taken,omitempty"` // the worker has said that it has it
	Lost    bool         `json:"lost,omitempty"`  // given up: no result counts any more
	Why     string       `json:"why,omitempty"`   // of Lost
	Seen    bool         `json:"seen,omitempty"`  // and what its worker had of it was kept, if it can be
	Stopped bool         `json:"stopped,omitempty"`
	Result  *launch.Back `json:"result,omitempty"`
}

// order is the request to make the launch. The order of one that was found is not known here: its
// worker is only asked for it.
func (r *record) order() call {
	if r.Sent.Run == "" {
		return call{Do: doAsk, Key: r.Sent.Key}
	}
	return call{Do: doLaunch, Key: r.Sent.Key, On: r.On, Sent: &r.Sent}
}

func (d *Desk) file(key string) string { return d.opt.Layout.PIDFile(key) + layout.SentMark }

func (d *Desk) load(key string) (r record, err error) { return r, layout.Load(d.file(key), &r) }

func (d *Desk) save(r record) error { return layout.Save(d.file(r.Sent.Key), r) }

// Knows reports whether this machine has a record of the launch: see launch.Afar.
func (d *Desk) Knows(key string) bool { return layout.IsFile(d.file(key)) }

// lose gives a launch up.
func (r *record) lose(format string, args ...any) {
	r.Lost, r.Why = true, fmt.Sprintf(format, args...)
}

// lost is the result of a launch that was given up. Who has ended it knows why.
func (r *record) lost() launch.Back {
	x := engine.Exit{Code: -1, Lost: true}
	if r.Why != "" && !r.Stopped {
		x.Class, x.Why = engine.ClassInfrastructure, r.Why
	}
	return launch.Back{Exit: x}
}

// Launch has a worker make a launch: see launch.Afar.
func (d *Desk) Launch(ctx context.Context, key string, on []string, prepare func() (launch.Sent, error),
	w launch.Watch) (launch.Back, error) {
	defer d.holds(key)()
	r, err := d.load(key)
	switch none := errors.Is(err, fs.ErrNotExist); {
	case none && prepare == nil:
		r, err = d.find(ctx, key)
	case none:
		r = waits(key)
		err = d.save(r)
	}
	if err == nil && r.Worker == "" && !r.Lost {
		r, err = d.assign(ctx, key, on, prepare, w)
	}
	if err != nil {
		return launch.Back{}, err
	}
	return d.wait(ctx, &r, w)
}

// waits is the record of a launch that was not sent yet.
func waits(key string) record { return record{Sent: launch.Sent{Key: key}} }

// assign sends the order to a worker that takes it.
func (d *Desk) assign(ctx context.Context, key string, on []string, prepare func() (launch.Sent, error),
	w launch.Watch) (r record, err error) {
	full := map[string]time.Time{} // workers that would not take it -> until when they are not asked
	said, prefer, refuses := "", "", ""
	if first, err := d.load(layout.LaunchOf(key)); err == nil {
		prefer = first.Worker // its conversation is there
	}
	for {
		worker, why := "", "this machine may begin nothing now: the servers do not answer"
		if d.opt.Lead() > 0 {
			worker, why = d.pick(on, prefer, full)
		}
		if worker != "" {
			if r.Sent.Key == "" {
				if err := d.opt.Packs.Open(ctx); err != nil { // its result is stored there
					return r, err
				}
				token, err := d.makeToken(ctx, key)
				if err != nil {
					return r, err
				}
				if r.Sent, err = prepare(); err != nil {
					return r, err
				}
				r.Sent.Token = token
			}
			r.Worker, r.On, r.Epoch = worker, on, d.opt.Lead()
			r.Sent.Pack, r.Sent.Bases = "", nil
			taken, no, err := d.give(ctx, &r)
			if taken || err != nil {
				return r, err
			}
			full[worker], refuses = time.Now().Add(time.Second), no
			continue
		}
		if why += refuses; why != said {
			said = why
			w.Waits(why)
		}
		if !health.Wait(ctx, pace) {
			return r, ctx.Err()
		}
	}
}

// give sends an order to its worker. It is on disk before, so that it is asked for after a crash.
// taken: the worker has it, or may have it. Otherwise no says what it refuses, if it does.
func (d *Desk) give(ctx context.Context, r *record) (taken bool, no string, err error) {
	if err := d.save(*r); err != nil {
		return false, "", err
	}
	a, err := d.ask(ctx, r.Worker, r.order())
	if err == nil && a.Is == isLacking {
		if r.Sent.Pack, err = d.opt.Pack(ctx, r.Sent, a.Have); err != nil {
			return false, "", errors.Join(err, d.save(waits(r.Sent.Key)))
		}
		r.Sent.Bases = a.Have
		if err := d.save(*r); err != nil {
			return false, "", err
		}
		a, err = d.ask(ctx, r.Worker, r.order())
	}
	switch {
	case ctx.Err() != nil:
		return true, "", nil
	case err == nil && a.Is == isOver: // the key was used
		r.Taken = true
		r.lose("its worker (%s) has had it before", r.Worker)
		return true, "", d.save(*r)
	case errors.Is(err, nats.ErrNoResponders), err == nil && a.Is != isRunning && a.Is != isEnded:
		if err == nil && a.Is != isFull {
			d.refuse(r.Worker, fmt.Sprintf("%s: it does not take it: %s %s", r.Sent.Key, a.Is, a.Why))
			no = fmt.Sprintf("; worker %s refuses it: %s", r.Worker, a.Why)
		}
		return false, no, d.save(waits(r.Sent.Key))
	}
	r.Taken = err == nil
	return true, "", nil // no answer proves nothing
}
