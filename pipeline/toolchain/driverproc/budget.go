package driverproc

import (
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// Budget bounds one job. The zero Budget has large defaults.
type Budget struct {
	Wall        time.Duration // from start to end; 0 means 30 minutes
	CPU         time.Duration // of all threads of a process together, whole seconds; 0 means 4 hours
	MemoryBytes int64         // private writable memory of a process, where the system can bound it; 0 means 16 GiB, or 64 GiB with accelerators
	FileBytes   int64         // of one file; 0 means 16 GiB
	Processes   int64         // and threads, where the system can bound them; 0 means 1024
	OpenFiles   int64         // of a process; 0 means 4096
	// Sandbox is the strongest sandbox that is tried; empty tries all. It is for tests, and for
	// machines on which the stronger ones cause problems.
	Sandbox toolchain.Sandbox
	// Least is the weakest sandbox in which the program may run; empty allows any.
	Least toolchain.Sandbox
}

// deviceMemoryBytes is the default of Budget.MemoryBytes for jobs that use accelerators: their drivers map memory of a
// device into the process, for which they reserve addresses.
const deviceMemoryBytes = 64 << 30

// with returns the budget with the limits that a job sets itself.
func (b Budget) with(job toolchain.Job) Budget {
	if len(job.Accelerators) > 0 && b.MemoryBytes <= 0 {
		b.MemoryBytes = deviceMemoryBytes
	}
	if job.Budget.Time > 0 {
		b.Wall = job.Budget.Time
	}
	if job.Budget.MemoryBytes > 0 {
		b.MemoryBytes = job.Budget.MemoryBytes
	}
	return b
}

func (b Budget) withDefaults() Budget {
	const gib = 1 << 30
	if b.Wall <= 0 {
		b.Wall = 30 * time.Minute
	}
	if b.CPU <= 0 {
		b.CPU = 4 * time.Hour
	}
	for _, d := range []struct {
		field *int64
		value int64
	}{{&b.MemoryBytes, 16 * gib}, {&b.FileBytes, 16 * gib}, {&b.Processes, 1024}, {&b.OpenFiles, 4096}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return b
}

func (b Budget) limits() sandbox.Limits {
	return sandbox.Limits{CPU: b.CPU, MemoryBytes: b.MemoryBytes,
		FileBytes: b.FileBytes, Processes: b.Processes, OpenFiles: b.OpenFiles}
}
