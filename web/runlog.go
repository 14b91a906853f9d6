package web

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/land"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

// Limits of the logs that are kept.
const (
	logLines = 200 // of a run, the newest
	logsMost = 64  // runs
	// A first look at a run reads the newest logFirst records of the repo's journal. If they have too
	// little of it, those of its time, at most the newest logRecords.
	logFirst   = 2_000
	logRecords = 200_000
	logSlack   = time.Minute // how far the clock may have been set back meanwhile
)

// errEnough ends reading.
var errEnough = errors.New("enough was read")

// runLog has the lines of a run's journal so far, and how its work is taken.
type runLog struct {
	mu    sync.Mutex
	take  land.Last
	next  int64
	lines []logLine
	left  int
	older bool // there may be lines before the first one that was read
}

// log returns the important lines of a run, how many older ones are left out, and whether there may be
// more before those. It reads only what is new since the last call.
func (p *repos) log(ctx context.Context, at repo, v workspace.Viewer, run string) ([]logLine, int, bool, error) {
	l := p.logOf(at, run)
	l.mu.Lock()
	defer l.mu.Unlock()
	st, err := v.Status(ctx, run)
	if err != nil {
		return nil, 0, false, err
	}
	if st.Seq < l.next-1 { // the journal was repaired: begin again
		l.next = 0
	}
	switch {
	case l.next == 0:
		err = l.begin(ctx, v, run, st)
	case l.next <= st.Seq:
		err = l.read(ctx, v, run, l.next, st.Seq, time.Time{})
	}
	if err != nil {
		l.next = 0
		return nil, 0, false, err
	}
	shown := l.lines[max(0, len(l.lines)-logLines):]
	return slices.Clone(shown), l.left + len(l.lines) - len(shown), l.older, nil
}

// logOf returns the log that is kept of a run.
func (p *repos) logOf(at repo, run string) *runLog {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := at.Root + "\x00" + run
	l := p.logs[key]
	if l == nil {
		if len(p.logs) >= logsMost {
			clear(p.logs)
		}
		l = &runLog{}
		p.logs[key] = l
	}
	return l
}

func (l *runLog) toTake(ctx context.Context, at repo, run daemon.RunStatus) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return land.ToTake(ctx, at.Root, at.State, run, false, &l.take)
}

// begin reads what there is to show: of a run that has ended until its end.
func (l *runLog) begin(ctx context.Context, v workspace.Viewer, run string, st daemon.Status) error {
	from := max(st.Seq+1-logFirst, 1)
	err := l.again(ctx, v, run, from, st.Seq, time.Time{})
	if err != nil || !l.older || len(l.lines) >= logLines || len(st.Runs) == 0 {
		return err
	}
	r := st.Runs[0]
	if from, err = recordAt(ctx, v, r.Started.Add(-logSlack), st.Seq); err != nil {
		return err
	}
	to := st.Seq
	if !r.Live() {
		if to, err = recordAt(ctx, v, r.Ended.Add(logSlack), st.Seq); err != nil {
			return err
		}
	}
	return l.again(ctx, v, run, max(from, to+1-logRecords, 1), st.Seq, r.Ended)
}

// again drops what was read, and reads from a record on.
func (l *runLog) again(ctx context.Context, v workspace.Viewer, run string, from, newest int64, ended time.Time) error {
	l.lines, l.left, l.older = nil, 0, from > 1
	return l.read(ctx, v, run, from, newest, ended)
}

// recordAt returns the first record that is not before a time, or the one after the newest.
func recordAt(ctx context.Context, v workspace.Viewer, at time.Time, newest int64) (int64, error) {
	low, high := int64(1), newest+1
	for low < high {
		mid, before := low+(high-low)/2, false
		err := v.Facts(ctx, "", mid, false, func(f daemon.Line) error {
			before = f.At.Before(at)
			return errEnough
		})
		if err != nil && !errors.Is(err, errEnough) {
			return 0, err
		}
		if before {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

// read adds the lines from a record on; of a run that has ended, until then.
func (l *runLog) read(ctx context.Context, v workspace.Viewer, run string, from, newest int64, ended time.Time) error {
	next := newest + 1
	err := v.Facts(ctx, run, from, false, func(f daemon.Line) error {
		next = max(next, f.Seq+1)
		if f.Seq < from {
			return nil
		}
		kind, of := f.Kind(), f.Run()
		if kind == (engine.RunStarted{}).FactKind() && of == run {
			l.older = false
		}
		if s := render.Fact(f.Fact); !s.Bookkeeping() {
			line := logLine{At: f.At, Subject: s.Subject, Text: plain(s), Class: styleClass(s.Style), Gate: s.Gate}
			if task, below := strings.CutPrefix(of, run+"."); below {
				line.Below, line.Subject = of, strings.TrimSpace(task+" "+s.Subject)
			}
			l.lines = append(l.lines, line)
		}
		if n := len(l.lines) - 2*logLines; n > 0 {
			l.lines, l.left = slices.Clone(l.lines[n+logLines:]), l.left+n+logLines
		}
		if kind == (engine.RunEnded{}).FactKind() && !ended.IsZero() && !f.At.Before(ended) {
			return errEnough
		}
		return nil
	})
	l.next = next
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
