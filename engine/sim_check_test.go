package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// glimpse is the part of the earlier state that checks need.
type glimpse struct {
	closes []closing
	taken  bool // the file was accepted before
}

// closing is a window or a grace that a scan is about to close.
type closing struct {
	run, step, gate string
	n, k            int
}

func (w *sim) before(t *told) *glimpse {
	pre := &glimpse{}
	if f, ok := t.ev.(FileSeen); ok {
		pre.taken = w.st.Moves[f.ID] != nil
	}
	ev, ok := t.ev.(Scanned)
	if !ok || w.beside == nil {
		return pre
	}
	for _, id := range w.st.Order {
		r := w.st.Runs[id]
		if r.Phase != RunRunning {
			continue
		}
		for _, st := range w.spec(r.Digest).Steps {
			if a := r.Current(st.ID); a != nil && a.inGrace() && !a.inGit() && passed(a.GraceUntil, ev.Began) {
				pre.closes = append(pre.closes, closing{run: id, step: st.ID, n: a.N, k: a.K})
			}
			if g, q := r.openRound(st); q != nil && q.State == OnWindow && !r.Paused && passed(q.WindowEnds, ev.Began) {
				pre.closes = append(pre.closes, closing{run: id, step: st.ID, gate: g, n: q.N})
			}
		}
	}
	return pre
}

// check checks the invariants of 8-semantics after every event.
func (w *sim) check(t *told, facts []Fact) {
	w.checkSettled()
	w.checkIndex()
	if why := w.st.Fault(w.spec); why != "" {
		w.fail("%s", why)
	}
	if why := cmp.Or(w.fates.take(facts), w.fates.kept(w.st)); why != "" {
		w.fail("%s", why)
	}
	w.checkProcs(facts)
	w.checkLists(t, facts)
	for _, f := range facts {
		w.clock++
		w.checkFact(t, f, facts)
	}
	for _, id := range w.st.Order {
		r := w.st.Runs[id]
		if !r.Live() {
			w.checkEnded(r, facts)
			continue
		}
		if r.Phase == RunRunning {
			w.checkRun(r)
		}
	}
}

// checkSettled: nothing more follows from the state alone.
func (w *sim) checkSettled() {
	d := &decider{}
	d.draft = draft{s: w.st, specs: w.seen, at: w.now}
	for _, r := range w.st.Runs {
		if r.Live() && (r.List == nil || !d.writeDue(r.List)) { // a writing comes by the clock
			d.again.add(r)
		}
	}
	if d.settle(); len(d.out) > 0 {
		w.fail("not settled after %s: %T %+v was still due", w.ev.ev.EventKind(), d.out[0], d.out[0])
	}
}

// checkProcs is I3 and the rules of worktrees and slots (24, 25).
func (w *sim) checkProcs(facts []Fact) {
	byTree, byStep, slots := map[string]string{}, map[string]string{}, 0
	for _, id := range w.st.Order {
		r := w.st.Runs[id]
		for _, p := range r.Procs {
			if p.Kind == ProcStep || p.Kind == ProcReview {
				slots++
			}
			x := w.procs[p.Key]
			if x != nil && x.run+x.step+x.gate != r.ID+p.Step+p.Gate {
				w.fail("key %s names two processes", p.Key)
			}
		}
	}
	for _, k := range w.keys { // what is really alive, whatever the engine believes
		x := w.procs[k]
		if x.exited || x.tree == "" {
			continue
		}
		if o := byTree[x.tree]; o != "" {
			w.fail("two processes in worktree %s: %s and %s", x.tree, o, k)
		}
		byTree[x.tree] = k
		if x.kind == ProcStep {
			if o := byStep[x.run+"/"+x.step]; o != "" {
				w.fail("two processes of one step: %s and %s", o, k)
			}
			byStep[x.run+"/"+x.step] = k
		}
	}
	for _, f := range facts {
		switch f := f.(type) {
		case StepLaunched:
			w.checkLaunch(f, facts)
			if slots > w.st.Config.MaxParallel && !f.Offered {
				w.fail("%s launched as number %d of %d", f.Key, slots, w.st.Config.MaxParallel)
			}
		case ReviewStarted:
			w.keyOnce(f.Key)
			w.checkUnpaused(f.Run, f.FactKind(), facts)
			w.checkGap(f.Key, f.Tree)
		case CheckStarted:
			w.keyOnce(f.Key)
			w.checkGap(f.Key, f.Tree)
		case HookStarted:
			w.keyOnce(f.Key)
			w.checkGap(f.Key, f.Tree)
		}
	}
}

func (w *sim) keyOnce(key string) {
	if w.keySeen[key] {
		w.fail("key %s returns", key)
	}
	w.keySeen[key] = true
}

