package tree

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"slices"
	"time"

	"sluice/internal/git"
)

const (
	// lfsTime limits sending files of Git LFS.
	lfsTime = 10 * time.Minute
	// maxSaid limits a program's output.
	maxSaid = 64 << 10
)

// SendLFS sends the Git LFS files named in the commits from base to tip, which ref names, before
// they are pushed, so that whoever fetches them gets the files. env is the person's environment,
// again how they do it again.
func SendLFS(ctx context.Context, repo *git.Repo, base, tip, ref string, env []string, again string) error {
	has, err := repo.NamesLFS(ctx, base, tip)
	if err != nil || !has {
		return err
	}
	program, err := exec.LookPath("git-lfs")
	if err != nil {
		return stuck("install git-lfs (https://git-lfs.com), then "+again,
			"no pull request: the work has files of Git LFS, and git-lfs is not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, lfsTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "push", "origin", ref)
	cmd.Dir, cmd.Env = repo.Top(), append(slices.Clone(env), "GIT_TERMINAL_PROMPT=0")
	if said, err := saidBy(cmd); err != nil {
		return stuck("run git lfs push origin "+ref+", then "+again,
			"no pull request: git-lfs could not send the files: %s", git.OneLine(err.Error()+" "+said))
	}
	return nil
}

// saidBy runs a program and returns its output.
func saidBy(cmd *exec.Cmd) (string, error) {
	var said bytes.Buffer
	cmd.Stdout = &capped{w: &said, left: maxSaid}
	cmd.Stderr, cmd.WaitDelay = cmd.Stdout, time.Second
	err := cmd.Run()
	return said.String(), err
}

// capped keeps the first bytes and discards the rest.
type capped struct {
	w    io.Writer
	left int
}

func (c *capped) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.left -= n
	_, err := c.w.Write(b[:n])
	return len(b), err
}
