//go:build linux

package test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/daemon"
	"sluice/tools/conform"
)

// forge is a bare repo behind a loopback server that git speaks to by https, and a stub of GitHub's API that the real gh
// speaks to by a unix socket. A pull request that is made is published as its ref.
type forge struct {
	t     *testing.T
	bare  string
	url   string
	shown string // a folder with what gh and git need of it, for a sandbox too

	mu     sync.Mutex
	denies bool             // every request for the API is answered with 401
	made   []map[string]any // what was asked for
}

const forgeToken = "the-token"

func newForge(w *sandbox) *forge {
	w.t.Helper()
	needs(w.t, [2]string{"gh", "gh"})
	f := &forge{t: w.t, bare: filepath.Join(w.work, "forge/me/dates.git"), shown: filepath.Join(w.work, "shown")}
	w.do("git", "init", "-q", "--bare", "-b", "main", f.bare)
	w.do("git", "-C", f.bare, "config", "http.receivepack", "true")
	core := strings.TrimSpace(w.do("git", "--exec-path"))
	backend := &cgi.Handler{Path: filepath.Join(core, "git-http-backend"), Dir: w.work,
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Join(w.work, "forge"), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=me"}}
	git := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != forgeToken { // a private repo: to be read, too
			rw.Header().Set("WWW-Authenticate", "Basic")
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(rw, r)
		f.follow()
	}))
	w.t.Cleanup(git.Close)
	f.url = git.URL + "/me/dates.git"
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: git.Certificate().Raw})
	w.put("shown/ca.pem", string(cert))
	socket := filepath.Join(f.shown, "api.sock")
	w.put("shown/config.yml", "http_unix_socket: "+socket+"\n")
	l, err := net.Listen("unix", socket)
	if err != nil {
		w.t.Fatal(err)
	}
	api := &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
	api.Start()
	w.t.Cleanup(api.Close)
	w.put("home/.gitconfig", "[user]\n\tname = A Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n[http]\n\tsslCAInfo = "+f.shown+"/ca.pem\n[credential]\n\thelper = store\n")
	w.put("home/.git-credentials", strings.Replace(git.URL, "://", "://me:"+forgeToken+"@", 1)+"\n") // no sandbox shows it
	w.env = append(w.env, "GH_HOST=127.0.0.1", "GH_ENTERPRISE_TOKEN="+forgeToken, "GH_CONFIG_DIR="+f.shown, "GIT_TERMINAL_PROMPT=0")
	return f
}

// ServeHTTP answers what `gh pr list` and `gh pr create` ask.
func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var q struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	w.Header().Set("Content-Type", "application/json")
	if f.denies || r.Header.Get("Authorization") != "token "+forgeToken {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message": "Bad credentials"}`)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/api/graphql" {
		http.Error(w, `{"message": "no such route"}`, http.StatusNotFound)
		return
	}
	var data map[string]any
	switch {
	case strings.Contains(q.Query, "createPullRequest("):
		data = map[string]any{"createPullRequest": map[string]any{"pullRequest": map[string]any{"id": "PR_1", "url": f.publish(q.Variables["input"].(map[string]any))}}}
	case strings.Contains(q.Query, "pullRequests("):
		nodes := []any{}
		for i, made := range f.made {
			if head, ok := q.Variables["headBranch"].(string); ok && head != made["headRefName"] {
				continue
			}
			nodes = append(nodes, map[string]any{"number": i + 1, "url": f.pull(i + 1), "headRefName": made["headRefName"], "state": "OPEN"})
		}
		data = map[string]any{"repository": map[string]any{"pullRequests": map[string]any{"totalCount": len(nodes), "nodes": nodes}}}
	default:
		data = map[string]any{"repository": map[string]any{"id": "R_1", "name": "dates", "owner": map[string]any{"login": "me"}, "viewerPermission": "WRITE", "defaultBranchRef": map[string]any{"name": "main"}}}
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"data": data}); err != nil {
		f.t.Error(err)
	}
}

func (f *forge) pull(n int) string { return fmt.Sprintf("https://127.0.0.1/me/dates/pull/%d", n) }

