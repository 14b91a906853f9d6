package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/signals"
	"sluice/watcher"
)

// maxPasses bounds how often one scan goes on with a folder of many files.
const maxPasses = 16

// box is one folder that signals may lie in.
type box struct {
	path       string
	dir, place string // of FileSeen
	of         string // of FileSeen: it is a launch's own
	must       bool   // it has to be readable for the scan to count
}

// Scan reads the inboxes once: see daemon.World.
func (e *Executor) Scan(ctx context.Context, in job.Inboxes) (seen []engine.Event, more bool, err error) {
	e.one.Lock()
	defer e.one.Unlock()
	err = e.There()
	e.Note("repo", bareWhy(err))
	if err != nil {
		return nil, false, fmt.Errorf("inbox: %w", err)
	}
	if !layout.IsDir(e.Signals()) {
		if err := e.MakeBelow(".workflow/signals", 0o755); err != nil {
			return nil, false, fmt.Errorf("inbox: %w", err)
		}
	}
	var boxes []box
	if in.Only == nil {
		e.mu.Lock()
		e.liveRuns = slices.Clone(in.Runs)
		e.mu.Unlock()
		boxes = e.boxes(in)
	} else {
		boxes = e.some(in)
	}
	s := scan{e: e, in: in, digests: map[string]string{}, left: map[string]int{}, settle: time.Duration(e.opt.Settings().Settle)}
	before := e.overNow(boxes)
	for _, b := range boxes {
		if err := s.box(ctx, b); err != nil {
			return nil, false, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if in.Only == nil {
		e.letGo(before)
		e.release(boxes)
	}
	slices.SortStableFunc(s.seen, func(a, b engine.FileSeen) int {
		if c := s.rank(a) - s.rank(b); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	out := make([]engine.Event, len(s.seen))
	for i := range s.seen {
		out[i] = s.seen[i]
	}
	if in.Only == nil {
		out = append(out, e.counted()...)
	}
	return out, s.more, nil
}

// bareWhy is an error as Health tells it; "" for none.
func bareWhy(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// boxes lists the folders to read, and has them watched.
func (e *Executor) boxes(in job.Inboxes) []box {
	out := []box{{path: e.Signals(), must: true}}
	for _, run := range in.Runs {
		out = e.runBox(out, run)
	}
	out = e.ownBoxes(out, "")
	for _, run := range e.strays(in.Runs) {
		out = append(out, box{path: filepath.Join(e.Signals(), run), dir: run})
	}
	for _, key := range in.Trees {
		for _, dir := range e.treeInboxes(key) {
			if dir == e.Signals() {
				continue
			}
			out = append(out, box{path: dir, place: key})
			for _, run := range in.Runs {
				if sub := filepath.Join(dir, run); layout.IsDir(sub) {
					out = append(out, box{path: sub, dir: run, place: key})
				}
			}
		}
	}
	return out
}

// runBox adds the inbox of a run, which it makes.
func (e *Executor) runBox(out []box, run string) []box {
	if !ids.ValidRun(run) {
		return out
	}
	path := filepath.Join(e.Signals(), run)
	why := ""
	if !layout.IsDir(path) {
		if err := e.MakeBelow(".workflow/signals/"+run, 0o755); err != nil {
			why = err.Error()
		}
	}
	e.Note("inbox of "+run, why)
	return append(out, box{path: path, dir: run, must: true})
}

// some lists the folders of a look. What hints at the inbox itself may be the folder of a new run, whose own hints come
// only once it is watched.
func (e *Executor) some(in job.Inboxes) []box {
	var out []box
	for _, p := range in.Only {
		switch {
		case p.Dir == e.Signals():
			out = append(out, box{path: e.Signals(), must: true})
			for _, run := range in.Runs {
				if !e.watches(filepath.Join(e.Signals(), run)) {
					out = e.runBox(out, run)
				}
			}
		case filepath.Dir(p.Dir) == e.Signals():
			out = append(out, box{path: p.Dir, dir: filepath.Base(p.Dir), must: true})
		case strings.HasPrefix(p.Dir, filepath.Join(e.State, layout.LaunchesDir)+string(filepath.Separator)):
			out = e.ownBoxes(out, p.Dir)
		default:
			out = e.treeBox(out, in, p.Dir)
		}
	}
	return out
}

// treeBox adds a folder that is the inbox of a worktree, or a run's below it.
func (e *Executor) treeBox(out []box, in job.Inboxes, path string) []box {
	for _, key := range in.Trees {
		for _, dir := range e.treeInboxes(key) {
			switch run := filepath.Base(path); {
			case path == dir:
				return append(out, box{path: dir, place: key})
			case filepath.Dir(path) == dir && slices.Contains(in.Runs, run):
				return append(out, box{path: path, dir: run, place: key})
			}
		}
	}
	return out
}

// ownBoxes adds the inboxes of held launches; only, where it is not "", is the folder of one.
func (e *Executor) ownBoxes(out []box, only string) []box {
	e.mu.Lock()
	defer e.mu.Unlock()
	for dir, b := range e.private {
		for _, path := range []string{dir, filepath.Join(dir, b.run)} {
			if only != "" && only != path {
				continue
			}
			in := box{path: path, of: layout.LaunchOf(b.key)}
			if path != dir {
				in.dir = b.run
			}
			out = append(out, in)
		}
	}
	return out
}

// overNow gives those of the boxes whose launch is over already: what is not in them now never will be.
func (e *Executor) overNow(boxes []box) (out []box) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range boxes {
		if !e.private[b.path].over.IsZero() {
			out = append(out, b)
		}
	}
	return out
}

// letGo forgets the inboxes of launches that are over, once all that was in them has been taken in.
func (e *Executor) letGo(boxes []box) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range boxes {
		own, ok := e.private[b.path]
		if ok && (e.opt.Now().Sub(own.over) > privateMost || !holdsFile(b.path) && !holdsFile(filepath.Join(b.path, own.run))) {
			delete(e.private, b.path)
		}
	}
}

// holdsFile says that a folder has something in it that is no folder.
func holdsFile(dir string) bool {
	f, err := atomicfile.OpenDir(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxEntries) // what was read counts
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
}

func (e *Executor) watches(dir string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watched[dir]
}

// strays are the folders of runs that do not live in which something lies all the same: it is seen, and so refused by
// name. The inbox is not read for them while it is as it was when there was none.
func (e *Executor) strays(live []string) []string {
	st, err := atomicfile.Lstat(filepath.Dir(e.Signals()), filepath.Base(e.Signals()))
	if err == nil && st.Same(e.noStrays) && st.Nlink == e.noStrays.Nlink && len(live) == e.liveThen {
		return nil
	}
	e.noStrays = atomicfile.Stat{}
	f, err := atomicfile.OpenDir(e.Signals())
	if err != nil {
		return nil // the scan of the inbox itself tells
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries) // what was read counts
	lives := make(map[string]bool, len(live))
	for _, run := range live {
		lives[run] = true
	}
	var out []string
	others := false
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || name == rejected || !ids.ValidRun(name) || lives[name] || len(out) == maxStrays {
			continue
		}
		others = true
		if holdsFiles(filepath.Join(e.Signals(), name)) {
			out = append(out, name)
		}
	}
	if !others && (err == nil || errors.Is(err, io.EOF)) && e.opt.Now().Sub(st.ModTime) > watcher.AtRest {
		e.noStrays, e.liveThen = st, len(live)
	}
	return out
}

func holdsFiles(dir string) bool {
	f, err := atomicfile.OpenDir(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1) // one is enough
	return len(names) > 0
}

const (
	rejected   = "rejected"
	maxStrays  = 100
	maxEntries = 10_000 // of the inbox that are looked through for them
)

// treeInboxes are the folders in which what is written below a checkout's worktrees counts.
func (e *Executor) treeInboxes(key string) []string {
	var out []string
	if key != "." {
		out = append(out, filepath.Join(e.TreeDir(key), ".workflow", "signals"))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for dir, k := range e.places {
		if k == key && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// notePlace remembers the folder an attempt works in, where that is not the top level of its checkout.
func (e *Executor) notePlace(j job.Job) {
	if j.Attempt == nil || j.Attempt.Worktree == "" {
		return
	}
	dir, err := e.Below(j.Attempt.Worktree)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	in := filepath.Join(dir, ".workflow", "signals")
	if len(e.places) < watcher.MaxFolders/2 {
		e.places[in] = j.Attempt.Tree
	}
	if !slices.Contains(e.placed[j.Run], in) {
		e.placed[j.Run] = append(e.placed[j.Run], in)
	}
}

// release ends the watch of folders that nothing waits for any more.
func (e *Executor) release(boxes []box) {
	e.mu.Lock()
	var idle []string
	awaited := make(map[string]bool, len(boxes))
	for _, b := range boxes {
		awaited[b.path] = true
	}
	for dir := range e.watched {
		if !awaited[dir] {
			idle = append(idle, dir)
		}
	}
	e.mu.Unlock()
	e.untrouble(boxes)
	for _, dir := range idle {
		e.unwatch(dir)
		if filepath.Dir(dir) == e.Signals() {
			_ = os.Remove(dir) // of a run that is over: goes if it is empty
		}
	}
}

// scan is one reading of the inboxes.
type scan struct {
	e       *Executor
	in      job.Inboxes
	settle  time.Duration
	seen    []engine.FileSeen
	more    bool              // some folder holds more than was read
	digests map[string]string // by gate's round, of this scan
	left    map[string]int    // launch -> how many more files of its own inbox are handed on
	rounds  map[runGate]*job.Reviewed
	levels  map[string]string // by run
}

// box reads one folder.
func (s *scan) box(ctx context.Context, b box) error {
	if !b.must && !layout.IsDir(b.path) {
		return nil
	}
	err := s.e.watch(b.path)
	if err != nil && b.must {
		return err
	}
	for pass := 0; err == nil && pass < maxPasses; pass++ {
		var files []watcher.Seen
		var more bool
		files, more, err = s.e.opt.Watcher.Scan(b.path)
		if errors.Is(err, watcher.ErrMissing) && !b.must {
			return nil
		}
		if err != nil {
			break
		}
		for _, f := range files {
			if s.excess(b, f.Name) {
				s.e.drop(b, f.Name)
				s.e.opt.Watcher.Taken(b.path, f.Name)
				continue
			}
			if ev, ok := s.file(ctx, b, f); ok {
				s.seen = append(s.seen, ev)
				s.e.opt.Watcher.Taken(b.path, f.Name)
			}
		}
		if !more {
			break
		}
		s.more = s.more || pass == maxPasses-1
	}
	if err == nil {
		s.e.Note("inbox "+s.e.Shown(b.path), "")
		return nil
	}
	s.e.Note("inbox "+s.e.Shown(b.path), err.Error())
	// What has the name of a run's folder and is none holds nothing, and lies in the inbox itself: it is refused there and
	// moved away. It does not close all others.
	if b.must && (b.dir == "" || !errors.Is(err, watcher.ErrNotFolder)) {
		return err
	}
	return nil // only sentinels count there, and what is not seen now is seen later
}

// file says what a file is; not ok where it is not whole yet, or cannot be read now.
func (s *scan) file(ctx context.Context, b box, f watcher.Seen) (engine.FileSeen, bool) {
	digest := layout.HexSum(f.Data)
	ev := engine.FileSeen{Name: f.Name, Dir: b.dir, Place: b.place, ID: idOf(f.Stat, digest, f.Err), Written: begunAt(f),
		By: engine.Actor{Who: owner(filepath.Join(b.path, f.Name)), Via: "file"}, Of: b.of}
	ev.By.Trust = s.level(b, f.Name)
	if b.of != "" {
		ev.By.Who, ev.By.Via = b.of, "file of its own"
	}
	if f.Err != nil {
		if !errors.Is(f.Err, atomicfile.ErrNotRegular) && !errors.Is(f.Err, atomicfile.ErrTooLarge) {
			if !errors.Is(f.Err, fs.ErrNotExist) {
				s.e.opt.Logf("inbox: %q: %v", f.Name, f.Err)
			}
			return ev, false
		}
		ev.SentinelBad = fault.WithoutPath(f.Err).Error() + ": write a regular file of at most 64 KiB"
		ev.HumanBad = ev.SentinelBad
		return ev, true
	}
	ev.Digest = digest
	sentinel, state, err := signals.ParseSentinel(f.Data)
	if state == signals.Whole {
		ev.Sentinel = &engine.Sentinel{Step: sentinel.Step, Status: sentinel.Status, Summary: sentinel.Summary, Question: sentinel.Question,
			Options: sentinel.Options, Run: sentinel.Run, Attempt: sentinel.Attempt, Launch: sentinel.Launch, Answer: sentinel.Answer}
		switch {
		case b.of != "": // whose it is needs no proof
			ev.TokenOf = b.of
		case sentinel.Token != "":
			ev.TokenOf = s.e.TokenOf(sentinel.Token, s.in.Tokens, corrections)
		}
	} else {
		ev.SentinelBad = fmt.Sprintf("it is no sentinel (%s): %v", unwhole(state), err)
	}
	human, hstate, herr := signals.ParseHuman(f.Name, f.Data)
	if hstate == signals.Whole {
		ev.Human = &engine.HumanSay{Text: human.Text, Round: human.Round, Run: human.Run, By: human.By, Gate: human.Gate, Outcome: human.Outcome, Answer: human.Answer}
		if approval.Looks(f.Data) {
			s.signed(&ev, string(f.Data))
		}
	} else {
		ev.HumanBad = fmt.Sprintf("it is no answer (%s): %v", unwhole(hstate), herr)
	}
	// JSON that is whole cannot grow into anything else; all other text can. Under a name without the ending it may be on
	// its way to another: x-done.json.tmp, then mv.
	whole := len(f.Data) > 0 && strings.HasSuffix(f.Name, ".json") && (state == signals.Whole || hstate == signals.Whole)
	if !whole && !s.settled(f) {
		return ev, false
	}
	what := "inbox " + s.e.Shown(filepath.Join(b.path, f.Name))
	if ev.DigestNow, err = s.digestNow(ctx, ev); err != nil && s.rank(ev) > rankFail {
		if ctx.Err() == nil {
			s.e.Note(what, err.Error())
		}
		return ev, false // a pass waits until what it answers can be read
	}
	s.e.Note(what, "")
	return ev, true
}

// signed takes a file as what was signed in it: what is below its text holds or does not, whoever wrote the file.
func (s *scan) signed(ev *engine.FileSeen, data string) {
	p, words := s.e.Proven(data)
	*ev.Human = engine.HumanSay{Text: words, Proven: p}
	if x := p.Signed; x != nil && ev.Of == "" {
		ev.Human.Run, ev.Human.Round = x.Run, x.Round
		ev.By = engine.Actor{Who: x.Names[0], Via: "file of " + ev.By.Who, Trust: engine.TrustSigned, Key: x.Key}
	}
}

// level is what stood between an agent and the file.
func (s *scan) level(b box, name string) string {
	if b.of != "" || b.place != "" {
		return engine.TrustFile
	}
	if s.levels == nil {
		s.levels = map[string]string{}
	}
	run := b.dir
	if run == "" { // bare: of whichever run it is for; the least of those
		if q := s.asked(engine.FileSeen{Name: name}); q != nil {
			run = q.Run
		}
	}
	if _, ok := s.levels[run]; !ok {
		s.levels[run], _ = s.e.Level(run)
	}
	return s.levels[run]
}

func unwhole(state signals.State) string {
	if state == signals.Partial {
		return "it is not whole, and has not grown for a while"
	}
	return "it cannot be read"
}

// settled says that the file has been as it is for long enough.
func (s *scan) settled(f watcher.Seen) bool {
	now := s.e.opt.Now()
	quiet := now.Sub(f.Since)
	if age := now.Sub(f.Stat.ModTime); age > quiet {
		quiet = age // it was renamed into place, or we came late
	}
	return quiet >= s.settle
}

// asked gives the round that the file's name may answer: of two gates the one with the longer name.
func (s *scan) asked(ev engine.FileSeen) *job.Reviewed {
	run := ev.Dir
	if ev.Human != nil && ev.Human.Run != "" {
		if run != "" && run != ev.Human.Run {
			return nil
		}
		run = ev.Human.Run
	}
	if ev.Place != "" {
		return nil
	}
	if s.rounds == nil {
		s.rounds = roundsByGate(s.in.Asked)
	}
	for gate := ev.Name; ; {
		i := strings.LastIndexByte(gate, '-')
		if i < 0 {
			return nil
		}
		gate = gate[:i]
		if q := s.rounds[runGate{run, gate}]; q != nil {
			return q
		}
	}
}

// runGate is a gate of a run; of any, where run is "".
type runGate struct{ run, gate string }

// roundsByGate finds the rounds by run and gate, and by the gate alone, where the first counts.
func roundsByGate(asked []job.Reviewed) map[runGate]*job.Reviewed {
	out := make(map[runGate]*job.Reviewed, 2*len(asked))
	for i := range asked {
		q := &asked[i]
		for _, key := range []runGate{{q.Run, q.Gate}, {"", q.Gate}} {
			if out[key] == nil {
				out[key] = q
			}
		}
	}
	return out
}

// begunAt is when a file was begun, as far as it was seen: words that were being written while an older round was open
// are no answer to a newer one.
func begunAt(f watcher.Seen) time.Time {
	if !f.FirstSeen.IsZero() && f.FirstSeen.Before(f.Stat.ModTime) {
		return f.FirstSeen
	}
	return f.Stat.ModTime
}

// digestNow is the digest of what the file may answer; "" where it answers nothing.
func (s *scan) digestNow(ctx context.Context, ev engine.FileSeen) (string, error) {
	q := s.asked(ev)
	if q == nil {
		return "", nil
	}
	key := fmt.Sprintf("%s/%s/%s.%d", q.Run, q.Gate, q.Step, q.Attempt)
	if d, ok := s.digests[key]; ok {
		return d, nil
	}
	d, err := s.e.DigestNow(ctx, *q)
	if err != nil {
		return "", err
	}
	s.digests[key] = d
	return d, nil
}

// rank orders what one scan found: sentinels, then a person's veto, fail, pass and the rest.
func (s *scan) rank(ev engine.FileSeen) int {
	stem := ev.Name
	for _, ending := range []string{".json", ".md", ".txt"} {
		stem = strings.TrimSuffix(stem, ending)
	}
	if _, ok := signals.StepOf(ev.Name); ok {
		return rankSentinel
	}
	for i, word := range []string{engine.OutcomeVeto, engine.OutcomeFail, engine.OutcomePass} {
		if strings.HasSuffix(stem, "-"+word) {
			return rankVeto + i
		}
	}
	if s.asked(ev) != nil {
		return rankPass + 1
	}
	return rankSentinel
}

// The order of what one scan found.
const (
	rankSentinel = iota
	rankVeto
	rankFail
	rankPass
)
