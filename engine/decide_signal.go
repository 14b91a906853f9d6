package engine

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/internal/text"
)

// mtimeSlack is how much older a file can seem than it is: file systems stamp with the kernel's
// coarse clock.
const mtimeSlack = 20 * time.Millisecond

// tellRejected limits pending notices of refused files, so that a flood does not drown others.
const tellRejected = 5

// reading is one meaning that a file's name can have now.
type reading struct {
	run     *Run
	step    *Step // a sentinel of this step …
	gate    *Gate // … or a person's answer at this gate
	outcome string
}

// fileSeen accepts an inbox file or records why not. Nothing is deleted: the file moves to the
// attempt's folder or to rejected/.
func (d *signalling) fileSeen(ev FileSeen) {
	if ev.ID != "" && d.s.Moves[ev.ID] != nil {
		return // accepted already; only the move is owed
	}
	sentinels, words := d.sentinels(ev), d.words(ev)
	fits := func(x reading) bool { return d.sentinelFits(ev, x) == "" }
	switch {
	// of two meanings, choose the one that is awaited
	case len(sentinels) > 0 && (len(words) == 0 || slices.ContainsFunc(sentinels, fits)):
		d.sentinel(ev, sentinels)
	case len(words) > 0 && ev.Of != "":
		d.reject(ev, "", "it was written by "+ev.Of+", from within its sandbox: an agent answers no gate")
	case len(words) > 0 && ev.Place != "":
		d.reject(ev, "", "a person's answer counts only in the repo's own .workflow/signals/, not in a worktree's")
	case len(words) > 0:
		d.word(ev, words)
	default:
		d.reject(ev, "", d.unknown(ev))
	}
}

// named returns the runs the file may be for: the one whose folder it is in, else all live runs
// whose spec knows the name, in order of start.
func (d *signalling) named(ev FileSeen, knows func(*Spec) bool) list {
	if ev.Dir != "" {
		if r, w := d.live(ev.Dir); r != nil && knows(w) {
			return list{r}
		}
		return nil
	}
	var out list
	for digest, kin := range d.s.index.kin {
		if w := d.specs.Of(digest); w != nil && knows(w) {
			out = append(out, *kin...)
		}
	}
	slices.SortFunc(out, func(a, b *Run) int { return a.seq - b.seq })
	return out
}

// sentinels returns the steps, over all live runs, whose sentinel the file may be.
func (d *signalling) sentinels(ev FileSeen) (out []reading) {
	for _, r := range d.named(ev, func(w *Spec) bool { return len(w.graph.files[ev.Name]) > 0 }) {
		for _, st := range d.spec(r).graph.files[ev.Name] {
			out = append(out, reading{run: r, step: st})
		}
	}
	if len(out) == 0 && ev.ID == "" && ev.TokenOf != "" && ev.Sentinel != nil {
		// No file: the daemon reports it for a step that it cannot offer, whatever its signal is.
		if r, w := d.live(ev.Dir); r != nil && w.Step(ev.Sentinel.Step) != nil {
			out = append(out, reading{run: r, step: w.Step(ev.Sentinel.Step)})
		}
	}
	return out
}

// words returns the gates, over all live runs, at which the file may be a person's answer.
func (d *signalling) words(ev FileSeen) (out []reading) {
	stem := humanStem(ev.Name)
	for _, r := range d.named(ev, func(w *Spec) bool { return len(w.graph.words[stem]) > 0 }) {
		for _, x := range d.spec(r).graph.words[stem] {
			out = append(out, reading{run: r, gate: x.gate, outcome: x.outcome})
		}
	}
	return out
}

// humanStem returns the name without the extensions a person's file may have.
func humanStem(name string) string {
	for _, ext := range []string{".json", ".md", ".txt"} {
		if s, ok := strings.CutSuffix(name, ext); ok {
			return s
		}
	}
	return name
}

