package agents

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/agents/egress"
	"sluice/agents/sandbox"
)

// Limits and defaults of a launch.
const (
	DefaultMaxOutput = 8 << 20          // bytes per stream
	MinMaxOutput     = 4 << 10          // bytes per stream: the least with room for a head, a tail and the line between
	DefaultKillAfter = 10 * time.Second // from TERM to KILL

	maxKeyBytes  = 512
	maxSpecBytes = 8 << 20 // of a spec on its way to the shim; the kernel accepts far less in argv and env
)

// Variables that tie a process to its launch.
const (
	// TokenVar is in the environment of every process of a launch; the sweep looks for it.
	TokenVar = "SLUICE_TOKEN"
	// markVar is in the shim's environment: a random word, the third part of its identity. It is
	// not secret.
	markVar = "SLUICE_SHIM"
)

// Spec is what to start.
type Spec struct {
	// Key is globally unique, e.g. "phase-4-1/X-1#2.1" (run, step, attempt, launch).
	Key string
	// Dir is the folder of the launch's files: stdout and stderr, if the command wrote any, and
	// exit.json, unless it is a success and there is no other file. It is created (0700) for them.
	Dir string
	// Below is a folder above Dir that is never created: if it is gone, as in a moved repo, nothing is
	// started or created. "" = Dir can always be created.
	Below string
	// PidFile is the launch's identity. It is in the daemon's state folder (created 0700 if
	// missing), outside the repo, and stays after the process has ended: removing it forgets the
	// launch, unless its exit.json is there.
	PidFile string
	// Under is the pid file of the launch that this one belongs to, or "". When that one must end,
	// this one ends or does not start.
	Under string
	// Argv is the command and its arguments. A name without a slash is looked up on the PATH in
	// Env, one with a slash is relative to Cwd.
	Argv []string
	// Env is the command's complete environment, "NAME=value". PWD is added if missing. See
	// [Environ].
	Env []string
	// Cwd is the folder the command starts in.
	Cwd string
	// Stdin is a file, or "" for /dev/null.
	Stdin string
	// Token marks the processes of this launch; the caller also puts it into Env as SLUICE_TOKEN.
	// Without one a killed shim's tree is found only by its cgroup.
	Token string
	// Sealed keeps others from writing to its stdout: it is a socket, which no process can open by the
	// name that a pipe has in /proc. Nor can the command itself, as /dev/stdout.
	Sealed bool
	// MaxOutput limits each of the files stdout and stderr, in bytes. 0 is DefaultMaxOutput; the
	// minimum is MinMaxOutput.
	MaxOutput int64
	// Cage, unless nil, is the sandbox with the command in it; then it has Argv and Env, and these
	// are empty here. A stop sends TERM only to the processes inside: for the sandbox's own
	// processes it would kill everything inside at once.
	Cage *sandbox.Start
	// Net, unless nil, makes the shim serve a proxy with these rules on the sandbox's loopback.
	// Refusals are logged in the file network.log in Dir.
	Net *egress.Rules
	// KillAfter is the time from TERM to KILL. 0 is DefaultKillAfter.
	KillAfter time.Duration
}

// Exit is how a launch ended.
type Exit struct {
	// Code is the exit code, or -1 if there is none (ended by a signal, lost, not started).
	Code int `json:"code"`
	// Signal is the name of the signal that ended the command, e.g. "SIGKILL", or "".
	Signal string `json:"signal,omitempty"`
	// Stopped: the shim was asked to end it before it ended by itself, by Stop or by any other TERM
	// to the shim (the machine's shutdown).
	Stopped bool `json:"stopped,omitempty"`
	// Lost: it vanished without a record: killed with its shim, or a reboot.
	Lost bool `json:"lost,omitempty"`
	// NotStarted is why it could not start and what to do, or "".
	NotStarted string `json:"not_started,omitempty"`
	// NoCommand: a person has to install its command, or to name another.
	NoCommand bool `json:"no_command,omitempty"`
	// Unkept is why its stdout is not whole, as on a full disk, or "".
	Unkept string `json:"unkept,omitempty"`
	// Started and Ended are wall times. Ended is when the command's main process was seen gone, or
	// when its loss was noticed.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
}

// success reports whether the command ended by itself with code 0.
func (e Exit) success() bool { return e.Code == 0 && !e.Stopped && !e.Lost }

// checked returns the spec with defaults and absolute paths, or all its faults at once.
func (s Spec) checked() (Spec, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if s.Key == "" || len(s.Key) > maxKeyBytes {
		fault("key of %d bytes: must have 1 to %d", len(s.Key), maxKeyBytes)
	}
	argv := s.Argv
	if s.Cage != nil {
		argv = s.Cage.Argv
	}
	if len(argv) == 0 || argv[0] == "" {
		fault("no command: give argv")
	}
	if s.Cage != nil && len(s.Argv)+len(s.Env) > 0 {
		fault("a command beside its sandbox: give it to the sandbox")
	}
	for _, p := range []struct{ what, path string }{{"dir", s.Dir}, {"pid file", s.PidFile}, {"cwd", s.Cwd}} {
		if p.path == "" {
			fault("no %s: name one", p.what)
		}
	}
	for _, list := range [][]string{argv, s.Env, {s.Key, s.Dir, s.PidFile, s.Under, s.Cwd, s.Stdin, s.Token}} {
		for _, v := range list {
			if strings.IndexByte(v, 0) >= 0 {
				fault("a NUL byte in %.40q: remove it", v)
			}
		}
	}
	for _, kv := range s.Env {
		if strings.IndexByte(kv, '=') <= 0 {
			fault("environment entry without a name (%d bytes): write NAME=value", len(kv))
		}
	}
	if s.MaxOutput < 0 || s.KillAfter < 0 {
		fault("max output %d, kill after %v: must not be negative", s.MaxOutput, s.KillAfter)
	}
	if len(faults) > 0 {
		return s, fmt.Errorf("agents: launch %.80q: %w", s.Key, errors.Join(faults...))
	}
	for _, p := range []*string{&s.Dir, &s.PidFile, &s.Under, &s.Cwd, &s.Stdin} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return s, fmt.Errorf("agents: launch %.80q: path %q: %w", s.Key, *p, err)
		}
		*p = abs
	}
	s.MaxOutput = cmp.Or(s.MaxOutput, DefaultMaxOutput)
	s.MaxOutput = max(s.MaxOutput, MinMaxOutput)
	s.KillAfter = cmp.Or(s.KillAfter, DefaultKillAfter)
	return s, nil
}

// Environ builds a command's environment: from parent ("NAME=value") what the built-in allow-list
// or a pattern in allow names ("MY_VAR", "MY_*"), and all of extra, which wins. The parent's
// SLUICE_* never pass, whatever allow says: a process started from an attempt must not have that
// attempt's token. The result is sorted, with each name once.
func Environ(parent []string, allow []string, extra map[string]string) []string {
	builtin := [...]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TERM", "TMPDIR", "TZ",
		"XDG_*", "SSL_CERT_*"}
	allowed := func(name string) bool {
		if strings.HasPrefix(name, "SLUICE_") {
			return false
		}
		for _, list := range [][]string{builtin[:], allow} {
			for _, pattern := range list {
				if ok, err := path.Match(pattern, name); ok && err == nil {
					return true
				}
			}
		}
		return false
	}
	vars := make(map[string]string, len(parent)+len(extra))
	for _, kv := range parent {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && allowed(name) {
			vars[name] = value
		}
	}
	maps.Copy(vars, extra)
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}
