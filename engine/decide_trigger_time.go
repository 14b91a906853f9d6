package engine

import (
	"fmt"
	"time"
)

// tickTriggers decides on the minutes of schedules that have come, and opens what a new day opens.
func (d *triggering) tickTriggers() {
	for _, id := range sortedKeys(d.s.Armed) {
		a := d.s.Armed[id]
		if !a.On {
			continue
		}
		switch {
		case a.Full != FullDay:
		case a.Since.After(d.at):
			d.put(TriggersFull{Workflow: id, Why: FullDay})
		case a.today(d.at) == 0:
			d.put(TriggersOpened{Workflow: id})
		}
		w := d.specs(a.Digest)
		if w == nil || w.On == nil {
			continue
		}
		for _, t := range w.On.Triggers {
			if turn := a.Turns[t.ID]; t.Kind == OnSchedule && passed(turn.Next, d.at) {
				d.catchUp(a, w, t, turn)
			}
		}
	}
}

// missedAfter is how late a minute is decided on before it counts as missed: it came while nobody
// was there.
const missedAfter = time.Minute

// mostMinutes bounds the minutes that are walked; of a longer absence the last of them count.
const mostMinutes = 100_000

// catchUp decides on the minutes of a schedule that have come since the last.
func (d *triggering) catchUp(a *Armed, w *Spec, t *Trigger, turn Turn) {
	var due []time.Time
	missed := 0
	next, walked := turn.Next, 0
	for ; passed(next, d.at); next = t.Next(next) {
		if walked++; walked == mostMinutes {
			next = later(next, d.at.Add(-mostMinutes*time.Minute/2))
		} else if walked > 2*mostMinutes {
			break
		}
		if due = append(due, next); len(due) > MaxCaughtUp {
			due, missed = due[1:], missed+1
		}
	}
	last := due[len(due)-1]
	switch {
	case t.CatchUp == CatchAll:
	case t.CatchUp == CatchNone && d.at.Sub(last) > missedAfter:
		missed, due = missed+len(due), nil
	default:
		missed, due = missed+len(due)-1, due[len(due)-1:]
	}
	if missed > 0 {
		f := happening{t: t, key: minute(last), turn: &Turn{Through: last, Next: next}}
		if len(due) > 0 { // those that fire come after
			f.key, f.turn = "", &Turn{Through: due[0].Add(-time.Nanosecond), Next: due[0]}
		}
		d.put(f.skipped(w, fmt.Sprintf("%d missed while nobody was there, and catch_up is %s", missed, t.CatchUp)))
	}
	for i, at := range due {
		f := happening{t: t, key: minute(at), turn: &Turn{Through: at, Next: next},
			values: map[string]any{"time": minute(at)}}
		if i+1 < len(due) {
			f.turn.Next = due[i+1]
		}
		d.accept(a, w, f)
	}
}

// minute returns the key of a schedule's minute.
func minute(at time.Time) string { return at.UTC().Format("2006-01-02T15:04Z") }
