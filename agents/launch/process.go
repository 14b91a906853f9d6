package launch

import (
	"context"
	"errors"
	"os"
	"time"

	"sluice/agents"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
)

// Ensure makes a launch and waits for its end. An existing launch is waited for, or its recorded
// end returned; otherwise Ensure starts what prepare returns. A start that fails, for example on a
// full disk, is noted and tried again. The error is ctx's, and only that: the process then goes on,
// and the next Ensure finds it.
func (ls *Launches) Ensure(ctx context.Context, l Order, prepare func() (Process, error)) (end Ended, err error) {
	defer func() {
		if l.Agent {
			ls.opt.Spending.over(l.job(), end.Exit.NotStarted == "" && end.Exit.Refused == "")
		}
	}()
	if ls.Far.has(l) {
		return ls.Far.ensure(ctx, l, prepare)
	}
	n := launching{ls: ls, Order: l, prepare: prepare, slot: slot{of: ls.opt.Slots}}
	defer n.slot.leave()
	var proc *agents.Proc
	var no *job.Refusal
	if !ls.Retry(ctx, l.Key, func() (err error) {
		if proc, err = n.begin(ctx); errors.As(err, &no) {
			return nil
		}
		return err
	}) {
		ls.unbegun(l.Key)
		return Ended{}, ctx.Err()
	}
	if no == nil {
		f := following{ls: ls, Order: l, proc: proc, dir: ls.Path(l.Dir)}
		return f.follow(ctx)
	}
	ls.unbegun(l.Key)
	if no.Exit.Lost { // its record was lost: nobody has waited for its end
		ls.ends(l.Key)
	}
	ls.LeaveTalk(l.Key)
	return Ended{Exit: no.Exit}, nil
}

// following is a launch that is waited for.
type following struct {
	Order
	ls    *Launches
	proc  *agents.Proc
	dir   string // of its files, absolute
	quiet quiet
	meter meter
	room  *room // nil: there is no limit

	mark, text string // why it was ended; "" = it was not, by this process
}

// follow waits for the end of a launch that has begun. The error is ctx's.
func (f *following) follow(ctx context.Context) (Ended, error) {
	f.Clock.begin()
	if f.Agent {
		now := f.ls.opt.Now() // by the steady clock: while the machine sleeps, nothing works
		f.ls.opt.Spending.runs(f.job(), f.ls.Root, now.Add(min(f.proc.Launched().Sub(now), 0)))
	}
	end, err := f.await(ctx)
	if err == nil && f.Agent {
		end = f.ls.Told(f.Key, end)
		f.Clock.add(end.Exit.Usage)
	}
	return end, err
}

// await waits for the launch's end. Meanwhile it ends one that is silent for too long, whose run
// fills the disk, or that has used up the day's budget. The error is ctx's.
func (f *following) await(ctx context.Context) (Ended, error) {
	ls := f.ls
	held := layout.IsDir(ls.PIDFile(f.Key) + layout.InboxMark)
	f.meter = ls.meterOf(f.Order)
	if held {
		f.room = ls.roomOf(f.Key)
	}
	for {
		until, cancel, silent := ctx, context.CancelFunc(func() {}), time.Duration(0)
		if f.Idle > 0 {
			silent = f.silence()
		}
		if pause := lookAgain(f.Idle, silent, f.Agent || f.room != nil); pause > 0 {
			until, cancel = context.WithTimeout(ctx, pause)
		}
		exit, err := f.proc.Wait(until)
		cancel()
		switch {
		case err == nil:
			ls.ends(f.Key)
			f.hear(true)
			if held && !f.Agent {
				ls.leaveHome(f.Key)
			}
			end := Ended{Exit: ls.exitOf(exit, f.Key), Dir: f.dir, unkept: exit.Unkept}
			if exit.Stopped {
				endedFor(&end.Exit, f.mark, f.text)
			}
			return end, nil
		case ctx.Err() != nil:
			return Ended{}, ctx.Err()
		case until.Err() == nil: // waiting failed
			ls.Note(f.Key, err.Error())
			if !health.Wait(ctx, time.Second) {
				return Ended{}, ctx.Err()
			}
		default:
			if mark, why := f.tooMuch(); mark != "" {
				f.endFor(ctx, mark, why)
			}
		}
	}
}

// tooMuch returns the mark of a launch that is silent for too long or has used too much, and its text;
// "" = it may go on.
func (f *following) tooMuch() (mark, text string) {
	if f.Idle > 0 && f.silence() >= f.Idle {
		return layout.IdleMark, ""
	}
	f.look()
	if why := f.room.over(); why != "" {
		return roomMark, why
	}
	if day, why := f.ls.dayUp(); f.Agent && why != "" {
		return dayMark, day + "\n"
	}
	return "", ""
}

// endFor ends the process; the mark beside its pid file records why, as far as the disk has room.
func (f *following) endFor(ctx context.Context, mark, text string) {
	ls := f.ls
	f.mark, f.text = mark, text
	if err := os.WriteFile(ls.PIDFile(f.Key)+mark, []byte(text), 0o600); err != nil {
		ls.Note(f.Key, err.Error())
	}
	if err := f.proc.Stop(ctx); err != nil && ctx.Err() == nil {
		ls.Note(f.Key, err.Error())
		health.Wait(ctx, time.Second)
	}
}

// silence returns how long the process has been silent.
func (f *following) silence() time.Duration {
	last := f.proc.Launched()
	if at := agents.LastOutput(f.dir); at.After(last) {
		last = at
	}
	return f.quiet.look(last, f.ls.opt.Now())
}

// idleLooks is how often a process is checked within its idle_timeout.
const idleLooks = 8

// quiet measures a process's silence. A sleep of the machine or a changed clock is none: between
// two looks it counts at most what the timers count.
type quiet struct {
	word   time.Time // its last output
	looked time.Time // zero: never
	since  time.Time // when the silence began
}

// look returns how long the process has been silent, given the time of its last output.
func (q *quiet) look(word, now time.Time) time.Duration {
	at, silence := time.Now(), max(now.Sub(word), 0)
	if !q.looked.IsZero() {
		silence = min(silence, at.Sub(q.looked))
	}
	if q.looked.IsZero() || !word.Equal(q.word) {
		q.word, q.since = word, at.Add(-silence)
	}
	q.looked = at
	return at.Sub(q.since)
}
