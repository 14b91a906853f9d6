package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/show"
	"sluice/internal/workflows"
	"sluice/tools/conform"
)

const hookSpec = `
workflow: {id: hooked, vars: {title: {required: true}}}
on:
  webhook: {}
  with: {title: "${{event.title}}"}
  max_per_day: 40
steps:
  - {id: a, run: [x], next_step: DONE}
`

// hook sends a webhook with the header's signature, and returns the status and the answer.
func (p *site) hook(path, body, signature string) (int, string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), "POST", p.base+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.Host = strings.TrimPrefix(p.base, "http://")
	_, port, _ := strings.Cut(r.Host, ":")
	r.URL.Host = "127.0.0.1:" + port
	if signature != "" {
		r.Header.Set(signHeader, signature)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	words := make([]byte, 4096)
	n, _ := res.Body.Read(words)
	return res.StatusCode, string(words[:n]) + res.Header.Get("Retry-After")
}

func sign(secret []byte, body string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// TestWebhook: what a webhook is answered, from an unknown workflow to one too many.
func TestWebhook(t *testing.T) {
	conform.Rule(t, "12-triggers webhook", "a signed body fires")
	conform.Rule(t, "12-triggers refused", "wrong and missing signatures, too large, too often, no object")
	conform.Rule(t, "12-triggers key", "the body is the key")
	p := newSite(t)
	p.put(".workflow/specs/hooked.yaml", hookSpec)
	const at, body = "/hook/shop/hooked", `{"title": "an index"}`
	want := func(code int, words, path, body, signature string) {
		t.Helper()
		if got, said := p.hook(path, body, signature); got != code || !strings.Contains(said, words) {
			t.Errorf("POST %s: %d %s, want %d %s", path, got, said, code, words)
		}
	}
	want(404, "nothing here", at, body, "sha256=00")
	secret, err := workflows.MakeSecret(p.at, "hooked", false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := workflows.MakeSecret(p.at, "hooked", false); err != nil || string(again) != string(secret) {
		t.Errorf("another secret: %v", err)
	}
	for _, bad := range []string{"", "sha256=", "sha256=00", sign(secret, body+" "), sign([]byte("x"), body),
		strings.TrimPrefix(sign(secret, body), "sha256="), "sha1=" + sign(secret, body)[7:]} {
		want(401, signHeader, at, body, bad)
	}
	for _, path := range []string{"/hook/shop", "/hook/", "/hook/shop/../hooked", "/hook/none/hooked", "/hook/shop/w", "/hook/shop/hooked/x"} {
		want(404, "nothing here", path, body, sign(secret, body))
	}
	want(409, "not armed", at, body, sign(secret, body))
	ev, _, err := workflows.Armable(p.at, "hooked")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := p.client.Do(t.Context(), ev, "command"); err != nil || done.Ignored != "" {
		t.Fatal(done.Ignored, err)
	}
	want(202, "taken in", at, body, sign(secret, body))
	want(200, "came before", at, body, sign(secret, body))
	for range hookRate { // what somebody repeats takes nothing from what is new
		want(200, "came before", at, body, sign(secret, body))
	}
	want(400, "no JSON object", at, `[1]`, sign(secret, `[1]`))
	want(422, "it is empty", at, `{"name": "x"}`, sign(secret, `{"name": "x"}`))
	long := `{"title": "` + strings.Repeat("x", hookMost) + `"}`
	want(413, "256 KiB", at, long, sign(secret, long))
	st, err := p.client.Status(t.Context(), "")
	if err != nil || len(st.Triggers) != 1 || st.Triggers[0].Today != 1 {
		t.Errorf("%+v: %v", st.Triggers, err)
	}
	many := 0
	for i := range 2 * hookRate {
		b := fmt.Sprintf(`{"title": "t", "n": %d}`, i)
		code, said := p.hook(at, b, sign(secret, b))
		if code == http.StatusTooManyRequests {
			many++
			if !strings.Contains(said, "30 requests") || said[len(said)-1] < '0' || said[len(said)-1] > '9' {
				t.Errorf("too often: %s", said)
			}
		}
	}
	if many < hookRate {
		t.Errorf("%d of %d were too many", many, 2*hookRate)
	}
	full := 0
	for i := range hookRate {
		if i%20 == 0 {
			p.later(hookSpan)
		}
		b := fmt.Sprintf(`{"title": "u", "n": %d}`, i)
		if code, said := p.hook(at, b, sign(secret, b)); code == http.StatusTooManyRequests && strings.Contains(said, "max_per_day") {
			full++
		}
	}
	if st, err = p.client.Status(t.Context(), ""); err != nil || st.Triggers[0].Today != 40 || st.Triggers[0].Full != engine.FullDay || full == 0 {
		t.Errorf("%+v, %d refused: %v", st.Triggers, full, err)
	}
}

// TestRefusedIsShown: who wonders why nothing starts is told, and a flood writes little.
func TestRefusedIsShown(t *testing.T) {
	conform.Rule(t, "12-triggers refusals", "the last refusal, with its time and its reason")
	p := newSite(t)
	p.put(".workflow/specs/hooked.yaml", hookSpec)
	const at, body = "/hook/shop/hooked", `{"title": "an index"}`
	shown := func() string {
		var out strings.Builder
		all, err := show.Triggers(t.Context(), p.at, "")
		if err != nil {
			t.Fatal(err)
		}
		show.PrintTriggers(&console.Console{Out: &out, Err: &out, Now: time.Now}, all)
		return strings.Join(strings.Fields(out.String()), " ")
	}
	p.hook(at, body, sign([]byte("x"), body)) // there is no secret, so it is nobody's
	if got := shown(); !strings.Contains(got, "webhook takes no request yet: sluice triggers secret hooked") {
		t.Error(got)
	}
	secret, err := workflows.MakeSecret(p.at, "hooked", false)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(); !strings.Contains(got, "webhook has not fired") {
		t.Error(got)
	}
	for i, c := range []struct{ body, key, want string }{
		{body, "other", "401 X-Hub-Signature-256 is missing or wrong"},
		{body, string(secret), "409 the triggers of hooked are not armed"},
		{`{"title": "` + strings.Repeat("x", hookMost) + `"}`, string(secret), "413 more than 256 KiB"},
		{"[1]", string(secret), "400 the body is no JSON object"},
	} {
		p.hook(at, c.body, sign([]byte(c.key), c.body))
		if got := shown(); !strings.Contains(got, "webhook refused ") || !strings.Contains(got, c.want) {
			t.Errorf("%d: %s", i, got)
		}
		was := workflows.Refused(p.at, "hooked")
		p.hook(at, body, "") // at once after it: not remembered
		if got := workflows.Refused(p.at, "hooked"); got != was {
			t.Errorf("%d: %+v after %+v", i, got, was)
		}
		p.later(hookTold)
	}
}

// TestSecretIsPrivate: one that others can read is worth nothing.
func TestSecretIsPrivate(t *testing.T) {
	conform.Rule(t, "12-triggers secret", "one that others can read counts no more")
	p := newSite(t)
	p.put(".workflow/specs/hooked.yaml", hookSpec)
	secret, err := workflows.MakeSecret(p.at, "hooked", false)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.at.State, "hooks", "hooked.secret")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v: %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, said := p.hook("/hook/shop/hooked", "{}", sign(secret, "{}")); code != http.StatusNotFound {
		t.Errorf("%d %s", code, said)
	}
	if got := workflows.Refused(p.at, "hooked").Why; !strings.Contains(got, "can be read by others") {
		t.Errorf("it is told %q", got)
	}
	other, err := workflows.MakeSecret(p.at, "hooked", true)
	if err != nil || string(other) == string(secret) {
		t.Errorf("the same secret again: %v", err)
	}
	if code, said := p.hook("/hook/shop/hooked", "{}", sign(secret, "{}")); code != http.StatusUnauthorized {
		t.Errorf("the old one: %d %s", code, said)
	}
}
