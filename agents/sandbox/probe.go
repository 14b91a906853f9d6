package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/internal/fault"
	"sluice/internal/text"
)

// probeTime limits a probe, which takes some 20 ms.
const probeTime = 20 * time.Second

// Box is a tested sandbox.
type Box struct {
	program string
	self    string
	filter  []byte
	secrets secrets
	folders folders
}

func newBox(program, self string) (*Box, error) {
	calls, err := filter()
	if err != nil {
		return nil, err
	}
	return &Box{program: program, self: self, filter: calls, secrets: secrets{top: settingsDir}}, nil
}

// Wrap returns how to start argv in the sandbox with the environment env.
func (b *Box) Wrap(p Plan, argv, env []string) (*Start, error) {
	p.Self, p.Root = b.self, os.Geteuid() == 0
	if runtime.GOOS == "darwin" { // macOS removes loader variables from its own programs itself
		return &Start{Argv: p.Seatbelt(b.program, argv), Env: env}, nil
	}
	for _, kv := range env {
		if strings.IndexByte(kv, '=') <= 0 || strings.IndexByte(kv, 0) >= 0 {
			return nil, fault.New("write NAME=value",
				"environment entry without a name, or with a NUL byte (%d bytes)", len(kv))
		}
	}
	hidden, err := b.secrets.now()
	if err != nil {
		return nil, err
	}
	options, layout := p.bubblewrap(b.folders.now(), hidden, append([]string{"PWD=" + p.Cwd}, env...))
	s := &Start{Filter: b.filter, Layout: layout}
	if s.Options, err = joined(options); err != nil {
		return nil, err
	}
	s.Argv = []string{b.program, "--args", strconv.Itoa(optionsFd), "--"}
	if layout != nil {
		s.Argv = append(s.Argv, Tool, CheckCommand)
	}
	s.Argv = append(s.Argv, argv...)
	return s, nil
}

// Program returns the path of the sandbox's program.
func (b *Box) Program() string { return b.program }

// Remaps reports whether the launch's inbox is mounted at .workflow/signals; otherwise it has its
// own path.
func (b *Box) Remaps() bool { return runtime.GOOS != "darwin" }

// Find looks for this system's sandbox program and tries a complete launch: whether it starts, and
// whether the forbidden is impossible. self is this binary, path the search path ("" = PATH). The
// error wraps ErrUnavailable and says what is missing and how to fix it, or ErrUntried.
func Find(ctx context.Context, self, path string) (*Box, error) {
	name := "bwrap"
	switch runtime.GOOS {
	case "linux":
	case "darwin":
		name = "sandbox-exec"
	default:
		return nil, fmt.Errorf("%w: none is known on %s", ErrUnavailable, runtime.GOOS)
	}
	program, err := look(name, path)
	if err != nil {
		return nil, fault.New("apt-get install bubblewrap, or what your system calls it",
			"%w: %s is not installed", ErrUnavailable, name)
	}
	b, err := newBox(program, self)
	if err == nil {
		err = b.probe(ctx)
	}
	switch {
	case errors.Is(err, ErrUntried):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return b, nil
}

// Trial returns find for a process that lives long: its result stands, but a trial that could not be made is
// made again, a rest after the last one at the earliest. Any goroutine may call it.
func Trial(rest time.Duration, find func() (*Box, error)) func() (*Box, error) {
	var mu sync.Mutex
	var box *Box
	var next time.Time
	err := ErrUntried
	return func() (*Box, error) {
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, ErrUntried) && !time.Now().Before(next) {
			box, err = find()
			next = time.Now().Add(rest)
		}
		return box, err
	}
}

