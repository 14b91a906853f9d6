package daemon

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/text"
	"sluice/journal"
)

// Files that people put into the inbox of a machine that follows are passed on too. Those of agents
// are not: what an agent made is where it works.

// lookEvery is the time between two looks at the files of an inbox.
const lookEvery = time.Second

// passFilesOn passes on people's files until ctx ends.
func passFilesOn(ctx context.Context, follows *follower) {
	opt := follows.opt
	said := map[string]string{} // by the file's identity: the id of its word
	for ctx.Err() == nil {
		pause := cmp.Or(opt.Rescan, rescanEvery)
		if inboxHas(opt.Root) && opt.Lead.Report().Epoch > 0 {
			pause = lookEvery
			if err := passFiles(ctx, follows, said); err != nil && ctx.Err() == nil {
				opt.Log.Warn().Err(err).Str("repo", opt.Root).Msg("a file of the inbox is not passed on yet")
			}
		}
		select {
		case <-ctx.Done():
		case <-opt.World.Hints():
			opt.World.Hinted() // all folders are read
		case <-time.After(pause):
		}
	}
}

// inboxHas reports whether the repo's inbox, or a run's folder in it, has a file.
func inboxHas(root string) bool {
	dir := filepath.Join(root, ".workflow", "signals")
	for _, pattern := range []string{"*", "*/*"} {
		files, _ := atomicfile.Glob(dir, pattern) // the pattern is good
		for _, f := range files {
			st, err := os.Lstat(f)
			if err == nil && st.Mode().IsRegular() && filepath.Dir(f) != filepath.Join(dir, "rejected") {
				return true
			}
		}
	}
	return false
}

// passFiles passes on the files that answer a gate, and moves each away once it is decided on.
func passFiles(ctx context.Context, follows *follower, said map[string]string) error {
	opt := follows.opt
	var files []engine.FileSeen
	err := follows.use(func(r *Reader) error {
		in := inboxes(r.c.state, nil)
		in.Elsewhere = true
		seen, _, err := opt.World.Scan(ctx, in)
		for _, ev := range seen {
			f, ok := ev.(engine.FileSeen)
			if ok && f.Of == "" && f.Place == "" && f.TokenOf == "" && answers(r.c.state, f) {
				files = append(files, f)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		if said[f.ID] == "" {
			said[f.ID] = journal.NewID()
		}
		level, _ := opt.World.Level(f.Dir)
		if f.By.Trust != engine.TrustSandbox {
			level = engine.TrustFile
		}
		done, failed := say(ctx, opt.Lead, word{ID: said[f.ID], From: opt.Lead.Report().Machine, Who: f.By.Who, Trust: level,
			File: &f})
		if failed != nil {
			err = failed
			continue
		}
		for _, raw := range done.Facts {
			if taken, ok := decoded(raw).(engine.FileTaken); ok && taken.Move.Name == f.Name {
				m := taken.Move
				m.ID = f.ID
				opt.World.Carry(ctx, job.Job{Effect: engine.Effect{Kind: engine.DoMove, Key: m.ID, Run: m.Run, Move: &m}},
					func(engine.Event) {})
			}
		}
	}
	return err
}

func decoded(raw []byte) engine.Fact {
	f, err := engine.DecodeFact(raw)
	if err != nil {
		return nil
	}
	return f
}

// answers reports whether the file's name is an answer to a gate of a live run.
func answers(st *engine.State, f engine.FileSeen) bool {
	for _, run := range st.LiveRuns() {
		if f.Dir != "" && f.Dir != run.ID {
			continue
		}
		for gate := range run.Rounds {
			if strings.HasPrefix(f.Name, gate+"-") {
				return true
			}
		}
	}
	return false
}

// file returns a file of another machine as this one's loop takes it in: its time by this clock,
// what it answers as it is here, and an identity that no file has here. It is nobody's signal.
func (n *intake) file(ctx context.Context, w word, by engine.Actor) (engine.FileSeen, error) {
	f := *w.File
	f.ID, f.By, f.Written = "elsewhere-"+w.ID, by, n.opt.Now().Add(f.Written.Sub(w.At))
	f.Of, f.Place, f.TokenOf, f.DigestNow = "", "", "", ""
	f.Sentinel, f.SentinelBad = nil, "a signal counts only where the work is"
	n.provenHere(&f)
	f.HumanBad = text.Message(f.HumanBad)
	var over []job.Reviewed
	if err := n.queue.ask(ctx, func(c *core) { over = inboxes(c.state, nil).Asked }); err != nil {
		return f, err
	}
	for _, q := range over {
		outcome, ok := strings.CutPrefix(f.Name, q.Gate+"-")
		outcome, _, _ = strings.Cut(outcome, ".")
		if !ok || engine.Refuses(outcome) || f.Dir != "" && f.Dir != q.Run || q.Digest == "" {
			continue
		}
		var err error
		f.DigestNow, err = n.opt.World.DigestNow(ctx, q)
		return f, err
	}
	return f, nil
}

// provenHere checks the signature of a file again: what another machine says of it counts for nothing.
func (n *intake) provenHere(f *engine.FileSeen) {
	h := f.Human
	if h == nil || h.Proven == (engine.Proven{}) {
		return
	}
	p, words := n.opt.World.Proven(h.Proven.Proof)
	if p.Signed == nil && p.Unproven == "" {
		p.Unproven = "its signature was not passed on with it"
	}
	f.Human = &engine.HumanSay{Text: words, Proven: p}
	if by := p.Signed; by != nil {
		f.Human.Findings, f.Human.Run, f.Human.Round = by.Findings, by.Run, by.Round
		f.By.Who, f.By.Via, f.By.Trust, f.By.Key = by.Names[0], f.By.Via+" of "+f.By.Who, engine.TrustSigned, by.Key
	}
}
