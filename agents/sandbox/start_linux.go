package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Files returns the descriptors from 3 up to InfoFd; a nil one stays closed.
func (s *Start) Files() (files []*os.File, err error) {
	for _, data := range [][]byte{s.Options, s.Filter, s.Layout} {
		var f *os.File
		if data != nil {
			if f, err = memory(data); err != nil {
				for _, f := range files {
					f.Close()
				}
				return nil, fmt.Errorf("sandbox: %w", err)
			}
		}
		files = append(files, f)
	}
	return files, nil
}

// memory returns a file in memory that nobody else can open, positioned at its start.
func memory(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("sluice", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "sluice")
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
