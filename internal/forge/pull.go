package forge

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Pull is a pull request.
type Pull struct {
	Number int
	URL    string
	ID     string // of the GraphQL API
	Title  string
	Body   string
	Author string
	Open   bool
	Merged bool
	Draft  bool
	Head   string // the commit
	// The forge says that it cannot be merged as it is. It finds that out a little after a push.
	Conflicts bool
	From      string // the branch
	Fork      bool   // the branch is in another repo
	Base      string // the branch that it would go to
	As        string // merged: the commit that it became
	By        string // merged: who did it
}

type pullJSON struct {
	Number   int        `json:"number"`
	URL      string     `json:"html_url"`
	NodeID   string     `json:"node_id"`
	Title    string     `json:"title"`
	Body     string     `json:"body"`
	State    string     `json:"state"`
	Draft    bool       `json:"draft"`
	Merges   *bool      `json:"mergeable"`
	User     user       `json:"user"`
	MergedAt *time.Time `json:"merged_at"`
	MergedBy *user      `json:"merged_by"`
	Commit   string     `json:"merge_commit_sha"`
	Head     side       `json:"head"`
	Base     side       `json:"base"`
}

type side struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		Full string `json:"full_name"`
	} `json:"repo"`
}

// pull returns the pull request, if that is one. A branch is of this repo if it is of the same one as the target: this
// repo may have another name now.
func (p pullJSON) pull() (Pull, bool) {
	out := Pull{Number: p.Number, URL: p.URL, ID: p.NodeID, Title: p.Title, Body: p.Body, Author: p.User.Login,
		Open: p.State == "open", Conflicts: p.Merges != nil && !*p.Merges,
		Merged: p.MergedAt != nil, Draft: p.Draft, Head: p.Head.SHA, From: p.Head.Ref,
		Base: p.Base.Ref, Fork: p.Head.Repo == nil || p.Base.Repo == nil || p.Head.Repo.Full != p.Base.Repo.Full}
	if out.Merged {
		out.As = p.Commit
	}
	if p.MergedBy != nil {
		out.By = p.MergedBy.Login
	}
	return out, p.Number > 0 && p.Head.SHA != "" && p.Base.Ref != "" && (out.Open || p.State == "closed")
}

// askPull makes a call that is answered with a pull request; n = 0: any.
func (h *Hub) askPull(ctx context.Context, r request, n int) (Pull, error) {
	var p pullJSON
	if err := h.ask(ctx, r, &p); err != nil {
		return Pull{}, err
	}
	out, ok := p.pull()
	if !ok || n > 0 && out.Number != n {
		return Pull{}, h.odd(r.method + " " + r.path)
	}
	return out, nil
}

// PullsFrom returns the pull requests of a branch of this repo, newest first, closed ones too.
// Those of forks are left out, whatever their branch is called.
func (h *Hub) PullsFrom(ctx context.Context, branch string) ([]Pull, error) {
	query := url.Values{"head": {h.Owner + ":" + branch}, "state": {"all"}}
	all, err := list(ctx, h, h.path("pulls?%s", query.Encode()), plainList[pullJSON])
	if err != nil {
		return nil, err
	}
	var out []Pull
	for _, p := range all {
		one, ok := p.pull()
		if !ok {
			return nil, h.odd("GET pulls of " + branch)
		}
		if one.From == branch && !one.Fork {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b Pull) int { return b.Number - a.Number })
	return out, nil
}

// Pull returns a pull request.
func (h *Hub) Pull(ctx context.Context, n int) (Pull, error) {
	return h.askPull(ctx, request{method: http.MethodGet, path: h.path("pulls/%d", n)}, n)
}

// ClosedBy returns who closed a pull request; "" = the forge does not say.
func (h *Hub) ClosedBy(ctx context.Context, n int) (string, error) {
	var issue struct {
		By *user `json:"closed_by"`
	}
	if err := h.get(ctx, h.path("issues/%d", n), &issue); err != nil || issue.By == nil {
		return "", err
	}
	return issue.By.Login, nil
}

// Create opens a pull request of a branch of this repo.
func (h *Hub) Create(ctx context.Context, branch, base, title, body string, draft bool) (Pull, error) {
	return h.askPull(ctx, request{method: http.MethodPost, path: h.path("pulls"), body: map[string]any{"head": branch,
		"base": base, "title": title, "body": body, "draft": draft}}, 0)
}

// Describe changes the title and text of a pull request.
func (h *Hub) Describe(ctx context.Context, n int, title, body string) error {
	return h.ask(ctx, request{method: http.MethodPatch, path: h.path("pulls/%d", n),
		body: map[string]any{"title": title, "body": body}}, nil)
}

// Ready makes a draft ready for review.
func (h *Hub) Ready(ctx context.Context, p Pull) error {
	return h.graph(ctx, "to make the pull request ready", `mutation($id: ID!) `+
		`{ markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`, p.ID, nil)
}

// Label adds labels to a pull request.
func (h *Hub) Label(ctx context.Context, n int, labels []string) error {
	return h.ask(ctx, request{method: http.MethodPost, path: h.path("issues/%d/labels", n),
		body: map[string]any{"labels": labels}}, nil)
}

// AskReview asks people (logins) and teams (ORG/TEAM) to review a pull request.
func (h *Hub) AskReview(ctx context.Context, n int, who []string) error {
	people, teams := []string{}, []string{}
	for _, w := range who {
		if _, team, ok := strings.Cut(w, "/"); ok {
			teams = append(teams, team)
		} else {
			people = append(people, w)
		}
	}
	return h.ask(ctx, request{method: http.MethodPost, path: h.path("pulls/%d/requested_reviewers", n),
		body: map[string]any{"reviewers": people, "team_reviewers": teams}}, nil)
}
