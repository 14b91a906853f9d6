//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The aims of row 8.
const (
	aimIdlePercent = 0.03 // of a core
	aimIdleWakeUps = 0.5  // a second
	aimIdleMiB     = 25
)

// idle measures what a daemon costs while nothing happens: repos whose runs all wait for a person. Beside it, in the same
// window, a program that does nothing but watch as many folders, and look at each every five seconds.
func idle(ctx context.Context, b *bench) (out []figure, err error) {
	n, window := b.count(100, 2), time.Minute
	if b.short {
		window = time.Second
	}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("repo", i))
	}
	spec := "workflow: {id: ask}\nsteps:\n  - {id: A, run: [\"true\"], gate: G}\ngates:\n  - {id: G, reviewer: {level: human}, on_pass: {next_step: DONE}}\n"
	s, err := b.newSite(ctx, b.work, "row8", map[string]string{"ask": spec}, names...)
	if err != nil {
		return nil, err
	}
	defer s.close(&err)
	if err := s.boot(ctx); err != nil {
		return nil, err
	}
	for _, r := range s.repos {
		if _, err := s.run(ctx, r, b.sluice, "start", "ask"); err != nil {
			return nil, err
		}
	}
	for _, r := range s.repos {
		if err := s.waitHumans(ctx, r, 1); err != nil {
			return nil, err
		}
	}
	floor, err := b.newIdleFloor(ctx, s.repos)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = floor.Process.Kill(), floor.Wait() }()
	// What the starts left to do is over, and the processes that launches had are let go.
	if err := within(ctx, 10*waitMost, "the daemon rests", func() (bool, error) { return b.short || len(childrenOf(s.cmd.Process.Pid)) == 0, pause(ctx, pollEvery) }); err != nil {
		return nil, err
	}
	if err := pause(ctx, window/2); err != nil {
		return nil, err
	}
	got, err := cost(ctx, window, s.cmd.Process.Pid, floor.Process.Pid)
	if err != nil {
		return nil, err
	}
	d, f := got[0], got[1]
	cpu := figure{what: fmt.Sprintf("idle, %d repos, %d runs at human gates, CPU of a core", n, n), got: percent(d.percent), beside: percent(f.percent) + " fsnotify and a timer",
		aim: "<= " + percent(aimIdlePercent), met: holds(d.percent <= aimIdlePercent)}
	cpu.notes = []string{fmt.Sprintf("over %s, from the scheduler's own account", window)}
	if f.percent > 0 {
		cpu.ratio = d.percent / f.percent
	}
	wakes := figure{what: "idle, wake-ups a second", got: fmt.Sprintf("%.2f", d.switches), beside: fmt.Sprintf("%.2f fsnotify and a timer", f.switches),
		aim: fmt.Sprintf("<= %.1f", aimIdleWakeUps), met: holds(d.switches <= aimIdleWakeUps)}
	if f.switches > 0 {
		wakes.ratio = d.switches / f.switches
	}
	wakes.notes = []string{"times that one of its threads stopped waiting (voluntary_ctxt_switches); what the scheduler takes from it on a busy machine does not count"}
	ram := figure{what: "idle, resident memory", got: fmt.Sprintf("%.1f MiB", d.mib), beside: fmt.Sprintf("%.1f MiB fsnotify and a timer", f.mib), ratio: d.mib / f.mib,
		aim: fmt.Sprintf("<= %d MiB", aimIdleMiB), met: holds(d.mib <= aimIdleMiB)}
	ram.notes = []string{fmt.Sprintf("the daemon and its %d helper processes; anonymous: %.1f MiB, the rest are pages of its program, which the system may drop",
		d.processes-1, d.anonMiB)}
	return []figure{cpu, wakes, ram}, nil
}

