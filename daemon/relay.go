package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/strictjson"
	"sluice/internal/text"
	"sluice/journal"
)

// What a person says to a machine that follows is decided by the one that leads, once: each word has
// an id, and is for one epoch. The leader remembers the ids of its epoch; another leader has another
// epoch and refuses it.

const (
	sayIn     = 3 * time.Second // for each try
	sayAgain  = 100 * time.Millisecond
	wordBytes = requestMost + 64<<10
	wordsMost = 100000 // that one leader takes in, each remembered
	keptMost  = 256    // whose answers are kept for repeats
	copyIn    = 2 * time.Second
)

// word is what a machine that follows passes on.
type word struct {
	ID    string           `json:"id"`
	Epoch int64            `json:"epoch"` // that it is for
	From  string           `json:"from"`  // the machine
	Who   string           `json:"who"`
	Trust string           `json:"trust"` // as of that machine
	Do    Do               `json:"do"`
	File  *engine.FileSeen `json:"file,omitempty"` // in place of Do
	At    time.Time        `json:"at"`             // when it is sent, by that machine's clock
}

// reply is the leader's answer.
type reply struct {
	Refused bool   `json:"refused,omitempty"` // nothing was decided: it is for another epoch, or for none
	Code    int    `json:"code,omitempty"`    // of an error
	Error   string `json:"error,omitempty"`
	Advice  string `json:"advice,omitempty"`
	Done    Done   `json:"done,omitzero"`
}

func notRecorded(leader string) error {
	return errStatus{http.StatusConflict, fault.New("do it there",
		"not recorded: this machine only follows, and %s decides", cmp.Or(leader, "another one"))}
}

// say has the machine that leads decide on a word, and returns once that is recorded.
func say(ctx context.Context, lead Lead, w word) (Done, error) {
	unsure := false // a try had no answer: it may have been decided
	for {
		report := lead.Report()
		if !unsure {
			w.Epoch = report.Epoch
		}
		w.At = time.Now()
		raw, err := json.Marshal(w)
		if err != nil || len(raw) > wordBytes {
			return Done{}, asked("more than %d KiB", requestMost>>10)
		}
		try, cancel := context.WithTimeout(ctx, sayIn)
		answer, heard, err := lead.Say(try, raw)
		cancel()
		var a reply
		switch {
		case err != nil || heard && json.Unmarshal(answer, &a) != nil:
			unsure = true
		case !heard && !unsure:
			return Done{}, notRecorded(report.Leader)
		case heard && !a.Refused:
			return a.done(ctx, lead)
		}
		if !health.Wait(ctx, sayAgain) || a.Refused && unsure {
			break
		}
	}
	if unsure {
		return Done{}, errStatus{http.StatusGatewayTimeout, fault.New("`sluice status` shows whether it is",
			"%s has not answered: it is not known whether it is recorded", cmp.Or(lead.Report().Leader, "the leader"))}
	}
	return Done{}, notRecorded(lead.Report().Leader)
}

// done returns what the leader has decided, once this machine has it too, or a while later.
func (a reply) done(ctx context.Context, lead Lead) (Done, error) {
	if a.Error != "" {
		return Done{}, errStatus{a.Code, &fault.Error{Cause: text.Message(a.Error), Advice: text.Message(a.Advice)}}
	}
	ctx, cancel := context.WithTimeout(ctx, copyIn)
	defer cancel()
	for lead.Report().Seq < a.Done.Seq && health.Wait(ctx, sayAgain) {
	}
	return a.Done, nil
}

// passOn handles a request to a machine that follows.
func passOn(req *http.Request, f *follower) (Done, error) {
	opt := f.opt
	var d Do
	if err := json.NewDecoder(req.Body).Decode(&d); err != nil {
		return Done{}, asked("request: %w", err)
	}
	switch d.Kind {
	case engine.FileSeen{}.EventKind(), engine.Claimed{}.EventKind():
		return Done{}, notRecorded(opt.Lead.Report().Leader) // the work is there
	case engine.Answered{}.EventKind():
		if err := aboutWhatIsSeen(&d, f); err != nil {
			return Done{}, err
		}
	}
	level, _ := opt.World.Level(runOf(d.Event))
	return say(req.Context(), opt.Lead, word{ID: journal.NewID(), From: opt.Lead.Report().Machine,
		Who: username(), Trust: level, Do: d})
}

// aboutWhatIsSeen binds an answer to the round that this machine shows: there may be a newer one.
func aboutWhatIsSeen(d *Do, f *follower) error {
	var ev engine.Answered
	if err := json.Unmarshal(d.Event, &ev); err != nil {
		return badEvent(d.Kind, err)
	}
	return f.use(func(r *Reader) (err error) {
		if ev.Round, _ = roundOf(r.c.state, ev); ev.Round != 0 {
			d.Event, err = json.Marshal(ev)
		}
		return err
	})
}

