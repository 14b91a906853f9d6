//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// pageSettings have the daemon's page listen on a port that is free.
const pageSettings = "web: {listen: \"127.0.0.1:0\"}\n"

// browser is a browser that is logged in to the page of a site.
type browser struct {
	http   *http.Client
	base   string
	cookie *http.Cookie
}

// newBrowser logs one in.
func (s *site) newBrowser(ctx context.Context) (*browser, error) {
	link, err := s.run(ctx, s.repos[0], s.b.sluice, "web")
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil {
		return nil, err
	}
	br := &browser{base: "http://" + u.Host}
	t := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", u.Port()))
	}}
	br.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := br.get(ctx, u.RequestURI(), "text/html")
	if err != nil {
		return nil, err
	}
	if err := res.Body.Close(); err != nil {
		return nil, err
	}
	if len(res.Cookies()) != 1 {
		return nil, fmt.Errorf("the page's link logs nobody in: %s", res.Status)
	}
	br.cookie = res.Cookies()[0]
	return br, nil
}

func (br *browser) close() { br.http.CloseIdleConnections() }

func (br *browser) get(ctx context.Context, path, accept string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, br.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	if br.cookie != nil {
		r.AddCookie(br.cookie)
	}
	return br.http.Do(r)
}

// page reads a page to its last byte, and returns its size.
func (br *browser) page(ctx context.Context, path string) (int64, error) {
	res, err := br.get(ctx, path, "text/html")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return n, err
}

// viewers are browsers that follow pages, a stream each.
type viewers struct {
	end  context.CancelFunc
	done sync.WaitGroup
}

// view has each page followed, in turn by one of the browsers, and returns when all have their first bytes.
func view(ctx context.Context, browsers []*browser, pages []string) (*viewers, error) {
	ctx, end := context.WithCancel(ctx)
	v := &viewers{end: end}
	began := make(chan error, len(pages))
	for i, p := range pages {
		br := browsers[i%len(browsers)]
		v.done.Go(func() { began <- br.follow(ctx, p, &v.done) })
	}
	var err error
	for range pages {
		err = errors.Join(err, <-began)
	}
	if err != nil {
		v.close()
	}
	return v, err
}

// follow opens the stream of a page and returns at its first byte; the rest is read until ctx ends.
func (br *browser) follow(ctx context.Context, path string, rest *sync.WaitGroup) error {
	res, err := br.get(ctx, path, "text/event-stream")
	if err != nil {
		return err
	}
	if _, err = res.Body.Read(make([]byte, 1)); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the stream of %s: %s", path, res.Status)
	}
	if err != nil {
		return errors.Join(err, res.Body.Close())
	}
	rest.Go(func() {
		_, _ = io.Copy(io.Discard, res.Body) // ctx ends it
		_ = res.Body.Close()
	})
	return nil
}

func (v *viewers) close() {
	v.end()
	v.done.Wait()
}