// waitHumans waits until n runs of a repo wait for a person.
func (s *site) waitHumans(ctx context.Context, repo string, n int) error {
	api, err := s.client(repo)
	if err != nil {
		return err
	}
	defer api.Close()
	return within(ctx, 10*waitMost, fmt.Sprintf("%d runs of %s wait for a person", n, filepath.Base(repo)), func() (bool, error) {
		st, err := api.Status(ctx, "")
		if err != nil {
			return false, err
		}
		waiting := 0
		for _, r := range st.Runs {
			for _, w := range r.Waits {
				if w.Kind == "human" {
					waiting++
				}
			}
		}
		if waiting < n {
			return false, errors.Join(fmt.Errorf("%d wait", waiting), pause(ctx, 20*pollEvery))
		}
		return true, nil
	})
}

func (b *bench) newIdleFloor(ctx context.Context, dirs []string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, b.self, dirs...)
	cmd.Env, cmd.Stderr = append(os.Environ(), floorRole+"=idle"), os.Stderr
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	_, err = bufio.NewReader(said).ReadString('\n')
	return cmd, err
}

func percent(p float64) string { return fmt.Sprintf("%.3f %%", p) }

// usage is what a process and its children cost over a window.
type usage struct {
	percent   float64 // of a core
	switches  float64 // a second, those by which a thread waits
	mib       float64 // resident at the end
	anonMiB   float64
	processes int
}

// cost watches processes, each with its children, over a window.
func cost(ctx context.Context, window time.Duration, pids ...int) ([]usage, error) {
	read := func() (out []account, err error) {
		for _, pid := range pids {
			a, e := accountOf(pid)
			out, err = append(out, a), errors.Join(err, e)
		}
		return out, err
	}
	began := time.Now()
	before, err := read()
	if err = errors.Join(err, pause(ctx, window)); err != nil {
		return nil, err
	}
	after, err := read()
	took := time.Since(began)
	var out []usage
	for i, a := range after {
		out = append(out, usage{
			percent:  100 * float64(a.cpu-before[i].cpu) / float64(took),
			switches: float64(a.switches-before[i].switches) / took.Seconds(),
			mib:      float64(a.rssKiB) / 1024, anonMiB: float64(a.anonKiB) / 1024, processes: a.processes,
		})
	}
	return out, err
}

// account is what the kernel has counted of a process and its children so far.
type account struct {
	cpu             time.Duration
	switches        int64
	rssKiB, anonKiB int64
	processes       int
}

func accountOf(pid int) (account, error) {
	var a account
	if err := a.add(pid); err != nil {
		return a, err
	}
	for _, child := range childrenOf(pid) {
		_ = a.add(child) // it may have gone meanwhile
	}
	return a, nil
}

// add counts one process: the time of its threads, in nanoseconds, and its memory.
func (a *account) add(pid int) error {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		return fmt.Errorf("process %d is gone (%v)", pid, err)
	}
	for _, t := range tasks {
		b, _ := os.ReadFile(filepath.Join(t, "schedstat"))
		if f := strings.Fields(string(b)); len(f) == 3 {
			ns, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				return err
			}
			a.cpu += time.Duration(ns)
		}
		status, _ := os.ReadFile(filepath.Join(t, "status"))
		a.switches += statusNumber(string(status), "voluntary_ctxt_switches")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	a.rssKiB += statusNumber(string(status), "VmRSS")
	a.anonKiB += statusNumber(string(status), "RssAnon")
	a.processes++
	return nil
}

// statusNumber reads one line of /proc/PID/status.
func statusNumber(status, key string) int64 {
	for l := range strings.SplitSeq(status, "\n") {
		if v, ok := strings.CutPrefix(l, key+":"); ok {
			if f := strings.Fields(v); len(f) > 0 {
				n, err := strconv.ParseInt(f[0], 10, 64)
				if err == nil {
					return n
				}
			}
		}
	}
	return 0
}

// peak is the most memory that the daemon ever had.
func (s *site) peak() string { return fmt.Sprintf("%.0f MiB", s.peakMiB()) }

func (s *site) peakMiB() float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	return float64(statusNumber(string(status), "VmHWM")) / 1024
}

// childrenOf returns the processes that a process is the parent of.
func childrenOf(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var out []int
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		for f := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
