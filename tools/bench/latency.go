//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/daemon"
)

// doneText is what a sentinel says.
const doneText = `{"step": "A", "status": "done", "summary": "the work is done, and all its tests pass"}` + "\n"

// passText is what a person's file says. JSON is whole when it parses; another text, or none, is read only when it has not
// changed for `settle`.
const passText = `{"text": "looks good to me"}` + "\n"

// The workflows of rows 1, 2 and 9: what is waited for, its gate, and a command that reads the clock.
const (
	sentinelSpec = `workflow: {id: sentinel}
steps:
  - {id: A, agent: {type: worker, launch: subagent}, gate: G}
  - {id: B, run: ["%s", "%s"], next_step: DONE}
gates:
  - {id: G, reviewer: {level: auto, from: step}, on_pass: {next_step: B}}
`
	passSpec = `workflow: {id: person}
steps:
  - {id: A, run: ["true"], gate: G}
  - {id: B, run: ["%s", "%s"], next_step: DONE}
gates:
  - {id: G, reviewer: {level: human}, on_pass: {next_step: B}}
`
)

// The aims of rows 1 and 2, as multiples of the plain watcher.
const (
	aimP50 = 1.4
	aimP99 = 2
)

// blockOf is how many samples of one kind are taken before the other's turn comes.
const blockOf = 20

const plainName = "plain durable Go watcher"

func sentinelToStep(ctx context.Context, b *bench) (out []figure, err error) {
	l, err := b.newLatency(ctx, "row1", "sentinel", sentinelSpec)
	if err != nil {
		return nil, err
	}
	defer l.close(&err)
	got, floor, err := l.measure(ctx, b.count(300, 3))
	if err != nil {
		return nil, err
	}
	return against("sentinel renamed into place -> next step", plainName, got, floor, aimP50, aimP99), nil
}

func passToStep(ctx context.Context, b *bench) (out []figure, err error) {
	l, err := b.newLatency(ctx, "row2", "person", passSpec)
	if err != nil {
		return nil, err
	}
	defer l.close(&err)
	got, floor, err := l.measure(ctx, b.count(200, 3))
	if err != nil {
		return nil, err
	}
	return against("human's pass file -> next step", plainName, got, floor, aimP50, aimP99), nil
}

// latency measures one workflow's way from a file to a step, and the plain watcher beside it.
type latency struct {
	*site
	workflow string
	to       *stamps
	plain    *plain
	api      *daemon.Client
}

// newLatency makes the site of one, after what prepare does there, and starts its daemon.
func (b *bench) newLatency(ctx context.Context, name, workflow, spec string, prepare ...func(*site) error) (l *latency, err error) {
	l = &latency{workflow: workflow}
	fifo := filepath.Join(b.work, name+".stamps")
	if l.to, err = newStamps(fifo); err != nil {
		return nil, err
	}
	if l.plain, err = b.newPlain(ctx, filepath.Join(b.work, name+"-plain")); err != nil {
		return nil, err
	}
	l.site, err = b.newSite(ctx, b.work, name, map[string]string{workflow: fmt.Sprintf(spec, b.stamp, fifo)}, "repo")
	if err != nil {
		return nil, err
	}
	l.profiled = true
	for _, do := range prepare {
		err = errors.Join(err, do(l.site))
	}
	if err == nil {
		err = l.boot(ctx)
	}
	if err == nil {
		l.api, err = l.client(l.repos[0])
	}
	if err != nil {
		l.site.close(&err)
	}
	return l, err
}

func (l *latency) close(err *error) {
	l.api.Close()
	l.plain.close()
	l.to.close()
	l.site.close(err)
}

// measure takes n samples of each, in turns, after one of each that does not count.
func (l *latency) measure(ctx context.Context, n int) (got, floor samples, err error) {
	if _, err := l.sample(ctx); err != nil {
		return nil, nil, err
	}
	if _, err := l.plain.sample(ctx); err != nil {
		return nil, nil, err
	}
	for len(got) < n {
		for range min(blockOf, n-len(got)) {
			d, err := l.sample(ctx)
			if err != nil {
				return got, floor, err
			}
			got = append(got, d)
		}
		for len(floor) < len(got) {
			if err := pause(ctx, quiet); err != nil {
				return got, floor, err
			}
			d, err := l.plain.sample(ctx)
			if err != nil {
				return got, floor, err
			}
			floor = append(floor, d)
		}
	}
	return got, floor, nil
}

// sample starts a run, waits until it waits, delivers its file and waits for the run's end.
func (l *latency) sample(ctx context.Context) (time.Duration, error) {
	out, err := l.run(ctx, l.repos[0], l.b.sluice, "start", l.workflow)
	if err != nil {
		return 0, err
	}
	id := strings.TrimSpace(out)
	file, text := "", ""
	if err := eventually(ctx, id+" waits", func() (bool, error) {
		st, err := l.api.Status(ctx, id)
		if err != nil || len(st.Runs) != 1 {
			return false, err
		}
		file, text = l.awaited(st.Runs[0])
		return file != "", nil
	}); err != nil {
		return 0, err
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), pause(ctx, quiet)); err != nil {
		return 0, err
	}
	took, err := l.to.timed(ctx, file, text)
	if err != nil {
		return 0, err
	}
	return took, eventually(ctx, id+" ends", func() (bool, error) {
		st, err := l.api.Status(ctx, id)
		if err != nil || len(st.Runs) != 1 {
			return false, err
		}
		switch st.Runs[0].Phase {
		case "completed":
			return true, nil
		case "failed", "aborted":
			return true, fmt.Errorf("%s %s: %s", id, st.Runs[0].Phase, st.Runs[0].EndWhy)
		}
		return false, nil
	})
}

// awaited returns the file that the run waits for, and what to write to it; "" while it does not wait.
func (l *latency) awaited(r daemon.RunStatus) (file, text string) {
	inbox := filepath.Join(l.repos[0], ".workflow", "signals", r.ID)
	for _, w := range r.Waits {
		switch w.Kind {
		case "offer":
			return filepath.Join(inbox, w.Step+"-done.json"), doneText
		case "human":
			return filepath.Join(inbox, w.Gate+"-pass.json"), passText
		}
	}
	return "", ""
}
