package tree

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"sluice/internal/git"
)

const (
	// requestTime limits opening a pull request, and lfsTime sending files of Git LFS.
	requestTime = 2 * time.Minute
	lfsTime     = 10 * time.Minute
	// maxSaid limits a program's output.
	maxSaid = 64 << 10
)

// Request pushes the run's branch with its Git LFS files, and has gh open a pull request to the
// target branch. env is the person's environment. It returns the address that gh printed. After a
// kill it can be called again.
func (w Work) Request(ctx context.Context, repo *git.Repo, l Landing, env []string) (string, error) {
	again := "`sluice land " + w.Run + " --pr` again"
	gh, err := exec.LookPath("gh")
	if err != nil {
		return "", stuck("install gh (https://cli.github.com) and log in: gh auth login",
			"no pull request: gh is not installed")
	}
	address, err := repo.RemoteURL(ctx, "origin")
	if err != nil {
		return "", err
	}
	if address == "" {
		return "", stuck("git remote add origin ADDRESS", "no pull request: the repo has no remote named origin")
	}
	if err := w.sendLFS(ctx, repo, l, env, again); err != nil {
		return "", err
	}
	if err := repo.Push(ctx, address, l.Tip, w.Branch); err != nil {
		return "", stuck("check that you may push there, then "+again, "no pull request: %v", err)
	}
	title, body, _ := strings.Cut(l.Message, "\n")
	body = strings.TrimSpace(body) + "\n\n" + strings.Join(l.Trailers, "\n") + "\n"
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, gh, "pr", "create", "--repo", address, "--head", w.Branch, "--base",
		short(l.Onto), "--title", title, "--body-file", "-")
	cmd.Dir, cmd.Env, cmd.Stdin = repo.Top(), append(slices.Clone(env), "GH_PROMPT_DISABLED=1"), strings.NewReader(body)
	said, err := saidBy(cmd)
	if err != nil {
		return "", stuck("`gh auth status` shows who you are there; the branch is pushed, so this can be done again: sluice land "+w.Run+" --pr",
			"gh could not open the pull request: %s", git.OneLine(err.Error()+" "+said))
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return git.OneLine(lines[len(lines)-1]), nil
}

// sendLFS sends the Git LFS files named in the commits before the branch, so that whoever fetches
// it gets them.
func (w Work) sendLFS(ctx context.Context, repo *git.Repo, l Landing, env []string, again string) error {
	has, err := repo.NamesLFS(ctx, l.Base, l.Tip)
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
	cmd := exec.CommandContext(ctx, program, "push", "origin", headRefs+w.Branch)
	cmd.Dir, cmd.Env = repo.Top(), append(slices.Clone(env), "GIT_TERMINAL_PROMPT=0")
	if said, err := saidBy(cmd); err != nil {
		return stuck("run git lfs push origin "+w.Branch+", then "+again,
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
