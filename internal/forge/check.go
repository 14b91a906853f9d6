package forge

import (
	"context"
	"net/http"
	"strings"
)

// How a check stands.
const (
	Pending = "pending"
	Green   = "green"
	Red     = "red"
	Silent  = "silent" // it did not run, or says neither yes nor no
)

// Check is a check of a commit, or a status that something set on it.
type Check struct {
	Name  string
	State string // Pending, Green, Red or Silent
	How   string // the forge's word for that: success, failure, timed_out, …
	URL   string
	Said  string // what the check itself says
	Job   int64  // of GitHub Actions: whose log can be read; 0 = none
}

type runJSON struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	SHA        string `json:"head_sha"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	URL        string `json:"html_url"`
	App        struct {
		Slug string `json:"slug"`
	} `json:"app"`
	Output struct {
		Title   string `json:"title"`
		Summary string `json:"summary"`
		Text    string `json:"text"`
	} `json:"output"`
}

func (r runJSON) check() Check {
	c := Check{Name: r.Name, State: Pending, How: r.Status, URL: r.URL,
		Said: strings.TrimSpace(r.Output.Title + "\n" + r.Output.Summary + "\n" + r.Output.Text)}
	if r.Status == "completed" {
		switch c.How, c.State = r.Conclusion, Red; r.Conclusion {
		case "success":
			c.State = Green
		case "neutral", "skipped":
			c.State = Silent
		}
	}
	if r.App.Slug == "github-actions" {
		c.Job = r.ID
	}
	return c
}

// Checks returns the checks and statuses of a commit, the newest of each name.
func (h *Hub) Checks(ctx context.Context, commit string) ([]Check, error) {
	runs, err := list(ctx, h, h.path("commits/%s/check-runs?filter=latest", commit), func(page []byte) ([]runJSON, error) {
		var p struct {
			Runs []runJSON `json:"check_runs"`
		}
		err := decode(page, &p)
		return p.Runs, err
	})
	if err != nil {
		return nil, err
	}
	var out []Check
	for _, r := range runs {
		if r.SHA == commit {
			out = append(out, r.check())
		}
	}
	type status struct {
		Context string `json:"context"`
		State   string `json:"state"`
		URL     string `json:"target_url"`
		Said    string `json:"description"`
	}
	states, err := list(ctx, h, h.path("commits/%s/status", commit), func(page []byte) ([]status, error) {
		var p struct {
			SHA      string   `json:"sha"`
			Statuses []status `json:"statuses"`
		}
		if err := decode(page, &p); err != nil || p.SHA != commit {
			return nil, err
		}
		return p.Statuses, nil
	})
	for _, s := range states {
		c := Check{Name: s.Context, State: Red, How: s.State, URL: s.URL, Said: s.Said}
		switch s.State {
		case "success":
			c.State = Green
		case "pending":
			c.State = Pending
		}
		out = append(out, c)
	}
	return out, err
}

// JobLog returns the end of a job's log, at most so many bytes.
func (h *Hub) JobLog(ctx context.Context, job int64, most int) (string, error) {
	a, err := h.call(ctx, request{method: http.MethodGet, path: h.path("actions/jobs/%d/logs", job), tail: most})
	return string(a.body), err
}