func (w *sim) checkLaunch(f StepLaunched, facts []Fact) {
	w.keyOnce(f.Key)
	r := w.st.Runs[f.Run]
	a := r.Attempt(f.Step, f.N)
	if a.Via == viaSpec || strings.HasPrefix(a.Via, viaHandback) { // no process: it has reported already
		return
	}
	w.checkUnpaused(f.Run, f.FactKind(), facts)
	after := 0 // owed since, by another step
	for _, o := range facts[slices.Index(facts, Fact(f)):] {
		if _, ok := o.(RetryContextOwed); ok && o.RunID() == f.Run {
			after++
		}
	}
	if r.Phase == RunRunning && len(r.Writes) > after {
		w.fail("%s launched before the retry context was written", f.Key)
	}
	if a.State == Superseded || a.Reads {
		return
	}
	for _, id := range w.st.Order {
		o := w.st.Runs[id]
		if o.Phase != RunRunning {
			continue
		}
		for step := range o.Attempts {
			b := o.Current(step)
			if b == nil || b == a || b.Tree != f.Tree || b.Children || b.Reads {
				continue
			}
			if b.State == Ready && b.Since < a.Since && !o.Paused && len(o.Writes) == 0 && !b.NotBefore.After(w.now) {
				w.fail("%s/%s.%d was overtaken in its own worktree by %s", id, step, b.N, f.Key)
			}
			if b.State == Running || b.State == Signalled {
				w.fail("%s launched in the worktree of %s/%s.%d, which is %s", f.Key, id, step, b.N, b.State)
			}
			if g, q := o.openRound(w.spec(o.Digest).Step(step)); b.State == Gating && q != nil && q.State == OnReview && !(b.Apart && letGo(o, w.spec(o.Digest).Step(step), b, q)) {
				w.fail("%s launched in the worktree that gate %s reviews", f.Key, g)
			}
		}
	}
}

// letGo reports whether a person or a window came between the attempt and its round.
func letGo(r *Run, st *Step, a *Attempt, q *Round) bool {
	return slices.ContainsFunc(st.Gates, func(g string) bool {
		return slices.ContainsFunc(r.Rounds[g], func(o *Round) bool {
			return o.Attempt == a.N && o != q && (o.State != Approved || o.Level != LevelAuto && o.ByKind != "when")
		})
	})
}

// checkGap: from the step through its check, hook and first reviewer nothing else works in the
// worktree.
func (w *sim) checkGap(key, tree string) {
	for _, id := range w.st.Order {
		r := w.st.Runs[id]
		for _, st := range w.spec(r.Digest).Steps {
			a := r.Current(st.ID)
			if r.Phase != RunRunning || a == nil || a.Children || a.Reads || a.Tree != tree || strings.HasPrefix(key, fmt.Sprintf("%s/%s#%d.", id, st.ID, a.N)) {
				continue
			}
			first := 0
			for _, q := range r.Rounds[st.Gates[0]] {
				if q.Attempt == a.N {
					first++
				}
			}
			if g, q := r.openRound(st); a.State == Signalled && first == 0 || a.State == Gating && g == st.Gates[0] && first == 1 && q.State == OnReview && !strings.HasPrefix(key, id+"/"+g+"#") {
				w.fail("%s slips into worktree %s between %s/%s.%d and its verdict", key, tree, id, st.ID, a.N)
			}
		}
	}
}

// checkUnpaused is rule 29: a paused run starts nothing and closes no window.
func (w *sim) checkUnpaused(run, what string, facts []Fact) {
	if !w.st.Runs[run].Paused {
		return
	}
	for _, f := range facts {
		if p, ok := f.(RunPaused); ok && p.Run == run {
			return
		}
	}
	w.fail("%s in the pause of %s", what, run)
}

