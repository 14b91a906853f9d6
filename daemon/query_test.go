package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
)

// TestRecent: of the past only the newest ends are included, and the others are counted.
func TestRecent(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	st := engine.NewState()
	add := func(id string, ended time.Duration, child bool) { // 0 = it lives
		r := &engine.Run{ID: id, Phase: engine.RunRunning}
		if ended != 0 {
			r.Phase, r.Ended = engine.RunCompleted, now.Add(-ended)
		}
		if child {
			r.Child = &engine.ChildOf{Parent: "w-1"}
		}
		st.Runs[id], st.Order = r, append(st.Order, id)
	}
	add("w-1", 0, false)
	add("w-1.T1.1", 0, true)
	add("w-1.T2.1", time.Second, true)
	add("w-2", time.Minute, false)
	add("w-3", 3*time.Minute, false)
	add("w-4", 2*time.Minute, false)
	add("w-5", 2*time.Hour, false)
	add("w-6", 2*time.Minute, false)
	c := &core{state: st}
	live := []string{"w-1", "w-1.T1.1"}
	for _, x := range []struct {
		since time.Time
		most  int
		ended []string
		left  int
	}{
		{time.Time{}, 10, []string{"w-2", "w-3", "w-4", "w-5", "w-6"}, 0},
		{time.Time{}, 3, []string{"w-2", "w-4", "w-6"}, 2},
		{time.Time{}, 1, []string{"w-2"}, 4},
		{time.Time{}, 0, nil, 5},
		{now.Add(-time.Hour), 3, []string{"w-2", "w-4", "w-6"}, 1},
		{now.Add(-time.Hour), 10, []string{"w-2", "w-3", "w-4", "w-6"}, 0},
		{now, 10, nil, 0},
	} {
		q := query{since: x.since, most: x.most}
		var left int
		q.recent, left = recent(c, q)
		var got []string
		for _, id := range st.Order {
			if q.wants(st.Runs[id]) {
				got = append(got, id)
			}
		}
		if want := slices.Concat(live, x.ended); !slices.Equal(got, want) || left != x.left {
			t.Errorf("%d since %s: %v and %d more, want %v and %d", x.most, x.since, got, left, want, x.left)
		}
	}
	q := all("", false)
	if q.recent, _ = recent(c, q); !q.wants(st.Runs["w-5"]) || !q.wants(st.Runs["w-1.T2.1"]) {
		t.Error("a query about all runs leaves one out")
	}
	if q = all("w-2", false); q.wants(st.Runs["w-1"]) || !q.wants(st.Runs["w-2"]) {
		t.Error("a query about one run is not about that run alone")
	}
}

// TestQueryOfARequest: what a request asks for is bounded and checked.
func TestQueryOfARequest(t *testing.T) {
	of := func(asks string) (query, error) {
		return queryOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/status?"+asks, nil), false)
	}
	if q, err := of("run=w-1"); err != nil || q.run != "w-1" || q.most != -1 {
		t.Errorf("%+v %v", q, err)
	}
	if q, err := of("ended_most=3&ended_since=2026-03-01T12:00:00Z"); err != nil || q.most != 3 || q.since.Hour() != 12 {
		t.Errorf("%+v %v", q, err)
	}
	for _, asks := range []string{"ended_most=-1", "ended_most=x", fmt.Sprintf("ended_most=%d", RecentMost+1),
		"ended_most=1&ended_since=yesterday"} {
		if _, err := of(asks); err == nil || !strings.Contains(err.Error(), "ended_") {
			t.Errorf("%s: %v", asks, err)
		}
	}
	for _, run := range []string{"", "w-1"} { // of a repo without runs
		_, err := serveTest(t, t.TempDir(), newStage()).client.Run(t.Context(), run)
		if want := map[string]string{"": "which one?", "w-1": "no run w-1 is known here"}[run]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("run %q: %v", run, err)
		}
	}
}

// TestRecentThroughTheSocket: a client gets what it asks for, and a limit that is too high is lowered.
func TestRecentThroughTheSocket(t *testing.T) {
	s := serveTest(t, t.TempDir(), newStage())
	for range 3 {
		d, err := s.client.Do(t.Context(), engine.RunRequested{Source: "two", Parallel: true}, "")
		if err != nil {
			t.Fatal(err)
		}
		if d.Run == "two-3" {
			break
		}
		if _, err := s.client.Do(t.Context(), engine.AbortRequested{Run: d.Run}, ""); err != nil {
			t.Fatal(err)
		}
		s.until(d.Run, "its end", func(r RunStatus) bool { return !r.Live() })
	}
	st, err := s.client.Recent(t.Context(), time.Time{}, 1)
	if err != nil || len(st.Runs) != 2 || st.Runs[0].ID != "two-2" || st.Runs[1].ID != "two-3" || st.Left != 1 {
		t.Errorf("%+v %v", st, err)
	}
	if st, err := s.client.Recent(t.Context(), time.Time{}, 1<<30); err != nil || len(st.Runs) != 3 || st.Left != 0 {
		t.Errorf("%+v %v", st, err)
	}
}
