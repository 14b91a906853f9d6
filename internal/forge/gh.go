package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/internal/text"
)

// Limits of one call.
const (
	callTime   = time.Minute
	maxAnswer  = 4 << 20  // bytes of an answer
	maxHead    = 64 << 10 // bytes of its headers
	maxStderr  = 8 << 10
	maxCached  = 256 << 10 // bytes of an answer that is kept for conditional requests
	maxAnswers = 100       // answers that are kept
)

// Options are what a Hub needs.
type Options struct {
	Env  []string      // the person's environment, as NAME=value
	Dir  string        // where gh runs; "" = the system's folder for temporary files
	Time time.Duration // limits one call; 0 = a minute
	Now  func() time.Time
	// Run runs gh with arguments and what it reads, in place of the program; nil = the program.
	Run func(ctx context.Context, args []string, in []byte, out io.Writer) error
}

// Hub is a repo at a forge. It is safe for concurrent use.
type Hub struct {
	Repo
	opt Options

	mu    sync.Mutex
	until time.Time // a rate limit holds until then
	kept  map[string]kept
}

type kept struct {
	etag string
	body []byte
}

// Open returns the repo at its forge. Nothing is asked yet.
func Open(r Repo, o Options) *Hub {
	o.Time = cmp.Or(o.Time, callTime)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Dir = cmp.Or(o.Dir, os.TempDir())
	return &Hub{Repo: r, opt: o, kept: map[string]kept{}}
}

type request struct {
	method, path string
	body         any
	tail         int // keep only so many bytes at the end of the answer; 0 = all of it
}

type answer struct {
	status int
	header http.Header
	body   []byte
	cut    bool
}

// get asks for a JSON value.
func (h *Hub) get(ctx context.Context, path string, to any) error {
	return h.ask(ctx, request{method: http.MethodGet, path: path}, to)
}

// ask makes a call and reads its answer into to, if that is not nil.
func (h *Hub) ask(ctx context.Context, r request, to any) error {
	a, err := h.call(ctx, r)
	if err != nil {
		return err
	}
	if to == nil {
		return nil
	}
	if err := decode(a.body, to); err != nil {
		return &Fault{Kind: Odd, Host: h.Host, What: r.method + " " + r.path, Status: a.status,
			Said: text.Clean(err.Error(), maxSaid)}
	}
	return nil
}

// graph asks the GraphQL API about the node that id names, and reads its data into to, if that is not nil.
func (h *Hub) graph(ctx context.Context, what, query, id string, to any) error {
	var out struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	err := h.ask(ctx, request{method: http.MethodPost, path: "graphql",
		body: map[string]any{"query": query, "variables": map[string]any{"id": id}}}, &out)
	switch {
	case err != nil:
		return err
	case len(out.Errors) > 0:
		return &Fault{Kind: Refused, Host: h.Host, What: what, Said: text.Clean(out.Errors[0].Message, maxSaid)}
	case to != nil && decode(out.Data, to) != nil:
		return h.odd(what)
	}
	return nil
}

// odd is an answer that lacks what was asked for, or is about something else.
func (h *Hub) odd(what string) *Fault { return &Fault{Kind: Odd, Host: h.Host, What: what} }

// call makes a call, conditionally where an answer is kept.
func (h *Hub) call(ctx context.Context, r request) (answer, error) {
	what := r.method + " " + r.path
	h.mu.Lock()
	was, left := h.kept[r.path], h.until.Sub(h.opt.Now())
	h.mu.Unlock()
	if left > 0 {
		return answer{}, &Fault{Kind: Busy, Host: h.Host, What: what, Wait: left}
	}
	if r.method != http.MethodGet || r.tail > 0 {
		was = kept{}
	}
	a, err := h.run(ctx, r, was.etag)
	if err != nil {
		return a, err
	}
	switch {
	case a.status == http.StatusNotModified && was.etag != "":
		a.body = was.body
	case a.status < 200 || a.status > 299:
		f := faultOf(h.Host, what, a, h.opt.Now())
		if f.Kind == Busy {
			h.mu.Lock()
			h.until = h.opt.Now().Add(f.Wait)
			h.mu.Unlock()
		}
		return a, f
	case a.cut && r.tail == 0:
		return a, &Fault{Kind: TooMuch, Host: h.Host, What: what, Status: a.status}
	}
	h.keep(r, a)
	return a, nil
}

// keep remembers an answer for the next conditional request.
func (h *Hub) keep(r request, a answer) {
	etag := a.header.Get("Etag")
	if r.method != http.MethodGet || r.tail > 0 || etag == "" || len(a.body) > maxCached || a.status != http.StatusOK {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.kept) >= maxAnswers {
		clear(h.kept)
	}
	h.kept[r.path] = kept{etag, a.body}
}

