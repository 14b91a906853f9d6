package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"sluice/internal/text"
)

// Limits of a webhook.
const (
	hookTry      = 4 * time.Second // per try; the first is waited for
	hookTries    = 6               // including the first
	hookPause    = 2 * time.Second // after the first; it doubles
	hookPauseMax = time.Minute     // even if the other side asks for more
	hookWaiting  = 32              // notices waiting for a retry
	maxHookBody  = 64 << 10        // bytes of a body, and of a template
	maxHookReply = 2048            // bytes of an answer that are read
	maxHeaders   = 32
	replyShown   = 120 // characters of it that are shown
)

// Headers of a webhook's requests.
const (
	headerID        = "X-Sluice-Notice"    // the notice's id: the same in each try
	headerTime      = "X-Sluice-Timestamp" // seconds since 1970, of this try
	headerSignature = "X-Sluice-Signature" // v1= and the hex HMAC-SHA256 of timestamp, ".", body
)

// Hook configures how a webhook is called. ${NAME} in the URL and in a header's value stands for an
// environment variable, so that secrets need not be written down.
type Hook struct {
	URL       string            // https, or http to this machine
	Method    string            // POST (the default), PUT or PATCH
	SecretEnv string            // the variable with the secret that signs requests; "" = unsigned
	Headers   map[string]string // besides our own
	Body      string            // a template (text/template) over [HookData]; "" = the notice as JSON
	Once      bool              // no retries
}

// HookData is the data of a body's template.
type HookData struct {
	Notice
	Time time.Time `json:"time"`
}

var (
	errHeaderName = errors.New("no name of a header that can be set")
	errBodySize   = fmt.Errorf("the body has more than %d bytes", maxHookBody)
)

// Check returns all faults of a hook, each beginning with its key.
func (h Hook) Check() []error {
	var out []error
	fault := func(key, format string, args ...any) {
		out = append(out, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
	}
	// its value is checked when it is called
	whole := strings.HasPrefix(h.URL, "${") && variable().MatchString(h.URL)
	if _, err := address(expand(h.URL, func(string) (string, bool) { return "x", true })); err != nil && !whole {
		fault("url", "%w", err)
	}
	if !slices.Contains([]string{"", http.MethodPost, http.MethodPut, http.MethodPatch}, h.Method) {
		fault("method", "%q: want POST, PUT or PATCH", h.Method)
	}
	if h.SecretEnv != "" && !variable().MatchString("${"+h.SecretEnv+"}") {
		fault("secret_env", "%q: want the name of a variable of the environment", h.SecretEnv)
	}
	if len(h.Headers) > maxHeaders {
		fault("headers", "more than %d", maxHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		switch {
		case !headerName(name):
			fault("headers."+name, "%w", errHeaderName)
		case strings.ContainsFunc(h.Headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			fault("headers."+name, "a control character: remove it")
		}
	}
	if len(h.Body) > maxHookBody {
		fault("body", "%w", errBodySize)
	} else if t, err := h.template(); err != nil {
		fault("body", "%w", err)
	} else if _, err := write(t, HookData{Notice: Notice{Title: "a title", Kind: KindInfo}}); err != nil {
		fault("body", "%w", err)
	}
	return out
}

// Missing returns the variables that the hook needs and lookup does not have.
func (h Hook) Missing(lookup func(string) (string, bool)) []string {
	var out []string
	see := func(name string) (string, bool) {
		if v, ok := lookup(name); !ok || v == "" {
			out = append(out, name)
		}
		return "", true
	}
	expand(h.URL, see)
	for _, v := range h.Headers {
		expand(v, see)
	}
	if h.SecretEnv != "" {
		see(h.SecretEnv)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// variable matches a variable in a URL or a header.
func variable() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`) }

// expand inserts variables; unset ones stay as they are.
func expand(s string, lookup func(string) (string, bool)) string {
	return variable().ReplaceAllStringFunc(s, func(m string) string {
		if v, ok := lookup(m[2 : len(m)-1]); ok {
			return v
		}
		return m
	})
}

// headerName reports whether a person may set the header.
func headerName(name string) bool {
	if !regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`).MatchString(name) {
		return false
	}
	switch canonical := http.CanonicalHeaderKey(name); canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade", "Te":
		return false
	default:
		return !strings.HasPrefix(canonical, "X-Sluice-")
	}
}

// address parses a URL that may be called. Plain http, which exposes signatures and contents, is
// only accepted to this machine.
func address(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, errors.New("want a URL such as https://example.org/hook") // the error would show it
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme != "http":
		return nil, fmt.Errorf("%s: want https", text.Clean(u.Scheme, maxField))
	case !loopback(u.Hostname()):
		return nil, fmt.Errorf("http to %s: want https: only this machine may be called without",
			text.Clean(u.Hostname(), maxField))
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (h Hook) template() (*template.Template, error) {
	body := cmp.Or(h.Body, `{{json .}}`)
	return template.New("body").Option("missingkey=error").Funcs(template.FuncMap{
		"json":  asJSON,
		"slack": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace,
		"cut":   func(most int, s string) string { return text.Clean(s, most) },
	}).Parse(body)
}

// asJSON formats a value as JSON, a text with its quotes.
func asJSON(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// write formats a body of limited size.
func write(t *template.Template, d HookData) ([]byte, error) {
	out := &bounded{most: maxHookBody}
	err := t.Execute(out, d)
	return out.kept.Bytes(), err
}

// bounded refuses more than most bytes.
type bounded struct {
	most int
	kept bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.most {
		return 0, errBodySize
	}
	return b.kept.Write(p)
}

// WebhookChannel is the name of a webhook in a Result.
const WebhookChannel = "webhook"

// webhook calls a hook for each notice. The first try is part of Send. After a temporary failure
// (the network, 429, 5xx) it retries in the background, five times with growing pauses; late gets
// the outcome. Redirects are not followed. No error contains a secret.
type webhook struct {
	hook    Hook
	getenv  func(string) (string, bool)
	client  *http.Client
	late    func(Notice, Result)
	waiting chan struct{}

	ctx    context.Context // of retries
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func newWebhook(h Hook, late func(Notice, Result)) *webhook {
	ctx, cancel := context.WithCancel(context.Background())
	return &webhook{hook: h, getenv: os.LookupEnv, ctx: ctx, cancel: cancel, late: late,
		waiting: make(chan struct{}, hookWaiting),
		client: &http.Client{
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
				ForceAttemptHTTP2: true, ResponseHeaderTimeout: hookTry, MaxResponseHeaderBytes: 64 << 10},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
}

func (w *webhook) Name() string { return WebhookChannel }

// End gives up retries.
func (w *webhook) End() {
	w.cancel()
	w.work.Wait()
	w.client.CloseIdleConnections()
}
