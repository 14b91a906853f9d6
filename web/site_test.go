package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/job"
	"sluice/internal/press"
	"sluice/internal/settings"
	"sluice/internal/workspace"
	"sluice/journal"
)

// stage is a World whose processes end at once, as the test has set it.
type stage struct {
	mu    sync.Mutex
	said  string // by each step
	judge engine.Judgement
	check engine.CheckResult
	busy  bool // steps work until they are stopped

	proven func(proof string) (engine.Proven, string) // how signed answers are checked; nil = not at all
}

func newStage() *stage {
	return &stage{judge: engine.Judgement{Outcome: engine.OutcomePass}, check: engine.CheckResult{OK: true, Digest: "d"}}
}

func (s *stage) Carry(ctx context.Context, j job.Job, _ func(engine.Event)) engine.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch j.Kind {
	case engine.DoRun:
		if s.busy && j.Proc.Kind == engine.ProcStep {
			break
		}
		ev := engine.ProcessEnded{Run: j.Run, Key: j.Key}
		switch j.Proc.Kind {
		case engine.ProcStep:
			ev.Answer, _ = json.Marshal(map[string]string{"summary": s.said})
		case engine.ProcCheck:
			c := s.check
			ev.Check = &c
		case engine.ProcReview:
			v := s.judge
			ev.Verdict = &v
		}
		return ev
	case engine.DoStop:
		return engine.ProcessEnded{Run: j.Run, Key: j.Key, Exit: engine.Exit{Stopped: true}}
	case engine.DoNotify:
		return engine.Noticed{ID: j.Key, Results: []string{"test: shown"}}
	case engine.DoWrite:
		return engine.FileWritten{Run: j.Run, ID: j.Key}
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	return nil
}

func (s *stage) Scan(context.Context, job.Inboxes) ([]engine.Event, bool, error) {
	return nil, false, nil
}
func (s *stage) Proven(proof string) (p engine.Proven, words string) {
	if s.proven == nil || proof == "" {
		return p, ""
	}
	return s.proven(proof)
}
func (s *stage) DigestNow(context.Context, job.Reviewed) (string, error) { return "d", nil }
func (s *stage) Trees(context.Context, *engine.Spec) map[string]string   { return nil }
func (s *stage) Hints() <-chan struct{}                                  { return nil }
func (s *stage) Hinted() []job.Place                                     { return nil }
func (s *stage) Health() []string                                        { return nil }
func (s *stage) Awaits(string, string) string                            { return "" }
func (s *stage) Level(string) (string, string)                           { return engine.TrustFile, "nothing holds it" }

// asksSpec has a gate that is a person's, with a way other than pass and fail.
const asksSpec = `workflow: {id: w, name: A workflow}
steps:
  - {id: A, agent: {type: writer, prompt: "write"}, gate: G}
  - {id: B, agent: {type: writer, prompt: "write more"}, next_step: DONE}
gates:
  - {id: G, name: review, reviewer: {level: human}, on_pass: {next_step: B}, on_fail: {next_step: A}, max_retries: 9,
     routes: {later: FAILED}}
`

// site is a page over one served repo named shop, with a browser that is logged in.
type site struct {
	*testing.T
	root, home string
	con        *console.Console
	world      *stage
	client     *daemon.Client
	at         *workspace.Workspace
	ahead      atomic.Int64 // of the page's clock

	s      *Server
	base   string
	cookie string
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	p := &site{T: t, root: filepath.Join(dir, "shop"), world: newStage()}
	p.con = console.New([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config")},
		strings.NewReader(""), io.Discard, io.Discard)
	p.con.Now = func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }
	p.put(".workflow/specs/w.yaml", asksSpec)
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x"}} {
		if out, err := exec.Command("git", append([]string{"-C", p.root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, out)
		}
	}
	at, err := workspace.At(t.Context(), p.con, p.root)
	if err != nil {
		t.Fatal(err)
	}
	p.at, p.home = at, at.Home
	p.serve()
	p.open()
	p.cookie = p.enter(p.code())
	return p
}