func (d *signalling) unknown(ev FileSeen) string {
	if why := notLive(d.s.Runs[ev.Dir], ev.Dir); why != "" && ev.Dir != "" {
		return why
	}
	var known []string
	told := map[string]bool{} // digests
	for _, r := range d.s.index.live {
		w := d.spec(r)
		if w == nil || told[r.Digest] {
			continue
		}
		told[r.Digest] = true
		for _, st := range w.Steps {
			if st.Signal.Type == SignalFile {
				known = append(known, path.Base(st.Signal.Value))
			}
		}
		for _, g := range w.Gates {
			if !g.Implicit {
				known = append(known, g.ID+"-"+OutcomePass, g.ID+"-"+OutcomeFail)
			}
		}
	}
	why := "nothing waits for a file of this name"
	if near := text.Nearest(ev.Name, known); near != "" {
		why += fmt.Sprintf(": did you mean %s?", near)
	}
	return why
}

func (d *signalling) reject(ev FileSeen, run, why string) {
	d.put(Ignored{Run: run, What: ev.Name, Why: why, Who: &ev.By})
	if ev.ID == "" {
		return
	}
	d.put(FileTaken{Move: Move{ID: ev.ID, Name: ev.Name, Dir: ev.Dir, Place: ev.Place, Of: ev.Of, Why: why}})
	owed := 0
	for _, n := range d.s.Notices {
		if n.Kind == NoticeRejected {
			owed++
		}
	}
	if r := d.s.runOf(ev.Of); r != nil {
		owed = max(owed, r.Refused[ev.Of]-1)
		if r.Refused[ev.Of] == KeepRefused {
			d.put(Ignored{Run: r.ID, What: "files from within " + ev.Of,
				Why: fmt.Sprintf("%d of them were refused: more are counted and not kept", KeepRefused)})
		}
	}
	if owed >= tellRejected { // its .why file and the log report it
		return
	}
	d.notice(Notice{ID: "rejected:" + ev.ID, Kind: NoticeRejected, Text: ev.Name + ": " + why})
}

// dropped records how many more files of a launch's own inbox were not kept.
func (d *signalling) dropped(ev FilesDropped) {
	run := ""
	if r := d.s.runOf(ev.Of); r != nil {
		run = r.ID
	}
	d.put(Ignored{Run: run, What: fmt.Sprintf("%d more files from within %s", ev.N, ev.Of),
		Why: fmt.Sprintf("%d of its files were refused before: these were counted and not kept", KeepRefused)})
}

func (d *signalling) take(ev FileSeen, run, to, as string) {
	if ev.ID != "" {
		d.put(FileTaken{Move: Move{ID: ev.ID, Name: ev.Name, Dir: ev.Dir, Place: ev.Place, Of: ev.Of, Run: run,
			To: to, As: as}})
	}
}

// sentinel handles a step's sentinel. If several live attempts have that name, it must name one.
func (d *signalling) sentinel(ev FileSeen, xs []reading) {
	var fit []reading
	why := ""
	for i, x := range xs {
		if a := x.run.Current(x.step.ID); i < len(xs)-1 && (a == nil || a.State != Running) {
			continue // it cannot fit: of many, only the last provides the reason
		}
		if w := d.sentinelFits(ev, x); w != "" {
			why = w
			continue
		}
		fit = append(fit, x)
	}
	switch {
	case len(fit) == 0:
		run := ""
		if len(xs) == 1 {
			run = xs[0].run.ID
		}
		d.reject(ev, run, why)
		return
	case len(fit) > 1:
		d.reject(ev, "", fmt.Sprintf("%d live attempts have this name: say which: signals/<run>/%s", len(fit), ev.Name))
		return
	}
	r, st := fit[0].run, fit[0].step
	a, s := r.Current(st.ID), ev.Sentinel
	f := StepSignalled{of: Of(r.ID), Step: st.ID, N: a.N, K: a.K, Status: s.Status, Via: ev.Name,
		Summary:  clip(s.Summary, MaxFeedback),
		Question: clip(s.Question, MaxFeedback), Options: s.Options, Answer: s.Answer, LingerUntil: d.linger(r, a)}
	// a person drives it, claimed or not
	if st.Agent != nil && st.Agent.Launch == LaunchInteractive && ev.By.Via != ViaMCP {
		f.Makers = []string{ev.By.Who}
	}
	d.signalled(f)
	d.take(ev, r.ID, st.ID+"."+strconv.Itoa(a.N), "signal.json")
}

