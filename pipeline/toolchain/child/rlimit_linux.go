package child

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// restrict bounds a process that waits for its request. RLIMIT_DATA counts private
// writable memory (Linux 4.7 and later); RLIMIT_AS would also count the address space
// that allocators reserve and never touch.
func restrict(pid int, b Budget) error {
	seconds := uint64((b.CPU + time.Second - 1) / time.Second)
	for _, l := range []struct {
		name     string
		resource int
		bound    uint64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"cpu", unix.RLIMIT_CPU, seconds},
		{"data", unix.RLIMIT_DATA, uint64(b.MemoryBytes)},
		{"fsize", unix.RLIMIT_FSIZE, uint64(b.FileBytes)},
	} {
		limit := unix.Rlimit{Cur: l.bound, Max: l.bound}
		var have unix.Rlimit
		if err := unix.Prlimit(pid, l.resource, nil, &have); err != nil {
			return fmt.Errorf("read limit %s: %w", l.name, err)
		}
		limit.Max = min(limit.Max, have.Max)
		limit.Cur = min(limit.Cur, limit.Max)
		if err := unix.Prlimit(pid, l.resource, &limit, nil); err != nil {
			return fmt.Errorf("set limit %s: %w", l.name, err)
		}
	}
	return nil
}
