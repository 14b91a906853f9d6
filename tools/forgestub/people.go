package forgestub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Pulls returns the pull requests as the API shows them.
func (f *Forge) Pulls() (out []M) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pulls {
		out = append(out, f.shown(p))
	}
	return out
}

// Comments returns the comments on a pull request or issue, each as "author: text".
func (f *Forge) Comments(n int) []string { return f.told(func() []M { return f.comments[n] }) }

// Lines returns the comments on lines.
func (f *Forge) Lines(n int) []string { return f.told(func() []M { return f.lines[n] }) }

func (f *Forge) told(of func() []M) (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range of() {
		who, _ := c["user"].(M)
		out = append(out, fmt.Sprintf("%s: %s", who["login"], c["body"]))
	}
	return out
}

// Check sets a check of a commit: conclusion "" = it runs.
func (f *Forge) Check(commit, name, conclusion, log string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	status := "completed"
	if conclusion == "" {
		status = "in_progress"
	}
	for _, c := range f.checks[commit] {
		if c["name"] == name {
			c["status"], c["conclusion"] = status, conclusion
			if id, ok := c["id"].(int64); ok {
				f.logs[id] = log
			}
			return
		}
	}
	id := f.next()
	f.logs[id] = log
	f.checks[commit] = append(f.checks[commit], M{"id": id, "name": name, "head_sha": commit, "status": status,
		"conclusion": conclusion, "app": M{"slug": "github-actions"}, "html_url": "https://" + f.Host() + "/check/" + name})
}

// Status sets a status of a commit, as somebody or something does by the API. The newest comes first.
func (f *Forge) Status(commit, context, state, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.statuses[commit] = append([]M{{"id": f.next(), "context": context, "state": state, "creator": user(by)}},
		f.statuses[commit]...)
}

// Line is a comment on a line.
type Line struct {
	File string
	Line int
	Body string
}

// Review adds a review of a commit.
func (f *Forge) Review(n int, author, association, state, commit, body string, lines ...Line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next()
	f.reviews[n] = append(f.reviews[n], M{"id": id, "user": user(author), "author_association": association,
		"state": state, "commit_id": commit, "body": body, "submitted_at": f.Now().UTC()})
	for _, l := range lines {
		f.lines[n] = append(f.lines[n], M{"id": f.next(), "user": user(author), "author_association": association,
			"pull_request_review_id": id, "path": l.File, "line": l.Line, "body": l.Body})
	}
}

// Comment adds a comment of somebody, and returns its id.
func (f *Forge) Comment(n int, author, body string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, _ := f.comment(n, author, "NONE", body)["id"].(int64)
	return id
}

// Edit changes a comment, so long after it was written.
func (f *Forge) Edit(id int64, body string, after time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, list := range f.comments {
		for _, c := range list {
			if c["id"] == id {
				at, _ := c["created_at"].(time.Time)
				f.edit(c, body, at.Add(after))
			}
		}
	}
}

// Merge merges a pull request, and Reject closes it.
func (f *Forge) Merge(n int, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pull(n)
	maps.Copy(p, M{"state": "closed", "merged_at": f.Now().UTC(), "merged_by": user(by), "closed_by": user(by),
		"merge_commit_sha": f.head(fmt.Sprint(p["branch"]))})
	for _, i := range f.issues {
		if slices.Contains(strings.Split(fmt.Sprint(p["body"]), "\n"), fmt.Sprintf("Closes #%v", i["number"])) {
			i["state"] = "closed"
		}
	}
}

// Retarget has a pull request go to another branch.
func (f *Forge) Retarget(n int, base string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pull(n)["base"] = base
}

// Reject closes a pull request without merging it.
func (f *Forge) Reject(n int, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.pull(n), M{"state": "closed", "closed_by": user(by)})
}

// Reopen opens a pull request again.
func (f *Forge) Reopen(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pull(n)["state"] = "open"
}

// Fork opens a pull request of a branch of the same name in somebody's fork.
func (f *Forge) Fork(author, branch string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.make(branch, "main", author)["fork"] = author + "/" + Name
}

// Conflict says whether a pull request can be merged as it is.
func (f *Forge) Conflict(n int, conflicts bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pull(n)["mergeable"] = !conflicts
}

// Head has a pull request show another commit than its branch has; "" = its own again.
func (f *Forge) Head(n int, commit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoilt[n] = commit
}

// Issue is what somebody asks for.
type Issue struct {
	Title, Body, Author, Association string
	Label, Assignee                  string
}

// Issue opens an issue.
func (f *Forge) Issue(n int, i Issue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.issues = append(f.issues, M{"number": n, "title": i.Title, "body": i.Body, "user": user(i.Author), "label": i.Label,
		"assignee": i.Assignee, "labels": []M{{"name": i.Label}}, "author_association": i.Association, "state": "open",
		"html_url": fmt.Sprintf("https://%s/%s/issues/%d", f.Host(), f.full(), n)})
}

// IsOpen reports whether an issue is open.
func (f *Forge) IsOpen(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.issues, func(i M) bool { return i["number"] == n && i["state"] == "open" })
}

// Permit gives somebody a permission: admin, write, read or none. Before, everybody may read; "" is
// an account that is gone.
func (f *Forge) Permit(login, permission string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.may[strings.ToLower(login)] = permission
}

// Describe is a person's editing of a pull request.
func (f *Forge) Describe(n int, title, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.pull(n), M{"title": title, "body": body})
}

// Rename gives the repo another name; the first one leads there.
func (f *Forge) Rename(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.name = name
}

// Cap has a page of a list have so many items at most.
func (f *Forge) Cap(most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = most
}
