package forgestub

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Names of the one repo, the account that gh has there, and its token.
const (
	Owner = "acme"
	Name  = "dates"
	Me    = "robot"
	Token = "the-token"
)

// M is a JSON object.
type M = map[string]any

// Answers that are none: see Fault.Status.
const (
	Hangs = 0  // until it is healed or nobody waits; then the connection ends
	Drops = -1 // the connection ends, nothing was done
	Cuts  = -2 // it is done, and the connection ends in the middle of the answer
)

// Fault is an answer in place of the real one.
type Fault struct {
	Path   string // part of the request's method and path; of one by git: "git " and the path
	Status int    // of HTTP, or Hangs, Drops or Cuts
	Header M
	Body   string // "" = a message with the status's name
	Times  int    // how often; 0 = always
}

// Forge is the stub. Its methods may be called while it serves.
type Forge struct {
	Bare string // the repo
	Now  func() time.Time

	server *httptest.Server
	git    http.Handler

	mu       sync.Mutex
	id       int64
	pulls    []M
	checks   map[string][]M // by commit
	statuses map[string][]M // by commit
	logs     map[int64]string
	reviews  map[int][]M
	lines    map[int][]M
	comments map[int][]M
	issues   []M
	may      map[string]string // permissions by login
	faults   []*Fault
	healed   chan struct{} // closed when the faults end
	asked    []string
	spoilt   map[int]string // heads that are not the branch's
	name     string         // of the repo now
	most     int            // items on a page, whatever is asked for; 0 = as many
}

// New serves the repo root/acme/dates.git, which it creates.
func New(root string) (*Forge, error) {
	f := &Forge{Bare: filepath.Join(root, Owner, Name+".git"), Now: time.Now, healed: make(chan struct{}), id: 1000,
		checks: map[string][]M{}, statuses: map[string][]M{}, logs: map[int64]string{}, reviews: map[int][]M{},
		lines: map[int][]M{}, comments: map[int][]M{}, spoilt: map[int]string{}, may: map[string]string{Me: "admin"},
		name: Name}
	core, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"init", "-q", "--bare", "-b", "main", f.Bare},
		{"-C", f.Bare, "config", "http.receivepack", "true"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	f.git = &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"), Dir: root,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=" + Me}}
	f.server = httptest.NewTLSServer(f)
	return f, nil
}

// Close ends it.
func (f *Forge) Close() {
	f.Heal()
	f.server.CloseClientConnections()
	f.server.Close()
}

// Host is its address, with the port.
func (f *Forge) Host() string { return strings.TrimPrefix(f.server.URL, "https://") }

// URL is the address of the repo, for git.
func (f *Forge) URL() string { return f.server.URL + "/" + Owner + "/" + Name + ".git" }

// Cert is the certificate to trust, as PEM.
func (f *Forge) Cert() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
}

// Spoil has requests answered with a fault from now on.
func (f *Forge) Spoil(x Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &x)
}

// Heal ends all faults.
func (f *Forge) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
	close(f.healed)
	f.healed = make(chan struct{})
}

