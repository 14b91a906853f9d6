package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hooked is the webhook of a hook, with an environment of its own.
func hooked(t *testing.T, h Hook, env map[string]string) (*Notifier, *webhook) {
	t.Helper()
	n := New(Options{Webhook: h})
	w := n.lanes[len(n.lanes)-1].channel.(*webhook)
	w.getenv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, w
}

// heard is a request as a server got it.
type heard struct {
	*http.Request
	body string
}

// listener keeps what it is asked, and answers by answer.
func listener(t *testing.T, answer http.HandlerFunc) (url string, got chan heard) {
	t.Helper()
	got = make(chan heard, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- heard{r, string(body)}
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func TestWebhookSignsWhatItSends(t *testing.T) {
	t.Parallel()
	url, got := listener(t, nil)
	n, _ := hooked(t, Hook{URL: url + "/hook?key=${KEY}", Method: "PUT", SecretEnv: "SECRET", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}},
		map[string]string{"KEY": "k1", "SECRET": "s3cret", "TOKEN": "t0ken"})
	notice := Notice{ID: "w-1/G#1.human-4", Kind: "human", Title: "<b> \"G\" & co", Body: "a\nb", Run: "w-1", Gate: "G", Repo: "shop", Urgency: UrgencyCritical}
	if r := byName(t, n.Send(t.Context(), notice), WebhookChannel); !r.OK {
		t.Fatalf("%+v", r)
	}
	r := <-got
	if r.Method != "PUT" || r.URL.String() != "/hook?key=k1" || r.Header.Get("Authorization") != "Bearer t0ken" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get(headerID) != notice.ID {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	var back struct {
		Notice
		Time time.Time
	}
	if err := json.Unmarshal([]byte(r.body), &back); err != nil || back.Title != notice.Title || back.Body != notice.Body || back.Repo != "shop" || time.Since(back.Time) > time.Minute {
		t.Errorf("%s: %v", r.body, err)
	}
	at := r.Header.Get(headerTime)
	if want := sign("s3cret", at, []byte(r.body)); r.Header.Get(headerSignature) != want {
		t.Errorf("signature %q, want %q", r.Header.Get(headerSignature), want)
	}
	// The check that the documents show.
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("needs: openssl (apt-get install openssl)")
	}
	cmd := exec.Command(openssl, "dgst", "-sha256", "-hmac", "s3cret", "-r")
	cmd.Stdin = strings.NewReader(at + "." + r.body)
	out, err := cmd.Output()
	if sum, _, _ := strings.Cut(string(out), " "); err != nil || "v1="+sum != r.Header.Get(headerSignature) {
		t.Errorf("openssl says %q: %v", out, err)
	}
}

// The templates are those of docs/notices.md.
func TestWebhookBodies(t *testing.T) {
	t.Parallel()
	ntfy := `{"topic": "my-sluice", "title": {{json .Title}}, "message": {{json (cut 500 .Body)}}, "click": {{json .URL}}, "priority": {{if eq .Urgency "critical"}}5{{else}}3{{end}}}`
	slack := `{"text": {{json (printf "*%s*\n%s" (slack .Title) (slack .Body))}}}`
	for _, c := range []struct{ body, want string }{
		{ntfy, `{"topic": "my-sluice", "title": "G: <a> \"b\"", "message": "x & y", "click": "https://s.example/r/shop/w-1/g/G", "priority": 5}`},
		{slack, `{"text": "*G: &lt;a&gt; \"b\"*\nx &amp; y"}`},
		{`{{.Repo}} {{.Kind}} {{.Escalated}}`, `shop human true`},
	} {
		url, got := listener(t, nil)
		h := Hook{URL: url, Body: c.body, Headers: map[string]string{"content-type": "text/plain"}}
		if errs := h.Check(); len(errs) > 0 {
			t.Errorf("%s: %v", c.body, errs)
		}
		n, _ := hooked(t, h, nil)
		n.Send(t.Context(), Notice{Kind: "human", Title: "G: <a> \"b\"", Body: "x & y", Repo: "shop", Urgency: UrgencyCritical, Escalated: true,
			URL: "https://s.example/r/shop/w-1/g/G"})
		if r := <-got; r.body != c.want || r.Header.Get("Content-Type") != "text/plain" || r.Header.Get(headerSignature) != "" {
			t.Errorf("got  %s\nwant %s\n%v", r.body, c.want, r.Header)
		}
	}
}

func TestWebhookFailures(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("no ", 100_000)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		why    string
		again  bool
	}{
		{"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad s3cret "+long, http.StatusForbidden) }, "answered 403: bad … no no", false},
		{"redirected", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusTemporaryRedirect)
		}, "redirects are not followed", false},
		{"down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "answered 503: it is tried again in the background", true},
		{"too much", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, "answered 429: it is tried again", true},
		{"cut off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "tried again in the background", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, got := listener(t, c.answer)
			n, w := hooked(t, Hook{URL: url + "/p4th", SecretEnv: "SECRET"}, map[string]string{"SECRET": "s3cret"})
			r := byName(t, n.Send(t.Context(), Notice{Title: "x"}), WebhookChannel)
			if r.OK || !strings.Contains(r.Why, c.why) || strings.Contains(r.Why, "s3cret") || strings.Contains(r.Why, "p4th") || len(r.Why) > 3*maxWhy {
				t.Errorf("%+v", r)
			}
			if (len(w.waiting) > 0) != c.again {
				t.Errorf("%d wait to be tried again", len(w.waiting))
			}
			if len(got) != 1 {
				t.Errorf("asked %d times", len(got))
			}
		})
	}
}

