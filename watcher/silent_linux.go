package watcher

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// silent returns the file system type of path if it sends no events of others' changes, as network
// file systems and those served by a program or another machine. There, our own cookie would be
// seen and prove nothing.
func silent(path string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return ""
	}
	return silentType(uint32(st.Type)) // the width of Type varies by architecture; the numbers have 32 bits
}

func silentType(number uint32) string {
	name := ""
	switch number {
	case unix.NFS_SUPER_MAGIC:
		name = "nfs"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		name = "cifs"
	case unix.FUSE_SUPER_MAGIC: // virtiofs has the same number
		name = "fuse"
	case unix.V9FS_MAGIC:
		name = "9p"
	case unix.CEPH_SUPER_MAGIC:
		name = "ceph"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		name = "afs"
	default:
		return ""
	}
	return fmt.Sprintf("a file system of type %s sends no events of what others do", name)
}