// run runs gh once.
func (h *Hub) run(ctx context.Context, r request, etag string) (answer, error) {
	f := &Fault{Host: h.Host, What: r.method + " " + r.path}
	args := []string{"api", "--include", "--method", r.method}
	if etag != "" {
		args = append(args, "--header", "If-None-Match: "+etag)
	}
	var in []byte
	if r.body != nil {
		var err error
		if in, err = json.Marshal(r.body); err != nil {
			return answer{}, err
		}
		args = append(args, "--input", "-")
	}
	limited, cancel := context.WithTimeout(ctx, h.opt.Time)
	defer cancel()
	out, said := &reply{tail: r.tail}, &reply{tail: maxStderr, headless: true}
	run := h.opt.Run
	if run == nil {
		run = h.program(said)
	}
	err := run(limited, append(args, r.path), in, out)
	switch {
	case errors.Is(err, errNoGH):
		f.Kind = NoGH
		return answer{}, f
	case ctx.Err() != nil:
		return answer{}, context.Cause(ctx)
	case limited.Err() != nil:
		f.Kind = Hangs
		return answer{}, f
	}
	// gh fails with an answer of success only if that did not arrive whole.
	if a, ok := out.answer(); ok && (err == nil || a.status > 299) {
		return a, nil
	}
	f.Kind, f.Said = Away, text.Clean(string(said.body), maxSaid)
	if err == nil {
		f.Kind = Odd
	}
	if strings.Contains(f.Said, "gh auth login") {
		f.Kind, f.Said = NoLogin, ""
	}
	return answer{}, f
}

var errNoGH = errors.New("gh is not installed")

// program returns what runs the program gh.
func (h *Hub) program(said io.Writer) func(ctx context.Context, args []string, in []byte, out io.Writer) error {
	return func(ctx context.Context, args []string, in []byte, out io.Writer) error {
		gh := lookIn(h.opt.Env, "gh")
		if gh == "" {
			return errNoGH
		}
		cmd := exec.CommandContext(ctx, gh, args...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = h.opt.Dir, environ(h.opt.Env, h.Host), time.Second
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, said
		return cmd.Run()
	}
}

// environ returns gh's environment: the person's, for one host, without what makes its output
// other than plain.
func environ(env []string, host string) []string {
	drop := []string{"GH_HOST", "GH_REPO", "GH_FORCE_TTY", "GH_DEBUG", "DEBUG", "CLICOLOR_FORCE", "GH_PAGER", "PAGER"}
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(drop, name)
	})
	return append(out, "GH_HOST="+host, "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "NO_COLOR=1")
}

// lookIn finds a program in an environment's PATH; "" = it is not there.
func lookIn(env []string, program string) string {
	for _, kv := range slices.Backward(env) {
		dirs, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			if p, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(dir) {
				return p
			}
		}
		return ""
	}
	return ""
}

// reply takes in what gh prints: a status line, headers, an empty line and the body, which is
// bounded.
type reply struct {
	tail     int  // keep the end of the body, so many bytes; 0 = its beginning
	headless bool // there is only a body

	head, body []byte
	inBody     bool
	cut        bool
}

func (r *reply) Write(b []byte) (int, error) {
	n := len(b)
	if !r.inBody && !r.headless {
		was := len(r.head)
		r.head = append(r.head, b[:min(n, maxHead+4-min(len(r.head), maxHead+4))]...)
		end, width := bytes.Index(r.head, []byte("\r\n\r\n")), 4
		if i := bytes.Index(r.head, []byte("\n\n")); i >= 0 && (end < 0 || i < end) {
			end, width = i, 2
		}
		if end < 0 {
			return n, nil
		}
		b = b[max(end+width-was, 0):]
		r.inBody, r.head = true, r.head[:end]
	}
	if r.tail == 0 {
		room := min(len(b), maxAnswer-len(r.body))
		r.body, r.cut = append(r.body, b[:room]...), r.cut || room < len(b)
		return n, nil
	}
	if len(b) > r.tail {
		b, r.cut = b[len(b)-r.tail:], true
	}
	if over := len(r.body) + len(b) - r.tail; over > 0 {
		r.body, r.cut = r.body[over:], true
	}
	r.body = append(r.body, b...)
	return n, nil
}

// answer reads what came; ok is false if that is no answer of HTTP.
func (r *reply) answer() (a answer, ok bool) {
	lines := strings.Split(strings.ReplaceAll(string(r.head), "\r\n", "\n"), "\n")
	first := strings.Fields(lines[0])
	if !r.inBody || len(first) < 2 || !strings.HasPrefix(first[0], "HTTP/") {
		return a, false
	}
	n, err := strconv.Atoi(first[1])
	if err != nil {
		return a, false
	}
	a = answer{status: n, header: http.Header{}, body: r.body, cut: r.cut}
	for _, line := range lines[1:] {
		if name, value, ok := strings.Cut(line, ":"); ok {
			a.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return a, true
}

// decode reads one JSON value.
func decode(body []byte, to any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("it is empty")
	}
	return json.Unmarshal(body, to)
}