// TestWebhookReadsABoundedAnswer: one without an end is left, and closed.
func TestWebhookReadsABoundedAnswer(t *testing.T) {
	t.Parallel()
	wrote := make(chan int, 1)
	url, _ := listener(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		line, n := []byte(strings.Repeat("x", 64<<10)), 0
		for {
			k, err := w.Write(line)
			if n += k; err != nil {
				wrote <- n
				return
			}
		}
	})
	n, _ := hooked(t, Hook{URL: url}, nil)
	if r := byName(t, n.Send(t.Context(), Notice{}), WebhookChannel); r.OK || !strings.Contains(r.Why, "answered 400") {
		t.Errorf("%+v", r)
	}
	const buffers = 64 << 20 // what a socket may hold, many times over
	if got := <-wrote; got > buffers {
		t.Errorf("%d bytes were taken", got)
	}
}

func TestWebhookTellsNoSecret(t *testing.T) {
	t.Parallel()
	n, _ := hooked(t, Hook{URL: "http://127.0.0.1:1/p4th?q=qu3ry", Headers: map[string]string{"X-Key": "h3ader"}, Once: true}, nil)
	r := byName(t, n.Send(t.Context(), Notice{Title: "x"}), WebhookChannel)
	for _, secret := range []string{"p4th", "qu3ry", "h3ader", "tried again"} {
		if r.OK || strings.Contains(r.Why, secret) {
			t.Errorf("%+v tells %s", r, secret)
		}
	}
	n, _ = hooked(t, Hook{URL: "${HOOK}", SecretEnv: "SECRET"}, map[string]string{"HOOK": "http://example.org/p4th", "SECRET": "s"})
	if r := byName(t, n.Send(t.Context(), Notice{}), WebhookChannel); r.OK || !strings.Contains(r.Why, "want https") || strings.Contains(r.Why, "p4th") {
		t.Errorf("%+v", r)
	}
	n, _ = hooked(t, Hook{URL: "${HOOK}", SecretEnv: "SECRET"}, map[string]string{"HOOK": ""})
	if r := byName(t, n.Send(t.Context(), Notice{}), WebhookChannel); r.OK || !strings.Contains(r.Why, "no HOOK, SECRET") {
		t.Errorf("%+v", r)
	}
}

// transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// retried counts the tries of one notice, each answered by answer, and gives when each came and
// what was told at the end.
func retried(t *testing.T, answer func(try int) (*http.Response, error)) (times []time.Duration, first Result, late []Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began := time.Now()
		n := New(Options{Webhook: Hook{URL: "https://example.org/"}, Late: func(_ Notice, r Result) { mu.Lock(); defer mu.Unlock(); late = append(late, r) }})
		n.lanes[0].channel.(*webhook).client.Transport = transport(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			times = append(times, time.Since(began))
			try := len(times)
			mu.Unlock()
			res, err := answer(try)
			if res == nil && err == nil { // it hangs
				<-r.Context().Done()
				err = r.Context().Err()
			}
			return res, err
		})
		first = n.Send(t.Context(), Notice{Title: "x"})[0]
		time.Sleep(10 * time.Minute)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return times, first, late
}

func reply(code int, header ...string) *http.Response {
	res := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
	for i := 0; i+1 < len(header); i += 2 {
		res.Header.Set(header[i], header[i+1])
	}
	return res
}

