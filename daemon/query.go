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

// wants reports whether the status includes a run.
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
	var newest []*engine.Run // by their ends, the newest first
	for _, id := range slices.Backward(c.state.Order) {
		r := c.state.Runs[id]
		if r.Live() || r.Child != nil || !r.Ended.After(q.since) {
			continue
		}
		if len(newest) == q.most && (q.most == 0 || !r.Ended.After(newest[q.most-1].Ended)) {
			left++
			continue
		}
		at, _ := slices.BinarySearchFunc(newest, r, func(a, b *engine.Run) int {
			if a.Ended.Before(b.Ended) {
				return 1
			}
			return -1 // equal ends: the one that began first comes last
		})
		if len(newest) == q.most {
			newest = newest[:q.most-1]
			left++
		}
		newest = slices.Insert(newest, at, r)
	}
	ids = make(map[string]bool, len(newest))
	for _, r := range newest {
		ids[r.ID] = true
	}
	return ids, left
}