// checkFact checks the rules for a fact of its kind.
func (w *sim) checkFact(t *told, f Fact, facts []Fact) {
	switch f := f.(type) {
	case StepStarted:
		w.checkUnpaused(f.Run, f.FactKind(), facts)
	case WindowOpened:
		w.checkUnpaused(f.Run, f.FactKind(), facts)
	case StepSuperseded:
		w.marks["superseded "+f.Run+"/"+f.Step] = w.clock
	case WorkSent:
		w.marks["sent "+f.Run+"/"+f.Step] = w.clock
	case SignatureUsed:
		if w.marks["signed "+f.Nonce] != 0 {
			w.fail("gate %s#%d took a signature that was used before", f.Gate, f.N)
		}
		w.marks["signed "+f.Nonce] = w.clock
	case RoundPassed:
		w.checkPass(t, f, facts)
	case RoundFailed:
		r := w.st.Runs[f.Run]
		g := w.spec(r.Digest).Gate(f.Gate)
		if _, named := g.Route(f.Outcome); named {
			w.fail("gate %s failed by its route %s", f.Gate, f.Outcome)
		}
		if f.ByKind != "human" && w.spec(r.Digest).leadsBack(f.To, g.Step) && r.Fails[f.Gate] >= g.MaxRetries && !exhaustedTo(facts, f.Run, f.Gate, f.To) {
			w.fail("gate %s sent back by itself at count %d of %d", f.Gate, r.Fails[f.Gate], g.MaxRetries)
		}
	case RoundRouted:
		r := w.st.Runs[f.Run]
		g := w.spec(r.Digest).Gate(f.Gate)
		if n := r.Count(f.Gate, f.Outcome); f.ByKind != "human" && w.spec(r.Digest).leadsBack(f.To, g.Step) && n >= g.MaxRetries && !exhaustedTo(facts, f.Run, f.Gate, f.To) {
			w.fail("gate %s took its route %s back by itself at count %d of %d", f.Gate, f.Outcome, n, g.MaxRetries)
		}
	case ExhaustedTo:
		if w.marks["exhausted "+f.Run+"/"+f.Gate] != 0 {
			w.fail("gate %s went to %s twice", f.Gate, f.To)
		}
		w.marks["exhausted "+f.Run+"/"+f.Gate] = w.clock
	case CountReset:
		delete(w.marks, "exhausted "+f.Run+"/"+f.Gate)
	case StepSignalled:
		a := w.st.Runs[f.Run].Attempt(f.Step, f.N)
		if ev, ok := t.ev.(FileSeen); ok && ev.Dir == "" && ev.TokenOf == "" && ev.Sentinel.Attempt == 0 {
			// an unaddressed sentinel in the common inbox: the law takes it for the only live
			// attempt of that name
			return
		}
		if t.key != "" && f.Via != "exit" && f.Via != "timeout" && f.Via != viaSpec && f.Via != viaTasks && t.key != a.Key {
			w.fail("%s done by the word of %s", a.Key, t.key)
		}
	case RunEnded:
		if r := w.st.Runs[f.Run]; r != nil && f.Step != "" && f.Phase == RunFailed && w.spec(r.Digest).Step(f.Step).byNeed && len(r.Attempts[f.Step]) == 0 {
			w.fail("run failed for %s, to which nothing ever led", f.Step)
		}
	}
}

func exhaustedTo(facts []Fact, run, gate, to string) bool {
	return slices.ContainsFunc(facts, func(f Fact) bool {
		x, ok := f.(ExhaustedTo)
		return ok && x.Run == run && x.Gate == gate && x.To == to
	})
}

// checkPass is I4: a gate that needs a person passes only by a person's answer to that round.
func (w *sim) checkPass(t *told, f RoundPassed, facts []Fact) {
	r := w.st.Runs[f.Run]
	g, q := w.spec(r.Digest).Gate(f.Gate), r.Rounds[f.Gate][f.N-1]
	if f.ByKind == "window" {
		w.checkUnpaused(f.Run, "window closed", facts)
		if ev, ok := t.ev.(Scanned); !ok || q.WindowEnds.After(ev.Began) {
			w.fail("window of %s#%d closed before a scan begun after its end", f.Gate, f.N)
		}
	}
	if f.ByKind == "reviewer" && g.Reviewer.Level == LevelNotify {
		w.fail("gate %s passed without its window", f.Gate)
	}
	if (g.Reviewer.Level == LevelHuman || r.Forced[f.Gate]) && f.ByKind != "human" && f.ByKind != "when" {
		w.fail("human gate %s passed by %s", f.Gate, f.ByKind)
	}
	if f.ByKind != "human" && f.ByKind != "when" && (g.OnExhausted == Human || g.OnExhausted == "") && r.Fails[f.Gate] >= g.MaxRetries {
		w.fail("gate %s passed by %s after %d failures of %d", f.Gate, f.ByKind, r.Fails[f.Gate], g.MaxRetries)
	}
	if f.ByKind != "human" {
		return
	}
	switch {
	case t.saw != f.N:
		w.fail("gate %s#%d passed by an answer given to round %d", f.Gate, f.N, t.saw)
	case trustRank(q.Trust) > trustRank(TrustFile) && t.who != "person":
		w.fail("gate %s#%d, which wants %s, passed by an agent", f.Gate, f.N, q.Trust)
	case f.By == nil || f.By.Who != t.who:
		w.fail("gate %s#%d: who passed it is not on the record", f.Gate, f.N)
	}
	if now := digestNow(t.ev); q.Digest != "" && now != q.Digest {
		w.fail("gate %s#%d passed over %s, the answer was given over %s", f.Gate, f.N, q.Digest, now)
	}
}

