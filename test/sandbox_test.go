//go:build linux

package test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/internal/setup"
)

// sandbox is a repo with a HOME, settings and state of its own, for tests that a script cannot tell.
type sandbox struct {
	t    *testing.T
	work string
	repo string
	env  []string
	bin  string
	log  *os.File
	last *exec.Cmd // the daemon
}

// newSandbox makes one; its repo is empty, and no commit is made yet. No process of it outlives the test.
func newSandbox(t *testing.T, settings string) *sandbox {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &sandbox{t: t, work: work, repo: filepath.Join(work, "repo")}
	w.bin = filepath.Join(binDir(t), "sluice")
	w.env = append(isolated(work), "PATH="+filepath.Dir(w.bin)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := furnish(work); err != nil {
		t.Fatal(err)
	}
	w.put("config/sluice/config.yaml", strings.ReplaceAll(settings, "@WORK@", work))
	w.put("repo/.workflow/.gitignore", setup.Ignored)
	if w.log, err = os.OpenFile(filepath.Join(work, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	return w
}

// commit makes the repo a git repo with all its files.
func (w *sandbox) commit() {
	w.t.Helper()
	w.do("git", "init", "-q")
	w.do("git", "add", "-A")
	w.do("git", "commit", "-q", "-m", "start")
}

// end ends what the test started.
func (w *sandbox) end() {
	if w.last != nil {
		_ = w.last.Process.Kill()
		_ = w.last.Wait()
	}
	for range 50 {
		left := processesOf(w.work)
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(pollEvery)
	}
	w.log.Close()
	if w.t.Failed() {
		w.t.Logf("the daemon's log ends:\n%s", tailOf(w.log.Name()))
	}
}

func (w *sandbox) put(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.work, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// try runs a command in the repo.
func (w *sandbox) try(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = w.repo, w.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *sandbox) do(name string, args ...string) string {
	w.t.Helper()
	out, err := w.try(name, args...)
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// state finds the repo's state folder.
func (w *sandbox) state() string {
	dirs, _ := filepath.Glob(filepath.Join(w.work, "state/sluice/repo-*"))
	if len(dirs) != 1 {
		return ""
	}
	return dirs[0]
}

// boot starts the daemon, behind a command if one is given, and does not wait for it.
func (w *sandbox) boot(front ...string) {
	w.t.Helper()
	argv := append(front, w.bin, "daemon")
	w.last = exec.Command(argv[0], argv[1:]...)
	w.last.Dir, w.last.Env, w.last.Stdout, w.last.Stderr = w.repo, w.env, w.log, w.log
	if err := w.last.Start(); err != nil {
		w.t.Fatal(err)
	}
}

// kill ends the daemon as a crash would.
func (w *sandbox) kill() {
	w.t.Helper()
	if err := w.last.Process.Kill(); err != nil {
		w.t.Fatalf("the daemon was gone before it was killed: %v", err)
	}
	err := w.last.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.t.Fatalf("the daemon ended by itself: %v", err)
	}
	w.last = nil
}

// status asks the daemon how the repo stands; false while it does not serve.
func (w *sandbox) status() (daemon.Status, bool) {
	dir := w.state()
	if dir == "" {
		return daemon.Status{}, false
	}
	c := daemon.NewClient(dir)
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), answerMost)
	defer cancel()
	st, err := c.Status(ctx, "")
	return st, err == nil
}

// eventually polls for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	within(t, 2*waitMost, what, cond)
}

func within(t *testing.T, most time.Duration, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(most); !cond(); time.Sleep(pollEvery) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}
