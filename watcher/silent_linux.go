package watcher

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// silent names the file system of path if it sends no events of what others do to it, as network file
// systems and those that a program or another machine serves: a cookie of ours would be seen on them and
// prove nothing.
func silent(path string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return ""
	}
	return silentType(uint32(st.Type)) // the width of Type differs between architectures; the numbers have 32 bits
}

func silentType(number uint32) string {
	name := ""
	switch number {
	case unix.NFS_SUPER_MAGIC:
		name = "nfs"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		name = "cifs"
	case unix.FUSE_SUPER_MAGIC: // virtiofs bears the same number
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