func TestWebhookIsTriedAgain(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name   string
		answer func(try int) (*http.Response, error)
		times  []time.Duration
		ok     bool
		why    string
	}{
		{"it comes back", func(try int) (*http.Response, error) { return reply(map[bool]int{true: 502, false: 200}[try < 3]), nil }, []time.Duration{0, 2 * s, 6 * s}, true, ""},
		{"never", func(int) (*http.Response, error) { return nil, errors.New("connection refused") }, []time.Duration{0, 2 * s, 6 * s, 14 * s, 30 * s, 62 * s}, false, "given up after 6 tries"},
		{"it hangs", func(int) (*http.Response, error) { return nil, nil }, []time.Duration{0, 6 * s, 14 * s, 26 * s, 46 * s, 82 * s}, false, "did not answer within 4s"},
		{"it asks for patience", func(try int) (*http.Response, error) {
			return reply(map[bool]int{true: 429, false: 204}[try < 3], "Retry-After", map[int]string{1: "30", 2: "99999"}[try]), nil
		}, []time.Duration{0, 30 * s, 90 * s}, true, ""},
		{"then it refuses", func(try int) (*http.Response, error) { return reply(map[bool]int{true: 500, false: 404}[try < 2]), nil }, []time.Duration{0, 2 * s}, false, "answered 404"},
	} {
		times, first, late := retried(t, c.answer)
		if fmt.Sprint(times) != fmt.Sprint(c.times) {
			t.Errorf("%s: tried at %v, want %v", c.name, times, c.times)
		}
		if first.OK || first.Took > sendLimit || !strings.Contains(first.Why, "tried again in the background") {
			t.Errorf("%s: at first: %+v", c.name, first)
		}
		if len(late) != 1 || late[0].OK != c.ok || !strings.Contains(late[0].Why, c.why) {
			t.Errorf("%s: at last: %+v", c.name, late)
		}
	}
}

// TestWebhookPilesUpNothing: of many notices that fail a bounded number is tried again, and the end
// ends them.
func TestWebhookPilesUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{Webhook: Hook{URL: "https://example.org/"}})
		w := n.lanes[0].channel.(*webhook)
		w.client.Transport = transport(func(*http.Request) (*http.Response, error) { return reply(500), nil })
		dropped := 0
		for range 2 * hookWaiting {
			if r := n.Send(t.Context(), Notice{}); strings.Contains(r[0].Why, "not tried again") {
				dropped++
			}
		}
		if dropped != hookWaiting {
			t.Errorf("%d dropped, want %d", dropped, hookWaiting)
		}
		began := time.Now()
		if err := n.Close(); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestHookCheck(t *testing.T) {
	for _, c := range []struct {
		hook Hook
		want string
	}{
		{Hook{URL: "https://example.org/x", Method: "PATCH", SecretEnv: "A_B", Headers: map[string]string{"X-A": "b"}, Body: "{{.Title}}"}, ""},
		{Hook{URL: "http://localhost:8080/x"}, ""},
		{Hook{URL: "http://[::1]/x"}, ""},
		{Hook{URL: "${SLACK_URL}"}, ""},
		{Hook{URL: "https://ntfy.sh/${TOPIC}"}, ""},
		{Hook{URL: "http://example.org/"}, "url: http to example.org: want https"},
		{Hook{URL: "http://127.0.0.1.example.org/"}, "want https"},
		{Hook{URL: "file:///etc/passwd"}, "url: want a URL"},
		{Hook{URL: "ftp://x/"}, "url: ftp: want https"},
		{Hook{URL: "https://"}, "url: want a URL"},
		{Hook{URL: "https://x", Method: "GET"}, "method: \"GET\""},
		{Hook{URL: "https://x", SecretEnv: "a b"}, "secret_env"},
		{Hook{URL: "https://x", Headers: map[string]string{"Host": "y"}}, "headers.Host"},
		{Hook{URL: "https://x", Headers: map[string]string{"x-sluice-signature": "y"}}, "headers.x-sluice-signature"},
		{Hook{URL: "https://x", Headers: map[string]string{"X-A": "b\r\nX-B: c"}}, "control character"},
		{Hook{URL: "https://x", Body: "{{.Titel}}"}, "body: "},
		{Hook{URL: "https://x", Body: "{{json .Title"}, "body: "},
		{Hook{URL: "https://x", Body: strings.Repeat("x", maxHookBody+1)}, "body: the body has more than"},
		{Hook{URL: "https://x", Body: `{{range 100000000}}xxxxxxxxxxxx{{end}}`}, "body: "},
	} {
		err := errors.Join(c.hook.Check()...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.hook, err, c.want)
		}
	}
}

func TestReservedChannels(t *testing.T) {
	t.Parallel()
	var got []string
	var mu sync.Mutex
	channel := func(name string) Channel {
		return fake{name, func(_ context.Context, n Notice) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, name+" "+n.Title)
			return nil
		}}
	}
	n := New(Options{Channels: []Channel{channel("a"), channel("b")}, Reserved: []string{"b", "none"}})
	if r := n.Send(t.Context(), Notice{Title: "1"}); len(r) != 1 || r[0].Channel != "a" {
		t.Errorf("%+v", r)
	}
	if r := n.Send(t.Context(), Notice{Title: "2", Escalated: true}); len(r) != 2 || !r[1].OK {
		t.Errorf("%+v", r)
	}
	if strings.Contains(strings.Join(got, ","), "b 1") {
		t.Errorf("told: %v", got)
	}
}
