package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/internal/git"
	"sluice/internal/tree"
)

const (
	// prTime bounds the making of a pull request.
	prTime = 2 * time.Minute
	// maxSaid is how much of gh's words is kept.
	maxSaid = 64 << 10
)

// pullRequest pushes the run's branch and has gh open a pull request to the branch that it would land on.
func (a *app) pullRequest(ctx context.Context, p *place, repo *git.Repo, r daemon.RunStatus, w tree.Landing) (string, error) {
	gh, err := exec.LookPath("gh")
	if err != nil {
		return "", failed("install gh (https://cli.github.com) and log in: gh auth login", "no pull request: gh is not installed")
	}
	address, err := repo.RemoteURL(ctx, "origin")
	if err != nil {
		return "", err
	}
	if address == "" {
		return "", failed("git remote add origin ADDRESS", "no pull request: the repo has no remote named origin")
	}
	if err := repo.Push(ctx, address, w.Tip, r.Branch); err != nil {
		return "", failed("see that you may push there, then `sluice land "+r.ID+" --pr` again", "no pull request: %v", err)
	}
	title, body, _ := strings.Cut(w.Message, "\n")
	body = strings.TrimSpace(body) + "\n\n" + strings.Join(w.Trailers, "\n") + "\n"
	ctx, cancel := context.WithTimeout(ctx, prTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, gh, "pr", "create", "--repo", address, "--head", r.Branch, "--base", shortBranch(w.Onto), "--title", title, "--body-file", "-")
	cmd.Dir, cmd.Env = p.root, append(slices.Clone(a.env), "GH_PROMPT_DISABLED=1")
	cmd.Stdin = strings.NewReader(body)
	var said bytes.Buffer
	cmd.Stdout = &capped{w: &said, left: maxSaid}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		return "", failed("`gh auth status` shows who you are there; the branch is pushed, so this can be done again: sluice land "+r.ID+" --pr",
			"gh could not open the pull request: %s", oneLine(errors.Join(err, errors.New(said.String())).Error()))
	}
	return clean(lastLine(said.String())), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// capped takes all and keeps the first.
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
