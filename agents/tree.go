//go:build linux || darwin

package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
// were.
func signalBelow(pid int, sigs ...syscall.Signal) int {
	procs, err := table()
	if err != nil {
		return 0 // the caller comes again
	}
	n := 0
	for _, p := range below(procs, pid) {
		if signalProc(p, sigs...) {
			n++
		}
	}
	return n
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

// carriers is what carries the token, and what lives below it: a child may
// have dropped its environment.
func carriers(tokenDigest string) ([]proc, error) {
	procs, err := table()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	var found []proc
	var roots []int
	for pid, p := range procs {
		if pid == self || p.dead {
			continue
		}
		ours, err := carries(pid, tokenDigest)
		if err != nil {
			return nil, err
		}
		if ours {
			roots = append(roots, pid)
			found = append(found, p)
		}
	}
	return append(found, below(procs, roots...)...), nil
}

// sweep kills what is left of a launch whose shim is gone, until two looks in
// a row find nothing: a process that is just being exec'ed shows no
// environment for a moment.
func sweep(ctx context.Context, mark, cgroup, tokenDigest string) (killed int, err error) {
	const quietLooks = 2
	pause := pollMin
	for quiet := 0; quiet < quietLooks; {
		if cgroup != "" {
			killCgroup(cgroup, mark)
		}
		left := populated(cgroup)
		if tokenDigest != "" {
			procs, err := carriers(tokenDigest)
			if err != nil {
				return killed, fmt.Errorf("agents: sweep: %w", err)
			}
			for _, p := range procs {
				left = true
				if signalProc(p, syscall.SIGKILL) {
					killed++
				}
			}
		}
		quiet++
		if left {
			quiet = 0
		}
		if err := sleep(ctx, pause); err != nil {
			return killed, err
		}
		pause = min(2*pause, pollMax)
	}
	removeCgroup(cgroup)
	return killed, nil
}
