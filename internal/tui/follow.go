package tui

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"sluice/daemon"
)

// Pace and bounds of following.
const (
	reposEvery  = 3 * time.Second        // how often the list of repos is asked for
	againAfter  = time.Second            // how long after a repo was lost it is tried again
	triesMost   = 5                      // how often, before a repo that could not be read is read again though nobody serves it
	healthEvery = 10 * time.Second       // how often a repo is asked for what no fact tells: its health, the day's budget
	gatherFor   = 100 * time.Millisecond // facts that come together cost one refresh
	aloneMost   = 64                     // more changed runs than this are asked for all at once
)

// reposSeen is the list of the repos that are shown.
type reposSeen struct {
	roots []string
	note  string
}

// repoSeen is how a repo stands: whole, or only the runs that have changed.
type repoSeen struct {
	root    string
	served  bool
	whole   bool
	status  daemon.Status
	dropped []string // runs that are known no more
}

// repoLost says that a repo cannot be read now, or is not served any more.
type repoLost struct {
	root, why string
}

// follower keeps the screen told of all repos.
type follower struct {
	host Host
	send func(any)
	wg   sync.WaitGroup
}

// run follows the list of repos, and each of them, until ctx ends; it waits for all that it started.
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
		pause(ctx, reposEvery)
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
		pause(ctx, againAfter)
		for try := 1; ctx.Err() == nil && !f.host.Served(ctx, root) && (err == nil || try < triesMost); try++ {
			pause(ctx, againAfter)
		}
	}
}

// view tells of a repo until whoever tells of it is gone.
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
	ch := &changes{runs: map[string]bool{}, news: make(chan struct{}, 1)}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(ended)
		_ = v.Facts(inner, "", st.Seq+1, true, ch.take) // its end is what matters: the next question tells why
	})
	err = f.refresh(inner, root, v, ch, ended, newestOf(st))
	end()
	wg.Wait()
	return err
}

// refresh asks for what has changed, until the stream of facts ends.
func (f *follower) refresh(ctx context.Context, root string, v View, ch *changes, ended <-chan struct{}, newest string) error {
	health := time.NewTicker(healthEvery)
	defer health.Stop()
	for {
		var runs []string
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return nil
		case <-health.C:
			runs = []string{newest}
		case <-ch.news:
			pause(ctx, gatherFor)
			runs = ch.give()
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

// statusOf asks how some runs stand: for each, or for all at once where they are many.
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
		if err != nil { // it is known no more, or nobody answers: then the next question tells
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

// newestOf is the run that was asked for last; "" where there is none.
func newestOf(st daemon.Status) string {
	if n := len(st.Runs); n > 0 {
		return st.Runs[n-1].ID
	}
	return ""
}

// changes are the runs that facts came of since they were last asked for.
type changes struct {
	mu   sync.Mutex
	runs map[string]bool
	news chan struct{}
}

// take notes the run of a fact. It never waits for who reads.
func (c *changes) take(l daemon.Line) error {
	var head struct {
		Run string `json:"run"`
	}
	if json.Unmarshal(l.Fact, &head) != nil || head.Run == "" {
		return nil
	}
	c.mu.Lock()
	c.runs[head.Run] = true
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
	return nil
}

func (c *changes) give() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for id := range c.runs {
		out = append(out, id)
	}
	clear(c.runs)
	return out
}

// pause waits a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
