package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice/internal/fault"
)

// Held is the error for a repo that another process serves.
type Held struct {
	Dir  string
	PID  int  // 0 = unknown
	Repo bool // Dir is the repo's own folder: its server keeps its state elsewhere
	all  bool // Dir is the folder of all state folders: a daemon has it
}

func (h *Held) Error() string { return h.Unwrap().Error() }

// Unwrap returns the message with its advice.
func (h *Held) Unwrap() error {
	who, advice := "another process", "use that one, or end it"
	if h.PID > 0 {
		who, advice = fmt.Sprintf("pid %d", h.PID), fmt.Sprintf("use that one, or end it: `kill %d`", h.PID)
	}
	if h.Repo && h.PID == os.Getpid() {
		return fault.New("move it back, or run `sluice watch rm` with its old path", "%s was moved while this process "+
			"served it, and is still served at its old path", h.Dir)
	}
	if h.Repo {
		return fault.New(advice+"; after a move: `sluice watch rm` with the old path", "%s is served by %s, which keeps "+
			"its state elsewhere (another user, another XDG_STATE_HOME, or the repo was moved): only one process serves "+
			"a repo", h.Dir, who)
	}
	if h.all {
		pid := ""
		if h.PID > 0 {
			pid = fmt.Sprintf(" (pid %d)", h.PID)
		}
		return fault.New("`sluice watch ls` lists its repos", "a daemon runs already%s", pid)
	}
	if h.PID > 0 {
		advice = fmt.Sprintf("use that one: `sluice watch add` adds a repo to a daemon's; or end it: `kill %d`", h.PID)
	}
	return fault.New(advice, "the state %s is held by %s: only one process serves a repo", h.Dir, who)
}

// errBusy reports that the system's lock is taken.
var errBusy = errors.New("locked")

// A process that is killed while it starts another leaves its lock to that one, until its exec.
const (
	lockWait  = 2 * time.Second
	lockAgain = 10 * time.Millisecond
)

// Lock is the right to be the only process that serves a repo. It always ends with the process.
type Lock struct{ f *os.File }

// TakeLock locks the repo's state folder and creates it (0700) if it is missing. It locks the
// folder itself: a lock file could be deleted, and a second process would lock a new one.
func TakeLock(state string) (*Lock, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fault.New("make it writable or set XDG_STATE_HOME",
			"state folder: %w: sluice keeps the journal there, outside the repo", err)
	}
	f, err := lockDir(state)
	for until := time.Now().Add(lockWait); errors.Is(err, errBusy) && isGone(holder(state)) && time.Now().Before(until); {
		time.Sleep(lockAgain)
		f, err = lockDir(state)
	}
	if errors.Is(err, errBusy) {
		return nil, &Held{Dir: state, PID: holder(state)}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", state, err)
	}
	// Only tells others who has the lock; nothing depends on it.
	_ = os.WriteFile(filepath.Join(state, "holder"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	return &Lock{f}, nil
}

// lockRepo locks a folder of the repo, besides the state folder. Otherwise two processes with
// different state folders, or with one that was moved away, would both serve the repo. If the
// folder is missing or its file system has no locks, there is no lock.
func lockRepo(dir string) (*Lock, error) {
	f, err := lockDir(dir)
	if errors.Is(err, errBusy) {
		return nil, &Held{Dir: filepath.Dir(dir), PID: lockedBy(dir), Repo: true}
	}
	if err != nil {
		return &Lock{}, nil
	}
	return &Lock{f}, nil
}

// Elsewhere returns a *Held if a process that keeps its state in another folder serves the repo at
// root. The caller has the lock of the state folder here, or there is none.
func Elsewhere(root string) error {
	lock, err := lockRepo(filepath.Join(root, ".workflow"))
	if err != nil {
		return err
	}
	return lock.Release()
}

func holder(state string) int {
	b, err := os.ReadFile(filepath.Join(state, "holder"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b))) // 0 = unknown
	return pid
}

// Release releases the lock.
func (l *Lock) Release() error {
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}
