package tree

import (
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
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
	has, err := repo.AnySmall(ctx, base, tip, maxPointer, isPointer)
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

const (
	// maxPointer is the size that a Git LFS pointer must stay below (its specification).
	maxPointer = 1024
	// pointerSpec begins the versions of its specification.
	pointerSpec = "https://git-lfs.github.com/spec/"
)

// pointerLine returns the lines of a pointer after its version, in order; lines of extensions come
// before them.
func pointerLine() []*regexp.Regexp {
	return []*regexp.Regexp{regexp.MustCompile(`^oid sha256:[0-9a-fA-F]{64}$`), regexp.MustCompile(`^size [0-9]+$`)}
}

// isPointer reports whether git-lfs would read a file as a pointer. It reads more than it writes,
// such as Windows line endings and older version names. For an unknown version only the first line
// counts: a missed pointer would be a file that is not sent.
func isPointer(text []byte) bool {
	lines := slices.DeleteFunc(strings.Split(strings.ReplaceAll(strings.TrimSpace(string(text)), "\r\n", "\n"),
		"\n"), func(l string) bool { return l == "" })
	if len(text) >= maxPointer || len(lines) == 0 {
		return false
	}
	version, has := strings.CutPrefix(lines[0], "version ")
	if known := []string{pointerSpec + "v1", "https://hawser.github.com/spec/v1",
		"http://git-media.io/v/2"}; !has || !slices.Contains(known, version) {
		return has && strings.HasPrefix(version, pointerSpec)
	}
	lines = slices.DeleteFunc(lines[1:], func(l string) bool { return strings.HasPrefix(l, "ext-") })
	return slices.EqualFunc(lines, pointerLine(),
		func(l string, want *regexp.Regexp) bool { return want.MatchString(l) })
}