func (p *site) put(name, text string) {
	p.Helper()
	file := filepath.Join(p.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

// later lets time pass on the page.
func (p *site) later(d time.Duration) { p.ahead.Add(int64(d)) }

// serve serves the repo until the test ends.
func (p *site) serve() {
	p.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		open := func(context.Context, string, string) (daemon.RepoOptions, func(), error) {
			return daemon.RepoOptions{World: p.world, Compile: workspace.Compile, Config: engine.DefaultConfig,
				Log: zerolog.Nop(), Look: 1e6 * time.Hour}, nil, nil // a test takes the socket's place
		}
		ended <- daemon.Serve(ctx, p.root, p.at.State, open, func(*daemon.Repo, journal.Recovery) { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-ended:
		p.Fatal(err)
	}
	if err := workspace.LeaveRoot(p.root, p.at.State); err != nil {
		p.Fatal(err)
	}
	p.client = daemon.NewClient(p.at.State)
	p.Cleanup(func() {
		p.client.Close()
		cancel()
		if err := <-ended; err != nil {
			p.Error(err)
		}
	})
}

// open has a page listen, a new one each time, as after a restart of the daemon.
func (p *site) open() {
	p.Helper()
	if p.s != nil {
		if err := p.s.Close(); err != nil {
			p.Fatal(err)
		}
	}
	s, err := New(Options{Console: p.con, Home: p.home, Web: settings.Web{Listen: "127.0.0.1:0", Label: "k3v9q2xa"}, Log: zerolog.Nop()})
	if err != nil {
		p.Fatal(err)
	}
	if p.base, err = s.Start(p.Context()); err != nil {
		p.Fatal(err)
	}
	p.s = s
	p.Cleanup(func() {
		if err := s.Close(); err != nil {
			p.Error(err)
		}
	})
}

// code returns the code of a new link.
func (p *site) code() string {
	p.Helper()
	link, err := p.s.Link(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return strings.TrimPrefix(link, p.base+"/in?code=")
}

// enter exchanges a code, and returns the cookie's value; "" = it did not count.
func (p *site) enter(code string) string {
	p.Helper()
	for _, c := range p.ask("GET", "/in?code="+code, nil).Result().Cookies() {
		if c.Name == cookieName {
			return c.Value
		}
	}
	return ""
}

// ask sends a request as the page's own form or link would. Each of head is `Name: value`; an empty
// value takes a header away.
func (p *site) ask(method, target string, form url.Values, head ...string) *httptest.ResponseRecorder {
	p.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(p.Context(), method, target, body)
	r.RemoteAddr = "127.0.0.1:40000"
	r.Host = strings.TrimPrefix(p.base, "http://")
	if method == http.MethodPost {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Origin", p.base)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if p.cookie != "" {
		r.Header.Set("Cookie", cookieName+"="+p.cookie)
	}
	for _, h := range head {
		name, value, _ := strings.Cut(h, ":")
		switch value = strings.TrimSpace(value); {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	p.s.srv.Handler.ServeHTTP(w, r)
	return w
}

// run starts a run and waits until a person is asked; it returns its id.
func (p *site) run(spec string, vars ...string) string {
	p.Helper()
	ev := engine.RunRequested{Source: spec, Parallel: true}
	if len(vars) > 0 {
		ev.Vars = map[string]any{}
	}
	for i := 0; i+1 < len(vars); i += 2 {
		ev.Vars[vars[i]] = vars[i+1]
	}
	d, err := p.client.Do(p.Context(), ev, "")
	if err != nil || d.Run == "" {
		p.Fatalf("start: %+v %v", d, err)
	}
	p.until(d.Run, "a person is asked", asksNow)
	return d.Run
}

// asksNow reports whether a person is asked, or can veto.
func asksNow(r daemon.RunStatus) bool {
	return slices.ContainsFunc(r.Waits, func(w daemon.Wait) bool { return w.Kind == "human" || w.Kind == "window" })
}

// until asks for the run until it is as wanted.
func (p *site) until(run, what string, ok func(daemon.RunStatus) bool) daemon.RunStatus {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	defer cancel()
	for {
		r, err := p.client.Run(ctx, run)
		if err == nil && ok(r) {
			return r
		}
		select {
		case <-ctx.Done():
			p.Fatalf("%s: never: %+v %v", what, r, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

var hidden = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// form returns the fields of the form at a gate, as a browser has them after a second of looking.
func (p *site) form(gate string) url.Values {
	p.Helper()
	w := p.ask("GET", gate, nil)
	if w.Code != http.StatusOK {
		p.Fatalf("%s: %d %s", gate, w.Code, w.Body)
	}
	p.later(press.Shown)
	return fieldsOf(w.Body.String())
}

func fieldsOf(html string) url.Values {
	out := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(html, -1) {
		out.Add(m[1], unescape(m[2]))
	}
	return out
}

var entities = strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&#43;", "+", "&amp;", "&")

func unescape(s string) string { return entities.Replace(s) }