// Asked returns the requests so far, as "METHOD path".
func (f *Forge) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// serveGit serves git. Only faults of a Path that begins with "git " are for it.
func (f *Forge) serveGit(w http.ResponseWriter, r *http.Request) {
	if x, _ := f.spoilt1("git " + r.URL.Path); x != nil {
		w.WriteHeader(x.Status)
		return
	}
	if f.moved(w, r, "/"+Owner+"/", ".git") {
		return
	}
	if _, password, _ := r.BasicAuth(); password != Token {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	f.git.ServeHTTP(w, r)
	f.closeGone()
}

// ServeHTTP serves git and the API.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		f.serveGit(w, r)
		return
	}
	what := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v3")
	if r.URL.RawQuery != "" {
		what += "?" + r.URL.RawQuery
	}
	cuts := false
	switch x, healed := f.spoilt1(what); {
	case x == nil:
	case x.Status == Hangs:
		select {
		case <-healed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case x.Status == Drops:
		panic(http.ErrAbortHandler)
	case x.Status == Cuts:
		cuts = true
	default:
		for name, value := range x.Header {
			w.Header().Set(name, fmt.Sprint(value))
		}
		reply(w, r, x.Status, []byte(cmp.Or(x.Body, fmt.Sprintf(`{"message": %q}`, http.StatusText(x.Status)))))
		return
	}
	if r.Header.Get("Authorization") != "token "+Token {
		reply(w, r, http.StatusUnauthorized, []byte(`{"message": "Bad credentials"}`))
		return
	}
	if f.moved(w, r, "/api/v3/repos/"+Owner+"/", "") {
		return
	}
	body := M{}
	if r.Method != http.MethodGet && json.NewDecoder(r.Body).Decode(&body) != nil {
		body = M{}
	}
	f.mu.Lock()
	status, out := f.route(r, body)
	out = f.paged(w, out, r.URL.Query())
	data, err := json.Marshal(out)
	f.mu.Unlock()
	if cuts {
		w.Header().Set("ETag", `"of the whole"`)
		w.WriteHeader(status)
		_, _ = w.Write(data[:len(data)/2]) // whoever has gone reads no answer
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if text, ok := out.(string); ok {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
		return
	}
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"message": "the stub is broken"}`)
	}
	reply(w, r, status, data)
}

// moved leads from the repo's first name to the one that it has now, and takes a request for that one as the first's.
func (f *Forge) moved(w http.ResponseWriter, r *http.Request, before, after string) bool {
	f.mu.Lock()
	name := f.name
	f.mu.Unlock()
	rest, old := strings.CutPrefix(r.URL.Path, before+Name+after+"/")
	if name == Name || !old {
		r.URL.Path = strings.Replace(r.URL.Path, before+name+after+"/", before+Name+after+"/", 1)
		return false
	}
	to := *r.URL
	to.Path = before + name + after + "/" + rest
	status := http.StatusMovedPermanently
	if r.Method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	http.Redirect(w, r, to.String(), status)
	return true
}

// paged returns the part of a list that a query asks for, and says in a header if there is more.
func (f *Forge) paged(w http.ResponseWriter, out any, query url.Values) any {
	if m, ok := out.(M); ok && m["check_runs"] != nil {
		return M{"check_runs": f.paged(w, m["check_runs"], query)}
	}
	list, ok := out.([]M)
	most, err := strconv.Atoi(query.Get("per_page"))
	page, perr := strconv.Atoi(query.Get("page"))
	if !ok || err != nil || perr != nil || most < 1 || page < 1 {
		return out
	}
	if f.most > 0 {
		most = min(most, f.most)
	}
	from := min((page-1)*most, len(list))
	to := min(from+most, len(list))
	if to < len(list) {
		w.Header().Set("Link", fmt.Sprintf(`<%s/next>; rel="next", <%[1]s/last>; rel="last"`, f.server.URL))
	}
	return list[from:to]
}

// spoilt1 notes a request, and returns the fault that answers it, and what is closed when faults end.
func (f *Forge) spoilt1(what string) (*Fault, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	git := strings.HasPrefix(what, "git ")
	if !git {
		f.asked = append(f.asked, what)
	}
	for i, x := range f.faults {
		if !strings.Contains(what, x.Path) || git != strings.HasPrefix(x.Path, "git ") {
			continue
		}
		if x.Times > 0 {
			if x.Times--; x.Times == 0 {
				f.faults = slices.Delete(f.faults, i, i+1)
			}
		}
		return x, f.healed
	}
	return nil, nil
}

// reply writes JSON, or that it has not changed.
func reply(w http.ResponseWriter, r *http.Request, status int, data []byte) {
	sum := sha256.Sum256(data)
	etag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusOK {
		w.Header().Set("ETag", etag)
		if has := r.Header.Get("If-None-Match"); has == etag || has == `"of the whole"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(data) // whoever has gone reads no answer
}

func (f *Forge) next() int64 { f.id++; return f.id }

func user(login string) M { return M{"login": login} }

func (f *Forge) full() string { return Owner + "/" + f.name }

// closeGone closes the pull requests whose branch was removed.
func (f *Forge) closeGone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pulls {
		if p["fork"] == nil && p["state"] == "open" && f.head(fmt.Sprint(p["branch"])) == "" {
			p["state"], p["closed_by"] = "closed", user(Me)
		}
	}
}

// head returns the commit of a branch, "" if there is none.
func (f *Forge) head(branch string) string {
	if loose, err := os.ReadFile(filepath.Join(f.Bare, "refs/heads", filepath.FromSlash(branch))); err == nil {
		return strings.TrimSpace(string(loose))
	}
	out, err := exec.Command("git", "-C", f.Bare, "rev-parse", "--verify", "-q", "refs/heads/"+branch).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
