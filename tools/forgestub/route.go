package forgestub

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// route answers a request of the API.
func (f *Forge) route(r *http.Request, body M) (int, any) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3/")
	switch {
	case r.URL.Path == "/api/graphql":
		return f.graph(body)
	case path == "user":
		return 200, user(Me)
	}
	rest, ok := strings.CutPrefix(path, "repos/"+Owner+"/"+Name+"/")
	if !ok {
		return 404, M{"message": "Not Found"}
	}
	part := strings.Split(rest, "/")
	n := 0
	if len(part) > 1 {
		n, _ = strconv.Atoi(part[1])
	}
	post := r.Method == http.MethodPost
	switch key := strings.Join(append([]string{r.Method, part[0]}, part[min(len(part), 2):]...), " "); {
	case rest == "pulls" && post:
		return f.create(body)
	case rest == "pulls":
		return 200, f.pullsOf(r.URL.Query().Get("head"))
	case rest == "issues":
		return 200, f.issuesWith(r.URL.Query().Get("labels"), r.URL.Query().Get("assignee"))
	case strings.HasPrefix(key, "GET commits") && part[2] == "check-runs":
		return 200, M{"check_runs": listOf(f.checks[part[1]])}
	case strings.HasPrefix(key, "GET commits") && part[2] == "status":
		return 200, M{"sha": part[1], "statuses": f.combined(part[1])}
	case strings.HasPrefix(key, "GET commits") && part[2] == "statuses":
		return 200, listOf(f.statuses[part[1]])
	case strings.HasPrefix(rest, "actions/jobs/"):
		id, _ := strconv.ParseInt(part[2], 10, 64)
		return 200, f.logs[id]
	case strings.HasPrefix(key, "GET collaborators") && part[len(part)-1] == "permission":
		return f.permission(part[1])
	case strings.HasPrefix(rest, "issues/comments/"):
		return f.reword(part[2], body)
	case n == 0:
		return 404, M{"message": "Not Found"}
	default:
		return f.numbered(key, n, part, body)
	}
}

// numbered answers about one pull request or issue.
func (f *Forge) numbered(key string, n int, part []string, body M) (int, any) {
	switch {
	case key == "GET issues comments":
		return 200, listOf(f.comments[n])
	case key == "POST issues comments":
		c := f.comment(n, Me, "OWNER", fmt.Sprint(body["body"]))
		return 201, c
	case key == "POST issues labels":
		p := f.pull(n)
		p["labels"] = body["labels"]
		return 200, []M{}
	case key == "GET issues":
		return 200, M{"number": n, "closed_by": f.pull(n)["closed_by"]}
	}
	p := f.pull(n)
	if p == nil {
		return 404, M{"message": "Not Found"}
	}
	switch {
	case key == "GET pulls":
		return 200, f.shown(p)
	case key == "PATCH pulls":
		maps.Copy(p, body)
		return 200, f.shown(p)
	case key == "GET pulls reviews":
		return 200, listOf(f.reviews[n])
	case key == "GET pulls comments":
		return 200, listOf(f.lines[n])
	case key == "POST pulls requested_reviewers":
		p["asked"] = append(asAny(p["asked"]), asAny(body["reviewers"])...)
		return 201, f.shown(p)
	case strings.HasPrefix(key, "POST pulls comments") && part[len(part)-1] == "replies":
		id, _ := strconv.ParseInt(part[3], 10, 64)
		f.lines[n] = append(f.lines[n], M{"id": f.next(), "user": user(Me), "body": body["body"], "in_reply_to_id": id})
		return 201, M{"id": f.id}
	}
	return 404, M{"message": "no such route: " + key}
}

// combined returns the newest status of each context: that list does not say whose they are.
func (f *Forge) combined(commit string) []M {
	out, seen := []M{}, M{}
	for _, s := range f.statuses[commit] {
		if context := fmt.Sprint(s["context"]); seen[context] == nil {
			seen[context] = true
			s = maps.Clone(s)
			delete(s, "creator")
			out = append(out, s)
		}
	}
	return out
}

func asAny(v any) []any {
	list, _ := v.([]any)
	return list
}

func listOf(list []M) []M {
	if list == nil {
		return []M{}
	}
	return list
}

func (f *Forge) pull(n int) M {
	if n < 1 || n > len(f.pulls) {
		return nil
	}
	return f.pulls[n-1]
}

