package sandbox

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cgroupRoot is where the system mounts control groups: in version 1 with a folder for each controller.
const cgroupRoot = "/sys/fs/cgroup"

// cgroup bounds the memory and the number of all processes of a program together. The zero cgroup bounds nothing.
type cgroup struct{ folders []string }

// newCgroup makes a group below that of this process. It takes root, or a part of the tree that was delegated to this user.
// Errors: why there is none.
func newCgroup(l Limits) (c cgroup, err error) {
	bounds, err := cgroupBounds(l)
	if err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			c.remove()
			c = cgroup{}
		}
	}()
	name := "mlpromote-" + rand.Text()
	for parent, files := range bounds {
		folder := filepath.Join(parent, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return c, err
		}
		c.folders = append(c.folders, folder)
		for _, f := range files {
			if err := writeExisting(filepath.Join(folder, f.name), strconv.FormatInt(f.value, 10)); err != nil && !(f.optional && errors.Is(err, fs.ErrNotExist)) {
				return c, err
			}
		}
	}
	return c, nil
}

// cgroupFile is a file of a group, with the value to write.
type cgroupFile struct {
	name     string
	value    int64
	optional bool // without accounting of swap, it does not exist
}

// cgroupBounds returns the groups of this process, with the files to write in a group below each.
func cgroupBounds(l Limits) (map[string][]cgroupFile, error) {
	own, err := ownCgroups()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		parent := filepath.Join(cgroupRoot, own[""])
		// This fails where the controllers are on already, and where the group has processes and is not the root.
		_ = writeExisting(filepath.Join(parent, "cgroup.subtree_control"), "+memory +pids")
		return map[string][]cgroupFile{parent: {
			{name: "memory.max", value: l.MemoryBytes}, {name: "memory.swap.max", value: 0, optional: true}, {name: "pids.max", value: l.Processes},
		}}, nil
	}
	memory, hasMemory := own["memory"]
	pids, hasPIDs := own["pids"]
	if !hasMemory || !hasPIDs {
		return nil, errors.New("the controllers memory and pids are not both there")
	}
	return map[string][]cgroupFile{
		filepath.Join(cgroupRoot, "memory", memory): {
			{name: "memory.limit_in_bytes", value: l.MemoryBytes}, {name: "memory.memsw.limit_in_bytes", value: l.MemoryBytes, optional: true},
		},
		filepath.Join(cgroupRoot, "pids", pids): {{name: "pids.max", value: l.Processes}},
	}, nil
}

// ownCgroups returns the paths of the groups of this process by controller: "" in version 2.
func ownCgroups() (map[string]string, error) {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	own := make(map[string]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)            // number, controllers, path
		if len(parts) != 3 || strings.Contains(parts[2], "..") { // a group above the namespace of this process
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own, nil
}

// writeExisting writes to a file of the kernel.
func writeExisting(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// add moves a process into the group. All that it starts from then on is in the group too.
func (c cgroup) add(pid int) error {
	for _, folder := range c.folders {
		if err := writeExisting(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("put a program into its control group: %w", err)
		}
	}
	return nil
}

// remove removes the group. The kernel refuses that for a moment after the last process has ended.
func (c cgroup) remove() {
	for _, folder := range c.folders {
		for wait := time.Millisecond; os.Remove(folder) != nil && wait < time.Second; wait *= 2 {
			time.Sleep(wait)
		}
	}
}