// signalled records the step's result. The summary of a failure becomes the feedback.
func (d *signalling) signalled(f StepSignalled) {
	f.Status = cmp.Or(f.Status, StatusDone)
	if f.Status == StatusFailed && f.Failure == "" {
		f.Failure = cmp.Or(f.Summary, "the step reported a failure without a reason")
	}
	if r := d.s.Runs[f.Run]; f.Status == StatusDone && r != nil {
		if why := badTasks(r, f.Step, f.Answer); why != "" {
			f.Status, f.Failure = StatusFailed, clip(why, MaxFeedback)
		}
	}
	d.put(f)
}

// linger returns until when the process may stay after its signal.
func (d *signalling) linger(r *Run, a *Attempt) time.Time {
	if r.Procs.Of(a.Key) == nil {
		return time.Time{}
	}
	return d.at.Add(time.Duration(d.s.Config.Linger))
}

// sentinelFits returns why the file is not the sentinel of the step's live attempt, or "".
func (d *signalling) sentinelFits(ev FileSeen, x reading) string {
	r, a := x.run, x.run.Current(x.step.ID)
	switch {
	case a.held():
		return fmt.Sprintf("%s.%d of %s is taken over by %s: sluice handback %s --done says that it is done",
			x.step.ID, a.N, r.ID, a.Held.Who, x.step.ID)
	case a == nil || a.State == Ready:
		return fmt.Sprintf("step %s of %s is not at work", x.step.ID, r.ID)
	case a.Children:
		return fmt.Sprintf("the work of %s.%d of %s is done by child runs", x.step.ID, a.N, r.ID)
	case a.State != Running:
		return fmt.Sprintf("attempt %s.%d of %s has already reported (%s)", x.step.ID, a.N, r.ID, a.State)
	case ev.Place != "" && ev.Place != a.Tree:
		return fmt.Sprintf("attempt %s.%d works in another worktree", x.step.ID, a.N)
	case ev.TokenOf != "" && ev.TokenOf != a.Key:
		return fmt.Sprintf("its token is not that of the live attempt %s.%d", x.step.ID, a.N)
	case ev.Sentinel == nil:
		return cmp.Or(ev.SentinelBad, cannotRead)
	}
	s := ev.Sentinel
	switch {
	case s.Step != "" && s.Step != x.step.ID:
		return fmt.Sprintf("it says step %q, its name says %s", s.Step, x.step.ID)
	case s.Run != "" && s.Run != r.ID:
		return fmt.Sprintf("it belongs to run %s, not %s", s.Run, r.ID)
	case s.Attempt != 0 && s.Attempt != a.N:
		return fmt.Sprintf("it belongs to attempt %d; live is %s.%d", s.Attempt, x.step.ID, a.N)
	case s.Launch != 0 && s.Launch != a.K:
		return fmt.Sprintf("it belongs to launch %d; live is launch %d of %s.%d", s.Launch, a.K, x.step.ID, a.N)
	case s.Status != "" && s.Status != StatusDone && s.Status != StatusFailed && s.Status != StatusBlocked:
		return fmt.Sprintf("status %q: want done, failed or blocked", s.Status)
	}
	if ev.TokenOf != "" || s.Attempt != 0 && s.Launch != 0 {
		return ""
	}
	if ev.Written.Add(mtimeSlack).Before(a.Launched) && !d.at.Before(a.Launched) { // the clock was not set back since
		return fmt.Sprintf("it was written before attempt %s.%d began", x.step.ID, a.N)
	}
	if s.Attempt != 0 {
		return ""
	}
	for _, old := range r.Attempts[x.step.ID][:a.N-1] {
		if old.Offered && old.State == Superseded && old.Status == "" {
			return fmt.Sprintf("attempt %s.%d was offered and superseded unanswered, so this may be its report: add "+
				"\"attempt\": %d", x.step.ID, old.N, a.N)
		}
	}
	return ""
}

