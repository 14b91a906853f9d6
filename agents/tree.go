//go:build linux || darwin

package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"sluice/internal/health"
)

const (
	pollMin = time.Millisecond
	pollMax = 250 * time.Millisecond
)

// pollGone polls gone at growing intervals.
func pollGone(ctx context.Context, gone func() bool) error {
	for pause := pollMin; !gone(); pause = min(2*pause, pollMax) {
		if !health.Wait(ctx, pause) {
			return ctx.Err()
		}
	}
	return nil
}

func table() (map[int]proc, error) {
	procs := map[int]proc{}
	_, err := add(procs)
	return procs, err
}

// add adds to a table the processes that it lacks, and returns those that live, newest first, without this one. It is
// complete or an error: a partial table could look like "nothing left".
func add(procs map[int]proc) (fresh []proc, err error) {
	list, err := pids()
	if err != nil {
		return nil, err
	}
	for _, pid := range slices.Backward(list) {
		if _, ok := procs[pid]; ok {
			continue
		}
		p, err := lookProc(pid)
		if err == nil {
			procs[pid] = p
		} else if !hidden(err) {
			return nil, err
		}
		if err == nil && !p.dead && pid != os.Getpid() {
			fresh = append(fresh, p)
		}
	}
	return fresh, nil
}

// hidden reports whether an error means that a process is gone or another user's, not that reading
// failed for now.
func hidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// below returns the live processes below the roots, parents before children, without the roots. It
// omits zombies, which have no children.
func below(procs map[int]proc, roots ...int) []proc {
	children := map[int][]int{}
	for pid, p := range procs {
		children[p.ppid] = append(children[p.ppid], pid)
	}
	seen := map[int]bool{}
	for _, pid := range roots {
		seen[pid] = true
	}
	var found []proc
	for queue := append([]int(nil), roots...); len(queue) > 0; queue = queue[1:] {
		for _, pid := range children[queue[0]] {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			queue = append(queue, pid)
			if p := procs[pid]; !p.dead {
				found = append(found, p)
			}
		}
	}
	return found
}

// signalProc signals p if its pid still belongs to p, and reports whether it did.
func signalProc(p proc, sigs ...syscall.Signal) bool {
	if p.pid <= 1 || p.pid == os.Getpid() {
		return false
	}
	h, err := open(p.pid)
	if err != nil {
		return false
	}
	defer h.close()
	now, err := lookProc(p.pid)
	if err != nil || now.start != p.start || now.dead {
		return false
	}
	for _, sig := range sigs {
		if h.signal(sig) != nil {
			return false
		}
	}
	return true
}

// signalBelow signals every process below pid, except those that run the program spared ("" = none).
func signalBelow(pid int, spared string, sigs ...syscall.Signal) {
	procs, err := table()
	if err != nil {
		return // the caller retries
	}
	for _, p := range below(procs, pid) {
		if spared == "" || !runsProgram(p.pid, spared) {
			signalProc(p, sigs...)
		}
	}
}

// quietPasses is how many consecutive passes without a process new to the killer end the search.
const (
	quietPasses = 8
	passPause   = 100 * time.Microsecond
)

// killer kills what is below this process. Processes that each start the next one and exit are gone
// before a full table is read. If the kernel reports this process's children, the killer looks only
// at these, again and again: an orphan becomes its child.
type killer struct {
	met map[proc]bool // sent a KILL
}

// kill kills everything there, and reports whether any of it was new.
func (k *killer) kill() (fresh bool) {
	if k.met == nil {
		k.met = map[proc]bool{}
	}
	for quiet := 0; quiet < quietPasses; quiet++ {
		list, ok := children()
		if !ok || len(list) == 0 {
			break
		}
		for _, pid := range list {
			if p, ok := killChild(pid); ok && !k.met[p] {
				k.met[p], fresh, quiet = true, true, 0
			}
		}
		time.Sleep(passPause)
	}
	signalBelow(os.Getpid(), "", syscall.SIGKILL)
	return fresh
}

// killChild kills the process with that pid if it is a child of this one.
func killChild(pid int) (proc, bool) {
	h, err := open(pid)
	if err != nil {
		return proc{}, false
	}
	defer h.close()
	p, err := lookProc(pid)
	if err != nil || p.dead || p.ppid != os.Getpid() {
		return proc{}, false
	}
	return p, h.signal(syscall.SIGKILL) == nil
}

// carries reports whether the process was started with a token of that digest.
func carries(pid int, tokenDigest string) (bool, error) {
	env, err := environ(pid)
	if err != nil && !hidden(err) {
		return false, err
	}
	name := []byte(TokenVar + "=")
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, name); ok && digest(string(value)) == tokenDigest {
			return true, nil
		}
	}
	return false, nil
}

// hunt kills processes with a token and their descendants, which may have dropped their
// environment.
type hunt struct {
	token  string // its digest
	procs  map[int]proc
	roots  []int
	found  bool
	killed map[proc]bool // with ppid 0, because parents change
}

// look kills what there is, then looks at what is new, until nothing new has the token: a process
// that starts the next and exits would be gone by the time the whole table is read.
func (h *hunt) look() error {
	h.procs, h.roots, h.found = map[int]proc{}, nil, false
	for quiet := 0; quiet < quietPasses; quiet++ {
		fresh, err := add(h.procs)
		if err != nil {
			return err
		}
		n := len(h.roots)
		for _, p := range fresh {
			ours, err := carries(p.pid, h.token)
			if err != nil {
				return err
			}
			if ours {
				h.roots = append(h.roots, p.pid)
			}
		}
		// First find all, then kill: descendants would become orphans.
		for _, pid := range h.roots {
			h.kill(h.procs[pid])
		}
		for _, p := range below(h.procs, h.roots...) {
			h.kill(p)
		}
		switch {
		case len(h.roots) > n:
			quiet = -1
		case n == 0:
			return nil
		}
		time.Sleep(passPause)
	}
	return nil
}

func (h *hunt) kill(p proc) {
	h.found = true
	if signalProc(p, syscall.SIGKILL) {
		p.ppid = 0
		h.killed[p] = true
	}
}

// sweep kills what is left of a launch whose shim is gone, until several consecutive looks find
// nothing: during exec a process briefly shows no environment, and one that exits may have started
// another that was not in the table yet.
func sweep(ctx context.Context, mark, cgroup, tokenDigest string) (killed int, err error) {
	const quietLooks, quietAfterSome = 2, 5
	h := hunt{token: tokenDigest, killed: map[proc]bool{}}
	pause, looks := pollMin, quietLooks
	for quiet := 0; quiet < looks; {
		if cgroup != "" {
			killCgroup(cgroup, mark)
		}
		left := populated(cgroup)
		if tokenDigest != "" {
			before := len(h.killed)
			if err := h.look(); err != nil {
				return len(h.killed), fmt.Errorf("agents: sweep: %w", err)
			}
			left = left || h.found
			if len(h.killed) > before {
				pause = pollMin
			}
		}
		quiet++
		if left {
			quiet, looks = 0, quietAfterSome
		}
		if !health.Wait(ctx, pause) {
			return len(h.killed), ctx.Err()
		}
		pause = min(2*pause, pollMax)
	}
	removeCgroup(cgroup)
	return len(h.killed), nil
}
