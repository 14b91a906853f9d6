package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice/internal/fault"
)

// How an emptied service goes: its agents have graceMost to end by themselves once they were told.
// Both are well within the unit's TimeoutStopSec.
const (
	graceMost = 10 * time.Second
	killMost  = 10 * time.Second
	lookEvery = 50 * time.Millisecond
)

// maxProcs bounds how many processes of a service are looked at in one round.
const maxProcs = 100_000

// End is why a service's daemon has ended.
type End string

// Ends. After a crash or before a restart agents go on.
const (
	EndCrash End = "crash" // or a restart
	EndStop  End = "stop"  // somebody wanted the service stopped
	EndDown  End = "down"  // the machine, or the user's session, goes down
)

// Ended is what the unit runs when the daemon has ended, for whatever reason. Where somebody wanted
// the service stopped it ends all that is left in the unit's cgroup; after a crash, before a
// restart and when the machine or the user's session goes down it leaves them: the next daemon
// takes them up, or finds them gone with the machine. Before anything is ended, note gets the reason.
//
// The hosts of launches (shims) are held before anything else: so no end is recorded that nobody
// decided on. For the next daemon those launches are lost, as after a reboot, and are launched
// again on top of their work.
func Ended(ctx context.Context, system bool, note func(End) error) (End, error) {
	s := &Service{opt: Options{System: system}}
	why, err := s.why(ctx)
	if err != nil {
		return why, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return why, err
	}
	group := unitGroup(string(own))
	if group == "" {
		return why, errors.New("service: this process is not of the unit " + Unit + ": only systemd runs this command")
	}
	noted := note(why)
	if why != EndStop {
		return why, noted
	}
	return why, errors.Join(noted, empty(ctx, groupDirs(group), graceMost))
}

// why asks systemd why the unit stops: for a stop it has a job "stop", at a restart it is
// "restart", after a crash there is none. When everything is stopped, shutdown.target is about to
// begin.
func (s *Service) why(ctx context.Context) (End, error) {
	out, err := command(ctx, "systemctl", s.scoped("list-jobs", "--no-legend", "--plain", "--full")...)
	if err != nil {
		return EndCrash, fmt.Errorf("service: systemctl list-jobs: %w: %s: it is unknown whether this stop is on purpose, "+
			"so agents keep running", err, out)
	}
	return whyBy(out), nil
}

// whyBy reads systemd's list of jobs.
func whyBy(jobs string) End {
	why := EndCrash
	for line := range strings.Lines(jobs) {
		f := strings.Fields(line) // number, unit, type, state
		if len(f) < 3 {
			continue
		}
		if f[1] == "shutdown.target" && f[2] == "start" {
			return EndDown
		}
		if f[1] == Unit && f[2] == "stop" {
			why = EndStop
		}
	}
	return why
}

// unitGroup finds the unit's cgroup in the lines of /proc/PID/cgroup of a process in it, or in a group below it.
func unitGroup(lines string) string {
	for line := range strings.Lines(lines) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kind, group, _ := strings.Cut(rest, ":")
		if kind != "" && kind != "name=systemd" {
			continue
		}
		if before, _, ok := strings.Cut(group+"/", "/"+Unit+"/"); ok {
			return before + "/" + Unit
		}
	}
	return ""
}

// groupDirs are the folders of the cgroup, in whichever way the machine has them.
func groupDirs(group string) []string {
	var out []string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"} {
		dir := filepath.Join(root, group)
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			out = append(out, dir)
		}
	}
	return out
}

// empty ends all processes in the groups and below but this one: agents after a word and a while,
// then whatever is left. Hosts and sandboxes get no word: a host would note how its launch ended,
// and a sandbox would take its agent with it at once.
func empty(ctx context.Context, dirs []string, grace time.Duration) error {
	met := map[int]bool{}
	began := time.Now()
	for {
		left := processesIn(dirs)
		if len(left) == 0 {
			return nil
		}
		over := time.Since(began)
		if over > grace+killMost {
			return fault.New("see what it waits for", "service: %d processes cannot be ended, the first is %d", len(left),
				left[0])
		}
		agents := 0
		for _, pid := range left {
			is := kindOf(pid)
			if is == anAgent {
				agents++
			}
			if met[pid] {
				continue
			}
			met[pid] = true
			switch is {
			case aHost:
				_ = syscall.Kill(pid, syscall.SIGSTOP) // who is gone is not found again
			case anAgent:
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		if agents == 0 || over > grace {
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// What a process of the service is.
type kind int

const (
	anAgent kind = iota // or what it started
	aHost               // of a launch: sluice's own
	aSandbox
)

// sandboxName is the sandbox's program, as the kernel names its processes.
const sandboxName = "bwrap"

// kindOf tells by names that a process gives itself: an agent that takes another's is ended without
// a word, which is all it gains.
func kindOf(pid int) kind {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil &&
		strings.TrimSpace(string(b)) == sandboxName {
		return aSandbox
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(b), "\x00")
	if err == nil && len(args) > 1 && filepath.Base(args[0]) == filepath.Base(os.Args[0]) && args[1] == HostCommand {
		return aHost
	}
	return anAgent
}

// HostCommand is the command by which sluice runs as the host of a launch.
const HostCommand = "shim"

// processesIn lists the processes of the groups and of all below, without this one and those that
// are dead already. One that this process cannot see has the number 0 there, which as a target
// would mean everything.
func processesIn(dirs []string) []int {
	var out []int
	seen := map[int]bool{os.Getpid(): true}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || len(out) > maxProcs {
				return nil //nolint:nilerr // a group that went meanwhile has nobody
			}
			if d.IsDir() || d.Name() != "cgroup.procs" {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			for word := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(word); err == nil && pid > 0 && !seen[pid] && !isDead(pid) {
					seen[pid] = true
					out = append(out, pid)
				}
			}
			return nil
		})
	}
	return out
}

// isDead reports whether the process only waits to be collected.
func isDead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	_, after, ok := strings.Cut(string(b[max(0, strings.LastIndex(string(b), ")")):]), ") ")
	return ok && strings.HasPrefix(after, "Z")
}
