package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/signals"
	"sluice/watcher"
)

type scan struct {
	x       *Inbox
	in      job.Inboxes
	settle  time.Duration
	seen    []engine.FileSeen
	more    bool              // some folder has more than was read
	unread  time.Time         // of the oldest fail or veto that waits to be whole; zero = none
	digests map[string]string // by gate's round, of this scan
	left    map[string]int    // launch -> how many more files of its own inbox are passed on
	rounds  map[runGate]*job.Reviewed
	levels  map[string]string // by run
	waits   int               // files that wait for what is not known now
}

// waitNotesMost limits the notes on waiting files, so that a flood leaves room for other faults.
const waitNotesMost = 5

func (s *scan) box(ctx context.Context, b box) error {
	if !b.must && !layout.IsDir(b.path) {
		return nil
	}
	err := s.x.watch(b.path)
	if err != nil && b.must {
		return err
	}
	for pass := 0; err == nil && pass < maxPasses; pass++ {
		var files []watcher.Seen
		var more bool
		files, more, err = s.x.opt.Watcher.Scan(b.path)
		if errors.Is(err, watcher.ErrMissing) && !b.must {
			return nil
		}
		if err != nil {
			break
		}
		for _, f := range files {
			if s.excess(b, f.Name) {
				s.x.drop(b, f.Name)
				s.x.opt.Watcher.Taken(b.path, f.Name)
				continue
			}
			ev, ok := s.file(ctx, b, f)
			if !ok {
				s.leave(b, ev)
				continue
			}
			s.seen = append(s.seen, ev)
			s.x.opt.Watcher.Taken(b.path, f.Name)
		}
		if !more {
			break
		}
		s.more = s.more || pass == maxPasses-1
	}
	s.x.NoteError("inbox "+s.x.Shown(b.path), err)
	// A file with the name of a run's folder is in the inbox itself, where it is refused and moved
	// away. It does not block the others.
	if err != nil && b.must && (b.dir == "" || !errors.Is(err, watcher.ErrNotFolder)) {
		return err
	}
	return nil // only sentinels count there; they are seen later
}

// leave notes a file that waits. A person's fail or veto keeps a window open meanwhile.
func (s *scan) leave(b box, ev engine.FileSeen) {
	refuses := slices.Contains([]int{rankVeto, rankFail}, s.rank(ev))
	if b.of == "" && b.place == "" && refuses && (s.unread.IsZero() || ev.Written.Before(s.unread)) {
		s.unread = ev.Written
	}
}

