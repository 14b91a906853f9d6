package test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// playground is a place to run commands in.
type playground struct {
	t   *testing.T
	dir string
	env []string
}

// newWorld makes a folder with a home of its own; with a repo in it, unless bare.
func newWorld(t *testing.T, repo bool) *playground {
	t.Helper()
	dir := t.TempDir()
	w := &playground{t: t, dir: filepath.Join(dir, "work"), env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "SLUICE_CONFIG_SANDBOX_MODE=off"}}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if repo {
		if out, err := exec.Command("git", "-C", w.dir, "init", "-q").CombinedOutput(); err != nil {
			t.Fatalf("git init: %v %s", err, out)
		}
	}
	return w
}

// sluice runs one command line in the world.
func (w *playground) sluice(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	bin := filepath.Join(binDir(w.t), "sluice") // the first test builds it
	ctx, cancel := context.WithTimeout(w.t.Context(), waitMost)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, append([]string{"-C", w.dir}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.env, &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil || ctx.Err() != nil {
		w.t.Fatalf("sluice %v: %v", args, errors.Join(err, ctx.Err()))
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (w *playground) write(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}
