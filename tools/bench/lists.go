//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The aims of rows 14 and 15, which are for lists of so many tasks.
const (
	listTasks    = 10_000
	aimListMiB   = 200
	aimLater     = 1.5 // what a task may take at the end of the list, as a multiple of what it took at its start
	aimSelection = 5 * time.Millisecond
	aimListFile  = 50 * time.Millisecond
)

// listSpec does a command for each task of a file.
const listSpec = `workflow: {id: list, limits: {max_steps: 100000}}
steps:
  - {id: work, run: [%q, %q], for_each: {tasks: to-do.json, attempts: 1}, next_step: DONE}
`

// listFile is a task file of n tasks, of which each depends on two before it. All but the last
// `open` are done already.
func listFile(n, open int) ([]byte, error) {
	type task struct {
		ID          string   `json:"id"`
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Status      string   `json:"status"`
		Priority    int      `json:"priority"`
		DependsOn   []string `json:"depends_on"`
	}
	out := struct {
		Version int    `json:"schema_version"`
		Tasks   []task `json:"tasks"`
	}{Version: 1}
	for i := range n {
		t := task{ID: fmt.Sprintf("T%05d", i), Title: fmt.Sprintf("do the thing number %d", i), Description: fmt.Sprintf("%0200d", i), Status: "todo", Priority: i % 5, DependsOn: []string{}}
		if i > 1 {
			t.DependsOn = []string{fmt.Sprintf("T%05d", i-1), fmt.Sprintf("T%05d", i/2)}
		}
		if i < n-open {
			t.Status = "done"
		}
		out.Tasks = append(out.Tasks, t)
	}
	return json.MarshalIndent(out, "", "  ")
}

// longList measures the daemon's memory over a run of a long list, and whether tasks take longer the more are done.
func longList(ctx context.Context, b *bench) (out []figure, err error) {
	open := b.count(listTasks, 20)
	fifo := filepath.Join(b.work, "row14.stamps")
	to, err := newStamps(fifo)
	if err != nil {
		return nil, err
	}
	defer to.close()
	s, err := b.newSite(ctx, b.work, "row14", map[string]string{"list": fmt.Sprintf(listSpec, b.stamp, fifo)}, "repo")
	if err != nil {
		return nil, err
	}
	defer s.close(&err)
	file, err := listFile(listTasks, open)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.repos[0], "to-do.json"), file, 0o644); err != nil {
		return nil, err
	}
	s.profiled = true
	if err := s.boot(ctx); err != nil {
		return nil, err
	}
	if _, err := s.run(ctx, s.repos[0], s.b.sluice, "start", "list"); err != nil {
		return nil, err
	}
	var took samples
	var mib []string
	last, err := to.next(ctx)
	for i := 1; i < open && err == nil; i++ {
		var at time.Duration
		if at, err = to.next(ctx); err == nil {
			took, last = append(took, at-last), at
		}
		if i%max(open/10, 1) == 0 {
			mib = append(mib, s.peak())
			fmt.Fprintf(b.progress, "row 14: %d of %d tasks, %s at most, %s per task\n", i, open, s.peak(), ms(took[max(0, len(took)-100):].p50()))
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.ended(ctx); err != nil {
		return nil, err
	}
	ends := min(100, len(took)/2)
	first, then := took[:ends].p50(), took[len(took)-ends:].p50()
	most := s.peakMiB()
	return []figure{
		{what: fmt.Sprintf("the daemon's memory, %d tasks in one list", listTasks), got: fmt.Sprintf("%.0f MiB", most), aim: fmt.Sprintf("<= %d MiB", aimListMiB), met: holds(most <= aimListMiB),
			notes: []string{fmt.Sprintf("the most it ever was in a run that did %d of them; after each tenth: %s", open, mib)}},
		{what: fmt.Sprintf("a task, the last %d of them", ends), got: ms(then), beside: ms(first) + " the first ones", ratio: over(then, first), aim: fmt.Sprintf("<= %.1fx", aimLater), met: holds(then <= time.Duration(aimLater*float64(first))),
			notes: []string{fmt.Sprintf("the middle one of each; all: p50 %s, p99 %s, the worst %s", ms(took.p50()), ms(took.p99()), ms(slices.Max(took)))}},
	}, nil
}
