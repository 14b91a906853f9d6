package web

import (
	"context"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/daemon"
	"sluice/internal/health"
)

// Limits and times of streams.
const (
	streamsMost = 512 // in all
	ownMost     = 16  // of a login; the oldest gives way
	// apart is how long after a change a page is rendered, tick the most between two renderings: ages
	// change.
	apart = 150 * time.Millisecond
	tick  = 10 * time.Second
	// again is how long a repo that nobody serves, or that stopped, is left alone.
	again   = 2 * time.Second
	writeIn = 10 * time.Second
	// All pages together rest restShare times as long as a rendering took, at most restMost. The first
	// rendering of a page does not wait for that.
	restShare = 4
	restMost  = 2 * time.Second
	beginMost = 4 // first renderings at once
)

// hub renders the pages that somebody follows. Nothing is read or rendered while nobody looks.
type hub struct {
	repos *repos
	ctx   context.Context
	stop  context.CancelFunc
	done  sync.WaitGroup
	turn  chan struct{} // who has it renders
	begin chan struct{} // who is in it renders for the first time

	mu      sync.Mutex
	streams []*stream
	feeds   map[string]context.CancelFunc // what follows a repo's journal, by root
	shown   map[string]*shown             // by address
}

// stream is one browser that follows one page.
type stream struct {
	login string
	page  *shown
	wake  chan struct{}
	end   context.CancelFunc
}

// shown is a page that is followed, rendered once for all who look at it.
type shown struct {
	at    string
	end   context.CancelFunc
	dirty chan struct{}
	ready chan struct{} // closed after the first rendering
	looks int           // streams

	// Guarded by the hub's lock, and set with every rendering.
	roots []string // none = all
	run   string   // whose facts concern it; "" = all
	now   newest
	err   error // why there is none
}

// newest is what a page shows now. Its members are not changed any more.
type newest struct {
	parts map[string]part
	grown grown
}

