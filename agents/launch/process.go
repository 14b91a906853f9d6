package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/agents"
	"sluice/engine"
	"sluice/internal/atomicfile"
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
	s := slot{of: ls.opt.Slots} // an agent's; kept over all tries
	defer s.leave()
	var proc *agents.Proc
	var no *job.Refusal
	if !ls.Retry(ctx, l.Key, func() (err error) {
		if proc, err = ls.begin(ctx, l, prepare, &s); errors.As(err, &no) {
			return nil
		}
		return err
	}) {
		ls.unbegun(l.Key)
		return Ended{}, ctx.Err()
	}
	if no == nil {
		return ls.follow(ctx, proc, l)
	}
	ls.unbegun(l.Key)
	if no.Exit.Lost { // its record was lost: nobody has waited for its end
		ls.ends(l.Key)
	}
	ls.LeaveTalk(l.Key)
	return Ended{Exit: no.Exit}, nil
}

// follow waits for the end of a launch that has begun. The error is ctx's.
func (ls *Launches) follow(ctx context.Context, proc *agents.Proc, l Order) (Ended, error) {
	l.Clock.begin()
	if l.Agent {
		ls.opt.Spending.runs(l.job(), ls.Root, proc.Launched())
	}
	end, err := ls.await(ctx, proc, l)
	if err == nil && l.Agent {
		end = ls.Told(l.Key, end)
		l.Clock.add(end.Exit.Usage)
	}
	return end, err
}

// begin adopts the launch or starts it. A Refusal is its end: nothing is left to wait for.
func (ls *Launches) begin(ctx context.Context, l Order, prepare func() (Process, error),
	s *slot) (*agents.Proc, error) {
	proc, err := ls.Adopt(ls.PIDFile(l.Key))
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		if l.Agent {
			s.keep()
		}
		ls.keepPrivate(l.Key)
		return proc, nil
	case errors.Is(err, agents.ErrTorn), absent && ls.Boot.after(l.Since, ls.opt.Now):
		// A power cut or a failed disk may have lost the launch's record. After the failed disk its
		// process may still run.
		if err := ls.endTorn(ctx, l.Key); err != nil {
			return nil, err
		}
		x := engine.Exit{Code: -1, Lost: true}
		ls.forgive(&x, l.Since, time.Time{})
		return nil, &job.Refusal{Exit: x}
	case !absent:
		return nil, err
	}
	// The order holds: a launch that is not prepared takes no slot.
	p, err := ls.prepared(ctx, l, prepare)
	if err == nil && l.Agent {
		err = s.take(ctx, ls.opt.Settings().MaxAgents, l.Clock.hold)
	}
	if err != nil {
		return nil, err
	}
	return ls.start(ctx, l, p)
}

// prepared prepares a launch, unless the day's budget forbids it. An error that may pass is no Refusal.
func (ls *Launches) prepared(ctx context.Context, l Order, prepare func() (Process, error)) (Process, error) {
	if l.Agent {
		if err := ls.dayTaken(l.job()); err != nil {
			return Process{}, err
		}
	}
	p, err := prepare()
	var no *job.Refusal
	if err == nil || errors.As(err, &no) || health.Passing(err) || ctx.Err() != nil {
		return p, err
	}
	return p, job.Unready("%v", err)
}

// Adopt returns the launch of a pid file. The error is fs.ErrNotExist if there is none, or only
// what a power cut left of one, which is removed.
func (ls *Launches) Adopt(pidFile string) (*agents.Proc, error) {
	proc, err := ls.opt.Runner.Adopt(pidFile, "")
	if !errors.Is(err, agents.ErrTorn) {
		return proc, err
	}
	if info, serr := os.Lstat(pidFile); serr != nil || !info.ModTime().Before(ls.Booted()) {
		return nil, err
	}
	if err := os.Remove(pidFile); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", pidFile, fs.ErrNotExist)
}

