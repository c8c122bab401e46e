package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock's interface, by the feature that each added
// (https://docs.kernel.org/userspace-api/landlock.html).
const (
	landlockRefer    = 2
	landlockTruncate = 3
	landlockTCP      = 4
	landlockIoctl    = 5
	landlockScope    = 6
)

// Access rights for files and folders.
const (
	rightsRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsFirst = 1<<13 - 1 // all of version 1
	rightsFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // those that apply to files
)

// landlockVersion returns the version of the kernel's interface, from 1. Errors: those of a
// kernel without Landlock.
func landlockVersion() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(v), nil
}

func landlockRights(version int) uint64 {
	rights := uint64(rightsFirst)
	if version >= landlockRefer {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= landlockTruncate {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= landlockIoctl {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// landlock restricts this thread and the processes that it starts. It returns what the rules
// cannot restrict.
func (s *server) landlock() (lacks []string, err error) {
	version, err := landlockVersion()
	if err != nil {
		return nil, err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockRights(version)}
	lacks = []string{"network: Landlock restricts only TCP"}
	if version >= landlockTCP {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	} else {
		lacks = []string{fmt.Sprintf("network: version %d of Landlock cannot restrict it", version)}
	}
	if version >= landlockScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // the system call takes a pointer
	if errno != 0 {
		return nil, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	defer closeFD(int(set))
	if err := s.allow(int(set), attr.Handled_access_fs); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return nil, fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return lacks, nil
}

// allow adds a rule for everything that the program may read or write.
func (s *server) allow(set int, all uint64) error {
	readable := make([]File, 0, len(s.Job.Read)+len(s.Job.Files)+2)
	for _, path := range append(slices.Clone(s.Job.Read), s.Job.Inputs, self) {
		readable = append(readable, File{From: path})
	}
	for _, f := range append(readable, s.Job.Files...) {
		if err := rule(set, f, rightsRead); err != nil {
			return err
		}
	}
	for _, path := range append(systemPaths(), "/proc", processorPath) {
		if err := rule(set, File{From: path}, rightsRead); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, path := range devices {
		if err := rule(set, File{From: path}, all&(rightsRead|unix.LANDLOCK_ACCESS_FS_WRITE_FILE)); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(s.Job.Devices) > 0 && s.User == nil && os.Geteuid() != 0 {
		// As closeSystem says. What is not of this user's processes is not writable for it anyway, unless it is root: /proc/sys is root's.
		if err := rule(set, File{From: "/proc"}, all&(rightsRead|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_TRUNCATE)); err != nil {
			return err
		}
	}
	for _, path := range s.Job.Devices {
		if err := rule(set, File{From: path}, all&(rightsRead|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)); err != nil {
			return err
		}
	}
	for _, path := range append(s.Job.Write, s.Job.Temp) {
		if err := rule(set, File{From: path}, all); err != nil {
			return err
		}
	}
	return nil
}

// rule allows the rights on a file, or on a folder with everything below it.
func rule(set int, f File, rights uint64) error {
	path := f.From
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer closeFD(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := f.check(uint64(info.Dev), info.Ino); err != nil { //nolint:unconvert // 32 bits on some systems
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsFile
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 { //nolint:gosec // as above
		return &fs.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}
