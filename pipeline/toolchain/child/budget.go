package child

import "time"

// Budget bounds one job. The zero Budget is the generous default.
type Budget struct {
	Wall        time.Duration // from start to end; 0 means 30 minutes
	CPU         time.Duration // of all threads together, whole seconds; 0 means 4 hours
	MemoryBytes int64         // private writable memory, where the system can bound it; 0 means 16 GiB
	FileBytes   int64         // of one file; 0 means 16 GiB
}

func (b Budget) withDefaults() Budget {
	const gib = 1 << 30
	if b.Wall <= 0 {
		b.Wall = 30 * time.Minute
	}
	if b.CPU <= 0 {
		b.CPU = 4 * time.Hour
	}
	if b.MemoryBytes <= 0 {
		b.MemoryBytes = 16 * gib
	}
	if b.FileBytes <= 0 {
		b.FileBytes = 16 * gib
	}
	return b
}
