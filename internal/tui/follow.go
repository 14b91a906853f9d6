package tui

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sluice/daemon"
	"sluice/internal/health"
	"sluice/internal/render"
)

// Pace and limits of following.
const (
	reposEvery  = 3 * time.Second        // between two reads of the list of repos
	againAfter  = time.Second            // before a lost repo is tried again
	triesMost   = 5                      // tries before an unserved, unreadable repo is read again
	healthEvery = 10 * time.Second       // between reads of what no fact has: health, the day's budget
	gatherFor   = 100 * time.Millisecond // facts within this time share a refresh
	aloneMost   = 64                     // with more changed runs, all are read at once
)

type reposSeen struct {
	roots []string
	note  string
}

// repoSeen is the state of a repo: whole, or only the changed runs.
type repoSeen struct {
	root    string
	served  bool
	whole   bool
	status  daemon.Status
	dropped []string // runs that are unknown by now
}

// repoLost reports a repo that cannot be read, or is no longer served.
type repoLost struct {
	root, why string
}

// follower keeps the screen up to date about all repos.
type follower struct {
	host Host
	one  *one // only this run; nil = all
	send func(any)
	wg   sync.WaitGroup
}

// run follows the list of repos, and each repo, until ctx ends. It waits for its goroutines.
func (f *follower) run(ctx context.Context) {
	defer f.wg.Wait()
	ends := map[string]context.CancelFunc{}
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	for ctx.Err() == nil {
		roots, note, err := f.host.Repos(ctx)
		if err == nil {
			f.send(reposSeen{roots, note})
			is := map[string]bool{}
			for _, root := range roots {
				is[root] = true
				if ends[root] == nil {
					inner, end := context.WithCancel(ctx)
					ends[root] = end
					f.wg.Go(func() { f.repo(inner, root) })
				}
			}
			for root, end := range ends {
				if !is[root] {
					end()
					delete(ends, root)
				}
			}
		}
		health.Wait(ctx, reposEvery)
	}
}

// repo follows one repo, whoever serves it and however often that changes.
func (f *follower) repo(ctx context.Context, root string) {
	for ctx.Err() == nil {
		v, served, err := f.host.Open(ctx, root)
		if err == nil {
			err = f.view(ctx, root, v, served)
			v.Close()
		}
		if ctx.Err() != nil {
			return
		}
		why := "the process that served it is gone"
		if err != nil {
			why = err.Error()
		}
		if served || err != nil {
			f.send(repoLost{root, why})
		}
		health.Wait(ctx, againAfter)
		for try := 1; ctx.Err() == nil && !f.host.Served(ctx, root) && (err == nil || try < triesMost); try++ {
			health.Wait(ctx, againAfter)
		}
	}
}

// view reports about a repo until its View ends.
func (f *follower) view(ctx context.Context, root string, v View, served bool) error {
	st, err := v.Status(ctx, "")
	if err != nil {
		return err
	}
	f.send(repoSeen{root: root, served: served, whole: true, status: st})
	if !served {
		return nil
	}
	inner, end := context.WithCancel(ctx)
	of, from := "", st.Seq+1
	ch := &changes{after: st.Seq, runs: map[string]bool{}, news: make(chan struct{}, 1)}
	if f.one != nil {
		of = f.one.id
	}
	if f.one != nil && !f.one.alone() {
		if draw, err := f.host.Graph(ctx, root, of); err == nil {
			f.send(graphSeen(draw))
		}
		from, ch.most = f.one.from, recentMost
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(ended)
		_ = v.Facts(inner, of, from, true, ch.take) // its end matters; the next question says why
	})
	err = f.refresh(inner, root, v, ch, ended, newestOf(st))
	end()
	wg.Wait()
	return err
}

// refresh asks for changes until the stream of facts ends.
func (f *follower) refresh(ctx context.Context, root string, v View, ch *changes, ended <-chan struct{},
	newest string) error {
	unwell := time.NewTicker(healthEvery)
	defer unwell.Stop()
	for {
		var runs []string
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return nil
		case <-unwell.C:
			runs = []string{newest}
		case <-ch.news:
			health.Wait(ctx, gatherFor)
			var facts []daemon.Line
			if runs, facts = ch.give(); len(facts) > 0 {
				f.send(factsSeen(facts))
			}
			if len(runs) == 0 {
				continue
			}
		}
		seen, err := statusOf(ctx, v, runs)
		if err != nil {
			return err
		}
		seen.root, seen.served = root, true
		if n := newestOf(seen.status); n != "" {
			newest = n
		}
		f.send(seen)
	}
}

// statusOf asks for the state of some runs: each by itself, or all at once if they are many.
func statusOf(ctx context.Context, v View, runs []string) (seen repoSeen, err error) {
	if len(runs) > aloneMost || len(runs) == 1 && runs[0] == "" {
		seen.whole = true
		seen.status, err = v.Status(ctx, "")
		return seen, err
	}
	var got []daemon.RunStatus
	for _, id := range runs {
		st, err := v.Status(ctx, id)
		if ctx.Err() != nil {
			return seen, ctx.Err()
		}
		if err != nil { // it is unknown by now, or nobody answers: the next question shows which
			seen.dropped = append(seen.dropped, id)
			continue
		}
		seen.status = st
		got = append(got, st.Runs...)
	}
	if len(got) == 0 {
		seen.whole = true
		seen.status, err = v.Status(ctx, "")
		return seen, err
	}
	seen.status.Runs = got
	return seen, nil
}

func newestOf(st daemon.Status) string {
	if n := len(st.Runs); n > 0 {
		return st.Runs[n-1].ID
	}
	return ""
}

// changes are what the facts since the last refresh say.
type changes struct {
	after int64 // the facts up to this record are in the state already
	most  int   // important facts that are kept
	mu    sync.Mutex
	runs  map[string]bool // with new facts
	facts []daemon.Line   // the newest important ones
	news  chan struct{}
}

// take adds a fact. It never waits for the reader.
func (c *changes) take(l daemon.Line) error {
	run := l.Run()
	if run == "" {
		return nil
	}
	c.mu.Lock()
	if l.Seq > c.after {
		c.runs[run] = true
	}
	if c.most > 0 && render.Fact(l.Fact).Key {
		c.facts = append(c.facts[max(len(c.facts)-c.most+1, 0):], l)
	}
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
	return nil
}

// give returns the runs that changed since the last call, and the newest important facts.
func (c *changes) give() ([]string, []daemon.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs := slices.Collect(maps.Keys(c.runs))
	clear(c.runs)
	return runs, slices.Clone(c.facts)
}