// file returns what a file is; not ok if it is incomplete or cannot be read now.
func (s *scan) file(ctx context.Context, b box, f watcher.Seen) (engine.FileSeen, bool) {
	digest := layout.HexSum(f.Data)
	ev := engine.FileSeen{Name: f.Name, Dir: b.dir, Place: b.place, ID: idOf(f.Stat, digest, f.Err), Written: begunAt(f),
		By: engine.Actor{Who: owner(f.Stat), Via: "file"}, Of: b.of}
	ev.By.Trust = s.level(b, f.Name)
	if b.of != "" {
		ev.By.Who, ev.By.Via = b.of, "file of its own"
	}
	if f.Err != nil {
		if !errors.Is(f.Err, atomicfile.ErrNotRegular) && !errors.Is(f.Err, atomicfile.ErrTooLarge) {
			if !errors.Is(f.Err, fs.ErrNotExist) {
				s.x.Logf("inbox: %q: %v", f.Name, f.Err)
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
		ev.Sentinel = &engine.Sentinel{Step: sentinel.Step, Status: sentinel.Status, Summary: sentinel.Summary,
			Question: sentinel.Question, Options: sentinel.Options, Run: sentinel.Run, Attempt: sentinel.Attempt,
			Launch: sentinel.Launch, Answer: sentinel.Answer}
		switch {
		case b.of != "": // its owner is known
			ev.TokenOf = b.of
		case sentinel.Token != "":
			ev.TokenOf = s.x.TokenOf(sentinel.Token, s.in.Tokens, s.x.opt.Corrections)
		}
	} else {
		ev.SentinelBad = fmt.Sprintf("it is not a sentinel (%s): %v", unwhole(state), err)
	}
	human, hstate, herr := signals.ParseHuman(f.Name, f.Data)
	if hstate == signals.Whole {
		ev.Human = &engine.HumanSay{Text: human.Text, Round: human.Round, Run: human.Run, By: human.By, Gate: human.Gate,
			Outcome: human.Outcome, Answer: human.Answer, Findings: human.Findings}
		if approval.Looks(f.Data) {
			s.signed(&ev, string(f.Data))
		}
	} else {
		ev.HumanBad = fmt.Sprintf("it is not an answer (%s): %v", unwhole(hstate), herr)
	}
	// Whole JSON cannot grow into anything else; other text can. Without the ending, the file may
	// still be renamed: x-done.json.tmp, then mv.
	whole := len(f.Data) > 0 && strings.HasSuffix(f.Name, ".json") && (state == signals.Whole || hstate == signals.Whole)
	if !whole && !s.settled(f) {
		return ev, false
	}
	what := "inbox " + s.x.Shown(filepath.Join(b.path, f.Name))
	if err = s.about(ctx, b, &ev); err != nil {
		if s.waits++; ctx.Err() == nil && s.waits <= waitNotesMost {
			s.x.Note(what, err.Error())
		}
		return ev, false
	}
	s.x.Note(what, "")
	return ev, true
}

// about finds out whether a file may say anything, and what the content is that it is about. With an
// error, it waits.
func (s *scan) about(ctx context.Context, b box, ev *engine.FileSeen) error {
	why, err := s.tracked(ctx, b, *ev)
	if err != nil {
		s.lookLater(b.path)
		return err
	}
	if why != "" {
		ev.Sentinel, ev.Human, ev.SentinelBad, ev.HumanBad = nil, nil, why, why
		return nil
	}
	if ev.DigestNow, err = s.digestNow(ctx, *ev); s.rank(*ev) <= rankFail {
		return nil // only a pass waits until what it answers can be read
	}
	return err
}

// lookLater is lookAt after a pause, where no event will tell that something is known.
func (s *scan) lookLater(dir string) {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.later[dir] = true; len(x.later) > 1 {
		return // it is due with the others
	}
	time.AfterFunc(health.AgainMost, func() {
		x.mu.Lock()
		maps.Copy(x.hinted, x.later)
		clear(x.later)
		x.mu.Unlock()
		x.nudge()
	})
}

// tracked refuses a file that git tracks in its checkout: whoever wrote a commit has written it, and git
// has put it there. What a person signed counts whoever brings it.
func (s *scan) tracked(ctx context.Context, b box, ev engine.FileSeen) (why string, err error) {
	top := s.x.Top
	if b.place != "" && b.place != "." {
		top = s.x.TreeDir(b.place)
	}
	signed := ev.Human != nil && ev.Human.Signed != nil
	if s.x.opt.Tracked == nil || top == "" || b.of != "" || signed {
		return "", nil
	}
	file := filepath.Join(b.path, ev.Name)
	is, err := s.x.opt.Tracked(ctx, top, file)
	if err != nil || !is {
		return "", err
	}
	return fmt.Sprintf("git tracks it, and what a commit brings is nobody's word: run `git rm --cached %s`, and have "+
		".workflow/.gitignore name /signals/", s.x.Shown(file)), nil
}

// signed reads a file by what was signed in it: the signature is valid or not, whoever wrote the
// file.
func (s *scan) signed(ev *engine.FileSeen, data string) {
	p, words := s.x.Proven(data)
	*ev.Human = engine.HumanSay{Text: words, Proven: p}
	if p.Signed != nil {
		ev.Human.Findings = p.Signed.Findings
	}
	if by := p.Signed; by != nil && ev.Of == "" {
		ev.Human.Run, ev.Human.Round = by.Run, by.Round
		ev.By = engine.Actor{Who: by.Names[0], Via: "file of " + ev.By.Who, Trust: engine.TrustSigned, Key: by.Key}
	}
}

// level returns what separated an agent from the file.
func (s *scan) level(b box, name string) string {
	if b.of != "" || b.place != "" {
		return engine.TrustFile
	}
	run := b.dir
	if run == "" { // no run given: the one it is for
		if q := s.asked(engine.FileSeen{Name: name}); q != nil {
			run = q.Run
		}
	}
	if _, ok := s.levels[run]; !ok {
		s.levels[run], _ = s.x.opt.Launches.Level(run)
	}
	return s.levels[run]
}

func unwhole(state signals.State) string {
	if state == signals.Partial {
		return "it is not whole, and has not grown for a while"
	}
	return "it cannot be read"
}

// settled reports whether the file has been unchanged for long enough.
func (s *scan) settled(f watcher.Seen) bool {
	now := s.x.opt.Now()
	// It may have been renamed into place, or we came late.
	return max(now.Sub(f.Since), now.Sub(f.Stat.ModTime)) >= s.settle
}

// asked returns the round that the file's name may answer; the longest matching gate name wins.
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

// runGate is a gate of a run; "" = any run.
type runGate struct{ run, gate string }

// roundsByGate indexes the rounds by run and gate, and by gate alone, where the first one counts.
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

// begunAt returns the earliest known time of a file: an answer begun while an older round was open
// does not count for a newer one.
func begunAt(f watcher.Seen) time.Time {
	if !f.FirstSeen.IsZero() && f.FirstSeen.Before(f.Stat.ModTime) {
		return f.FirstSeen
	}
	return f.Stat.ModTime
}

// digestNow returns the digest of the work that the file decides on; "" where it decides nothing, or where another
// machine checks the work.
func (s *scan) digestNow(ctx context.Context, ev engine.FileSeen) (string, error) {
	q := s.asked(ev)
	if q == nil || s.in.Elsewhere {
		return "", nil
	}
	key := fmt.Sprintf("%s/%s/%s.%d", q.Run, q.Gate, q.Step, q.Attempt)
	if d, ok := s.digests[key]; ok {
		return d, nil
	}
	d, err := s.x.opt.Judge.DigestNow(ctx, *q)
	if err != nil {
		return "", err
	}
	s.digests[key] = d
	return d, nil
}

// rank orders a scan's files: sentinels, then a person's veto, fail, pass and the rest.
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

// The order of a scan's files.
const (
	rankSentinel = iota
	rankVeto
	rankFail
	rankPass
)
