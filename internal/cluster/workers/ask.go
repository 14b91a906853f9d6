package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"sluice/agents/launch"
	"sluice/internal/health"
)

const askIn = 3 * time.Second // an answer

// ask sends a request to a worker. Only an answer proves anything.
func (d *Desk) ask(ctx context.Context, worker string, c call) (a answer, err error) {
	c.Journal, c.By, c.Epoch, c.At = d.opt.Journal, d.opt.By, d.opt.Lead(), d.now()
	c.Wire = d.version(worker)
	if c.Epoch == 0 {
		return a, errors.New("this machine may begin nothing now")
	}
	data, err := json.Marshal(c)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, askIn)
	defer cancel()
	reply, err := d.opt.Conn.Ask(ctx, prefix+worker+orderEnd, data)
	if err != nil {
		return a, err
	}
	if a, err = readAnswer(reply); err != nil {
		d.refuse(worker, "its answer: "+err.Error())
		return a, err
	}
	d.mu.Lock()
	if w := d.workers[worker]; w != nil {
		w.answered = true
	}
	d.mu.Unlock()
	if a.Is == isRefused {
		d.refuse(worker, "it refuses a request: "+a.Why)
	}
	return a, nil
}

// now returns the time of a request: later than that of the last one, whatever the clock says. Of one that
// no worker with the time of now takes, nothing has to be later.
func (d *Desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.asked.Sub(now) > goodFor {
		d.asked = time.Time{}
	}
	d.asked = later(d.asked, now)
	return d.asked
}

// waiting is a launch that is waited for.
type waiting struct {
	*record
	words int       // the worker's Words when its signals were heard last
	valid time.Time // the last time that the worker gave a sign of this launch
	began bool
}

// wait waits for the result of a launch that was sent. The error is ctx's, or of the disk.
func (d *Desk) wait(ctx context.Context, r *record, w launch.Watch) (launch.Back, error) {
	x := waiting{record: r, valid: time.Now()}
	for {
		switch {
		case r.Result != nil:
			return *r.Result, nil
		case r.Lost:
			return r.lost(), nil
		}
		if r.Taken && !x.began && w.Began != nil {
			x.began = true
			w.Began()
		}
		if err := d.look(ctx, &x, w); err != nil {
			return launch.Back{}, err
		}
		if r.Result == nil && !r.Lost && !health.Wait(ctx, pace) {
			return launch.Back{}, ctx.Err()
		}
	}
}

// look acts on what the worker's newest heartbeat says of the launch.
func (d *Desk) look(ctx context.Context, x *waiting, w launch.Watch) error {
	key := x.Sent.Key
	beat, silent := d.of(x.Worker)
	doing, has := beat.has(key)
	if at := d.expects(x.record); at.After(x.valid) {
		x.valid = at
	}
	if d.opt.Lead() == 0 {
		x.valid = time.Now() // the servers or this machine are silent, not the worker
		return nil
	}
	if silent > d.silence() || time.Since(x.valid) > d.silence() {
		d.opt.Logf("%s: worker %s (%s) has been silent for %s: its launch is given up", key, x.Worker, beat.Name,
			d.silence())
		x.lose("its worker (%s) was silent for %s", cmp.Or(beat.Name, x.Worker), d.silence())
		return d.save(*x.record)
	}
	var a answer
	var err error
	switch {
	case x.Stopped && !doing.Ended: // the order would begin one that has not arrived
		a, err = d.ask(ctx, x.Worker, call{Do: doStop, Key: key})
	case !x.Taken || !has && beat.Worker != "" && beat.Twin == "": // a repeat is answered with what it knows
		a, err = d.ask(ctx, x.Worker, x.order())
	case doing.Ended, doing.Words != x.words, time.Since(x.valid) > d.silence()/2:
		// Where the worker's clock was set back, none of its heartbeats counts.
		a, err = d.ask(ctx, x.Worker, call{Do: doAsk, Key: key})
	default:
		return nil
	}
	if err != nil || a.Is == isUnknown && beat.Twin != "" { // the other has answered
		return nil // it is asked again
	}
	return d.heard(x, a, w, doing.Words)
}

// heard takes in what a worker says of a launch, with the Words of its heartbeat.
func (d *Desk) heard(x *waiting, a answer, w launch.Watch, words int) error {
	key := x.Sent.Key
	switch a.Is {
	case isRunning:
		x.valid = time.Now()
		if w.Hear == nil || len(a.Signals) == 0 || w.Hear(a.Signals) {
			x.words = words
		}
		if !x.Taken {
			x.Taken = true
			return d.save(*x.record)
		}
	case isEnded:
		if !signed(x.Sent.Token, key, a) {
			d.refuse(x.Worker, key+": its result is not signed with the launch's token")
			return nil
		}
		back, err := readResult(a.Result)
		if err != nil {
			d.refuse(x.Worker, fmt.Sprintf("%s: its result: %v", key, err))
			return nil
		}
		x.Taken, x.Result = true, &back
		return d.save(*x.record)
	case isUnknown, isOver, isFull, isLacking:
		if r, err := d.load(key); err == nil && (r.Result != nil || r.Lost) { // another call has it
			*x.record = r
			return nil
		}
		d.opt.Logf("%s: worker %s does not have it any more (%s): it is given up", key, x.Worker, a.Is)
		x.lose("its worker (%s) does not have it any more", x.Worker)
		return d.save(*x.record)
	}
	return nil
}

// Stop ends a launch: see launch.Afar.
func (d *Desk) Stop(ctx context.Context, key string) (*launch.Back, error) {
	defer d.holds(key)()
	r, err := d.load(key)
	if errors.Is(err, fs.ErrNotExist) {
		r, err = d.find(ctx, key)
	}
	if err != nil || r.Worker == "" {
		return nil, err
	}
	if !r.Stopped {
		r.Stopped = true
		if err := d.save(r); err != nil {
			return nil, err
		}
	}
	back, err := d.wait(ctx, &r, launch.Watch{})
	return &back, err
}

// Get returns what a worker has stored: see launch.Afar.
func (d *Desk) Get(ctx context.Context, digest string) (io.ReadCloser, error) {
	return d.opt.Packs.Get(ctx, digest)
}