// endTorn ends a launch whose record was lost with a failed disk; its token identifies it. What is
// left of the record stays, so that nothing starts under the key again.
func (ls *Launches) endTorn(ctx context.Context, key string) error {
	return ls.opt.Runner.Stop(ctx, agents.Spec{Key: key, PidFile: ls.PIDFile(key), Token: ls.Token(key)})
}

// start starts the process. A start is never interrupted: whoever stops the launch afterwards finds
// it.
func (ls *Launches) start(ctx context.Context, l Order, p Process) (*agents.Proc, error) {
	in, err := ls.Below(l.Dir + "/stdout") // nor is its folder a link
	if err != nil {
		return nil, err
	}
	under := ""
	if l.Of != "" && l.Of != l.Key {
		under = ls.PIDFile(l.Of)
	}
	spec := agents.Spec{
		Key: l.Key, Dir: filepath.Dir(in), Below: filepath.Join(ls.Root, ".workflow"), PidFile: ls.PIDFile(l.Key),
		Under: under, Argv: p.Argv, Env: p.Env, Cwd: p.Cwd, Stdin: p.Stdin,
		Token: ls.Token(l.Key), KillAfter: time.Duration(ls.opt.Settings().KillAfter),
	}
	if err := ls.contain(ctx, l, p, &spec); err != nil {
		ls.dropGit(l.Key, false)
		ls.ends(l.Key) // nothing runs, and nothing else releases its resources
		return nil, err
	}
	proc, err := ls.opt.Runner.Ensure(context.WithoutCancel(ctx), spec)
	if spec.Cage != nil { // while the sandbox is being created
		ls.keepPrivate(l.Key)
		if err == nil {
			ls.makeAhead()
		}
	}
	return proc, err
}

// await waits for the launch's end. Meanwhile it ends one that is silent for too long, whose run
// fills the disk, or that has used up the day's budget. The error is ctx's.
func (ls *Launches) await(ctx context.Context, proc *agents.Proc, l Order) (Ended, error) {
	key, idle, dir := l.Key, l.Idle, ls.Path(l.Dir)
	var q quiet
	held := layout.IsDir(ls.PIDFile(key) + layout.InboxMark)
	m, room := ls.meterOf(l, dir), (*room)(nil)
	if held {
		room = ls.roomOf(key)
	}
	for {
		until, cancel, silent := ctx, context.CancelFunc(func() {}), time.Duration(0)
		if idle > 0 {
			silent = q.look(lastWord(proc, dir), ls.opt.Now())
		}
		if pause := lookAgain(idle, silent, l.Agent || room != nil); pause > 0 {
			until, cancel = context.WithTimeout(ctx, pause)
		}
		exit, err := proc.Wait(until)
		cancel()
		switch {
		case err == nil:
			ls.ends(key)
			m.hear(true)
			if held && !l.Agent {
				ls.leaveHome(key)
			}
			return Ended{Exit: ls.exitOf(exit, key), Dir: dir}, nil
		case ctx.Err() != nil:
			return Ended{}, ctx.Err()
		case until.Err() == nil: // waiting failed
			ls.Note(key, err.Error())
			if !health.Wait(ctx, time.Second) {
				return Ended{}, ctx.Err()
			}
		case idle > 0 && q.look(lastWord(proc, dir), ls.opt.Now()) >= idle:
			ls.endFor(ctx, proc, key, layout.IdleMark, "")
		default:
			m.look()
			if mark, why := ls.tooMuch(l, room); mark != "" {
				ls.endFor(ctx, proc, key, mark, why)
			}
		}
	}
}

// tooMuch returns the mark of a launch that has used too much, and its text; "" = it may go on.
func (ls *Launches) tooMuch(l Order, r *room) (mark, text string) {
	if why := r.over(); why != "" {
		return roomMark, why
	}
	if day, why := ls.dayUp(); l.Agent && why != "" {
		return dayMark, day + "\n"
	}
	return "", ""
}

// endFor ends a process; the mark beside its pid file records why.
func (ls *Launches) endFor(ctx context.Context, proc *agents.Proc, key, mark, text string) {
	if err := os.WriteFile(ls.PIDFile(key)+mark, []byte(text), 0o600); err != nil {
		ls.Note(key, err.Error())
	}
	if err := proc.Stop(ctx); err != nil && ctx.Err() == nil {
		ls.Note(key, err.Error())
		health.Wait(ctx, time.Second)
	}
}

