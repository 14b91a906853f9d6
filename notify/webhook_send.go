package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/text"
)

// passing is a temporary failure, worth a retry.
type passing struct {
	error
	after time.Duration // the pause that the other side asked for; 0 = none
}

func (p passing) Unwrap() error { return p.error }

func (w *webhook) Send(ctx context.Context, n Notice) error {
	c, err := w.call(n)
	if err != nil {
		return err
	}
	err = c.try(ctx)
	var again passing
	if !errors.As(err, &again) || ctx.Err() != nil || w.hook.Once {
		return err
	}
	select {
	case w.waiting <- struct{}{}:
	default:
		return fmt.Errorf("%w: not tried again: %d others wait for that", err, hookWaiting)
	}
	w.work.Go(func() {
		defer func() { <-w.waiting }()
		began := time.Now()
		err := c.persist(again)
		r := Result{Channel: WebhookChannel, OK: err == nil, Took: time.Since(began)}
		if err != nil {
			r.Why = text.Clean(err.Error(), maxWhy)
		}
		w.late(n, r)
	})
	return fmt.Errorf("%w: it is tried again in the background", err)
}

// persist retries until it succeeds, fails for good, or has used all tries.
func (c *call) persist(last passing) error {
	pause := hookPause
	for n := 1; n < hookTries; n++ {
		if !health.Wait(c.w.ctx, min(max(pause, last.after), hookPauseMax)) {
			return fmt.Errorf("%w: given up after %d tries: sluice stops, or its settings have changed", last.error, n)
		}
		pause *= 2
		err := c.try(c.w.ctx)
		if err == nil || !errors.As(err, &last) {
			return err
		}
	}
	return fmt.Errorf("%w: given up after %d tries", last.error, hookTries)
}

// call is a notice being sent.
type call struct {
	w       *webhook
	id      string
	url     *url.URL
	headers http.Header
	body    []byte
	secret  string
	hide    *strings.Replacer // removes secrets from errors
}

// call prepares a request. It reports missing environment variables.
func (w *webhook) call(n Notice) (*call, error) {
	if missing := w.hook.Missing(w.getenv); len(missing) > 0 {
		return nil, fault.New("set it where sluice is started", "the environment of sluice has no %s",
			strings.Join(missing, ", "))
	}
	var secrets []string
	lookup := func(name string) (string, bool) {
		v, _ := w.getenv(name)
		secrets = append(secrets, v)
		return v, true
	}
	c := &call{w: w, id: n.ID, headers: http.Header{}}
	to := expand(w.hook.URL, lookup)
	for name, value := range w.hook.Headers {
		c.headers.Set(name, expand(value, lookup))
	}
	if w.hook.SecretEnv != "" {
		c.secret, _ = lookup(w.hook.SecretEnv)
	}
	var err error
	if c.url, err = address(to); err != nil {
		return nil, err
	}
	t, err := w.hook.template()
	if err == nil {
		c.body, err = write(t, HookData{Notice: n, Time: time.Now()})
	}
	if err != nil {
		return nil, fmt.Errorf("the body cannot be made: %w", err)
	}
	if c.headers.Get("Content-Type") == "" {
		c.headers.Set("Content-Type", "application/json")
	}
	c.headers.Set("User-Agent", appName)
	secrets = slices.AppendSeq(secrets, maps.Values(w.hook.Headers))
	if p := c.url.EscapedPath(); len(p) > 1 { // the path of many hooks is their secret
		secrets = append(secrets, p)
	}
	secrets = append(secrets, c.url.RawQuery, c.url.User.String())
	c.hide = hiding(secrets)
	return c, nil
}

// hiding replaces secrets, the longest first.
func hiding(secrets []string) *strings.Replacer {
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, "…")
		}
	}
	return strings.NewReplacer(pairs...)
}

func (c *call) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hookTry)
	defer cancel()
	method := cmp.Or(c.w.hook.Method, http.MethodPost)
	req, err := http.NewRequestWithContext(ctx, method, c.url.String(), bytes.NewReader(c.body))
	if err != nil {
		return errors.New("no request can be made of the settings") // the error would show them
	}
	req.Header = c.headers.Clone()
	if c.id != "" {
		req.Header.Set(headerID, c.id)
	}
	if c.secret != "" {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		req.Header.Set(headerTime, at)
		req.Header.Set(headerSignature, sign(c.secret, at, c.body))
	}
	res, err := c.w.client.Do(req)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok { // it shows the URL
			err = outer.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return passing{error: fmt.Errorf("%s did not answer within %s%w", c.url.Hostname(), hookTry, errHung)}
		}
		return passing{error: fmt.Errorf("%s: %s", c.url.Hostname(), c.hide.Replace(err.Error()))}
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, maxHookReply)) // a part is used too
	return c.answered(res, string(said))
}

func (c *call) answered(res *http.Response, said string) error {
	code := res.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	err := fmt.Errorf("%s answered %d", c.url.Hostname(), code)
	if text := text.Clean(c.hide.Replace(said), replyShown); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	switch {
	case code >= 300 && code < 400:
		return fault.New("set the url it leads to", "%w: redirects are not followed", err)
	case code == http.StatusTooManyRequests || code >= 500:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // a date counts as nothing
		return passing{error: err, after: time.Duration(min(max(seconds, 0), int(hookPauseMax/time.Second))) * time.Second}
	}
	return err
}

// sign returns the signature of a body at a time.
func sign(secret, at string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}
