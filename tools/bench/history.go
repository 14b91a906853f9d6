//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/journal"
	"sluice/specs"
)

// history writes a journal as a daemon would have written it: every record is an event that the engine decided on, with its
// facts. Only the world is left out, which answers each effect at once.
type history struct {
	st     *engine.State
	specs  map[string]*engine.Spec
	like   likeness
	log    *journal.Log
	batch  []journal.Entry
	at     time.Time
	n      int64 // records
	files  int   // that were seen: each has an id of its own
	pauses int   // how often a person pauses and resumes a run during each offered step: most records are short
}

// likeness is what a real run's record has from the world, beside what the engine decides.
type likeness struct {
	Trees  map[string]string
	Digest string // of what is there to be reviewed
}

// pace is how far two records of a history lie apart.
const pace = time.Millisecond

// newHistory begins one in a repo's state folder, whose journal it replaces. about is how many records it will have: the
// last of them is then of now.
func newHistory(s *site, like likeness, about int64) (*history, error) {
	dir, err := s.state(s.repos[0])
	if err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(dir, "snapshot*"))
	if err != nil {
		return nil, err
	}
	for _, f := range append(old, filepath.Join(dir, journal.FileName), filepath.Join(dir, "exported")) {
		if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	h := &history{st: engine.NewState(), specs: map[string]*engine.Spec{}, like: like, at: time.Now().Add(-time.Duration(about) * pace).UTC()}
	h.log, _, err = journal.Open(dir, journal.Options{})
	return h, err
}

// do decides one event.
func (h *history) do(ev engine.Event) ([]engine.Fact, error) {
	h.at = h.at.Add(pace)
	facts := engine.Decide(h.st, func(d string) *engine.Spec { return h.specs[d] }, ev, h.at)
	if len(facts) == 0 {
		return nil, nil
	}
	raw, err := engine.EncodeEvent(slim(ev))
	if err != nil {
		return nil, err
	}
	e := journal.Entry{At: h.at, Event: raw}
	for _, f := range facts {
		if raw, err = engine.EncodeFact(f); err != nil {
			return nil, err
		}
		e.Facts = append(e.Facts, raw)
	}
	h.n++
	if h.batch = append(h.batch, e); len(h.batch) == journal.MaxBatchEntries {
		err = h.flush()
	}
	return facts, err
}

func (h *history) flush() error {
	_, _, err := h.log.Append(h.batch...)
	h.batch = h.batch[:0]
	return err
}

// slim leaves out of an event what its facts say whole, as the daemon does.
func slim(ev engine.Event) engine.Event {
	switch ev := ev.(type) {
	case engine.RunRequested:
		ev.Source = ""
		return ev
	case engine.FileSeen:
		ev.Sentinel, ev.Human = nil, nil
		return ev
	}
	return ev
}

// start starts a run and answers what it owes until it waits for a person or has ended; it gives the run's id.
func (h *history) start(source string) (string, error) {
	sum := sha256.Sum256([]byte(source))
	digest := hex.EncodeToString(sum[:])
	if h.specs[digest] == nil {
		spec, faults := specs.Load("", []byte(source))
		if len(faults) > 0 {
			return "", faults[0]
		}
		spec.Digest = digest
		h.specs[digest] = spec
	}
	facts, err := h.do(engine.RunRequested{Workflow: h.specs[digest].ID, Digest: digest, Source: source, Trees: h.like.Trees, Parallel: true,
		By: engine.Actor{Who: "root", Via: "command", Trust: engine.TrustFile}})
	if err != nil {
		return "", err
	}
	for _, f := range facts {
		if s, ok := f.(engine.RunStarted); ok {
			return s.Run, h.drain(s.Run)
		}
	}
	return "", fmt.Errorf("no run was started: %+v", facts)
}

// drain answers what is owed until nothing is.
func (h *history) drain(run string) error {
	for {
		var owed []engine.Effect
		spec := func(d string) *engine.Spec { return h.specs[d] }
		for id := range h.st.Moves {
			owed = h.st.OwedBy(owed, engine.Debtor{Kind: engine.DoMove, ID: id}, spec)
		}
		for id := range h.st.Notices {
			owed = h.st.OwedBy(owed, engine.Debtor{Kind: engine.DoNotify, ID: id}, spec)
		}
		owed = h.st.OwedBy(owed, engine.Debtor{ID: run}, spec)
		if len(owed) == 0 {
			return nil
		}
		before := h.n
		for _, e := range owed {
			if e.Kind == engine.DoOffer {
				if err := h.pause(run); err != nil {
					return err
				}
			}
			if ev := h.answer(e); ev != nil {
				if _, err := h.do(ev); err != nil {
					return err
				}
			}
		}
		if h.n == before {
			return fmt.Errorf("%s waits for what the history does not answer: %+v", run, owed[0])
		}
	}
}

