package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/internal/fault"
	"sluice/internal/text"
)

const (
	// callTime limits a call that looks at refs or a few objects.
	callTime = 30 * time.Second
	// treeTime limits a call that reads or writes every file of a worktree.
	treeTime = 10 * time.Minute
	// remoteTime limits a call over the network.
	remoteTime = 60 * time.Second
	// killWait is how long the pipes of a killed git may stay open in a grandchild.
	killWait = 2 * time.Second
	// maxErrorBytes limits how much of git's error output is kept.
	maxErrorBytes = 4 << 10
	// smallOutput is for answers of a few lines.
	smallOutput = 64 << 10
	// listOutput is for lists of refs, commits and files.
	listOutput = 32 << 20
)

// ErrOutput is returned if git prints more than the call allows.
var ErrOutput = errors.New("git printed too much")

// ErrNoGit is returned if there is no git program.
var ErrNoGit = errors.New("git is not installed")

// CommandError is a git that ended with a code other than 0.
type CommandError struct {
	Command string // the subcommand
	Code    int    // -1 if a signal ended it
	Stderr  string // git's own message: one line, without control characters, at most 4 KiB
}

func (e *CommandError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("git %s: exit code %d", e.Command, e.Code)
	}
	return fmt.Sprintf("git %s: %s", e.Command, e.Stderr)
}

// Is matches errors of the machine as if the system had returned them: git leaves only its message
// (LC_ALL=C), and of some failed writes not why they failed (2.39: entry.c, refs/files-backend.c).
func (e *CommandError) Is(target error) bool {
	for words, errno := range map[string]syscall.Errno{
		"No space left on device": syscall.ENOSPC,
		"Out of diskspace":        syscall.ENOSPC, // git's own
		"Disk quota exceeded":     syscall.EDQUOT,
		"Read-only file system":   syscall.EROFS,
		"Input/output error":      syscall.EIO,
		"File too large":          syscall.EFBIG,

		"unable to write file":           syscall.EIO,
		"Unable to write new index file": syscall.EIO,
		"couldn't write '":               syscall.EIO,
		"couldn't close '":               syscall.EIO,

		"Too many open files":              syscall.EMFILE,
		"Cannot allocate memory":           syscall.ENOMEM,
		"Out of memory":                    syscall.ENOMEM, // git's own
		"Resource temporarily unavailable": syscall.EAGAIN, // no process or thread more
	} {
		if target == errno && strings.Contains(e.Stderr, words) {
			return true
		}
	}
	return false
}

// allowed holds the subcommands verified to start nothing from the repo under our switches. status,
// diff, log, show, add, checkout, commit, fetch and merge are all unsafe.
func allowed(sub string) bool {
	switch sub {
	case "rev-list", "merge-base", "cat-file", "for-each-ref", "rev-parse", "worktree", "config", "ls-remote",
		"diff-tree", "diff-index", "diff-files", "ls-files", "read-tree",
		"checkout-index", "update-index", "write-tree", "commit-tree", "update-ref", "version",
		// only in the shadow, where no filter, driver, hook or helper of the repo is defined
		"add", "merge-tree", "push",
		"init", "gc", // only for our stores, without a template
		"index-pack", "pack-objects", "repack", // also in the shadow, whose checks nobody can soften
		"hash-object", "mktree", "ls-tree", "check-ignore": // hash-object only with --no-filters
		return true
	}
	return false
}

// call is one run of git.
type call struct {
	args    []string // the subcommand first
	env     []string // in addition to the clean environment; later entries win
	safeDir string   // a folder that another user may own
	dir     string   // where it runs; "" = the root folder
	stdin   io.Reader
	limit   int64         // of its output in bytes; 0 = smallOutput
	timeout time.Duration // 0 = callTime
	codes   []int         // exit codes besides 0 that are no error
	// userConfig makes git read the user's and the system's configuration.
	userConfig bool
}

// tool is the git program, found once.
type tool struct {
	path    string
	started *atomic.Int64
	turns   Turns
	gits    *os.File // the lock that every git inherits; nil = none
}

// Started returns how many git programs were started; each costs about 2 ms.
func (t tool) Started() int64 { return t.started.Load() }

func findTool() (tool, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return tool{}, fault.New("install git 2.36 or newer", "%w: %w", ErrNoGit, err)
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return tool{}, fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	return tool{path: path, started: new(atomic.Int64)}, nil
}

// switches are on every command line, which overrides all configuration files.
func switches(safeDir string) []string {
	s := []string{
		"--no-pager",
		"-c", "core.fsmonitor=false",
		"-c", "core.hooksPath=" + os.DevNull,
		"-c", "core.untrackedCache=false",
		"-c", "core.attributesFile=" + os.DevNull,
		"-c", "log.showSignature=false",
		"-c", "safe.bareRepository=explicit",
		"-c", "protocol.ext.allow=never",
		"-c", "gc.auto=0",
		"-c", "maintenance.auto=false",
	}
	if safeDir != "" {
		// The person who had us watch this folder vouches for it; never "*".
		s = append(s, "-c", "safe.directory="+safeDir)
	}
	return s
}

