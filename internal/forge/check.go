package forge

import (
	"context"
	"errors"
	"net/http"
	"slices"
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

// Checks returns the checks and statuses of a commit, the newest of each name. Statuses by gh's own account are left
// out: agents may hold that. (The forge takes checks from apps only.)
func (h *Hub) Checks(ctx context.Context, commit string) ([]Check, error) {
	runs, err := list(ctx, h, h.path("commits/%s/check-runs?filter=latest", commit), func(page []byte) ([]runJSON, error) {
		var p struct {
			Runs []runJSON `json:"check_runs"`
		}
		err := decode(page, &p)
		if slices.ContainsFunc(p.Runs, func(r runJSON) bool { return r.SHA != commit }) {
			err = errOther
		}
		return p.Runs, err
	})
	if err != nil {
		return nil, err
	}
	var out []Check
	for _, r := range runs {
		out = append(out, r.check())
	}
	states, err := h.statuses(ctx, commit)
	return append(out, states...), err
}

var errOther = errors.New("it is about another commit")

type statusJSON struct {
	Context string `json:"context"`
	State   string `json:"state"`
	Target  string `json:"target_url"`
	Said    string `json:"description"`
	Creator *user  `json:"creator"`
}

// statuses returns the newest status of each name, those of gh's own account left out. (The combined status, which has
// only the newest, does not say whose they are.)
func (h *Hub) statuses(ctx context.Context, commit string) (out []Check, err error) {
	all, err := list(ctx, h, h.path("commits/%s/statuses", commit), plainList[statusJSON])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	me, err := h.Me(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, s := range all { // newest first: docs.github.com/en/rest/commits/statuses
		if s.Creator != nil && strings.EqualFold(s.Creator.Login, me) || seen[s.Context] {
			continue
		}
		seen[s.Context] = true
		c := Check{Name: s.Context, State: Red, How: s.State, URL: s.Target, Said: s.Said}
		switch s.State {
		case "success":
			c.State = Green
		case "pending":
			c.State = Pending
		}
		out = append(out, c)
	}
	return out, nil
}

// JobLog returns the end of a job's log, at most so many bytes.
func (h *Hub) JobLog(ctx context.Context, job int64, most int) (string, error) {
	a, err := h.call(ctx, request{method: http.MethodGet, path: h.path("actions/jobs/%d/logs", job), tail: most})
	return string(a.body), err
}