func digestNow(ev Event) string {
	switch ev := ev.(type) {
	case Answered:
		return ev.DigestNow
	case FileSeen:
		return ev.DigestNow
	}
	return ""
}

// checkEnded is I7: an ended run has nothing live and owes only stops; a completed one has no
// process.
func (w *sim) checkEnded(r *Run, facts []Fact) {
	for step := range r.Attempts {
		if a := r.Current(step); a.Live() {
			w.fail("%s ended (%s) with %s.%d %s", r.ID, r.Phase, step, a.N, a.State)
		}
	}
	for gate := range r.Rounds {
		if q := r.CurrentRound(gate); q.Open() {
			w.fail("%s ended (%s) with %s#%d open", r.ID, r.Phase, gate, q.N)
		}
	}
	for _, p := range r.Procs {
		if p.Kind != ProcHook && r.wanted(p) {
			w.fail("%s ended and still wants %s", r.ID, p.Key)
		}
	}
	for _, f := range facts {
		if e, ok := f.(RunEnded); ok && e.Run == r.ID && e.Phase == RunCompleted {
			if v := r.look(w.spec(r.Digest)); v.active > 0 {
				w.fail("%s completed with %v to do", r.ID, v.steps(w.spec(r.Digest)))
			}
			for _, p := range r.Procs {
				if p.Step != "" {
					w.fail("%s completed with %s alive", r.ID, p.Key)
				}
			}
		}
	}
}

// checkRun checks I1, I2, I6 and I13 of a run that continues.
func (w *sim) checkRun(r *Run) {
	spec := w.spec(r.Digest)
	v := r.look(spec)
	for _, st := range spec.Steps {
		id := st.ID
		for i, a := range r.Attempts[id] {
			if a.N != i+1 || i+1 < len(r.Attempts[id]) && a.State != Superseded {
				w.fail("%s: attempt %d of %s is %s and not the newest", r.ID, a.N, id, a.State)
			}
		}
		a := r.Current(id)
		if v.of[st.place].active {
			for t := range downstreamByPass(spec, id, map[string]bool{}) {
				if b := r.Current(t); b != nil {
					w.fail("frontier: %s is at work or due while %s, where a pass of it leads, has attempt %d (%s)", id, t, b.N, b.State)
				}
			}
		}
		if a.Done() {
			for _, n := range st.Needs {
				if !r.Current(n).Done() {
					w.fail("%s passed, its need %s is not", id, n)
				}
			}
		}
		if a != nil && a.State == Gating {
			if _, q := r.openRound(st); q == nil {
				w.fail("%s.%d is gating without an open round", id, a.N)
			}
		}
		w.checkSent(r, spec, v, id, a)
	}
}

// downstreamByPass adds the targets of the step's passes and the steps that need it, recursively.
func downstreamByPass(w *Spec, id string, in map[string]bool) map[string]bool {
	for _, st := range w.Steps {
		if !in[st.ID] && (slices.Contains(st.Needs, id) || slices.Contains(w.LastGate(w.Step(id)).OnPass, st.ID)) {
			in[st.ID] = true
			downstreamByPass(w, st.ID, in)
		}
	}
	return in
}

// checkSent is I13: a fixing step stands only while what sent it stands.
func (w *sim) checkSent(r *Run, spec *Spec, v *view, id string, a *Attempt) {
	from, ok := r.Sent[id]
	if !ok || a == nil || from == id || len(r.Attempts[from]) == 0 || a.State != Passed {
		return
	}
	leads := func(u string) bool { return u == id || spec.graph.down[id][u] }
	for _, u := range v.steps(spec) {
		// What the fixing step leads to may be done anew; so may the step to which a list behind it was sent.
		if followed(r, spec, u)[from] && u != from && !leads(u) && !leads(r.Sent[u]) && w.marks["superseded "+r.ID+"/"+u] > w.marks["sent "+r.ID+"/"+id] {
			w.fail("fixing step %s passed for %s, whose input %s is done anew", id, from, u)
		}
	}
}

// followed returns the steps that followed from u's work before it was done anew: where a pass leads, and where it was
// last sent. An edge that was never taken, such as on_fail after a pass, leads to another branch.
func followed(r *Run, spec *Spec, u string) map[string]bool {
	in := map[string]bool{}
	var from func(id string)
	from = func(id string) {
		next := spec.graph.pass[id]
		for _, a := range slices.Backward(r.Attempts[id]) {
			if len(a.To) > 0 {
				next = slices.Concat(next, a.To)
				break
			}
		}
		for _, t := range next {
			if !in[t] && !IsEnd(t) {
				in[t] = true
				from(t)
			}
		}
	}
	from(u)
	return in
}
