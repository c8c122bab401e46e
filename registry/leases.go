package registry

import (
	"context"
	"time"
)

// Leases lets one of several processes do what only one should. Times are the callers',
// so their clocks must agree better than leases are long.
type Leases interface {
	// AcquireLease gives a lease to a holder until a time, unless another holder has it
	// still at now, and reports whether the holder has it. A holder renews its own.
	AcquireLease(ctx context.Context, name, holder string, now, until time.Time) (bool, error)
	// ReleaseLease gives a lease up. That of another holder stays.
	ReleaseLease(ctx context.Context, name, holder string) error
}
