package confined

import (
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelView reports whether a file is a view of the kernel, such as /proc/self/environ. For
// stat(2), these are regular files.
func kernelView(f *os.File) bool {
	var info unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &info) != nil {
		return true
	}
	return slices.Contains([]int64{
		unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC,
		unix.DEVPTS_SUPER_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC,
	}, int64(info.Type)) //nolint:unconvert // 32 bits on some systems
}

// hasOtherNames reports whether a file has more than one name.
func hasOtherNames(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 1
}
