package toolchain

import "context"

// Limit is driver with at most n jobs at a time; the others wait. An n below 1 means 1.
func Limit(driver Driver, n int) Driver {
	return limited{driver, make(chan struct{}, max(n, 1))}
}

type limited struct {
	Driver
	slots chan struct{}
}

func (l limited) Do(ctx context.Context, job Job, outDir string) (Outcome, error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	defer func() { <-l.slots }()
	return l.Driver.Do(ctx, job, outDir)
}
