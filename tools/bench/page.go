//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// The aims of rows 17 and 18.
const (
	aimViewed = 1.1 // of row 2's p50, while the page is looked at
	aimPaint  = 200 * time.Millisecond
)

// How the page is looked at in row 17.
const (
	viewedRuns   = 200 // that wait for a person
	inboxViewers = 30
	runViewers   = 20
	talkers      = 20 // agents that print, a viewer each
	ownStreams   = 10 // of a login
)

// viewed measures row 2 while the page is looked at, and while nobody looks, in turns.
func viewed(ctx context.Context, b *bench) (out []figure, err error) {
	runs, agents := b.count(viewedRuns, 3), b.count(talkers, 2)
	l, err := b.newLatency(ctx, "row17", "person", passSpec, func(s *site) error { return s.talking(agents) })
	if err != nil {
		return nil, err
	}
	defer l.close(&err)
	if err := l.fill(ctx, runs-1); err != nil {
		return nil, err
	}
	talk, err := l.talk(ctx, agents)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, e := l.run(context.WithoutCancel(ctx), l.repos[0], b.sluice, "abort", talk, "--yes")
		err = errors.Join(err, e)
	}()
	pages, err := l.pages(ctx, talk, agents)
	if err != nil {
		return nil, err
	}
	var browsers []*browser
	for range (len(pages) + ownStreams - 1) / ownStreams {
		br, err := l.newBrowser(ctx)
		if err != nil {
			return nil, err
		}
		defer br.close()
		browsers = append(browsers, br)
	}
	var with, without samples
	for want := b.count(160, 2); len(with) < want; {
		v, err := view(ctx, browsers, pages)
		if err != nil {
			return nil, err
		}
		err = l.block(ctx, &with, min(blockOf, want-len(with)))
		v.close()
		if err == nil {
			err = l.block(ctx, &without, len(with)-len(without))
		}
		if err != nil {
			return nil, err
		}
	}
	ratio := over(with.p50(), without.p50())
	f := figure{what: fmt.Sprintf("row 2's p50 with %d streams of the page open", len(pages)), got: ms(with.p50()),
		beside: ms(without.p50()) + " the same, and nobody looks", ratio: ratio,
		aim: fmt.Sprintf("<= %.1fx", aimViewed), met: holds(ratio <= aimViewed)}
	f.notes = []string{fmt.Sprintf("%d samples each, in turns; p99 %s, without viewers %s; %d runs wait, %d agents print; "+
		"who reads the streams is on the same machine", len(with), ms(with.p99()), ms(without.p99()), runs, agents)}
	return []figure{f}, nil
}

// block takes n samples after one that does not count.
func (l *latency) block(ctx context.Context, to *samples, n int) error {
	for i := range n + 1 {
		d, err := l.sample(ctx)
		if err != nil {
			return err
		}
		if i > 0 {
			*to = append(*to, d)
		}
	}
	return nil
}

// talking prepares a workflow whose agents print until they are stopped.
func (s *site) talking(agents int) error {
	spec := "workflow: {id: talk}\nsteps:\n"
	for i := range agents {
		spec += fmt.Sprintf("  - {id: S%d, agent: {type: talker, prompt: talk, worktree: t%d/}, "+
			"signal: {type: stdout_exit}, needs: [], next_step: DONE}\n", i, i)
	}
	script := s.at("talk.sh")
	conf := fmt.Sprintf("%s%smax_agents: %d\nmax_parallel: %d\nagents: {talker: {command: [%q], format: claude}}\n"+
		"roles: {talker: {agent: talker, max_cost_usd: 100}}\n", settings, pageSettings, agents+8, agents+8, script)
	return errors.Join(writeFile(s.at("repo/.workflow/specs/talk.yaml"), spec),
		writeFile(s.at("config/sluice/config.yaml"), conf),
		writeFile(script, fmt.Sprintf("#!/bin/sh\n%s=talker exec %q\n", floorRole, s.b.self)), os.Chmod(script, 0o755))
}

// Times of a talker.
const (
	talkEvery = 100 * time.Millisecond
	talkMost  = 20 * time.Minute
)

// talker prints what claude prints, an event of a kilobyte after another, until it is stopped.
func talker() error {
	fmt.Println(`{"type":"system","subtype":"init","session_id":"s","model":"m"}`)
	words := strings.Repeat("x", 1000)
	every := time.NewTicker(talkEvery)
	defer every.Stop()
	for i := range int(talkMost / talkEvery) {
		<-every.C
		if _, err := fmt.Printf(`{"type":"assistant","message":{"id":"m%d","content":[{"type":"text","text":"%s"}],`+
			`"usage":{"input_tokens":10,"output_tokens":10}}}`+"\n", i, words); err != nil {
			return err
		}
	}
	return nil
}

