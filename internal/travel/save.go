package travel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"sluice/daemon"
	"sluice/internal/cluster"
	"sluice/internal/git"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// Options are what Work needs.
type Options struct {
	layout.Layout
	Notes *health.Notes
	Git   *git.Repo // nil: there are no commits
	Packs *cluster.Packs
}

// Work stores and brings the work of one repo's runs. It is safe for concurrent use.
type Work struct {
	opt Options

	sweeping sync.RWMutex // held for writing while what is over is removed

	mu     sync.Mutex             // guards what follows
	alone  map[string]*sync.Mutex // by root run: held while its sheet changes
	away   map[string]daemon.Work // root runs whose work has to come yet, with what the journal names
	listed map[string][]string    // by the digest of a stored sheet: the objects that it names
}

// New returns the Work of a repo.
func New(o Options) *Work {
	return &Work{opt: o, alone: map[string]*sync.Mutex{}, away: map[string]daemon.Work{}, listed: map[string][]string{}}
}

// one locks a run's sheet.
func (w *Work) one(run string) (unlock func()) {
	w.mu.Lock()
	m := w.alone[run]
	if m == nil {
		m = &sync.Mutex{}
		w.alone[run] = m
	}
	w.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// result is what an attempt has made, of a run or one of its child runs.
type result struct {
	run, step string
	n         int
	digest    string
}

// did is what was done in a run just now.
type did struct {
	results []result
	moved   []string // IDs of moves of branches, the newest last
}

// save stores what was done in a run; without any, what has changed beside the commits.
func (w *Work) save(ctx context.Context, root string, done did) error {
	defer w.one(root)()
	return w.saveOne(ctx, root, done)
}

func (w *Work) saveOne(ctx context.Context, root string, done did) error {
	w.sweeping.RLock()
	defer w.sweeping.RUnlock()
	s, was, err := w.kept(root)
	if err != nil || was == "" && len(done.results) == 0 {
		return err
	}
	for _, r := range append(slices.Clone(done.results), result{run: root}) {
		if !slices.Contains(s.Runs, r.run) {
			s.Runs = append(s.Runs, r.run)
		}
	}
	for _, id := range done.moved {
		s.has(id)
	}
	for _, r := range done.results {
		if err := w.addCommits(ctx, &s, r); err != nil {
			return err
		}
		s.has(r.digest)
	}
	if err := w.addBranches(ctx, &s); err != nil {
		return err
	}
	if err := w.gather(&s); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if layout.HexSum(data) == was {
		return nil
	}
	now, err := w.opt.Packs.Put(ctx, bytes.NewReader(data))
	if err == nil {
		err = w.opt.Packs.Name(ctx, nameOf(root, s.Has[len(s.Has)-1]), now)
	}
	if err != nil {
		return err
	}
	return w.keep(s, now)
}

// nameOf is the name of a run's sheets from a result or a move on. A machine that decides no more, and
// does not know it yet, names no other's.
func nameOf(run, id string) string { return names + run + "/" + id }

const names = "work/"

// addCommits stores the commits of an attempt that the sheet lacks.
func (w *Work) addCommits(ctx context.Context, s *sheet, a result) error {
	var b tree.Begin
	err := layout.Load(w.opt.AttemptFile(a.run, a.step, a.n, layout.BeganFile), &b)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	base, err := w.opt.Git.TipOf(ctx, git.Own("base", s.Run))
	if err != nil {
		return err
	}
	name := layout.AttemptName(a.run, a.step, a.n)
	for _, c := range []struct{ ref, commit string }{
		{git.Own("base", s.Run), base.SHA}, {git.Own("tip", name), b.Head}, {git.Own("found", name), b.Found},
		{git.Own("found", name+".look"), b.Look}, {git.Own("taken", name), tree.CommitIn(a.digest)},
	} {
		if err := w.addPack(ctx, s, c.ref, c.commit); err != nil {
			return err
		}
	}
	if b.Top != "" {
		p := s.at(b.Top)
		p.Branch, p.Taken = b.On, tree.CommitIn(a.digest)
		p.Own = w.opt.Git.Checkout() && b.Top != w.opt.Git.Top() && layout.Inside(w.opt.Root, b.Top)
	}
	return nil
}

// addPack stores a commit that the sheet lacks, on those that it has, and notes where it is kept.
func (w *Work) addPack(ctx context.Context, s *sheet, ref, commit string) error {
	if commit == "" {
		return nil
	}
	if p := s.pack(commit); p != nil {
		if !slices.Contains(p.Refs, ref) {
			p.Refs = append(p.Refs, ref)
		}
		return nil
	}
	p := pack{Commit: commit, Refs: []string{ref}}
	for _, b := range s.Packs {
		p.Bases = append(p.Bases, b.Commit)
	}
	var err error
	if len(p.Bases) == 0 {
		if p.Bases, err = w.shared(ctx, commit); err != nil {
			return err
		}
	}
	p.Object, err = w.opt.Packs.PutFrom(ctx, func(to io.Writer) error {
		return tree.Pack(ctx, w.opt.Git, to, commit, p.Bases...)
	})
	if err != nil {
		return fmt.Errorf("commit %.12s: %w", commit, err)
	}
	s.Packs = append(s.Packs, p)
	return nil
}

// sharedMost is how many branches of remotes are looked at.
const sharedMost = 20

// shared returns commits of remotes that the commit is built on: the other machines' clones have them,
// or can fetch them.
func (w *Work) shared(ctx context.Context, commit string) (list []string, err error) {
	refs, err := w.opt.Git.Refs(ctx)
	if err != nil {
		return nil, err
	}
	tips := map[string]bool{}
	for name, sha := range refs {
		if strings.HasPrefix(name, "refs/remotes/") && len(tips) < sharedMost {
			tips[sha] = true
		}
	}
	for tip := range tips {
		bases, err := w.opt.Git.MergeBases(ctx, commit, tip)
		if err != nil {
			return nil, err
		}
		for _, b := range bases {
			if !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

// addBranches notes where the branches are that the run's passed work goes to.
func (w *Work) addBranches(ctx context.Context, s *sheet) error {
	for i, p := range s.Places {
		if p.Branch == "" {
			continue
		}
		tip, err := w.opt.Git.TipOf(ctx, p.Branch)
		if err == nil {
			s.Places[i].Tip = tip.SHA
			err = w.addPack(ctx, s, git.Own("tip", fmt.Sprintf("%s/branch.%d", s.Run, i)), tip.SHA)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