// look finds a program in absolute folders only: anybody could have put one into the current
// folder.
func look(name, path string) (string, error) {
	if path == "" {
		path = os.Getenv("PATH")
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", os.ErrNotExist
}

// probeScript tries what must and what must not be possible, and prints a line for each wrong
// result.
const probeScript = `
cd "$1" || echo "its own folder is not there"
echo x >work/file || echo "its own folder cannot be written"
echo x >work/.workflow/signals/x-done.json || echo "its inbox cannot be written"
(echo x >work/.workflow/specs/w.yaml) 2>/dev/null && echo "the specs can be written"
(mv work/.workflow work/w2) 2>/dev/null && echo ".workflow/ can be moved away"
[ -e state/secret ] && echo "the state folder can be read"
[ -w /proc/sys/kernel/core_pattern ] && echo "/proc/sys can be written"
[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 8 ] && echo "processes outside can be seen"
(unshare -Ur true) 2>/dev/null && echo "it can make users of its own"
if [ "$(uname)" = Linux ]; then
	[ -e beside/secret ] && echo "folders that are not shown can be read"
	(head -c 1 /etc/shadow) >/dev/null 2>&1 && echo "/etc/shadow can be read"
	grep -q "^Seccomp:.2" /proc/self/status || echo "its system calls are not filtered"
	grep -q "^CapBnd:.*[1-9a-f]" /proc/self/status && echo "it has capabilities"
	[ -n "$PROBE" ] && echo "the environment outside is seen"
fi
echo held
`

// Command prepares the start, for callers that wait for its end and then call Handed.
func (s *Start) Command(ctx context.Context) (*exec.Cmd, error) {
	files, err := s.Files()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	cmd.Env, cmd.ExtraFiles, cmd.WaitDelay = append([]string{}, s.Env...), files, time.Second
	return cmd, nil
}

// Handed closes the files that the command was given; a nil one takes no harm.
func (s *Start) Handed(cmd *exec.Cmd) {
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
}

// trial prepares a complete launch in the folder dir.
func (b *Box) trial(ctx context.Context, dir string) (*Start, *exec.Cmd, error) {
	at := func(name string) string { return filepath.Join(dir, name) }
	work := at("work")
	for _, d := range []string{"work/.workflow/signals", "work/.workflow/specs", "inbox", "home", "state", "beside"} {
		if err := os.MkdirAll(at(d), 0o700); err != nil {
			return nil, nil, err
		}
	}
	for _, f := range []string{"state/secret", "beside/secret"} {
		if err := os.WriteFile(at(f), []byte("x"), 0o600); err != nil {
			return nil, nil, err
		}
	}
	p := Plan{Home: at("home"), Private: at("home"), Hide: []string{at("state")}, Cwd: work,
		Network: NetNone, Inbox: at("inbox"),
		Shown:   []Mount{{Path: work, Write: true}, {Path: filepath.Join(work, ".workflow")}},
		Inboxes: []string{filepath.Join(work, ".workflow", "signals")}}
	if !b.Remaps() {
		p.Inbox = p.Inboxes[0]
	}
	start, err := b.Wrap(p, []string{"/bin/sh", "-c", probeScript, "probe", dir},
		[]string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
	if err != nil {
		return nil, nil, err
	}
	cmd, err := start.Command(ctx)
	return start, cmd, err
}

// probe runs a complete launch in a temporary folder.
func (b *Box) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "sluice-probe-")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntried, err)
	}
	start, cmd, err := b.trial(ctx, dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntried, err)
	}
	defer start.Handed(cmd)
	cmd.Env = append(cmd.Env, "PROBE=1")
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	err = cmd.Run()
	said := strings.Fields(strings.TrimSpace(out.String()))
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: its trial did not end", ErrUntried)
	case err != nil || len(said) == 0:
		return fmt.Errorf("%s does not work here: %s: user namespaces may be off for this user (sysctl "+
			"kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)",
			b.program, text.Clean(strings.TrimSpace(bad.String()+" "+fmt.Sprint(err)), 300))
	case strings.TrimSpace(out.String()) != "held":
		lines := strings.TrimSuffix(strings.TrimSpace(out.String()), "held")
		return fmt.Errorf("%s does not hold here: %s", b.program, text.Clean(strings.ReplaceAll(lines, "\n", "; "), 300))
	}
	return nil
}