// publish creates a pull request and returns its address.
func (f *forge) publish(input map[string]any) string {
	f.made = append(f.made, input)
	f.point(len(f.made))
	return f.pull(len(f.made))
}

// point has the ref of a pull request be at the head of its branch.
func (f *forge) point(n int) {
	cmd := exec.Command("git", "-C", f.bare, "update-ref", fmt.Sprintf("refs/pull/%d/head", n), "refs/heads/"+fmt.Sprint(f.made[n-1]["headRefName"]))
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Errorf("%v: %s", err, out)
	}
}

// follow has each pull request go on with its branch.
func (f *forge) follow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.made {
		f.point(n + 1)
	}
}

// workspace has the dev cycle's runs work there.
func (w *sandbox) workspace(where string) {
	const spec = ".workflow/specs/dev-cycle.yaml"
	w.put("repo/"+spec, regexp.MustCompile(`workspace: \w+`).ReplaceAllString(w.file(spec), "workspace: "+where))
}

// pulls returns the pull requests that were asked for.
func (f *forge) pulls() []map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]map[string]any{}, f.made...)
}

// deny has the API refuse or take the token.
func (f *forge) deny(denies bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denies = denies
}

// devCycle creates document 002's workflow in a repo with a forge, and a script of its stand-ins
// that runs commands.
func devCycle(t *testing.T, held bool) (*sandbox, *forge) {
	t.Helper()
	const settings = "notify: {desktop: false}\nsettle: 200ms\nrescan: 500ms\nkill_after: 2s\npr_poll: 1s\nrestarts: 0\n"
	const gets = "env: [GH_HOST, GH_ENTERPRISE_TOKEN, GH_CONFIG_DIR]"
	w := newSandbox(t, settings+"roles: {publisher: {"+gets+"}}\n")
	f := newForge(w)
	if held {
		needsCage(t)
		w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "SLUICE_CONFIG_SANDBOX_MODE=") })
		at := strings.TrimSuffix(strings.TrimPrefix(f.url, "https://"), "/me/dates.git")
		w.put("config/sluice/config.yaml", settings+fmt.Sprintf("sandbox: {mode: on, read: [%q]}\nroles: {publisher: {network: [%q], %s}}\n", f.shown, at, gets))
	}
	w.do("git", "init", "-q", "-b", "main")
	w.do(w.bin, "init", "--template", "dev-cycle", "--writer", "claude", "--reviewer", "codex")
	w.put("repo/.workflow/config.yaml", w.file(".workflow/config.yaml")+"\n")
	w.put("repo/.workflow/stubs/dev-cycle.yaml", devCycleReal)
	w.workspace("checkout") // where the branch can be a wrong one
	w.do("git", "add", "-A")
	w.do("git", "commit", "-q", "-m", "start")
	w.do("git", "remote", "add", "origin", f.url)
	w.do("git", "push", "-q", f.bare, "main")
	w.up()
	return w, f
}

const devCycleReal = `commands: real
steps:
  planning:
    write:
      plan.md: "A plan.\n"
      tasks.json: '{"schema_version": 1, "tasks": [{"id": "T1", "title": "one", "priority": 1, "status": "todo"}]}'
  T1/execution: {write: {code.txt: "done\n"}}
  finalize: {write: {summary.md: "Dates are read\n\nOne task, tested.\n"}}
`

// over waits until a run has ended, or asks a person about its pull request for the n-th time.
func (w *sandbox) over(id string, asked int) (last daemon.RunStatus) {
	w.t.Helper()
	eventually(w.t, id+" has ended, or waits for a person", func() bool {
		st, ok := w.status()
		if !ok {
			return false
		}
		for _, r := range st.Runs {
			if r.ID == id {
				last = r
			}
		}
		return last.ID != "" && (!last.Live() || strings.Contains(w.do(w.bin, "log", "--all", id), fmt.Sprintf("pull-request #%d  asks you", asked)))
	})
	return last
}