// ear is a leader's memory of the words of its epoch.
type ear struct {
	r  *Repo
	mu sync.Mutex
	by map[string]*decided
	// the ids whose answers are kept, oldest first
	kept []string
	work sync.WaitGroup
}

// decided is a word that was taken in.
type decided struct {
	done   chan struct{}
	answer []byte // nil: not kept any more
}

// hear answers the words of other machines, beside the loop, until it is stopped: after the
// loop, so that what the loop has recorded last is answered.
func hear(r *Repo) (stop func()) {
	if r.opt.Lead == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &ear{r: r, by: map[string]*decided{}}
	e.work.Go(func() {
		for ctx.Err() == nil {
			if err := r.opt.Lead.Hear(ctx, e.answer); err != nil && ctx.Err() == nil {
				r.opt.Log.Warn().Err(err).Str("repo", r.opt.Root).Msg("other machines cannot pass on what people say")
				health.Wait(ctx, again)
			}
		}
	})
	return func() { cancel(); e.work.Wait() }
}

// answer has a word decided that was not heard yet, and answers a repeat like the first. While it is not known what
// becomes of it, for example because the disk is full, there is no answer: who said it says it again.
func (e *ear) answer(ctx context.Context, raw []byte) []byte {
	var w word
	err := strictjson.Object(raw, wordBytes)
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	if err != nil || !journal.IsID(w.ID) {
		return reply{Code: http.StatusBadRequest, Error: "what was passed on cannot be read", Advice: "upgrade"}.encode()
	}
	if report := e.r.opt.Lead.Report(); w.Epoch != report.Epoch || !report.Leads || !e.r.opt.Lead.Holds() {
		return reply{Refused: true}.encode()
	}
	e.mu.Lock()
	d := e.by[w.ID]
	if d == nil && len(e.by) >= wordsMost {
		e.mu.Unlock()
		return notHere(fault.New("do it there", "not recorded: too much was passed on since the daemon's start"))
	}
	if d == nil {
		d = &decided{done: make(chan struct{})}
		e.by[w.ID] = d
		e.work.Go(func() { e.decide(w, d) })
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sayIn)
	defer cancel()
	select {
	case <-d.done:
	case <-ctx.Done():
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if d.answer == nil {
		return reply{Code: http.StatusGone, Error: "it was decided on already", Advice: "`sluice status` says how"}.encode()
	}
	return d.answer
}

// decide has a word decided, and keeps the answer. A word that certainly did not reach the loop is forgotten: it may
// come again, and be decided on.
func (e *ear) decide(w word, d *decided) {
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	ev, err := e.event(ctx, w)
	heard := err == nil
	var done Done
	if heard {
		done, err = e.r.take(context.Background(), ev) // the loop's end ends it
	}
	answer := reply{Done: done}.encode()
	if err != nil {
		answer = notHere(deposed(e.r.opt.Lead, err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	d.answer = answer
	close(d.done)
	if !heard {
		delete(e.by, w.ID)
	} else if e.kept = append(e.kept, w.ID); len(e.kept) > keptMost {
		e.by[e.kept[0]].answer = nil
		e.kept = e.kept[1:]
	}
}

// event returns what the loop is to decide on.
func (e *ear) event(ctx context.Context, w word) (engine.Event, error) {
	by := e.r.intake.actor(w.Do)
	if w.File != nil {
		by.Via = "file"
		by.Trust, _ = e.r.opt.World.Level(w.File.Dir)
	}
	by.Who, by.Via = text.Line(w.Who), by.Via+" on "+text.Line(w.From)
	if w.Trust != engine.TrustSandbox { // neither machine may be worse
		by.Trust = engine.TrustFile
	}
	if w.File != nil {
		return e.r.intake.file(ctx, w, by)
	}
	switch w.Do.Kind {
	case engine.FileSeen{}.EventKind(), engine.Claimed{}.EventKind():
		return nil, notRecorded("")
	}
	return e.r.intake.event(ctx, w.Do, by)
}

// deposed turns the end of a loop that another machine has replaced into what it means: a decision
// that was not answered by then is in no record.
func deposed(lead Lead, err error) error {
	if lead == nil || !errors.Is(err, ErrStopped) {
		return err
	}
	select {
	case <-lead.Lost():
		return notRecorded(lead.Report().Leader)
	default:
		return err
	}
}

// notHere returns an error as an answer.
func notHere(err error) []byte {
	code := http.StatusInternalServerError
	if es, ok := errors.AsType[errStatus](err); ok {
		code = es.code
	}
	what, advice := fault.Split(err)
	return reply{Code: code, Error: what, Advice: advice}.encode()
}

func (a reply) encode() []byte {
	raw, err := json.Marshal(a)
	if err != nil || len(raw) > wordBytes { // facts may be large: what was decided is in the journal
		a.Done.Facts = nil
		raw, _ = json.Marshal(a)
	}
	return raw
}
