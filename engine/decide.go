package engine

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Specs returns the linked spec with the digest, each time the same, or nil if this release cannot
// load it (8-semantics 37).
type Specs func(digest string) *Spec

// Decide returns the facts that follow from an event, already applied to st. The caller journals
// them with the event before it acts on or shows any of it; if it cannot, it must discard st. An
// event without facts changed nothing and need not be journaled.
func Decide(st *State, specs Specs, ev Event, at time.Time) []Fact {
	d := &decider{}
	d.draft = draft{s: st, specs: specs, at: at.UTC(), again: st.index.again}
	d.react(ev)
	d.settle()
	st.index.again = d.again // empty by now
	return d.out
}

// usualFacts is the capacity that suffices for most decisions.
const usualFacts = 4

// decider is one decision on its way. Its floors stand on one another, and each calls only itself
// and those below it.
type decider struct{ running }

type (
	running    struct{ listing }    // processes, time, and what they use
	listing    struct{ triggering } // task lists and child runs
	triggering struct{ steering }   // what starts runs by itself
	steering   struct{ signalling } // what people do with a run
	signalling struct{ judging }    // what files, commits and people say
	judging    struct{ ending }     // gates and where they send
	ending     struct{ budgeting }  // the end of a run, and what follows it
	budgeting  struct{ draft }
)

// draft is the state of a decision, and its facts so far.
type draft struct {
	s     *State
	specs Specs
	at    time.Time
	out   []Fact
	again list // runs to look at again: touched, or waiting for one that was

	look   *TasksSeen // the look at a task file being decided on
	digest string     // of last
	last   *Spec      // the spec last requested: most decisions need only one
}

// put applies and records a fact.
func (d *draft) put(f Fact) {
	d.s.apply(d.at, f)
	if d.out == nil {
		d.out = make([]Fact, 0, usualFacts)
	}
	d.out = append(d.out, f)
	if r := d.s.find(f.RunID()); r != nil {
		for _, k := range r.kids { // a child checks whether it is still wanted
			d.again.add(k)
		}
		for ; r != nil; r = d.s.Parent(r) {
			d.again.add(r)
		}
	}
	if crosses(f) {
		d.s.index.waiting(d.specs, d.again.add)
	}
}

func (d *draft) ignore(run, what, why string, who *Actor) {
	d.put(Ignored{Run: run, What: what, Why: why, Who: who})
}

// spec returns the run's pinned spec, or nil if it cannot be loaded.
func (d *draft) spec(r *Run) *Spec {
	if d.last == nil || r.Digest != d.digest {
		d.digest, d.last = r.Digest, d.specs.Of(r.Digest)
	}
	return d.last
}

// live returns the run and its spec, or nil unless it is live and its spec can be read.
func (d *draft) live(id string) (*Run, *Spec) {
	if r := d.s.Runs[id]; r.Live() {
		if w := d.spec(r); w != nil {
			return r, w
		}
	}
	return nil, nil
}

func (d *decider) react(ev Event) {
	switch ev := ev.(type) {
	case Configured:
		d.configured(ev)
	case RunRequested:
		d.requested(ev)
	case FileSeen:
		d.fileSeen(ev)
	case SlotAwaited:
		if r, _ := d.live(ev.Run); r != nil {
			if at := r.clock(ev.Key); at != nil && !at.IsZero() {
				d.put(ClockHeld{of: Of(ev.Run), Key: ev.Key})
			}
		}
	case SlotTaken:
		d.slotTaken(ev)
	case FilesDropped:
		d.dropped(ev)
	case FileMoved:
		if d.s.Moves[ev.ID] != nil {
			d.put(FileGone{ID: ev.ID})
		}
	case CommitSeen:
		d.commit(ev)
	case PullSeen:
		d.pull(ev)
	case Polled:
		d.polled(ev)
	case PullEnded:
		d.pullEnded(ev)
	case Claimed:
		d.claim(ev)
	case ProcessEnded:
		d.ended(ev)
	case Answered:
		if why := d.answer(ev); why != "" {
			d.ignore(ev.Run, ev.EventKind(), why, &ev.By)
		}
	case TasksSeen:
		d.tasksSeen(ev)
	case TasksSaved:
		d.tasksSaved(ev)
	case UsageSeen:
		d.usageSeen(ev)
	case DayNeared:
		d.dayNeared(ev)
	case Noticed:
		d.noticed(ev)
	case FileWritten:
		d.written(ev)
	case Looked:
		if r, _ := d.live(ev.Run); r != nil && r.Current(ev.Step) == nil {
			d.put(NeedsMet{of: Of(ev.Run), Step: ev.Step, Pins: ev.Pins})
		}
	default:
		d.reactSteering(ev)
	}
}