// cannotRead is why a file does not count if nothing more is known.
const cannotRead = "its content cannot be read"

// commit handles a commit with the marker of a live attempt that waits for it.
func (d *signalling) commit(ev CommitSeen) {
	r, a := d.waiting(ev.Run, ev.Step, ev.N, ev.K, SignalCommit)
	if a == nil {
		return
	}
	for _, id := range d.s.Order { // a cherry-picked or amended copy keeps its original's author and date
		if d.s.besides(r, d.s.Runs[id]) {
			continue // theirs may be of the same second
		}
		for _, old := range d.s.Runs[id].Attempts[ev.Step] {
			if old.Author != "" && old.Author == ev.Author {
				if !r.Told["twin:"+ev.SHA] {
					d.ignore(r.ID, ev.EventKind(),
						fmt.Sprintf("commit %s is a copy of one that already counted for %s.%d of %s",
							short(ev.SHA), ev.Step, old.N, id), nil)
					d.notice(Notice{ID: "twin:" + ev.SHA, Kind: NoticeInfo, Run: r.ID, Step: ev.Step,
						Once: true, Text: "commit " + short(ev.SHA) + " does not count: it is a copy of one that did"})
				}
				return
			}
		}
	}
	f := StepSignalled{of: Of(r.ID), Step: ev.Step, N: a.N, K: a.K, Status: StatusDone, Via: "commit " + ev.SHA,
		Author:  ev.Author,
		Summary: clip(ev.Subject, 1000), LingerUntil: d.linger(r, a)}
	if a.Offered { // a launched agent commits under the repo's configured name, which does not identify who worked
		f.Makers = ev.Makers
	}
	d.signalled(f)
}

// besides reports whether two runs belong to different tasks of one list.
func (s *State) besides(a, b *Run) bool {
	for x := a; x != nil && x.Child != nil; x = s.Runs[x.Child.Parent] {
		for y := b; y != nil && y.Child != nil; y = s.Runs[y.Child.Parent] {
			if x.Child.Parent == y.Child.Parent && x.Child.Task != y.Child.Task {
				return true
			}
		}
	}
	return false
}

// pull handles a pull request whose head is the step's branch or commit.
func (d *signalling) pull(ev PullSeen) {
	if r, a := d.waiting(ev.Run, ev.Step, ev.N, ev.K, SignalPull); a != nil {
		d.signalled(StepSignalled{of: Of(r.ID), Step: ev.Step, N: a.N, K: a.K, Status: StatusDone,
			Via: strings.TrimSpace(ev.Ref + " " + ev.SHA), LingerUntil: d.linger(r, a)})
	}
}

// waiting returns the run and attempt if launch k still waits for this type of signal.
func (d *signalling) waiting(run, step string, n, k int, signal string) (*Run, *Attempt) {
	r, _ := d.live(run)
	if r == nil {
		return nil, nil
	}
	a := r.Current(step)
	if a == nil || a.N != n || a.K != k || a.State != Running || a.SignalType != signal {
		return nil, nil
	}
	return r, a
}

func (d *signalling) claim(ev Claimed) {
	r, _ := d.live(ev.Run)
	if r == nil {
		d.ignore(ev.Run, ev.EventKind(), "the run is over or unknown", &ev.By)
		return
	}
	switch a := r.Current(ev.Step); {
	case a == nil || a.N != ev.N || a.State != Running || !a.Offered:
		d.ignore(ev.Run, ev.EventKind(), fmt.Sprintf("%s.%d is not on offer", ev.Step, ev.N), &ev.By)
	case a.ClaimedBy != "":
		d.ignore(ev.Run, ev.EventKind(), fmt.Sprintf("%s.%d was taken by %s", ev.Step, ev.N, a.ClaimedBy), &ev.By)
	default:
		d.put(StepClaimed{of: Of(ev.Run), Step: ev.Step, N: ev.N, By: ev.By})
	}
}

func short(sha string) string { return sha[:min(len(sha), 10)] }

// clip cuts a text to at most n bytes and marks the cut.
func clip(s string, n int) string { return text.Cut(s, n, "\n[cut]") }
