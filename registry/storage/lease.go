package storage

import (
	"context"
	"time"
)

// Leases lets one process at a time do a task. Leases expire by the clock of the catalog, so
// that differences between the clocks of processes do not matter.
type Leases interface {
	// AcquireLease takes or renews a lease for a holder, unless another holder has it. It
	// reports whether the holder has the lease now.
	AcquireLease(ctx context.Context, name, holder string, lasting time.Duration) (bool, error)
	// ReleaseLease releases a lease. It does not affect the lease of another holder.
	ReleaseLease(ctx context.Context, name, holder string) error
}