// talk starts the run of talkers, and returns its id when all of them work.
func (l *latency) talk(ctx context.Context, agents int) (string, error) {
	out, err := l.run(ctx, l.repos[0], l.b.sluice, "start", "talk")
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(out)
	return id, eventually(ctx, "the agents of "+id+" work", func() (bool, error) {
		r, err := l.api.Run(ctx, id)
		n := 0
		for _, st := range r.Steps {
			if len(st.Attempts) > 0 && !st.Attempts[0].Launched.IsZero() {
				n++
			}
		}
		return n == agents, err
	})
}

// pages are the addresses that are looked at.
func (l *latency) pages(ctx context.Context, talk string, agents int) ([]string, error) {
	st, err := l.api.Status(ctx, "")
	if err != nil {
		return nil, err
	}
	var pages []string
	for range l.b.count(inboxViewers, 2) {
		pages = append(pages, "/")
	}
	for i := range l.b.count(runViewers, 2) {
		pages = append(pages, "/r/repo/"+st.Runs[i%len(st.Runs)].ID)
	}
	for i := range agents {
		pages = append(pages, fmt.Sprintf("/r/repo/%s/a/S%d.1", talk, i))
	}
	return pages, nil
}

// How many runs the inbox of row 18 has.
const (
	paintLive  = 200
	paintEnded = 800
	paintSteps = 5 // of a run that has ended
)

// paint measures the page's first answer, in a repo with many runs, beside the state it is made of.
func paint(ctx context.Context, b *bench) (out []figure, err error) {
	live, ended := b.count(paintLive, 3), b.count(paintEnded, 5)
	s, err := b.newSite(ctx, b.work, "row18", map[string]string{"ask": gatesSpec("ask", 1)}, "repo")
	if err != nil {
		return nil, err
	}
	defer s.close(&err)
	if err := writeFile(s.at("config/sluice/config.yaml"), settings+pageSettings); err != nil {
		return nil, err
	}
	if err := b.endedRuns(ctx, s, live, ended); err != nil {
		return nil, err
	}
	s.profiled = true
	if err := s.boot(ctx); err != nil {
		return nil, err
	}
	if err := s.waitHumans(ctx, s.repos[0], live); err != nil {
		return nil, err
	}
	br, err := s.newBrowser(ctx)
	if err != nil {
		return nil, err
	}
	defer br.close()
	api, err := s.client(s.repos[0])
	if err != nil {
		return nil, err
	}
	defer api.Close()
	var page, plain samples
	var size int64
	for i := range b.count(60, 2) {
		began := time.Now()
		if size, err = br.page(ctx, "/"); err != nil {
			return nil, err
		}
		made := time.Since(began)
		began = time.Now()
		if _, err = api.Status(ctx, ""); err != nil {
			return nil, err
		}
		if i > 0 { // the first opens connections
			page, plain = append(page, made), append(plain, time.Since(began))
		}
	}
	f := figure{what: fmt.Sprintf("the page / with %d live and %d ended runs", live, ended), got: ms(page.p50()),
		beside: ms(plain.p50()) + " the daemon's status of all of them", ratio: over(page.p50(), plain.p50()),
		aim: "<= " + ms(aimPaint), met: holds(page.p50() <= aimPaint)}
	f.notes = []string{fmt.Sprintf("from the request to the last of %d kB, the middle of %d; p99 %s, the status %s",
		size/1000, len(page), ms(page.p99()), ms(plain.p99()))}
	return []figure{f}, nil
}

// endedRuns writes a journal of runs that ended just now, and of live ones.
func (b *bench) endedRuns(ctx context.Context, s *site, live, ended int) error {
	like, err := likenessOf(ctx, s, "ask", 1)
	if err != nil {
		return err
	}
	h, err := newHistory(s, like, int64(30*ended+10*live))
	if err != nil {
		return err
	}
	past, ask := flowSpec("past", paintSteps), gatesSpec("ask", 1)
	for range ended {
		if _, err := h.start(past); err != nil {
			return err
		}
	}
	for range live {
		if _, err := h.start(ask); err != nil {
			return err
		}
	}
	return h.end(s)
}