// lastWord returns the time of the process's last output, or of its start.
func lastWord(proc *agents.Proc, dir string) time.Time {
	if at := agents.LastOutput(dir); at.After(proc.Launched()) {
		return at
	}
	return proc.Launched()
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

// exitOf converts a process's end for the engine.
func (ls *Launches) exitOf(x agents.Exit, key string) engine.Exit {
	out := engine.Exit{Code: x.Code, Signal: x.Signal, Stopped: x.Stopped, Lost: x.Lost, NotStarted: x.NotStarted}
	if name := signalOf(x.Code); name != "" && layout.IsDir(ls.PIDFile(key)+layout.InboxMark) {
		out.Code, out.Signal = -1, name // a sandbox exits with 128 plus the signal of its process
	}
	if x.Stopped {
		marked(&out, ls.PIDFile(key))
	}
	ls.forgive(&out, x.Started, x.Ended)
	if x.NoCommand {
		out.Class, out.Why = engine.ClassFatal, x.NotStarted
	}
	return out
}

// marked adds what the marks beside a pid file say of why its process was ended.
func marked(out *engine.Exit, pidFile string) {
	if _, err := os.Lstat(pidFile + layout.IdleMark); err == nil {
		out.Idle = true
	}
	if day := strings.TrimSpace(markOf(pidFile, dayMark)); day != "" {
		*out = waitsForDay(*out, day, "the day's budget is used up")
	}
	if why := markOf(pidFile, roomMark); why != "" {
		out.Class, out.Why = engine.ClassWork, why
	}
}

// maxMark limits what a mark contains, in bytes.
const maxMark = 1 << 10

// markOf returns what a mark beside a pid file contains; "" = there is none.
func markOf(pidFile, mark string) string {
	data, err := atomicfile.Read(pidFile+mark, maxMark)
	if err != nil {
		return ""
	}
	return string(data)
}

// endingMost is how long the machine may take to shut down. It stops processes in no order: an
// agent may exit by itself before its host is asked.
const endingMost = 5 * time.Minute

// forgive makes a launch not count that was lost, ended by a signal or failed while the service or
// the machine was stopped on purpose.
func (ls *Launches) forgive(x *engine.Exit, began, over time.Time) {
	fine := x.Code == 0 && x.Signal == "" && !x.Lost && !x.Stopped
	if ls.opt.PutDown == nil || x.Class != "" || fine {
		return
	}
	at, now := ls.opt.PutDown(), ls.opt.Now()
	// From before the clock was set back: every loss until then would not count.
	if began.IsZero() || at.After(now) {
		return
	}
	meanwhile := x.Code != 0 && over.Before(at.Add(endingMost))
	if began.Before(at) && (x.Lost || over.After(at) && (x.Signal != "" || x.Stopped || meanwhile)) {
		x.Class, x.ResumeAt, x.Why = engine.ClassLimit, now, "it was ended with the service, or with the machine, on purpose"
	}
}

// signalOf returns the signal of a sandbox's exit code; "" for any other code. The numbers are
// those that signal(7) gives for x86 and ARM.
func signalOf(code int) string {
	return map[int]string{3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
		11: "SIGSEGV", 15: "SIGTERM"}[code-128]
}

// leaveHome removes the private home of a judge's ended launch. What cannot be removed goes with
// the run's.
func (ls *Launches) leaveHome(key string) {
	if home := homeOf(ls.Layout, key, judgeHome(key)); layout.IsDir(home) {
		_ = os.RemoveAll(home)
	}
}

// unbegun releases the checkout of a launch that was prepared and not started.
func (ls *Launches) unbegun(key string) {
	if _, err := os.Lstat(ls.PIDFile(key)); errors.Is(err, fs.ErrNotExist) {
		ls.Cage.opt.Vacate(ls.PIDFile(key))
	}
}