func newHub(p *repos) *hub {
	h := &hub{repos: p, feeds: map[string]context.CancelFunc{}, shown: map[string]*shown{}, turn: make(chan struct{}, 1),
		begin: make(chan struct{}, beginMost)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

func (h *hub) close() {
	h.mu.Lock()
	h.stop() // from now on nothing begins
	h.mu.Unlock()
	h.done.Wait()
}

// join adds a stream of a page. draw renders the page, and is called as long as it has a stream. The
// oldest stream of the same login, or of all, gives way where there are too many.
func (h *hub) join(ctx context.Context, login, at string, draw renderer) (context.Context, *stream) {
	ctx, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(h.ctx, cancel)
	end := func() { forget(); cancel() }
	h.mu.Lock()
	defer h.mu.Unlock()
	st := &stream{login: login, page: h.pageAt(at, draw), wake: make(chan struct{}, 1), end: end}
	own := 0
	for _, o := range h.streams {
		if o.login == login {
			own++
		}
	}
	for i := 0; i < len(h.streams) && (own >= ownMost || len(h.streams) >= streamsMost); {
		if o := h.streams[i]; o.login == login || len(h.streams) >= streamsMost {
			if o.login == login {
				own--
			}
			o.end()
			h.streams = slices.Delete(h.streams, i, i+1)
			continue
		}
		i++
	}
	h.streams = append(h.streams, st)
	return ctx, st
}

// raise wakes who waits for a channel with room for one.
func raise(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// leave removes a stream. A page that nobody looks at is not rendered again, and repos that no page
// shows are not followed.
func (h *hub) leave(st *stream) {
	st.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams = slices.DeleteFunc(h.streams, func(o *stream) bool { return o == st })
	p := st.page
	if p.looks--; p.looks > 0 {
		return
	}
	p.end()
	if h.shown[p.at] == p {
		delete(h.shown, p.at)
	}
	for root, end := range h.feeds {
		if !slices.ContainsFunc(slices.Collect(maps.Values(h.shown)), func(o *shown) bool { return o.shows(root) }) {
			end()
			delete(h.feeds, root)
		}
	}
}

func (p *shown) shows(root string) bool { return len(p.roots) == 0 || slices.Contains(p.roots, root) }

// renderer loads a page and renders its parts, or only what has grown since.
type renderer func(ctx context.Context, all bool) (view, newest, error)

// part is the HTML of one element, as a message of a stream.
type part struct {
	message []byte
	sum     uint64 // of the HTML
}

// pageAt returns the page at an address, for one more stream. The caller holds the lock.
func (h *hub) pageAt(at string, draw renderer) *shown {
	p := h.shown[at]
	if p == nil || p.err != nil {
		p = &shown{at: at, dirty: make(chan struct{}, 1), ready: make(chan struct{})}
		var ctx context.Context
		ctx, p.end = context.WithCancel(h.ctx)
		h.shown[at] = p
		if h.ctx.Err() == nil {
			h.done.Go(func() { h.keep(ctx, p, draw) })
		}
	}
	p.looks++
	return p
}

// keep renders a page when the journal of a repo it shows has grown, and every tick; an output that
// grows on it is read more often.
func (h *hub) keep(ctx context.Context, p *shown, draw renderer) {
	h.begin <- struct{}{}
	grows, _ := h.rendered(ctx, p, draw, true)
	<-h.begin
	close(p.ready)
	for due := time.Now().Add(tick); ; {
		wait := time.Until(due)
		if grows {
			wait = min(wait, growing)
		}
		all := false
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			all = !time.Now().Before(due)
		case <-p.dirty:
			all = true
			health.Wait(ctx, apart)
		}
		select {
		case <-ctx.Done():
			return
		case h.turn <- struct{}{}:
		}
		if ctx.Err() == nil {
			var took time.Duration
			if all {
				due = time.Now().Add(tick)
			}
			grows, took = h.rendered(ctx, p, draw, all)
			health.Wait(ctx, min(restShare*took, restMost))
		}
		<-h.turn
	}
}

// rendered renders a page, or only what has grown on it, and tells its streams of news. It returns
// whether an output grows on it, and how long that took.
func (h *hub) rendered(ctx context.Context, p *shown, draw renderer, all bool) (grows bool, took time.Duration) {
	if all {
		select { // what came until now is in it
		case <-p.dirty:
		default:
		}
	}
	began := time.Now()
	v, now, err := draw(ctx, all)
	took = time.Since(began)
	var known []repo
	if err == nil && all {
		known, err = h.repos.all(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	news := all || err != nil || now.grown.news != p.now.grown.news
	p.now, p.err = now, err
	if err == nil && all {
		p.roots, p.run = v.repos, v.run
	}
	if all && ctx.Err() == nil {
		h.follow(p, known)
	}
	for _, st := range h.streams {
		if news && st.page == p {
			raise(st.wake)
		}
	}
	return v.grows != nil && v.grows.Works, took
}

// follow begins to follow the repos that a page shows. The caller holds the lock.
func (h *hub) follow(p *shown, known []repo) {
	for _, r := range known {
		if h.feeds[r.Root] != nil || !p.shows(r.Root) {
			continue
		}
		ctx, end := context.WithCancel(h.ctx)
		h.feeds[r.Root] = end
		h.done.Go(func() { h.read(ctx, r) })
	}
}

// read follows a repo's journal until ctx ends.
func (h *hub) read(ctx context.Context, r repo) {
	for ctx.Err() == nil {
		if s, err := r.Serving(ctx); err == nil && s != nil {
			from := int64(-1)
			if st, err := s.Recent(ctx, time.Time{}, 0); err == nil && st.Seq > 0 {
				from = st.Seq + 1 // so nothing is missed between a rendering and the first fact
			}
			h.grew(r.Root, "")
			_ = s.Facts(ctx, "", from, true, func(l daemon.Line) error { h.grew(r.Root, l.Run()); return nil })
			s.Close()
			h.grew(r.Root, "") // it may have stopped
		}
		health.Wait(ctx, again)
	}
}

// grew has the pages rendered that show a repo and concern the run; "" = all runs.
func (h *hub) grew(root, run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.shown {
		if p.shows(root) && p.concerns(run) {
			raise(p.dirty)
		}
	}
}

// concerns reports whether a run's facts change the page: its own run, one of its tasks' runs
// (run.task.try), or any if it shows many.
func (p *shown) concerns(run string) bool {
	return run == "" || p.run == "" || run == p.run || strings.HasPrefix(run, p.run+".")
}

// look returns what the stream's page shows now.
func (h *hub) look(st *stream) (newest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return st.page.now, st.page.err
}

// parts returns what renders the parts of a page, as a browser asked for it.
func (p *pages) parts(r *http.Request, load func(*http.Request) (view, error)) renderer {
	g := &growth{pages: p, seed: maphash.MakeSeed()}
	var v view
	var parts map[string]part
	return func(ctx context.Context, all bool) (view, newest, error) {
		if all {
			var err error
			if v, err = load(r.WithContext(ctx)); err != nil {
				return v, newest{}, err
			}
			if parts, err = p.renderAll(g.seed, v.data, v.parts...); err != nil {
				return v, newest{}, err
			}
		}
		err := g.more(v.grows)
		return v, newest{parts, g.now}, err
	}
}

// renderAll renders elements, as messages of a stream.
func (p *pages) renderAll(seed maphash.Seed, data any, names ...string) (map[string]part, error) {
	out := make(map[string]part, len(names))
	for _, name := range names {
		html, err := p.render(name, data)
		if err != nil {
			return nil, err
		}
		out[name] = part{message(html), maphash.Bytes(seed, html)}
	}
	return out, nil
}
