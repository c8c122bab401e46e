package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Attributes of mounts.
const (
	plainMount    = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnlyMount = plainMount | unix.MOUNT_ATTR_RDONLY
	deviceMount   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// tree is a mount that is not attached yet.
type tree struct {
	fd            int
	at            string
	folder        bool
	device, inode uint64
}

// open clones the mounts at a path, including mounts below it.
func open(path, at string, attributes uint64) (tree, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, &fs.PathError{Op: "open_tree", Path: path, Err: err}
	}
	if err := unix.MountSetattr(fd,
		"", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes}); err != nil {
		return tree{}, &fs.PathError{Op: "mount_setattr", Path: path, Err: err}
	}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return tree{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return tree{fd, at, info.Mode&unix.S_IFMT == unix.S_IFDIR, uint64(info.Dev), info.Ino}, nil //nolint:unconvert // 32 bits on some systems
}

// hang creates the mount point and attaches the mount there.
func (t tree) hang() error {
	defer closeFD(t.fd)
	folder := t.at
	if !t.folder {
		folder = filepath.Dir(t.at)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if !t.folder {
		f, err := os.OpenFile(t.at, os.O_CREATE|os.O_RDONLY, 0o444)
		if err != nil {
			return err
		}
		f.Close()
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "move_mount", Path: t.at, Err: err}
	}
	return nil
}

// pivot makes an empty in-memory file system the root, and detaches the old root. The folder is
// its temporary mount point.
func pivot(folder string) error {
	if err := memory(folder, "mode=755,size=16m"); err != nil {
		return err
	}
	if err := os.Chdir(folder); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount2", err)
	}
	return os.Chdir("/")
}

func memory(at, options string) error {
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount memory at %s: %w", at, err)
	}
	return nil
}

// closeFD closes a descriptor that was only read or used as a path.
func closeFD(fd int) { _ = unix.Close(fd) }
