package forge

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
)

// Issue is an open issue.
type Issue struct {
	Number  int
	Title   string
	Body    string
	URL     string
	Author  string
	Belongs bool // see Review
	Labels  []string
}

type issueJSON struct {
	talkJSON
	Number int             `json:"number"`
	Title  string          `json:"title"`
	Pull   json.RawMessage `json:"pull_request"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

// Issues returns the open issues that have all the labels and, if it is not empty, the assignee
// ("me" = gh's own account), oldest first. Pull requests are left out.
func (h *Hub) Issues(ctx context.Context, labels []string, assignee string) ([]Issue, error) {
	query := url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}}
	if len(labels) > 0 {
		query.Set("labels", strings.Join(labels, ","))
	}
	if assignee == "me" {
		me, err := h.Me(ctx)
		if err != nil {
			return nil, err
		}
		assignee = me
	}
	if assignee != "" {
		query.Set("assignee", assignee)
	}
	all, err := list(ctx, h, h.path("issues?%s", query.Encode()), plainList[issueJSON])
	var out []Issue
	for _, i := range all {
		if i.Pull != nil {
			continue
		}
		one := Issue{Number: i.Number, Title: i.Title, Body: i.Body, URL: i.URL, Author: i.author(),
			Belongs: belongs(i.Association)}
		for _, l := range i.Labels {
			one.Labels = append(one.Labels, l.Name)
		}
		out = append(out, one)
	}
	return out, err
}