// reactSteering handles events from people and the clock.
func (d *decider) reactSteering(ev Event) {
	switch ev := ev.(type) {
	case PauseRequested:
		d.pause(ev)
	case ResumeRequested:
		d.resume(ev)
	case AbortRequested:
		d.abort(ev)
	case RetryRequested:
		d.retry(ev)
	case NoteGiven:
		d.note(ev)
	case TakeoverRequested:
		d.takeover(ev)
	case HandbackRequested:
		d.handback(ev)
	case SpecUnread:
		if r := d.s.Runs[ev.Run]; r.Live() && !r.Paused {
			d.stopFor(r, cmp.Or(ev.Lacks, pausedSpec), ev.Why)
		}
	case Scanned:
		d.scanned(ev)
	case Ticked:
		d.ticked()
	case Woken:
		d.woken(ev)
	default:
		if !d.reactTrigger(ev) {
			wrong("an event of unknown kind %T", ev)
		}
	}
}

func (d *budgeting) configured(ev Configured) {
	d.again = append(d.again, d.s.index.live...)
	other := ev.Config.Day != d.s.Config.Day
	d.put(SettingsTaken(ev))
	if other {
		d.liftBudget()
	}
}

func (d *draft) written(ev FileWritten) {
	r := d.s.Runs[ev.Run]
	if r == nil {
		return
	}
	i := slices.IndexFunc(r.Writes, func(w *Write) bool { return w.ID == ev.ID })
	if i < 0 {
		return
	}
	land := r.Writes[i].Kind == WriteLand // the notice of the run's end reports a failed landing
	d.put(WriteDone{of: Of(ev.Run), ID: ev.ID, Why: ev.Why})
	if ev.Why != "" && !land {
		d.notice(Notice{ID: ev.ID + ".unwritten", Kind: "info", Run: ev.Run, Text: ev.Why, Once: true})
	}
}

// notice owes a notice, unless it is pending or was sent and may be sent only once.
func (d *draft) notice(n Notice) {
	if r := d.s.Runs[n.Run]; n.Once && r != nil && r.Told[n.ID] || d.s.Notices[n.ID] != nil {
		return
	}
	d.put(NoticeOwed{Notice: n})
}

// noticed handles an attempted notice. A veto window opens only now.
func (d *draft) noticed(ev Noticed) {
	n := d.s.Notices[ev.ID]
	if n == nil {
		return
	}
	d.put(NoticeTried{ID: ev.ID, Run: n.Run, Gate: n.Gate, N: n.N, Results: ev.Results})
	r, _ := d.live(n.Run)
	if r == nil || n.Kind != NoticeGate {
		return
	}
	if q := r.CurrentRound(n.Gate); q != nil && q.N == n.N && q.State == OnNotice && !r.Paused {
		d.openWindow(r, n.Gate, q)
	}
}

func (d *draft) openWindow(r *Run, gate string, q *Round) {
	d.put(WindowOpened{of: Of(r.ID), Gate: gate, N: q.N, Until: d.at.Add(time.Duration(q.VetoWindow))})
}

// Kinds of notice.
const (
	NoticeGate     = "gate"     // a reviewer agreed: a veto window opens
	NoticeHuman    = "human"    // a person is asked
	NoticeReminder = "reminder" // a person has not answered for a while
	NoticeRejected = "rejected" // an inbox file was rejected
	NoticeEnded    = "ended"    // a run is over
	NoticePaused   = "paused"   // a limit or a fatal failure paused a run
	NoticeInfo     = "info"
)

// gateNotice returns the id of the notice that a round's window waits for.
func gateNotice(run, gate string, n int) string {
	return run + "/" + gate + "#" + strconv.Itoa(n) + ".gate"
}

// launchKey returns the key of a step's launch. Keys are never reused.
func launchKey(run, step string, n, k int) string {
	return run + "/" + step + "#" + strconv.Itoa(n) + "." + strconv.Itoa(k)
}

// afterKey returns the key of an attempt's check or hook, with its start: both may be done again.
func afterKey(run, step string, n int, what string, clock int64) string {
	return run + "/" + step + "#" + strconv.Itoa(n) + "." + what + "-" + strconv.FormatInt(clock, 10)
}
