package forge

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Words that a review can end with.
const (
	Approved    = "APPROVED"
	WantsChange = "CHANGES_REQUESTED"
	Dismissed   = "DISMISSED"
)

// Review is somebody's review of a pull request.
type Review struct {
	ID      int64
	Author  string
	Belongs bool   // the forge counts the author among the repo's people, who may only read it
	State   string // Approved, WantsChange, Dismissed or another
	Commit  string // what was looked at
	Body    string
}

// Comment is a comment on a pull request or an issue, or (File) on a line.
type Comment struct {
	ID      int64
	Node    string // of the GraphQL API
	Author  string
	Body    string
	Created time.Time
	Edited  bool // in a later second: see WasEdited

	File    string
	Line    int
	Review  int64
	ReplyTo int64
}

type talkJSON struct {
	ID          int64     `json:"id"`
	NodeID      string    `json:"node_id"`
	User        *user     `json:"user"`
	Association string    `json:"author_association"`
	Body        string    `json:"body"`
	URL         string    `json:"html_url"`
	Created     time.Time `json:"created_at"`
	Updated     time.Time `json:"updated_at"`

	State  string `json:"state"`
	Commit string `json:"commit_id"`

	Path     string `json:"path"`
	Line     int    `json:"line"`
	Original int    `json:"original_line"`
	Review   int64  `json:"pull_request_review_id"`
	ReplyTo  int64  `json:"in_reply_to_id"`
}

// belongs reports whether the forge counts an author among the repo's people. Some of them may only
// read: see MayWrite.
func belongs(association string) bool {
	return association == "OWNER" || association == "MEMBER" || association == "COLLABORATOR"
}

// MayWrite reports whether somebody may write to this repo, as the forge says now. An account that
// it does not know, such as a removed one, may not. It tells only accounts that may write themselves:
// to others it is a Fault.
func (h *Hub) MayWrite(ctx context.Context, login string) (bool, error) {
	if !plain(login) { // nobody, or an app
		return false, nil
	}
	var may struct {
		Permission string `json:"permission"`
		User       user   `json:"user"`
	}
	err := h.get(ctx, h.path("collaborators/%s/permission", login), &may)
	if Is(err, Missing) {
		return false, nil
	}
	return err == nil && strings.EqualFold(may.User.Login, login) &&
		slices.Contains([]string{"admin", "maintain", "write"}, may.Permission), err
}

func (t talkJSON) author() string {
	if t.User == nil {
		return ""
	}
	return t.User.Login
}

func (t talkJSON) comment() Comment {
	return Comment{ID: t.ID, Node: t.NodeID, Author: t.author(), Body: t.Body, Created: t.Created,
		Edited: t.Updated.After(t.Created), File: t.Path, Line: cmp.Or(t.Line, t.Original), Review: t.Review,
		ReplyTo: t.ReplyTo}
}

// Reviews returns the submitted reviews of a pull request, oldest first.
func (h *Hub) Reviews(ctx context.Context, n int) ([]Review, error) {
	all, err := list(ctx, h, h.path("pulls/%d/reviews", n), plainList[talkJSON])
	var out []Review
	for _, t := range all {
		if t.State == "PENDING" {
			continue
		}
		out = append(out, Review{ID: t.ID, Author: t.author(), Belongs: belongs(t.Association), State: t.State,
			Commit: t.Commit, Body: t.Body})
	}
	return out, err
}

// LineComments returns the comments on lines of a pull request, oldest first.
func (h *Hub) LineComments(ctx context.Context, n int) ([]Comment, error) {
	return h.comments(ctx, h.path("pulls/%d/comments", n))
}

// Comments returns the comments on a pull request or an issue as a whole, oldest first.
func (h *Hub) Comments(ctx context.Context, n int) ([]Comment, error) {
	return h.comments(ctx, h.path("issues/%d/comments", n))
}

func (h *Hub) comments(ctx context.Context, path string) ([]Comment, error) {
	all, err := list(ctx, h, path, plainList[talkJSON])
	var out []Comment
	for _, t := range all {
		out = append(out, t.comment())
	}
	return out, err
}

// WasEdited reports whether a comment was ever edited. Its times in lists are in whole seconds.
func (h *Hub) WasEdited(ctx context.Context, c Comment) (bool, error) {
	const what = "whether a comment was edited"
	var data struct {
		Node *struct {
			Edited *time.Time `json:"lastEditedAt"`
		} `json:"node"`
	}
	err := h.graph(ctx, what, `query($id: ID!) { node(id: $id) { ... on Comment { lastEditedAt } } }`, c.Node, &data)
	if err == nil && data.Node == nil {
		err = h.odd(what)
	}
	return err != nil || data.Node.Edited != nil, err
}

// Say comments on a pull request or an issue.
func (h *Hub) Say(ctx context.Context, n int, body string) (Comment, error) {
	var t talkJSON
	err := h.ask(ctx, request{method: http.MethodPost, path: h.path("issues/%d/comments", n),
		body: map[string]any{"body": body}}, &t)
	return t.comment(), err
}

// Reword edits a comment of our own.
func (h *Hub) Reword(ctx context.Context, id int64, body string) error {
	return h.ask(ctx, request{method: http.MethodPatch, path: h.path("issues/comments/%d", id),
		body: map[string]any{"body": body}}, nil)
}

// Reply answers a comment on a line.
func (h *Hub) Reply(ctx context.Context, n int, comment int64, body string) error {
	return h.ask(ctx, request{method: http.MethodPost, path: h.path("pulls/%d/comments/%d/replies", n, comment),
		body: map[string]any{"body": body}}, nil)
}