// shown is a pull request as the API shows it: its head is its branch's, or what that was at last.
func (f *Forge) shown(p M) M {
	n, _ := p["number"].(int)
	branch := fmt.Sprint(p["branch"])
	sha := f.head(branch)
	if sha == "" {
		sha, _ = p["last"].(string)
	}
	p["last"] = sha
	out := maps.Clone(p)
	if other := f.spoilt[n]; other != "" {
		sha = other
	}
	repo := f.full()
	if fork, ok := p["fork"].(string); ok {
		repo = fork
	}
	out["head"] = M{"ref": branch, "sha": sha, "repo": M{"full_name": repo}}
	out["base"] = M{"ref": p["base"], "repo": M{"full_name": f.full()}}
	return out
}

func (f *Forge) create(body M) (int, any) {
	branch := strings.TrimPrefix(fmt.Sprint(body["head"]), Owner+":")
	for _, p := range f.pulls {
		if p["branch"] == branch && p["state"] == "open" && p["fork"] == nil {
			return 422, M{"message": "Validation Failed", "errors": []M{{"message": "A pull request already exists"}}}
		}
	}
	for _, side := range [][2]string{{"head", branch}, {"base", fmt.Sprint(body["base"])}} {
		if f.head(side[1]) == "" {
			return 422, M{"message": "Validation Failed",
				"errors": []M{{"resource": "PullRequest", "field": side[0], "code": "invalid"}}}
		}
	}
	p := f.make(branch, fmt.Sprint(body["base"]), Me)
	p["title"], p["body"], p["draft"] = body["title"], body["body"], body["draft"]
	return 201, f.shown(p)
}

func (f *Forge) make(branch, base, author string) M {
	n := len(f.pulls) + 1
	p := M{"number": n, "node_id": fmt.Sprintf("PR_%d", n), "state": "open", "branch": branch, "base": base,
		"html_url": fmt.Sprintf("https://%s/%s/pull/%d", f.Host(), f.full(), n), "user": user(author), "merged_at": nil,
		"draft": false, "title": "", "body": ""}
	f.pulls = append(f.pulls, p)
	return p
}

func (f *Forge) pullsOf(head string) []M {
	out := []M{}
	for _, p := range f.pulls {
		if fmt.Sprintf("%s:%s", Owner, p["branch"]) == head {
			out = append(out, f.shown(p))
		}
	}
	return out
}

func (f *Forge) issuesWith(labels, assignee string) []M {
	out := []M{}
	for _, i := range f.issues {
		if i["state"] == "open" && (labels == "" || i["label"] == labels) && (assignee == "" || i["assignee"] == assignee) {
			out = append(out, i)
		}
	}
	return out
}

func (f *Forge) permission(login string) (int, any) {
	may, known := f.may[strings.ToLower(login)]
	switch {
	case !known:
		may = "read"
	case may == "":
		return 404, M{"message": "Not Found"}
	}
	return 200, M{"permission": may, "role_name": may, "user": user(login)}
}

// graph answers the GraphQL API: it makes a pull request ready, or says when a comment was edited.
func (f *Forge) graph(body M) (int, any) {
	vars, _ := body["variables"].(map[string]any)
	for _, list := range f.comments {
		for _, c := range list {
			if c["node_id"] == vars["id"] {
				return 200, M{"data": M{"node": M{"lastEditedAt": c["edited"]}}}
			}
		}
	}
	for _, p := range f.pulls {
		if p["node_id"] == vars["id"] {
			p["draft"] = false
			return 200, M{"data": M{}}
		}
	}
	return 200, M{"errors": []M{{"message": "no such node"}}}
}

func (f *Forge) reword(id string, body M) (int, any) {
	for _, list := range f.comments {
		for _, c := range list {
			if fmt.Sprint(c["id"]) == id {
				f.edit(c, body["body"], f.Now().UTC())
				return 200, c
			}
		}
	}
	return 404, M{"message": "Not Found"}
}

// comment adds a comment.
func (f *Forge) comment(n int, author, association, body string) M {
	at, id := f.Now().UTC(), f.next()
	c := M{"id": id, "node_id": fmt.Sprintf("IC_%d", id), "user": user(author), "author_association": association,
		"body": body, "created_at": at, "updated_at": at}
	f.comments[n] = append(f.comments[n], c)
	return c
}

func (f *Forge) edit(c M, body any, at time.Time) {
	c["body"], c["updated_at"], c["edited"] = body, at, at
}
