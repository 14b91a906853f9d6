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
)

const (
	pollMin = time.Millisecond
	pollMax = 250 * time.Millisecond
)

// pollGone asks again and again, less and less often.
func pollGone(ctx context.Context, gone func() bool) error {
	for pause := pollMin; !gone(); pause = min(2*pause, pollMax) {
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// table is the processes that live, by pid. It is whole or an error: a table
// that lacks some would be taken for "nothing left".
func table() (map[int]proc, error) {
	list, err := pids()
	if err != nil {
		return nil, err
	}
	procs := make(map[int]proc, len(list))
	for _, pid := range list {
		p, err := lookProc(pid)
		if err == nil {
			procs[pid] = p
		} else if !hidden(err) {
			return nil, err
		}
	}
	return procs, nil
}

// hidden reports whether an error about a process says that it has gone or is
// another user's, and not that nothing can be read just now.
func hidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// below returns what lives in the table below the roots, parents before
// children, without the roots. A zombie has no children and is left out.
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

// signalProc signals p if the process of that pid still is p, and reports
// whether it was.
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

// signalBelow signals every process below pid and returns how many there
// were. Those that run the program spared, where that is not "", are left out.
func signalBelow(pid int, spared string, sigs ...syscall.Signal) int {
	procs, err := table()
	if err != nil {
		return 0 // the caller comes again
	}
	n := 0
	for _, p := range below(procs, pid) {
		if spared != "" && runsProgram(p.pid, spared) {
			continue
		}
		if signalProc(p, sigs...) {
			n++
		}
	}
	return n
}

// quietPasses is how many looks at the children in a row find none that a KILL
// did not meet before, until there is a pause.
const (
	quietPasses = 8
	passPause   = 100 * time.Microsecond
)

// killer kills what is below this process. Processes that start the next one
// and exit are gone before a look at the whole table is over. Where this
// process is told of its children, it looks at them only, and again at once:
// whose parent is killed becomes its child.
type killer struct {
	met map[proc]bool // got a KILL
}

// kill kills all that is there, and reports whether any of it was new.
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

// killChild kills the process of that pid if it is a child of this one.
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

// carries reports whether the process was started with a token of that
// digest.
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

// hunt kills what carries a token, and what lives below it: a child may have
// dropped its environment.
type hunt struct {
	token  string // its digest
	procs  map[int]proc
	roots  []int
	found  bool
	killed map[proc]bool // without parents, which change
}

// look kills what there is now, then looks at what is new, until there is
// nothing new that carries: one that starts the next and exits would be gone
// when the whole table has been read.
func (h *hunt) look() error {
	h.procs, h.roots, h.found = map[int]proc{}, nil, false
	for quiet := 0; quiet < quietPasses; quiet++ {
		fresh, err := h.fresh()
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
		// None is killed before all are known: what is below it would be an orphan.
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

// fresh adds to the table what is not in it and gives it, the newest first. It
// is all or an error: a table that lacks some would be taken for "nothing left".
func (h *hunt) fresh() (fresh []proc, err error) {
	list, err := pids()
	if err != nil {
		return nil, err
	}
	for _, pid := range slices.Backward(list) {
		if _, ok := h.procs[pid]; ok {
			continue
		}
		p, err := lookProc(pid)
		if err == nil {
			h.procs[pid] = p
		} else if !hidden(err) {
			return nil, err
		}
		if err == nil && !p.dead && pid != os.Getpid() {
			fresh = append(fresh, p)
		}
	}
	return fresh, nil
}

func (h *hunt) kill(p proc) {
	h.found = true
	if signalProc(p, syscall.SIGKILL) {
		p.ppid = 0
		h.killed[p] = true
	}
}

// sweep kills what is left of a launch whose shim is gone, until several looks
// in a row find nothing: a process that is just being exec'ed shows no
// environment for a moment, and one that exits has started another, which was
// not in the table yet.
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
		if err := sleep(ctx, pause); err != nil {
			return len(h.killed), err
		}
		pause = min(2*pause, pollMax)
	}
	removeCgroup(cgroup)
	return len(h.killed), nil
}
