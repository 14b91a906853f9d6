package git

import "golang.org/x/sys/unix"

// settle syncs the file system of dir to disk. Git does not sync what it writes for a worktree, and
// a power cut would leave empty files that git cannot read.
func settle(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}
