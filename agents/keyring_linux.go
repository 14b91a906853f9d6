package agents

import (
	"errors"

	"golang.org/x/sys/unix"

	"sluice/internal/fault"
)

// freshKeyring gives this thread, and what it starts, a session keyring with nothing in it. A kernel without keys, and a
// container that denies the call, have none to give; inside, the filter of system calls denies all use of keys.
func freshKeyring() error {
	_, _, errno := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	if errno == 0 || errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EPERM) || errors.Is(errno, unix.EACCES) {
		return nil
	}
	return fault.New("see kernel.keys.maxkeys and the keys of this user in /proc/key-users", "session keyring: %w", errno)
}
