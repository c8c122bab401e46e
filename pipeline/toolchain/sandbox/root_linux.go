package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Files that every program can see beside [SystemFolders]: for finding system libraries, names
// of users, time zones, and information about processors.
var (
	systemFiles = []string{
		"/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd",
	}
	devices       = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
	processorPath = "/sys/devices/system"
)

func systemPaths() []string { return append(SystemFolders(), systemFiles...) }

// hostName is the name of the machine in every sandbox.
const hostName = "mlpromote"

// root is a root file system under construction.
type root struct {
	trees  []tree
	inputs []tree
	links  map[string]string // targets of symbolic links, by path of the link
}

// enterRoot replaces this process's mount namespace by one with only what the job may see. It
// first opens everything in the old root, and then mounts it in the new root, from which the
// old one cannot be reached.
func (s *server) enterRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts from those of the system: %w", err)
	}
	mask := unix.Umask(0o022)
	defer unix.Umask(mask)
	r := root{links: make(map[string]string)}
	if err := errors.Join(r.system(), r.job(s.Job)); err != nil {
		return err
	}
	if err := pivot(s.Job.Inputs); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := r.hang(s.Job); err != nil {
		return err
	}
	return s.finish()
}

// finish makes read-only what had to be writable until now.
func (s *server) finish() error {
	if s.Level.UserNamespace {
		// A program that creates a user namespace would be root in it.
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return err
		}
	}
	closed := []string{"/proc", s.Job.Inputs, "/"}
	if len(s.Job.Devices) > 0 {
		if err := closeSystem("/proc"); err != nil {
			return fmt.Errorf("make what is not of processes in /proc read-only: %w", err)
		}
		closed = closed[1:]
	}
	for _, path := range closed {
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	if err := unix.Sethostname([]byte(hostName)); err != nil {
		return fmt.Errorf("name the host: %w", err)
	}
	return os.Chdir(s.Job.Dir)
}

// closeSystem makes everything in a /proc read-only but what belongs to single processes. NVIDIA's library
// for CUDA fails with error 304 where it cannot write to what belongs to its own.
func closeSystem(proc string) error {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil || e.Type() == fs.ModeSymlink {
			continue
		}
		path := filepath.Join(proc, e.Name())
		t, err := open(path, path, readOnlyMount|unix.MOUNT_ATTR_NOEXEC)
		if err == nil {
			err = unix.MoveMount(t.fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
			closeFD(t.fd)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// system opens what every program can see.
func (r *root) system() error {
	for _, path := range systemPaths() {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0 && info.Mode().Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			r.links[path] = to
			continue
		}
		if err := r.add(path, path, readOnlyMount); err != nil {
			return err
		}
	}
	for _, path := range devices {
		if err := r.add(path, path, deviceMount); err != nil {
			return err
		}
	}
	if _, err := os.Stat(processorPath); err == nil {
		if err := r.add(processorPath, processorPath, readOnlyMount|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	return r.proc()
}

// proc creates a /proc of this process namespace. The kernel requires that a /proc is visible
// already, so it must be created in the old root.
func (r *root) proc() error {
	context, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make /proc: %w", err)
	}
	defer closeFD(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return fmt.Errorf("make /proc: %w", err)
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, plainMount|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("make /proc: %w", err)
	}
	r.trees = append(r.trees, tree{fd: fd, at: "/proc", folder: true})
	return nil
}

// job opens what this program can see. If a path leads through links, their targets become
// visible too.
func (r *root) job(j wire) error {
	if err := r.add(j.Temp, "/tmp", plainMount); err != nil {
		return err
	}
	for _, path := range j.Read {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		for _, at := range []string{filepath.Clean(path), target} {
			if r.covered(at) {
				continue
			}
			if err := r.add(target, at, readOnlyMount); err != nil {
				return err
			}
		}
	}
	for _, path := range j.Devices {
		if err := r.add(path, path, deviceMount); err != nil {
			return err
		}
	}
	for _, path := range j.Write {
		if err := r.add(path, path, plainMount); err != nil {
			return err
		}
	}
	for _, f := range j.Files {
		t, err := open(f.From, f.At, readOnlyMount)
		if err == nil {
			err = f.check(t.device, t.inode)
		}
		if err != nil {
			return err
		}
		r.inputs = append(r.inputs, t)
	}
	return nil
}

// covered reports whether a folder above a path is visible already.
func (r *root) covered(path string) bool {
	for _, t := range r.trees {
		if t.at != "/tmp" && (path == t.at || strings.HasPrefix(path, t.at+"/")) {
			return true
		}
	}
	return false
}

func (r *root) add(path, at string, attributes uint64) error {
	t, err := open(path, at, attributes)
	r.trees = append(r.trees, t)
	return err
}

// hang mounts everything in the new root. The inputs come last, because their folder becomes
// read-only and may be below others.
func (r *root) hang(j wire) error {
	for at, to := range r.links {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(to, at)); err != nil {
			return err
		}
	}
	for _, t := range r.trees {
		if err := t.hang(); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(j.Inputs, 0o755), memory(j.Inputs, "mode=755,size=16m")); err != nil {
		return err
	}
	for _, t := range r.inputs {
		if err := t.hang(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/dev/shm", 0o755); err != nil {
		return err
	}
	return memory("/dev/shm", fmt.Sprintf("mode=1777,size=%d", max(j.Limits.MemoryBytes, 1<<20)))
}
