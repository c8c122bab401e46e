package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// overflowID is the ID of the user and group "nobody".
const overflowID = 65534

// nobody is the user "nobody", which runs programs if this process is root. It is nil if this
// process is not root, or if that user could not read the inputs: for that the program keeps a capability, which this process
// must have.
func nobody(kept int) *user {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, c := range []int{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_CHOWN, kept} {
		if !hasCapability(c) {
			return nil
		}
	}
	if !holds(sameIDs("/proc/self/uid_map"), overflowID) || !holds(sameIDs("/proc/self/gid_map"), overflowID) {
		return nil
	}
	return &user{overflowID, overflowID}
}

func hasCapability(c int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[c/32].Effective&(1<<(c%32)) != 0
}

// sameIDs maps each user or group ID of this process to itself.
func sameIDs(file string) []syscall.SysProcIDMap {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var all []syscall.SysProcIDMap
	for line := range strings.Lines(string(text)) {
		var inside, outside, size int
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err == nil {
			all = append(all, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
		}
	}
	return all
}

func holds(ids []syscall.SysProcIDMap, id int) bool {
	for _, m := range ids {
		if m.ContainerID <= id && id-m.ContainerID < m.Size {
			return true
		}
	}
	return false
}

// give changes the owner of the folders that the program may write to the program's user.
func (u *user) give(folders []string) error {
	for _, folder := range folders {
		if err := os.Lchown(folder, int(u.UID), int(u.GID)); err != nil {
			return err
		}
	}
	return nil
}

// giveBack changes the owner of what the program left to this user. All processes of the
// program have ended, so no process can exchange a file meanwhile.
func giveBack(job Job) error {
	var errs []error
	for _, folder := range append([]string{job.Temp}, job.Write...) {
		errs = append(errs, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, os.Getuid(), os.Getgid()) //nolint:gosec // it follows no link, and no process is left that could make one
		}))
	}
	return errors.Join(errs...)
}
