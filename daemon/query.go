package daemon

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"sluice/engine"
)

// query is which runs a status is about.
type query struct {
	run  string // "" = all
	full bool   // with all attempts and rounds

	unserved bool // asked of a journal whose repo nobody serves

	// Of runs that have ended only the newest `most` that ended after since; -1 = all that have ended.
	since time.Time
	most  int

	recent map[string]bool // those, by id
}

// all is a query about every run.
func all(run string, full bool) query { return query{run: run, full: full, most: -1} }

// queryOf returns what a request asks for.
func queryOf(req *http.Request, full bool) (query, error) {
	v := req.URL.Query()
	q := all(v.Get("run"), full)
	if full && q.run == "" {
		return q, asked("run: which one?")
	}
	if v.Get("ended_most") == "" {
		return q, nil
	}
	var err error
	if q.most, err = strconv.Atoi(v.Get("ended_most")); err != nil || q.most < 0 || q.most > RecentMost {
		return q, asked("ended_most: %q: want 0 to %d", v.Get("ended_most"), RecentMost)
	}
	if s := v.Get("ended_since"); s != "" {
		if q.since, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return q, asked("ended_since: %w", err)
		}
	}
	return q, nil
}

// RecentMost is how many ended runs can be asked for with Recent.
const RecentMost = 1000

func (q query) wants(r *engine.Run) bool {
	if q.run != "" && q.run != r.ID {
		return false
	}
	return q.most < 0 || r.Live() || q.recent[r.ID]
}

// recent returns the ended runs that a query with a limit includes, and how many it leaves out. Runs
// of tasks are not among either.
func recent(c *core, q query) (ids map[string]bool, left int) {
	if q.most < 0 {
		return nil, 0
	}
	var ended []*engine.Run
	for _, id := range slices.Backward(c.state.Order) {
		if r := c.state.Runs[id]; !r.Live() && r.Child == nil && r.Ended.After(q.since) {
			ended = append(ended, r)
		}
	}
	slices.SortStableFunc(ended, func(a, b *engine.Run) int { return b.Ended.Compare(a.Ended) })
	newest := ended[:min(len(ended), q.most)]
	ids = make(map[string]bool, len(newest))
	for _, r := range newest {
		ids[r.ID] = true
	}
	return ids, len(ended) - len(newest)
}