// cleanEnv returns an environment with nothing of ours except where git is. It excludes the user's
// and the system's configuration, which can define aliases, filters and signing programs, and would
// make results depend on who runs the daemon. Calls that commit add the identity.
func (t tool) cleanEnv(userConfig bool) []string {
	env := []string{
		"PATH=" + filepath.Dir(t.path) + string(os.PathListSeparator) + "/usr/bin" +
			string(os.PathListSeparator) + "/bin",
		"LC_ALL=C", "LANGUAGE=", "TZ=UTC",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=",
		"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "GIT_NO_REPLACE_OBJECTS=1",
		// A partial clone fetches missing objects with the repo's ssh command. Older gits ignore
		// the first of these; with no protocol allowed the fetch ends before it starts anything.
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
	}
	if !userConfig {
		env = append(env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	return env
}

// setting returns the environment of a call with settings of git's, each a key and a value.
func setting(pairs ...string) []string {
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i/2, pairs[i]),
			fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i/2, pairs[i+1]))
	}
	return env
}

// Turns limit how many gits of several repos run at once, so that each of a burst ends within its
// time. nil = no limit.
type Turns chan struct{}

const (
	gitsMost = 64
	turnMost = time.Minute // so that gits whose output is read slowly delay no others for longer
)

// NewTurns returns turns for 64 gits.
func NewTurns() Turns { return make(Turns, gitsMost) }

// take waits for a turn, for at most turnMost. It returns what ends the turn.
func (t Turns) take(ctx context.Context) (end func()) {
	if t == nil {
		return func() {}
	}
	select {
	case t <- struct{}{}:
		return func() { <-t }
	case <-time.After(turnMost):
	case <-ctx.Done():
	}
	return func() {}
}

// run returns git's output; with ErrOutput, what came before the limit.
func (t tool) run(ctx context.Context, c call) ([]byte, error) {
	var out []byte
	err := t.stream(ctx, c, func(r io.Reader) error {
		var err error
		out, err = io.ReadAll(r)
		return err
	})
	return out, err
}

// stream passes git's output to read. It ends git if read returns early, the context is done, or a
// limit is reached.
func (t tool) stream(ctx context.Context, c call, read func(io.Reader) error) error {
	if len(c.args) == 0 || !allowed(c.args[0]) {
		panic(fmt.Sprintf("git: subcommand not allowed: %q", c.args))
	}
	if c.args[0] == "update-ref" && ctx.Err() == nil { // killed, it would leave its lock behind
		ctx = context.WithoutCancel(ctx)
	}
	defer t.turns.take(ctx)()
	c.limit, c.timeout = cmp.Or(c.limit, smallOutput), cmp.Or(c.timeout, callTime)
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.path, append(switches(c.safeDir), c.args...)...)
	cmd.Env = append(t.cleanEnv(c.userConfig), c.env...)
	cmd.Dir = cmp.Or(c.dir, "/")
	cmd.Stdin = c.stdin
	cmd.WaitDelay = killWait
	// Detached from our terminal, where ssh would ask for a password. A time-out kills git's children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	t.handDown(ctx, c, cmd)
	complaint := &First{Most: maxErrorBytes}
	cmd.Stderr = complaint
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("git %s: %w", c.args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("git %s: %w", c.args[0], err)
	}
	t.started.Add(1)
	in := &limited{r: stdout, left: c.limit}
	readErr := read(in)
	if readErr == nil {
		// Drain the rest: git must not die of a closed pipe before it is done.
		_, readErr = io.Copy(io.Discard, in)
	}
	if readErr != nil {
		cancel()
	}
	waitErr := cmd.Wait()
	switch {
	case asked.Err() != nil:
		return fmt.Errorf("git %s: %w", c.args[0], asked.Err())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("git %s: not done within %s: %w", c.args[0], c.timeout, context.DeadlineExceeded)
	case readErr != nil && !errors.Is(readErr, os.ErrClosed):
		return fmt.Errorf("git %s: %w", c.args[0], readErr)
	}
	return exitError(c, waitErr, complaint)
}

func exitError(c call, err error, complaint *First) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return fmt.Errorf("git %s: %w", c.args[0], err)
	case exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL: // not ours: the kernel's, mostly
		return fmt.Errorf("git %s: it was killed, as for want of memory: %w", c.args[0], syscall.ENOMEM)
	case slices.Contains(c.codes, exit.ExitCode()):
		return nil
	}
	said := OneLine(complaint.String())
	if err := ownFault(c.env, said); err != nil {
		return fmt.Errorf("git %s: %w", c.args[0], err)
	}
	return &CommandError{Command: c.args[0], Code: exit.ExitCode(), Stderr: said}
}

// limited fails at its limit; io.LimitReader would report a normal end.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, ErrOutput
	}
	return n, err
}

// First keeps the first Most bytes written to it and discards the rest. The buffer is not embedded: its
// ReadFrom, which io.Copy calls, has no limit.
type First struct {
	Most int
	kept bytes.Buffer
}

func (f *First) Write(p []byte) (int, error) {
	if room := f.Most - f.kept.Len(); room > 0 {
		f.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (f *First) String() string { return f.kept.String() }

// OneLine formats git's message for an error: it can contain names from the repo.
func OneLine(s string) string { return strings.TrimPrefix(text.Clean(s, maxComplaint), "fatal: ") }

// maxComplaint limits git's message in an error, in characters.
const maxComplaint = 2000
