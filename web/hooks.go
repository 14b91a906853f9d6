package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/strictjson"
	"sluice/internal/text"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
)

// hookPath begins the addresses of webhooks. Programs send them, so neither logins nor the rules for
// browsers apply: a request counts by its signature alone.
const hookPath = "/hook/"

// Limits of webhooks.
const (
	hookMost   = workflows.MaxEvent
	hookRate   = 30 // signed requests with a new body in hookSpan, for each workflow
	hookSpan   = time.Minute
	hookFlows  = 1000             // workflows that are counted
	hookTold   = 10 * time.Second // between two refusals that are remembered, for each workflow
	signHeader = "X-Hub-Signature-256"
)

// hooks takes signed requests and fires the triggers that wait for them.
type hooks struct {
	s *Server

	mu    sync.Mutex
	since time.Time // when counting began
	count map[string]int
	told  map[string]time.Time // when a refusal was remembered
}

func newHooks(s *Server) *hooks {
	return &hooks{s: s, count: map[string]int{}, told: map[string]time.Time{}}
}

// reply is what came of a request.
type reply struct {
	code  int
	words string
	again time.Duration // with 429: when to try again

	repeated bool // the same body came before
}

// ServeHTTP takes in POST /hook/REPO/WORKFLOW.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := h.take(w, r)
	if a.again > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(a.again.Seconds())+1))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	_ = json.NewEncoder(w).Encode(map[string]string{"answer": a.words}) // the client may be gone
}

func (h *hooks) take(w http.ResponseWriter, r *http.Request) reply {
	name, workflow, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, hookPath), "/")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return reply{code: http.StatusMethodNotAllowed, words: "a webhook is a POST"}
	}
	unknown := reply{code: http.StatusNotFound, words: "nothing here takes webhooks"}
	if !ok || !ids.Valid(workflow) {
		return unknown
	}
	at, err := h.s.repos.named(r.Context(), name)
	if err != nil {
		return unknown
	}
	secret, err := workflows.Secret(at.Workspace, workflow)
	if errors.Is(err, workflows.ErrNoSecret) {
		return unknown
	}
	if err != nil {
		h.refuse(at.Workspace, workflow, text.Line(err.Error()))
		return unknown
	}
	a := h.signed(w, r, at.Workspace, workflow, secret)
	if a.code >= http.StatusBadRequest {
		h.refuse(at.Workspace, workflow, strconv.Itoa(a.code)+" "+a.words)
	}
	return a
}

// refuse remembers a refused request, for people who wonder why nothing starts.
func (h *hooks) refuse(at *workspace.Workspace, workflow, why string) {
	key, now := at.Root+"\x00"+workflow, h.s.con.Now()
	h.mu.Lock()
	past := now.Sub(h.told[key])
	due := past < 0 || past >= hookTold
	if due {
		if len(h.told) >= hookFlows {
			clear(h.told)
		}
		h.told[key] = now
	}
	h.mu.Unlock()
	if !due {
		return
	}
	if err := workflows.Refuse(at, workflow, workflows.Refusal{At: now, Why: why}); err != nil {
		h.s.opt.Log.Error().Err(err).Str("workflow", workflow).Msg("a refused webhook is not remembered")
	}
}

// signed takes in a request for a workflow that has a secret.
func (h *hooks) signed(w http.ResponseWriter, r *http.Request, at *workspace.Workspace, workflow string,
	secret []byte) reply {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hookMost))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return reply{code: http.StatusRequestEntityTooLarge, words: "more than 256 KiB"}
	}
	if err != nil {
		return reply{code: http.StatusBadRequest, words: "the body did not arrive whole"}
	}
	if !signedBy(secret, body, r.Header.Get(signHeader)) {
		return reply{code: http.StatusUnauthorized, words: signHeader + " is missing or wrong: it is sha256= and the " +
			"HMAC-SHA256 of the body"}
	}
	counted := at.Root + "\x00" + workflow
	if wait := h.often(counted); wait > 0 {
		return reply{code: http.StatusTooManyRequests, words: "more than 30 requests in a minute", again: wait}
	}
	var event map[string]any
	if err := strictjson.Object(body, hookMost); err != nil {
		return reply{code: http.StatusBadRequest, words: "the body is no JSON object: " + text.Line(err.Error())}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return reply{code: http.StatusBadRequest, words: "the body is no JSON object"}
	}
	// The signature covers the body alone: what a header says may be another's, so the body is the key.
	sum := sha256.Sum256(body)
	a := fire(r.Context(), at, engine.Fired{Workflow: workflow, Trigger: engine.OnWebhook,
		Key: hex.EncodeToString(sum[:16]), Values: map[string]any{"event": event}})
	if a.repeated { // anybody who saw it once can send it
		h.uncount(counted)
	}
	return a
}

// signedBy reports whether a header has the HMAC-SHA256 of the body. It takes as long for any header.
func signedBy(secret, body []byte, header string) bool {
	given, err := hex.DecodeString(strings.TrimPrefix(header, "sha256="))
	if err != nil || !strings.HasPrefix(header, "sha256=") {
		given = nil
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}

// often counts a request, and returns how long to wait if there were too many.
func (h *hooks) often(key string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.s.con.Now()
	if past := now.Sub(h.since); past < 0 || past >= hookSpan || len(h.count) >= hookFlows {
		h.since = now
		clear(h.count)
	}
	if h.count[key]++; h.count[key] > hookRate {
		return hookSpan - now.Sub(h.since)
	}
	return 0
}

// uncount takes a request back.
func (h *hooks) uncount(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count[key] > 0 {
		h.count[key]--
	}
}

// fire hands a firing to the process that serves the repo.
func fire(ctx context.Context, at *workspace.Workspace, ev engine.Fired) reply {
	away := reply{code: http.StatusServiceUnavailable, words: "the repo is not served now"}
	v, err := at.Serving(ctx)
	if err != nil || v == nil {
		return away
	}
	defer v.Close()
	done, err := v.Do(ctx, ev, "webhook")
	if err != nil {
		return away
	}
	for _, raw := range done.Facts {
		f, err := engine.DecodeFact(raw)
		if err != nil {
			continue
		}
		switch f := f.(type) {
		case engine.TriggerFired:
			return reply{code: http.StatusAccepted, words: "taken in"}
		case engine.TriggerSkipped:
			if strings.HasPrefix(f.Why, "overlap: ") {
				return reply{code: http.StatusAccepted, words: "no run is started: " + text.Line(f.Why)}
			}
			return reply{code: http.StatusUnprocessableEntity, words: text.Line(f.Why)}
		}
	}
	if done.Ignored == "" {
		return reply{code: http.StatusOK, words: "this body came before: nothing is started again", repeated: true}
	}
	return refused(ctx, v, ev.Workflow, done.Ignored)
}

// refused tells triggers that are full from triggers that are not armed.
func refused(ctx context.Context, v workspace.Viewer, workflow, why string) reply {
	a := reply{code: http.StatusConflict, words: text.Line(why)}
	st, err := v.Status(ctx, "")
	if err != nil {
		return a
	}
	for _, t := range st.Triggers {
		if t.Workflow == workflow && t.Armed && t.Full != "" {
			a.code, a.again = http.StatusTooManyRequests, untilOpen(t, time.Now())
		}
	}
	return a
}

// untilOpen returns when to try again.
func untilOpen(t daemon.Triggers, now time.Time) time.Duration {
	if t.Full != engine.FullDay {
		return hookSpan
	}
	return max(t.Since.Add(24*time.Hour).Sub(now), time.Second)
}