// TestPullRequest: the real gh creates the pull request of document 002's last phase. If it cannot,
// the step is not done and a person learns why; the request is seen by the ref that the forge
// publishes; an open one gets the new commits.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"by itself": false, "held": true} {
		t.Run(name, func(t *testing.T) { t.Parallel(); pullRequest(t, held) })
	}
}

func pullRequest(t *testing.T, held bool) {
	conform.Rule(t, "002 createPR.gh", "the real gh makes it, and the ref of a forge shows it")
	conform.Rule(t, "002 createPR.fails", "on the main branch, and with a token that is refused, the step is not done and a person is told why")
	w, f := devCycle(t, held)
	ask := []string{"start", "dev-cycle", "--stub", "--var", "task=dates", "--var", "create_pr=true"}
	refused := func(n int, why string) {
		t.Helper()
		if r := w.over("dev-cycle-1", n); !r.Live() {
			t.Fatalf("it has ended as %s\n%s", r.Phase, w.do(w.bin, "log", "--all"))
		}
		says(t, w.do(w.bin, "inbox"), why, "sluice retry dev-cycle-1 pull-request")
		if made := f.pulls(); len(made) > 0 {
			t.Fatalf("made: %v", made)
		}
	}
	again := func() { w.do(w.bin, "retry", "dev-cycle-1", "pull-request") }
	w.do(w.bin, ask...)
	refused(1, "main is what it would go to: git switch -c NAME")
	w.do("git", "switch", "-q", "-c", "work")
	again()
	refused(2, "work has no commit of its own: commit the work (auto_commit=true does it)")
	if heads := w.do("git", "-C", f.bare, "for-each-ref", "--format=%(refname)"); heads != "refs/heads/main\n" {
		t.Errorf("pushed: %s", heads)
	}
	w.do("git", "add", "-A")
	w.do("git", "commit", "-q", "-m", "by hand")
	w.do("git", "push", "-q", f.bare, "main:work") // another's, or one that others build from: an agent may have gone there
	again()
	refused(3, "origin has a work already, and no pull request of it is open: push it yourself")
	if heads := w.do("git", "-C", f.bare, "for-each-ref", "--format=%(objectname)"); strings.Count(heads, strings.TrimSpace(w.do("git", "rev-parse", "main"))) != 2 {
		t.Errorf("pushed: %s", heads)
	}
	w.do("git", "push", "-q", f.bare, ":work")
	f.deny(true)
	again()
	refused(4, "gh cannot ask")
	says(t, w.file(".workflow/runs/dev-cycle-1/pull-request.4/stderr"), "no pull request: gh cannot ask", "To try again then: sluice retry", "401")
	f.deny(false)
	again()
	says(t, w.completed(w.over("dev-cycle-1", 5)), "pull-request.1 failed", "pull-request.5 says done (refs/pull/1/head", "run completed")
	made := f.pulls()
	if len(made) != 1 || made[0]["title"] != "Dates are read" || strings.TrimSpace(fmt.Sprint(made[0]["body"])) != "One task, tested." || made[0]["headRefName"] != "work" || made[0]["baseRefName"] != "main" {
		t.Errorf("made: %v", made)
	}
	says(t, w.file(".workflow/runs/dev-cycle-1/pull-request.5/stdout"), f.pull(1))

	// A later run on the branch brings its commits to the pull request that is open.
	w.do(w.bin, append(ask, "--var", "auto_commit=true")...)
	w.completed(w.over("dev-cycle-2", 1))
	says(t, w.file(".workflow/runs/dev-cycle-2/pull-request.1/stdout"), f.pull(1)+" has the new commits")
	if made := f.pulls(); len(made) != 1 {
		t.Errorf("made: %v", made)
	}

	// As shipped, a run has a branch of its own, whatever is checked out.
	w.workspace("run")
	w.do(w.bin, ask...)
	w.completed(w.over("dev-cycle-3", 1))
	if made := f.pulls(); len(made) != 2 || made[1]["headRefName"] != "sluice/dev-cycle-3" || made[1]["title"] != "Dates are read" {
		t.Errorf("made: %v", made)
	}
}
