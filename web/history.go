package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sluice/daemon"
	"sluice/internal/render"
	"sluice/internal/text"
)

// historyMost is how many runs the history shows at once.
const historyMost = 200

// historyPage has the runs that have ended, the newest first.
type historyPage struct {
	Repos  []string
	Repo   string // "" = all
	Runs   []pastRun
	More   int
	Faults []string
}

type pastRun struct {
	runItem
	Took   string
	Part   float64 // of the longest shown, 0 to 1
	Waited string  // for people; "" = not at all
	Asked  float64 // the same as a part of the time that it took
	Rounds int
	took   time.Duration
}

func (s *Server) history(r *http.Request) (view, error) {
	known, err := s.repos.all(r.Context())
	if err != nil {
		return view{}, err
	}
	p := historyPage{Repo: r.URL.Query().Get("repo")}
	now := s.con.Now()
	for _, at := range known {
		p.Repos = append(p.Repos, at.Name)
		if p.Repo != "" && p.Repo != at.Name {
			continue
		}
		st, err := recent(r.Context(), at)
		if err != nil {
			p.Faults = append(p.Faults, at.Name+": "+text.Message(err.Error()))
			continue
		}
		p.More += st.Left
		for _, x := range st.Runs {
			if !x.Live() && x.Child == nil {
				p.Runs = append(p.Runs, pastOf(at.Name, x, now))
			}
		}
	}
	slices.SortStableFunc(p.Runs, func(a, b pastRun) int { return b.over.Compare(a.over) })
	if n := len(p.Runs) - historyMost; n > 0 {
		p.Runs, p.More = p.Runs[:historyMost], p.More+n
	}
	longest := time.Duration(1)
	for _, x := range p.Runs {
		longest = max(longest, x.took)
	}
	for i := range p.Runs {
		p.Runs[i].Part = float64(p.Runs[i].took) / float64(longest)
	}
	return view{title: "History", nav: "history", body: "history", data: p}, nil
}

// recent returns the status of a repo with no more ended runs than are shown.
func recent(ctx context.Context, at repo) (daemon.Status, error) {
	v, _, err := at.View(ctx)
	if err != nil {
		return daemon.Status{}, err
	}
	defer v.Close()
	return v.Recent(ctx, time.Time{}, historyMost)
}

func pastOf(repo string, r daemon.RunStatus, now time.Time) pastRun {
	out := pastRun{runItem: itemOf(repo, r, now), took: r.Ended.Sub(r.Started)}
	if r.Started.IsZero() {
		out.took = 0
	}
	out.Took = render.Ago(out.took)
	waited := time.Duration(0)
	for _, g := range r.Gates() {
		out.Rounds += g.Round
		waited += time.Duration(g.Waited)
	}
	if waited > 0 && out.took > 0 {
		out.Waited, out.Asked = render.Ago(waited), min(1, float64(waited)/float64(out.took))
	}
	return out
}
