package node

import (
	"math"
	"path"
	"strconv"
	"strings"
)

// memoryMiB returns the memory that this process may use: that of the machine, or the limit of
// its control groups if that is lower. 0 means unknown.
func memoryMiB(o Options) int64 {
	physical := meminfoBytes(readText(o.path("/proc/meminfo")))
	if physical == 0 {
		return 0
	}
	limit := cgroupLimit(o, readText(o.path("/proc/self/cgroup")))
	return min(physical, limit) >> 20
}

// meminfoBytes reads MemTotal of /proc/meminfo, which is in KiB.
func meminfoBytes(text string) int64 {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil || kib < 0 || kib > math.MaxInt64>>10 {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// cgroupLimit returns the lowest memory limit in bytes on the path from this process's control
// group to the root, for both versions of control groups. Source: cgroups(7).
func cgroupLimit(o Options, membership string) int64 {
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(membership) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		var mount, file string
		switch {
		case fields[0] == "0" && fields[1] == "":
			mount, file = "/sys/fs/cgroup", "memory.max"
		case strings.Contains(","+fields[1]+",", ",memory,"):
			mount, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// Cleaning an absolute path removes the ".." that namespaces can show.
		group := path.Clean("/" + fields[2])
		for depth := 0; depth < maxGroupDepth; depth++ {
			limit = min(limit, limitIn(o.path(path.Join(mount, group, file))))
			if group == "/" {
				break
			}
			group = path.Dir(group)
		}
	}
	return limit
}

// maxGroupDepth is more nesting than any container runtime makes.
const maxGroupDepth = 64

// limitIn reads one limit in bytes. "max", a missing file and an invalid value mean no limit.
func limitIn(path string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(readText(path)), 10, 64)
	if err != nil || n < 0 {
		return math.MaxInt64
	}
	return n
}