// pause has a person pause and resume the run, as often as is asked for.
func (h *history) pause(run string) error {
	by := engine.Actor{Who: "root", Via: "command", Trust: engine.TrustFile}
	for range h.pauses {
		if _, err := h.do(engine.PauseRequested{Run: run, By: by}); err != nil {
			return err
		}
		if _, err := h.do(engine.ResumeRequested{Run: run, By: by}); err != nil {
			return err
		}
	}
	return nil
}

// answer is what the world says to an effect.
func (h *history) answer(e engine.Effect) engine.Event {
	switch e.Kind {
	case engine.DoMove:
		return engine.FileMoved{ID: e.Key, To: fmt.Sprintf(".workflow/runs/%s/signal.json", e.Run)}
	case engine.DoWrite:
		return engine.FileWritten{Run: e.Run, ID: e.Key}
	case engine.DoNotify:
		return engine.Noticed{Run: e.Run, ID: e.Key, Results: []string{"log: written"}}
	case engine.DoOffer:
		h.files++
		return engine.FileSeen{Name: e.Step + "-done.json", Dir: e.Run, ID: fmt.Sprintf("fd00:%d:86:%d", h.files, h.at.UnixNano()), Written: h.at,
			Digest: hex.EncodeToString(fmt.Appendf(nil, "%016d", h.files)), By: engine.Actor{Who: "root", Via: "file", Trust: engine.TrustFile},
			Sentinel: &engine.Sentinel{Step: e.Step, Status: "done", Summary: "the work is done, and all its tests pass"}}
	case engine.DoRun:
		ev := engine.ProcessEnded{Run: e.Run, Key: e.Key}
		if e.Proc.Kind == engine.ProcCheck {
			ev.Check = &engine.CheckResult{OK: true, Digest: h.like.Digest}
		}
		return ev
	}
	return nil
}

// end closes the journal, and leaves the mark that its readable copies are written: they are not what is measured.
func (h *history) end(s *site) error {
	if err := h.flush(); err != nil {
		return err
	}
	seq, sum := h.log.Last()
	if err := h.log.Close(); err != nil {
		return err
	}
	dir, err := s.state(s.repos[0])
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{"seq": seq, "sum": sum})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "exported"), raw, 0o600)
}

// likenessOf has a real run wait for a person at all of its gates, and reads what is on its record.
func likenessOf(ctx context.Context, s *site, workflow string, gates int) (l likeness, err error) {
	if err := s.boot(ctx); err != nil {
		return l, err
	}
	if _, err := s.run(ctx, s.repos[0], s.b.sluice, "start", workflow); err != nil {
		return l, err
	}
	if err := s.waitHumans(ctx, s.repos[0], gates); err != nil {
		return l, err
	}
	api, err := s.client(s.repos[0])
	if err != nil {
		return l, err
	}
	defer api.Close()
	err = api.Facts(ctx, "", 0, false, func(line daemon.Line) error {
		f, err := engine.DecodeFact(line.Fact)
		switch f := f.(type) {
		case engine.RunStarted:
			l.Trees = f.Trees
		case engine.RoundOpened:
			l.Digest = f.Digest
		}
		return err
	})
	if err != nil {
		return l, err
	}
	if err := s.stop(); err != nil {
		return l, err
	}
	return l, os.RemoveAll(filepath.Join(s.repos[0], ".workflow", "runs"))
}

// copyAttempts gives each run what is kept of a run's attempts beside the journal: that of the real run.
func copyAttempts(s *site, from string, runs []string) error {
	dir, err := s.state(s.repos[0])
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "attempts")
	kept, err := os.ReadDir(filepath.Join(dir, from))
	if err != nil {
		return err
	}
	for _, k := range kept {
		text, err := os.ReadFile(filepath.Join(dir, from, k.Name()))
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := writeFile(filepath.Join(dir, run, k.Name()), string(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// gatesSpec is a workflow of n steps side by side, each judged by a person; flowSpec one of n offered steps in a row.
func gatesSpec(id string, n int) string {
	var steps, gates strings.Builder
	for i := range n {
		fmt.Fprintf(&steps, "  - {id: S%d, run: [\"true\"], needs: [], gate: G%d}\n", i, i)
		fmt.Fprintf(&gates, "  - {id: G%d, reviewer: {level: human}, on_pass: {next_step: DONE}}\n", i)
	}
	return "workflow: {id: " + id + "}\nsteps:\n" + steps.String() + "gates:\n" + gates.String()
}

func flowSpec(id string, n int) string {
	var steps, gates strings.Builder
	for i := range n {
		next := "DONE"
		if i < n-1 {
			next = fmt.Sprint("S", i+1)
		}
		fmt.Fprintf(&steps, "  - {id: S%d, agent: {type: worker, launch: subagent}, gate: G%d}\n", i, i)
		fmt.Fprintf(&gates, "  - {id: G%d, reviewer: {level: auto, from: step}, on_pass: {next_step: %s}}\n", i, next)
	}
	return "workflow: {id: " + id + "}\nsteps:\n" + steps.String() + "gates:\n" + gates.String()
}
