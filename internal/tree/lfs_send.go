package tree

import (
	"context"
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
	said := &git.First{Most: maxSaid}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = said, said, time.Second
	err := cmd.Run()
	return said.String(), err
}
